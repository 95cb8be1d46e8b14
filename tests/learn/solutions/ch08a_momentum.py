"""Momentum (chapter 8).

Write `momentum(w, v, g, lr, factor)`: one step of the rule v = factor v + lr g, w = w - v. All three are NumPy arrays
of one shape. The function changes w and v in place, since both live on to the next step, and makes no new w. It returns
nothing.
"""

import numpy as np


def momentum(w, v, g, lr, factor):
    v *= factor
    v += lr * g
    w -= v
