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


def overflow(reader):
    numbers = np.array([-100.0, -20.0, -1.0, 0.5, 3.0, 20.0, 100.0], "float32")
    x = cg.tensor(numbers).attach_grad()
    with cg.record(): y = reader.softplus(x)
    exact = numbers.astype("float64")
    value, gradient = np.logaddexp(exact, 0), 1 / (1 + np.exp(-exact))
    equal(f"softplus({numbers.tolist()})", y, value, "For x > 0 use x + log(1 + e^-x), and log(1 + e^x) for the "
                                                     "others.",
          [(np.where(numbers > 88, np.inf, value), "e^100 is too large for float32. No exponent may be large: use "
                                                   "e^-|x|."),
           (np.logaddexp(-abs(exact), 0), "This is log(1 + e^-|x|). For x > 0 the result is larger by x.")], rtol=1e-3)
    small = reader.softplus(cg.tensor([-20.0])).item()
    expect(abs(small / np.exp(-20.0) - 1) < 1e-2, f"softplus(-20) is {small:.3g}, but {np.exp(-20.0):.3g} is right. 1 "
                                                  "+ e^-20 is 1 in float32: `cg.log1p` adds the 1 without rounding.")
    expect(y.grad_fn is not None, "The result has no graph: compute it from x by operators of cygrad.")
    y.backward(cg.ones_like(x))
    equal("The gradient", x.grad, gradient, "cg.where computes both ways, and a NaN in the way that is not taken "
                                            "passes through: 0 times infinity. Let both be finite.", rtol=1e-3)


def shapes(reader):
    predictions, targets = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 3.0, 2.0])
    p = cg.tensor(predictions).attach_grad()
    with cg.record(): y = reader.loss(p, cg.tensor(targets))
    equal("The loss of predictions (1, 2, 4) and targets (1, 3, 2)", y, 5 / 3, "Compare prediction i with target i "
                                                                               "only.",
          [(((predictions - targets) ** 2).mean(), "This is the mean of all 9 differences: (3, 1) minus (3,) "
                                                   "broadcasts to (3, 3)."), (5.0, "This is the sum. Take the mean.")])
    y.backward()
    equal("The gradient of the predictions", p.grad, 2 * (predictions - targets[:, None]) / 3, "It has their shape.")
