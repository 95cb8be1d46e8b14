"""The cost of an open `memory.profile()` for a training step: the ratio of CPU times with and without it. One thread.

Blocks of steps with and without a profile alternate, some milliseconds each. Each block with a profile has one of its
own, in which one step has run before. Each pair of neighbouring blocks gives a ratio. The table has the median and the
quartiles of all ratios. "First" is the ratio for the first step in a profile, where every stack is new. The transformer
and the LSTM are written with helper functions, so their stacks are as deep as in real programs. The last column is the
number of events that the log records for one step."""

import gc
import statistics
from time import process_time

import numpy as np

import cygrad as cg
from benchmarks import machine, work
from benchmarks.report import table
from benchmarks.timing import spread

ROUNDS = 60
BLOCK = 0.02            # seconds of steps between two readings of the clock


def weights(rng, *shapes):
    return [cg.tensor(rng.normal(0, 0.1, shape).astype("f4")).attach_grad() for shape in shapes]


def data(rng, *shape):
    return cg.tensor(rng.normal(size=shape).astype("f4"))


def trained(parameters, loss):
    """A step of Adam on the result of `loss`."""
    solver = cg.optim.Adam(1e-4)
    solver.set_parameters(parameters)

    def step():
        with cg.record():
            value = loss()
        value.backward()
        solver.update()

    return step


def attention(x, wq, wk, wv):
    q, k, v = (cg.permute(cg.reshape(cg.linear(x, w), (*x.shape[:2], 4, -1)), (0, 2, 1, 3)) for w in (wq, wk, wv))
    y = cg.softmax(q @ cg.swapaxes(k, -1, -2) * 0.25) @ v
    return cg.reshape(cg.permute(y, (0, 2, 1, 3)), x.shape)


def feed_forward(x, up, down):
    return cg.linear(cg.gelu(cg.linear(x, up)), down)


def layer(x, wq, wk, wv, up, down, scale, shift):
    x = x + attention(cg.layer_norm(x, scale, shift), wq, wk, wv)
    return x + feed_forward(cg.layer_norm(x, scale, shift), up, down)


def transformer(batch, length, d):
    rng = np.random.default_rng(0)
    parameters = weights(rng, (d, d), (d, d), (d, d), (4 * d, d), (d, 4 * d), (d,), (d,))
    x = data(rng, batch, length, d)
    return trained(parameters, lambda: cg.mean(cg.square(layer(x, *parameters))))


def gates(z):
    i, f, g, o = cg.split(z, 4, axis=-1)
    return cg.sigmoid(i), cg.sigmoid(f), cg.tanh(g), cg.sigmoid(o)


def cell(x, h, c, wx, wh):
    i, f, g, o = gates(cg.linear(x, wx) + cg.linear(h, wh))
    c = f * c + i * g
    return o * cg.tanh(c), c


def lstm(steps, batch, hidden):
    rng = np.random.default_rng(0)
    parameters = weights(rng, (4 * hidden, hidden), (4 * hidden, hidden))
    xs, zeros = [data(rng, batch, hidden) for _ in range(steps)], cg.zeros((batch, hidden))

    def loss():
        h = c = zeros
        for x in xs: h, c = cell(x, h, c, *parameters)
        return cg.mean(cg.square(h))

    return trained(parameters, loss)


def mlp(sizes, batch):
    rng = np.random.default_rng(0)
    parameters = weights(rng, *((o, i) for i, o in zip(sizes, sizes[1:], strict=False)))
    x = data(rng, batch, sizes[0])

    def loss():
        h = x
        for w in parameters[:-1]: h = cg.relu(cg.linear(h, w))
        return cg.mean(cg.square(cg.linear(h, parameters[-1])))

    return trained(parameters, loss)


def modules(width, layers, batch):
    """The same as layers of cygrad.nn, whose calls a profile names."""
    net = cg.nn.Sequential(*[m for _ in range(layers) for m in (cg.nn.Linear(width, width), cg.nn.ReLU())])
    x = data(np.random.default_rng(0), batch, width)
    return trained(dict(net.named_parameters()), lambda: cg.mean(cg.square(net(x))))


STEPS = {
    "Sequential of 12 layers, 32, batch 16": lambda: modules(32, 6, 16),
    "MLP 64-256-256-10, batch 128": lambda: mlp((64, 256, 256, 10), 128),
    "MLP 784-512-512-10, batch 256": lambda: mlp((784, 512, 512, 10), 256),
    "transformer layer, d 48, 2 x 128": lambda: transformer(2, 128, 48),
    "transformer layer, d 64, 4 x 128": lambda: transformer(4, 128, 64),
    "LSTM, hidden 64, 12 steps of 32": lambda: lstm(12, 32, 64),
    "LSTM, hidden 128, 20 steps of 32": lambda: lstm(20, 32, 128),
}


def seconds(step, n):
    start = process_time()
    for _ in range(n): step()
    return (process_time() - start) / n


def profiled(step, n):
    """Seconds of the first step in a profile, and of each of the n after it."""
    with cg.memory.profile():
        return seconds(step, 1), seconds(step, n)


def measure(step, rounds=ROUNDS):
    """Seconds of a step without a profile, quartiles of the ratios, the ratio of first steps, and events per step."""
    for _ in range(5): step()
    n = max(1, round(BLOCK / seconds(step, 5)))
    without, ratios, first = [], [], []
    gc.collect()
    gc.freeze()
    try:
        for i in range(rounds):
            taken = profiled(step, n) if i % 2 else None
            without.append(seconds(step, n))
            taken = taken or profiled(step, n)
            first.append(taken[0] / without[-1])
            ratios.append(taken[1] / without[-1])
    finally:
        gc.unfreeze()
    with cg.memory.profile() as p: step()
    ratios = spread(ratios)
    return {"seconds": statistics.median(without), "ratios": [ratios[name] for name in ("q1", "median", "q3")],
            "first": statistics.median(first), "events": len(p._log)}


def gather(rounds=ROUNDS):
    return {name: measure(make(), rounds) for name, make in STEPS.items()}


def overhead_table(rows):
    return table(["step", "ms without", "with / without", "quartiles", "first", "events"],
                 [[name, f"{1e3 * r['seconds']:.2f}", f"{r['ratios'][1]:.3f}",
                   f"{r['ratios'][0]:.3f} .. {r['ratios'][2]:.3f}", f"{r['first']:.3f}", f"{r['events']:,}"]
                  for name, r in rows.items()])


if __name__ == "__main__":
    work.set_threads(["cygrad"], 1)
    print(f"{machine.cpu_name()}\n\n{overhead_table(gather())}")
