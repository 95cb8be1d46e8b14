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


def passes(reader):
    n, lr = 64, 1e-3
    start = [np.eye(n, dtype="float32") + 0.01 * np.random.default_rng(k).normal(size=(n, n)).astype("float32")
             for k in range(4)]
    rows = np.random.default_rng(9).normal(size=(3, 2, n)).astype("float32")

    def run(update):
        weights, calls = [cg.tensor(w).attach_grad() for w in start], []

        def loss_of(x):
            def loss():
                calls.append(cg.is_recording())
                h = cg.tensor(x)
                for w in weights: h = cg.linear(h, w)
                return cg.square(h).mean()

            return loss

        losses = [loss_of(x) for x in rows]
        before = live()
        with cg.memory.track() as t: update(weights, losses, lr)
        return [w.detach().numpy().copy() for w in weights], calls, t.peak_bytes - before

    def plain(weights, losses, lr, last=False):
        for w in weights: w.attach_grad("write" if last else "add")
        solver = cg.optim.Momentum(weights, lr=lr)
        for loss in losses:
            with cg.record(): y = loss()
            y.backward()
        solver.update()

    def each(weights, losses, lr):
        solver = cg.optim.Momentum(weights, lr=lr)
        for loss in losses:
            with cg.record(): y = loss()
            y.backward()
            solver.update()

    right = run(plain)[0]
    found, calls, peak = run(reader.module.update)
    expect(calls, "update() has called none of the losses.")
    equal("The number of calls of losses", len(calls), len(rows), "Each loss is computed once.")
    expect(all(calls), "A loss was called outside of `cg.record()`.")
    equal("How far the first weight has moved", found[0] - start[0], right[0] - start[0],
          "It is one step of Momentum for the sum of the gradients.",
          [(0 * right[0], "The weight has not moved: call solver.update() after the scope of accumulate()."),
           (run(each)[0][0] - start[0], "Each pass has made a step of its own. In a scope of `accumulate()` passes "
                                        "only sum, and `solver.update()` after it makes the step."),
           (run(lambda w, f, lr: plain(w, f, lr, last=True))[0][0] - start[0],
            "Only the last pass counts: each has overwritten the gradients.")], rtol=1e-2)
    one = n * n * 4
    expect(peak < (len(start) + 2) * one, f"The update took {peak:,} bytes more than what was live. The states of "
                                          f"Momentum are {len(start) * one:,} bytes, and the sums are in them: "
                                          f"gradients of {one:,} bytes each were stored as well. Use "
                                          "`solver.fuse_into_backward()`.")
