"""The gradients of a matrix product (chapter 6).

y = x @ w, with x of shape (n, k) and w of shape (k, m). Write `product_gradients(x, w, g)`: the pair of gradients of x
and of w, where g (n, m) is the gradient of y. All are NumPy arrays. The shapes leave only one possibility for each.
"""

import numpy as np


def product_gradients(x, w, g):
    return g @ w.T, x.T @ g
