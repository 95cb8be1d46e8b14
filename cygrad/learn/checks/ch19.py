"""Checks of chapter 19."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect, live


def fused(reader):
    n, layers, lr = 64, 4, 1e-3
    start = [np.eye(n, dtype="float32") + 0.01 * np.random.default_rng(k).normal(size=(n, n)).astype("float32")
             for k in range(layers)]
    x = np.random.default_rng(9).normal(size=(2, n)).astype("float32")

    def run(train):
        weights = [cg.tensor(w).attach_grad() for w in start]
        calls = []

        def loss():
            calls.append(cg.is_recording())
            h = cg.tensor(x)
            for w in weights: h = cg.linear(h, w)
            return cg.square(h).mean()

        before = live()
        with cg.memory.track() as t: train(weights, loss, lr, 3)
        return [w.detach().numpy().copy() for w in weights], calls, t.peak_bytes - before

    def plain(weights, loss, lr, steps):
        solver = cg.optim.Sgd(weights, lr=lr)
        for _ in range(steps):
            with cg.record(): y = loss()
            y.backward()
            solver.update()

    right, _, _ = run(plain)
    found, calls, peak = run(reader.module.train)
    expect(calls, "train() has not called loss().")
    equal("The number of calls of loss()", len(calls), 3, "It is called once for each step.")
    expect(all(calls), "loss() was called outside of `cg.record()`.")
    equal("The first weight after three steps", found[0], right[0], "w -= lr times its gradient, in each step.",
          [(start[0], "The weight has not moved. Give the weights to a solver, `cg.optim.Sgd(weights, lr=lr)`, and "
                      "call backward().")])
    one = n * n * 4
    expect(peak < 2 * one, f"A step took {peak:,} bytes more than what was live. A gradient has {one:,} bytes, and "
                           f"there are {layers}: they were all stored. `solver.fuse_into_backward()` updates each "
                           "weight within backward.")
