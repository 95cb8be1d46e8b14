"""Captured training steps of a solver whose updates are fused into backward."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.graph import Net, Workspace

RULES = ["Sgd", "SgdW", "Momentum", "Nesterov", "Adam", "AdamW", "Lion", "Ftrl"]


def normal(*shape): return cg.random.normal(shape, dtype="float64")


class Training:
    """A model with a table, a convolution, two linear layers of one weight and a bias, and its solver."""

    def __init__(self, rule, fuse=True, sparse=False, decay=0.0):
        cg.random.seed(5)
        self.weights = {
            "table": normal(20, 8), "conv": 0.3 * normal(6, 4, 3), "shared": 0.3 * normal(12, 12), "bias": normal(12),
            "last": 0.3 * normal(12, 5), "gain": normal(12),
        }
        for w in self.weights.values(): w.attach_grad()
        self.solver = getattr(cg.optim, rule)(0.01)
        self.solver.set_parameters(self.weights)
        self.fused = self.solver.fuse_into_backward() if fuse else None
        self.sparse, self.decay = sparse, decay

    def step(self, i, t):
        w = self.weights
        self.solver.zero_grad()
        with cg.record():
            x = cg.embedding(i, w["table"], sparse=self.sparse).reshape((4, 4, 4))
            x = cg.conv1d(x, w["conv"], padding=1, activation="tanh").reshape((8, 12)) * w["gain"]
            x = cg.linear(cg.linear(x, w["shared"], w["bias"], activation="tanh"), w["shared"])
            loss = cg.cross_entropy(cg.matmul(x, w["last"]), t)
        if self.decay: self.solver.weight_decay(self.decay)
        loss.backward()
        self.solver.update()
        return loss.detach()

    def values(self):
        states = self.solver.get_states()
        return [x.numpy().copy() for name, w in self.weights.items() for x in (w, *states[name].pstate.values())]

    def net(self): return Net.capture(self.step, ((8,), "int64"), ((8,), "int64"))


def batches(n):
    rng = np.random.default_rng(0)
    return [(rng.integers(0, 20, 8), rng.integers(0, 5, 8)) for _ in range(n)]


def run(ws, net, i, t):
    ws.feed("i", i)
    ws.feed("t", t)
    ws.run(net)


def equal(a, b):
    for u, v in zip(a.values(), b.values(), strict=True): np.testing.assert_array_equal(u, v)


def train_both(eager, captured, net, workspace):
    """Three steps of eager code and of a net have the same bits."""
    for i, t in batches(3):
        eager.step(i, t)
        run(workspace, net, i, t)
        equal(eager, captured)


@pytest.mark.parametrize("rule", [*RULES, "Lamb", "Lars"])
def test_runs_have_the_bits_of_eager_code(rule):
    eager, captured = Training(rule), Training(rule, fuse=False)
    net, ws = captured.net(), Workspace()
    captured.fused = captured.solver.fuse_into_backward()
    for k, (i, t) in enumerate(batches(5)):
        if k == 3:
            for x in (eager, captured): x.solver.set_learning_rate(0.003)
        eager.step(i, t)
        run(ws, net, i, t)
        equal(eager, captured)
    assert captured.solver.get_states()["last"].t == 5
    assert all(w.grad is None or not w.fresh_grad for w in captured.weights.values())


def test_a_fused_step_can_be_captured():
    eager, captured = Training("Momentum"), Training("Momentum")
    net, ws = captured.net(), Workspace()
    train_both(eager, captured, net, ws)


@pytest.mark.parametrize("rule", ["Sgd", "Momentum"])
def test_runs_need_no_memory_for_gradients_of_weights(rule):
    """Beside the plain step, by all the bytes of the weights that products go into."""
    lives = []
    for fuse in (False, True):
        training = Training(rule, fuse=False)
        net, ws = training.net(), Workspace()
        if fuse: training.solver.fuse_into_backward()
        before = cg.memory.stats()["live_bytes"]
        for i, t in batches(2): run(ws, net, i, t)
        lives.append(cg.memory.stats()["live_bytes"] - before)
        del ws, net, training
    weights = 8 * (20 * 8 + 6 * 4 * 3 + 12 * 5)
    assert lives[0] - lives[1] >= weights


def test_programs_follow_the_handle():
    """Without it, with it, while it accumulates, and without it again."""
    eager, captured = Training("Momentum", fuse=False), Training("Momentum", fuse=False)
    net, ws = captured.net(), Workspace()

    def both(n=1):
        for i, t in batches(n):
            eager.step(i, t)
            run(ws, net, i, t)
        equal(eager, captured)

    both()
    with eager.solver.fuse_into_backward() as a, captured.solver.fuse_into_backward() as b:
        both(2)
        with a.accumulate(), b.accumulate():
            for i, t in batches(2):
                eager.step(i, t)
                run(ws, net, i, t)
        for x in (eager, captured): x.solver.update()
        equal(eager, captured)
        both()
    both(2)
    assert all(w.grad is not None for w in captured.weights.values())


@pytest.mark.parametrize("rule", ["Sgd", "Momentum", "Adam"])
def test_rows(rule):
    eager, captured = Training(rule, sparse=True), Training(rule, fuse=False, sparse=True)
    for x in (eager, captured): x.weights["table"].attach_grad(stype="row_sparse")
    net, ws = captured.net(), Workspace()
    captured.solver.fuse_into_backward()
    train_both(eager, captured, net, ws)


@pytest.mark.parametrize("rule", ["Sgd", "Momentum", "AdamW"])
def test_decay_is_part_of_it(rule):
    eager, captured = Training(rule, decay=0.05), Training(rule, decay=0.05)
    net, ws = captured.net(), Workspace()
    assert captured.fused.rate == 0
    train_both(eager, captured, net, ws)


@pytest.mark.parametrize("rule", ["Sgd", "Momentum", "Adam"])
def test_budgets(rule):
    eager, captured = Training(rule), Training(rule, fuse=False)
    net = captured.net()
    captured.solver.fuse_into_backward()
    whole = net.plan().peak_bytes
    plan = net.plan(budget=int(0.97 * whole))
    assert plan.peak_bytes <= 0.97 * whole
    ws = Workspace(budget=cg.memory.stats()["live_bytes"] + int(0.97 * whole) + 1024)       # (inputs and outputs)
    train_both(eager, captured, net, ws)
