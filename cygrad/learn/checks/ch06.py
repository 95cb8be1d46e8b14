"""Checks of chapter 6."""

import numpy as np

from cygrad.learn.checking import equal, expect, pair


class Summed(np.ndarray):
    """An array that counts the sums of itself and of all results, so that a loop without an end is found in it."""

    calls, task = 0, ""

    def __array_finalize__(self, source): self.task = getattr(source, "task", "")

    def sum(self, *args, **kwargs):
        Summed.calls += 1
        expect(Summed.calls <= 1000, f"{self.task}, the sum was called 1000 times, at last for an array of shape "
                                     f"{self.shape}. Does a loop not end? Each axis is summed once at most.")
        return super().sum(*args, **kwargs)


def unbroadcast(reader):
    rng = np.random.default_rng(0)
    g = rng.integers(-3, 4, (4, 3)).astype("float64")
    for g_shape, shape in (((4, 3), (4, 3)), ((4, 3), (3,)), ((4, 3), (4, 1)), ((4, 3), (1, 3)), ((4, 3), ()),
                           ((2, 4, 3), (4, 1)), ((2, 4, 3), (1, 1, 3))):
        g = rng.integers(-3, 4, g_shape).astype("float64")
        given = g.view(Summed)
        given.task = f"From g of shape {g_shape} to shape {shape}"
        Summed.calls = 0
        got = np.asarray(reader.unbroadcast(given, shape))
        missing = len(g_shape) - len(shape)
        ones = [i for i, n in enumerate(shape) if n == 1 and g_shape[missing + i] != 1]
        if got.shape != shape:
            if not missing and not ones: cause = f"nothing was repeated in g, {g_shape}, so it is returned as it is"
            elif got.ndim > len(shape): cause = "sum over the axes in front, which b does not have"
            elif ones and got.ndim < len(shape): cause = "an axis of size 1 stays: sum with keepdims=True"
            elif ones: cause = f"sum over axis {ones[0]} of b, which has the size 1"
            else: cause = "sum only over the axes in front, which b does not have"
            expect(False, f"The gradient of b has shape {got.shape}, but b has shape {shape}: {cause} (chapter 6).")
        right = g.sum(tuple(range(missing))).sum(tuple(ones), keepdims=True)
        equal(f"The gradient of b, of shape {shape}, from g of shape {g_shape},", got, right,
              "Contributions of an element that was repeated are added.",
              [(right / (g.size / max(right.size, 1)), "This is a mean. Each use contributes to the sum.")])


def product(reader):
    rng = np.random.default_rng(0)
    x, w, g = (rng.integers(-3, 4, shape).astype("float64") for shape in ((4, 3), (3, 2), (4, 2)))
    got = reader.product_gradients(x, w, g)
    dx, dw = pair("the pair of the gradients of x and of w", got)
    swapped = "The gradients of x and of w have changed places."
    equal("The gradient of x", dx, g @ w.T, "Each element of y in row i has x[i, k] times w[k, j], so dx = g w'.",
          [(x.T @ g, swapped)])
    equal("The gradient of w", dw, x.T @ g, "Its shape (k, m) can only come from x' (k, n) and g (n, m): dw = x' "
                                                "g.",
          [((x.T @ g) / len(x), "Nothing is averaged: the loss has decided that already.")])
