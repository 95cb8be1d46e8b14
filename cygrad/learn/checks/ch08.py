"""Checks of chapter 8."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect


def momentum(reader):
    rng = np.random.default_rng(0)
    w, v, g = rng.normal(size=(3, 4))
    for t in (1, 2, 3):
        new_v = 0.9 * v + 0.1 * g
        right, later = w - new_v, w - v
        got, state, old = w.copy(), v.copy(), g.copy()
        reader.module.momentum(got, state, g, 0.1, 0.9)
        equal("The gradient after the step", g, old, "It belongs to the caller; leave it as it is.")
        equal(f"The state v after step {t}", state, new_v,
              "v = factor v + lr g, written into v: `v *= ...`, `v += ...`, or `v[:] = ...`.",
              [(v, "v has not changed. `v = ...` gives the name to a new array; write `v[:] = ...`."),
               (0.9 * v + g, "The rate belongs to the gradient: v = factor v + lr g.")])
        equal(f"The weight w after step {t}", got, right, "w -= v, with the new v.",
              [(w, "w has not changed. `w = w - v` gives the name to a new array; write `w -= v`."),
               (later, "The step used the v of before. First v, then w."),
               (w + new_v, "The step goes uphill: subtract v.")])
        w, v = right, new_v


def parts(reader, whole=4):
    x, w = cg.random.Generator(0).normal((12, 3)), cg.tensor([1.0, -2.0, 0.5])
    right = 2 * (x.numpy().T @ (x @ w).numpy()) / 12
    rows = []

    class Counted:
        """cg, with a square that notes its sizes."""
        def __getattr__(self, name): return getattr(cg, name)

        def square(self, y):
            rows.append(y.shape[0])
            return cg.square(y)

    reader.module.cg = Counted()
    last = 2 * (x[9:].numpy().T @ (x[9:] @ w).numpy()) / 3
    for parts in (1, whole):
        rows.clear()
        got = reader.gradient(w.copy(), x, parts)
        equal(f"The gradient from {parts} parts", got, right,
              "The mean of the whole is the mean of the means of parts of equal size.",
              [(right * parts, "It is too large by the number of parts: divide by it, because the loss is a mean."),
               (last, "This is the gradient of the last part. With `requires_grad_()` or `attach_grad(\"add\")` the "
                      "gradients of several passes add up; with `attach_grad()` each pass overwrites."),
               (last / parts, "This is a part of the gradient, that of the last pass. With `requires_grad_()` or "
                              "`attach_grad(\"add\")` the passes add up; with `attach_grad()` each overwrites.")])
    expect(not rows or max(rows) <= 12 // whole, f"A pass had {max(rows)} rows, but a part has {12 // whole}.")


def adam(reader):
    for gradients in ([2.0], [2.0, -1.0, 0.5, 3.0]):
        w, plain = 0.0, 0.0
        m = v = 0.0
        for t, g in enumerate(gradients, 1):
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            w -= 0.1 * (m / (1 - 0.9 ** t)) / (v / (1 - 0.99 ** t)) ** 0.5
            plain -= 0.1 * m / v ** 0.5
        equal(f"The weight after the gradients {gradients}", reader.adam(gradients, 0.1, 0.9, 0.99), w,
              "After one step it is -lr times the sign of the gradient, whatever the gradient is.",
              [(plain, "m and v are not corrected. Divide them by 1 - beta^t, with t = 1 in the first step."),
               (-w, "The step goes uphill: subtract it.")])
