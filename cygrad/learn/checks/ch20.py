"""Checks of chapter 20."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal, expect


def applied(function, numbers, head):
    """Value, saved bytes and gradient of a Function for a list of numbers that are no variable."""
    x = cg.tensor(numbers).attach_grad()
    with cg.record() as tape: y = function.apply(x * 1.0)
    saved = tape.saved_bytes
    y.backward(cg.tensor(head))
    return y.detach().numpy().copy(), saved, x.grad.numpy().copy()


def soft_sign(reader):
    numbers, head = [-3.0, -0.5, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0]
    x, g = np.array(numbers), np.array(head)
    y = x / (1 + abs(x))
    ctx = Kept()
    expect(reader.SoftSign.forward(ctx, cg.tensor(numbers)) is not None,
           "forward returns None: its gap is not filled, or a `return` is missing.")
    expect(reader.SoftSign.backward(ctx, cg.tensor(head)) is not None,
           "backward returns None: its gap is not filled, or a `return` is missing.")
    value, saved, gradient = applied(reader.SoftSign, numbers, head)
    equal("The result for (-3, -0.5, 0, 1)", value, y, "y = x / (1 + |x|).")
    equal("The gradient of x for the head gradient (1, 2, 3, 4)", gradient, g * (1 - abs(y)) ** 2,
          "dx = g (1 - |y|)².", [((1 - abs(y)) ** 2, "The factor g is missing: backward gets the gradient of y."),
                                 (g * (1 - abs(y)), "The square is missing."),
                                 (g * (1 - y) ** 2, "Take the absolute value of y.")])
    equal("The number of saved bytes for four float32 numbers", saved, 16, "Save y, and nothing else.",
          [(0, "Nothing goes through `ctx.save_for_backward`, so cygrad can neither count nor free it."),
           (32, "Two arrays are saved. The gradient needs only y.")])


class Kept:
    """A ctx that keeps what it gets."""

    saved_tensors = ()

    def save_for_backward(self, *tensors): self.saved_tensors = tensors


def checked(reader):
    numbers, head = [-2.0, -0.5, 1.0, 1.5], [1.0, 2.0, 3.0, 4.0]
    x, g = np.array(numbers), np.array(head)
    value, saved, gradient = applied(reader.Cubed, numbers, head)
    equal("The result", value, abs(x) ** 3, "forward was right.")
    equal("The gradient at (-2, -0.5, 1, 1.5) for the head gradient (1, 2, 3, 4)", gradient, g * 3 * x * abs(x),
          "For x > 0 the derivative is 3 x², and for x < 0 it is -3 x².",
          [(3 * x * x, "The factor g is missing: a test with a head gradient other than 1 finds that. And the sign "
                       "for negative x is wrong."),
           (g * 3 * x * x, "|x|³ falls where x is negative, so the derivative is negative there."),
           (3 * x * abs(x), "The factor g is missing: backward gets the gradient of y.")])
    equal("The number of saved bytes for four float32 numbers", saved, 16, "x is enough.")
