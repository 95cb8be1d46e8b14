"""Checks of chapter 4."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect


def first_bad(reader):
    def double(x): return x * 2.0
    x = cg.tensor([1.0, 0.0, 50.0])
    rows = [("a logarithm of 0 at position 1", [double, cg.log, cg.exp], 1),
            ("an overflow at position 2", [double, double, cg.exp, cg.relu], 2),
            ("0 / 0 at position 0", [lambda x: x / x, double], 0),
            ("only finite results", [double, cg.tanh], -1)]
    for what, layers, right in rows:
        equal(f"first_bad() of layers with {what}", reader.first_bad(layers, x), right,
              "Call one layer after the other and look at each result with `cg.isfinite(x).all()`, which finds "
              "infinities as well as NaN.",
              [(len(layers) - 1, "This is the last layer. Return as soon as a result is bad.")])


def lost_gradient(reader):
    x = np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]])
    numbers = np.array([0.3, -0.4])

    def gradients(f):
        w = cg.tensor(numbers).attach_grad()
        with cg.record(): y = f(w, cg.asarray(x))
        expect(isinstance(y, cg.Tensor), "loss() returns a Python number, which has no graph. Compute with tensors.")
        expect(y.grad_fn is not None, "The result of loss() has no graph: it was computed without the variable w.")
        y.backward()
        return y.item(), w.grad.numpy().copy()

    def right(w, x): return cg.square(x @ w - 1.0).mean() / cg.sqrt((w * w).sum())
    def constant(w, x): return cg.square(x @ w - 1.0).mean() / 0.5

    value, gradient = gradients(right)
    got, found = gradients(reader.loss)
    equal("The loss", got, value, "Only the gradient was wrong: the value must stay as it was.")
    equal("The gradient of w", found, gradient, "Something in the function is still a constant for backward.",
          [(gradients(constant)[1], "The length is a Python number, so it is a constant for backward: `.item()` and "
                                    "float() leave the graph. Compute the root by `cg.sqrt`.")])
