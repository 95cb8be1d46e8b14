"""Training steps of random shapes, and the memory of the process: python tests/support/steady.py [STEPS]

A perceptron, attention, windows of images and a recurrent cell run in random order, each step with a random size. The
program prints a line after some steps: their number, resident memory, live bytes and held bytes. Resident memory is the
system's figure, so it includes code and tables of other libraries, which the first steps load."""

import os
import sys

import numpy as np

import cygrad as cg

WIDTH = 16


def weights(rng, *shapes):
    return [cg.tensor(rng.normal(0, s[-1] ** -0.5, s).astype("f4")).attach_grad() for s in shapes]


def perceptron(w, rng):
    x = cg.asarray(rng.random((int(rng.integers(1, 129)), WIDTH), dtype="f4"))
    return cg.linear(cg.relu(cg.linear(x, w[0])), w[1])


def attention(w, rng):
    t = int(rng.integers(1, 65))
    x = cg.asarray(rng.random((2, t, WIDTH), dtype="f4"))
    q, k, v = cg.split(cg.linear(x, w[2]), 3, -1)
    return cg.softmax(q @ cg.swapaxes(k, 1, 2)) @ v


def windows(w, rng):
    h, width = (int(n) for n in rng.integers(4, 33, 2))
    x = cg.pad(cg.asarray(rng.random((1, h, width), dtype="f4")), ((0, 0), (1, 1), (1, 1)))
    parts = [x[:, i:i + h, j:j + width] for i in range(3) for j in range(3)]
    return cg.tanh(w[3] @ cg.reshape(cg.concat(parts, 0), (9, h * width)))


def recurrent(w, rng):
    h = cg.asarray(rng.random((4, WIDTH), dtype="f4"))
    for _ in range(int(rng.integers(1, 25))): h = cg.tanh(cg.linear(h, w[0]) + h)
    return h


NETS = (perceptron, attention, windows, recurrent)


def resident():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(steps, marks, say):
    """Take the steps; say(step, resident, live, held, peak) at the marks."""
    rng = np.random.default_rng(0)
    w = weights(rng, (WIDTH, WIDTH), (4, WIDTH), (3 * WIDTH, WIDTH), (8, 9))
    solver = cg.optim.Sgd(1e-3)
    solver.set_parameters(w)
    for step in range(1, steps + 1):
        with cg.record(): loss = cg.mean(cg.square(NETS[rng.integers(len(NETS))](w, rng)))
        loss.backward()
        solver.update()
        solver.zero_grad()
        del loss
        if step in marks:
            stats = cg.memory.stats()
            say(step, resident(), stats["live_bytes"], stats["live_bytes"] + stats["cached_bytes"], stats["peak_bytes"])


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    marks = {max(1, count * k // 100) for k in (1, 10, 25, 50, 75, 100)}
    run(count, marks, lambda *figures: print(*figures, flush=True))
