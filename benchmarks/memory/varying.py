"""Held memory when shapes change from step to step: `python -m benchmarks.memory.varying PEER NAME STEPS`.

There are four programs: a transformer layer (two sentences of 1 to 512 tokens), a perceptron (batches of 1 to 2,048),
filters on images of 16 to 512 pixels a side, and a recurrent cell unrolled 1 to 400 times. *Peak* is the largest number
of live bytes and *held* the largest number of bytes that cygrad held, both after the first fifth of the steps. *Calls*
is the number of requests to the system for memory in the same steps. *Resident* is the largest growth of the process of
a library, including data and parameters. Each program runs in a process of its own. Times are medians of a step, taken
in turn, so ratios are comparable."""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from benchmarks import work
from benchmarks.million import resident_bytes

PEERS = ("cygrad", "PyTorch")
STEPS = {"lengths": 5000, "batches": 1000, "images": 1000, "unrolled": 1000}
WIDTH, HEADS, TOKENS = 64, 4, 96


class Cygrad:
    """The functions that the programs need, in cygrad."""

    def __init__(self):
        import cygrad as cg

        self.lib, self.linear, self.softmax, self.gelu, self.tanh = cg, cg.linear, cg.softmax, cg.gelu, cg.tanh
        self.relu, self.cross_entropy, self.tensor = cg.relu, cg.cross_entropy, cg.asarray
        self.layer_norm = cg.layer_norm

    def variables(self, arrays):
        self.parameters = [self.lib.tensor(a).attach_grad() for a in arrays]
        self.solver = self.lib.optim.Sgd(1e-3)
        self.solver.set_parameters(self.parameters)
        return self.parameters

    def step(self, loss_of, *data):
        with self.lib.record(): loss = loss_of(*data)
        loss.backward()
        self.solver.update()

    def counts(self):
        stats = self.lib.memory.stats()
        return stats["live_bytes"] + stats["cached_bytes"], stats["system_allocations"], self.lib.memory.reset_peak()


class PyTorch:
    """The same in PyTorch."""

    def __init__(self):
        import torch
        from torch.nn import functional

        self.lib, self.linear, self.softmax, self.gelu = torch, functional.linear, functional.softmax, functional.gelu
        self.tanh, self.relu, self.cross_entropy = torch.tanh, torch.relu, functional.cross_entropy
        self.tensor = torch.from_numpy

    def layer_norm(self, x, w, b):
        return self.lib.nn.functional.layer_norm(x, (WIDTH,), w, b)

    def variables(self, arrays):
        self.parameters = [self.lib.from_numpy(a.copy()).requires_grad_() for a in arrays]
        self.solver = self.lib.optim.SGD(self.parameters, 1e-3)
        return self.parameters

    def step(self, loss_of, *data):
        self.solver.zero_grad()
        loss_of(*data).backward()
        self.solver.step()

    def counts(self): return 0, 0, 0


def weights(rng, *shapes): return [rng.normal(0, 0.05, s).astype("float32") for s in shapes]


def lengths(on, rng):
    """A transformer layer over token embeddings."""
    w = on.variables(weights(rng, (TOKENS, WIDTH), (3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH),
                             (WIDTH, 4 * WIDTH), (WIDTH,), (WIDTH,), (WIDTH,), (WIDTH,), (TOKENS, WIDTH)))
    embedding, qkv, out, up, down, scale, shift, scale2, shift2, head = w

    def loss_of(tokens, mask, labels):
        n, t = tokens.shape
        x = embedding[tokens]
        h = on.linear(on.layer_norm(x, scale, shift), qkv).reshape((n, t, 3, HEADS, -1)).permute((2, 0, 3, 1, 4))
        scores = h[0] @ h[1].permute((0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5 + mask
        h = (on.softmax(scores, -1) @ h[2]).permute((0, 2, 1, 3)).reshape((n, t, WIDTH))
        x = x + on.linear(h, out)
        x = x + on.linear(on.gelu(on.linear(on.layer_norm(x, scale2, shift2), up)), down)
        return on.cross_entropy(on.linear(x, head).reshape((n * t, TOKENS)), labels)

    def step():
        t = int(rng.integers(1, 513))
        tokens, labels = rng.integers(0, TOKENS, (2, t)), rng.integers(0, TOKENS, 2 * t)
        on.step(loss_of, on.tensor(tokens), on.tensor(np.triu(np.full((t, t), -np.inf, "float32"), 1)),
                on.tensor(labels))

    return step


def batches(on, rng):
    """A perceptron 784-256-256-10."""
    w = on.variables(weights(rng, (256, 784), (256, 256), (10, 256)))

    def loss_of(x, labels):
        for v in w[:-1]: x = on.relu(on.linear(x, v))
        return on.cross_entropy(on.linear(x, w[-1]), labels)

    def step():
        n = int(rng.integers(1, 2049))
        on.step(loss_of, on.tensor(rng.random((n, 784), dtype="float32")), on.tensor(rng.integers(0, 10, n)))

    return step


def images(on, rng):
    """Six filters, each applied to the previous image and its neighbours."""
    w = on.variables(weights(rng, (6, 1, 1, 1), (6, 1, 1, 1)))

    def loss_of(x):
        for i in range(6): x = on.tanh(x * w[0][i]) + x * w[1][i]
        return (x * x).mean()

    def step():
        on.step(loss_of, on.tensor(rng.random((3, *map(int, rng.integers(16, 512, 2))), dtype="float32")))

    return step


def unrolled(on, rng):
    """A recurrent cell of 64 units, 32 rows."""
    w, = on.variables(weights(rng, (WIDTH, WIDTH)))

    def loss_of(x, n):
        for _ in range(n): x = on.tanh(on.linear(x, w))
        return x.sum()

    def step():
        on.step(loss_of, on.tensor(rng.random((32, WIDTH), dtype="float32")), int(rng.integers(1, 401)))

    return step


PROGRAMS = {"lengths": lengths, "batches": batches, "images": images, "unrolled": unrolled}


def run(peer, name, steps):
    """The figures of one program."""
    on = {"cygrad": Cygrad, "PyTorch": PyTorch}[peer]()
    step = PROGRAMS[name](on, np.random.default_rng(0))
    start, times, held, peaks, resident, calls = resident_bytes(), [], [], [], [], 0
    for i in range(steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
        now, count, peak = on.counts()
        if i == steps // 5: calls = count
        held.append(now)
        peaks.append(peak)
        resident.append(resident_bytes() - start)
    settled = slice(steps // 5, None)
    every = max(1, steps // 250)
    return {"ms": 1e3 * statistics.median(times), "held": max(held[settled]), "peak": max(peaks[settled]),
            "calls": count - calls, "resident": max(resident), "end": resident[-1],
            "held over steps": [max(held[k:k + every]) for k in range(0, steps, every)],
            "peak over steps": [max(peaks[k:k + every]) for k in range(0, steps, every)],
            "resident over steps": [max(resident[k:k + every]) for k in range(0, steps, every)]}


def ask(peer, name, steps):
    """The same, from a separate process."""
    command = [sys.executable, "-m", "benchmarks.memory.varying", peer, name, str(steps)]
    told = {**os.environ, **work.environment(1)}
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=told).stdout)


def measure(share=1.0):
    """All programs, both libraries in turn."""
    return {name: {peer: ask(peer, name, max(50, int(share * steps))) for peer in PEERS}
            for name, steps in STEPS.items()}


if __name__ == "__main__":
    work.set_threads([sys.argv[1]], 1)
    json.dump(run(sys.argv[1], sys.argv[2], int(sys.argv[3])), sys.stdout)
