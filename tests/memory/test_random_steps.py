"""Random training steps under random budgets, in eager code from the first step on: never a byte over, and the bits
of a run without a budget. Perceptrons, images with batch norm and dropout, decoders, recurrent layers, embeddings with
dense and row-sparse gradients, second derivatives, hooks, views, writes in place, checkpoints.

CYGRAD_PROGRAMS is the number of steps (400). `make test-all` takes 10,000."""

import os

import numpy as np
import pytest
from small_models import Block, Decoder

import cygrad as cg
from cygrad import nn

COUNT = int(os.environ.get("CYGRAD_PROGRAMS", "400"))
PARTS = 8
SOLVERS = ["Sgd", "Momentum", "Adam", "AdamW", "Lion", "Ftrl"]
TAKES_ROWS = ["Sgd", "Adam"]


class Perceptron(nn.Module):
    def __init__(self, rng, width):
        layers = [layer for _ in range(int(rng.integers(2, 6))) for layer in (
            nn.Linear(width, width), (nn.ReLU, nn.GELU, nn.Tanh)[rng.integers(3)](), nn.Dropout(0.2))]
        self.layers, self.shape = nn.Sequential(*layers), (int(rng.integers(60, 200)), width)

    def forward(self, x): return self.layers(x)


class Images(nn.Module):
    def __init__(self, rng, width):
        self.layers = nn.Sequential(*[layer for k in range(int(rng.integers(1, 4))) for layer in (
            nn.Conv2d(2 if k == 0 else 4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1))],
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * (width // 2) ** 2, 5))
        self.shape = int(rng.integers(8, 20)), 2, width, width

    def forward(self, x): return self.layers(x)


class Recurrent(nn.Module):
    def __init__(self, rng, width):
        self.layer, self.head = (nn.LSTM, nn.GRU)[rng.integers(2)](width, 6), nn.Linear(6, 4)
        self.shape = int(rng.integers(10, 30)), 8, width

    def forward(self, x): return self.head(cg.tanh(self.layer(x)[0]))


class Table(nn.Module):
    """An embedding, used twice, whose gradient has the rows alone if it is sparse."""

    def __init__(self, rng, width):
        self.table, self.block = nn.Embedding(30, width, sparse=bool(rng.integers(2))), Block(width)
        self.rows, self.more = rng.integers(0, 30, 120), rng.integers(0, 30, 120)
        self.shape = 120, width

    def forward(self, x): return self.block(self.table(self.rows) * x) + self.table(self.more)


class Tokens(nn.Module):
    """A decoder: `forward` gives the loss, which depends on the batch by a factor."""

    def __init__(self, rng, width):
        self.decoder, self.chunk = Decoder(20, 8, int(rng.integers(1, 3))), (None, 20)[rng.integers(2)]
        self.tokens = rng.integers(0, 20, (3, int(rng.integers(20, 50))))
        self.shape = (3,)

    def forward(self, x):
        return self.decoder(self.tokens, np.roll(self.tokens, -1).reshape(-1), self.chunk) * x


class Step:
    """A random model and solver, and what else a step does."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        cg.random.seed(seed)
        self.model = (Perceptron, Images, Recurrent, Table, Tokens)[seed % 5](rng, 2 * int(rng.integers(2, 6)))
        self.x = cg.random.normal(self.model.shape)
        rules = TAKES_ROWS if isinstance(self.model, Table) else SOLVERS
        self.solver = getattr(cg.optim, rules[rng.integers(len(rules))])(0.01)
        self.parameters = dict(self.model.named_parameters())
        self.solver.set_parameters(self.parameters)
        chosen = rng.random(6) < 0.3
        self.with_penalty, self.with_hook, self.with_views, self.with_writes, self.checks, self.fuses = chosen
        self.with_penalty &= not isinstance(self.model, Table | Recurrent)
        if self.fuses and not self.with_penalty: self.solver.fuse_into_backward()

    def __call__(self):
        self.solver.zero_grad()
        with cg.record():
            y = cg.checkpoint(self.model, self.x) if self.checks else self.model(self.x)
            if self.with_hook: y.register_hook(lambda g: g * 0.5)
            if self.with_views: y = cg.exp(y.reshape(-1)[::-1][1:] * 0.1)
            if self.with_writes:
                y = y * 2
                y += cg.sin(y.detach())
                y[:1] *= 0.5
            loss = (cg.sin(y) * cg.sigmoid(y)).mean()
            if self.with_penalty:
                w = next(iter(self.parameters.values()))
                g, = cg.autograd.grad(loss, [w], create_graph=True)
                loss = loss + (g * g).sum()
                del g, w
            del y
        loss.backward()
        self.solver.update()
        return loss.detach()


def run(seed, bound=None, n=3):
    """The losses of n steps with what they leave, the live bytes before, the most, and the calls that were repeated."""
    step = Step(seed)
    live = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    if bound is None: losses, calls = [step().item() for _ in range(n)], 0
    else:
        with cg.memory.budget(bound) as b: losses = [step().item() for _ in range(n)]
        calls = b.recomputed.calls
    left = [x.numpy().copy() for x in (*step.model.parameters(), *step.model.buffers())]
    left += [x.numpy().copy() for s in step.solver.get_states().values() for x in s.pstate.values()]
    return [np.array(losses), *left], live, cg.memory.stats()["peak_bytes"], calls


@pytest.mark.parametrize("part", range(PARTS))
def test_random_steps_have_the_same_bits(part):
    done = refused = recomputed = 0
    for seed in range(part, COUNT, PARTS):
        wanted, live, peak, _ = run(seed)
        bound = live + int(np.random.default_rng(seed).uniform(0.7, 1) * (peak - live))
        try: found, _, most, calls = run(seed, bound)
        except cg.MemoryLimitError:
            refused += 1
            assert cg.memory.stats()["peak_bytes"] <= bound, seed
            continue
        done += 1
        recomputed += calls
        assert most <= bound, seed
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str(seed))
        assert cg.memory.stats()["live_bytes"] == 0, seed
    assert done >= refused / 3 and (done < 5 or recomputed)
