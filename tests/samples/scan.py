"""Sample calls and NumPy references of ops/reductions/scan."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, real


def cumsum_like(x, axis=None):
    return np.cumsum(x, axis)


def recurrence_like(x, a, axis, reverse=False):
    x, a = np.moveaxis(x, axis, 0), np.moveaxis(a, axis, 0)
    y = np.zeros(x.shape)
    n = len(x)
    for k in range(n):
        if not reverse: y[k] = x[k] + (a[k] * y[k - 1] if k else 0)
        else: y[n - 1 - k] = x[n - 1 - k] + (a[n - k] * y[n - k] if k else 0)
    return np.moveaxis(y, 0, axis).astype(x.dtype)


def running_like(better):
    def like(x, axis=None):
        x = x.reshape(-1) if axis is None else x
        rows = np.moveaxis(x, axis or 0, 0)
        places = np.zeros(rows.shape, np.int64)
        for k in range(1, len(rows)):
            best = np.take_along_axis(rows, places[k - 1:k], 0)[0]
            places[k] = np.where(better(rows[k], best), k, places[k - 1])
        return np.moveaxis(places, 0, axis or 0)
    return like


def running():
    ties = np.array([[1.0, 3, 3, 2, 5, 5, -1], [0, -0.0, 0, np.inf, 1, -np.inf, np.inf]])
    return [call(real(5)), call(real(3, 4), 0), call(real(2, 3, 4), 1), call(ties, 1), call(ties.T, 0),
            call(real(2, 3)), call(real(0, 3), 1), call(real())]


SAMPLES = [
    Sampled("cumsum", cumsum_like,
        lambda: [call(real(5)), call(real(2, 3), 0), call(real(2, 3, 4), 1), call(real(2, 3), -1), call(real(2, 3)),
         call(real(0, 3), 1), call(real())]),
    Sampled("cumprod", lambda x, axis=None: np.cumprod(x, axis),
        lambda: [call(real(5)), call(real(2, 3), 0), call(real(2, 3, 4), 1), call(real(2, 3), -1), call(real(2, 3)),
         call(np.array([[2.0, 0, 3, 0.5], [0, 0, 1, 4]]), 1), call(real(3, 65), 0), call(real(0, 3), 1), call(real())],
        {"x": "x"}),
    Sampled("recurrence", recurrence_like,
        lambda: [call(real(5), real(5, seed=1), 0), call(real(2, 3), real(2, 3, seed=1), 0, True),
         call(real(2, 3, 4), real(2, 3, 4, seed=1), 1), call(real(3, 2).T, real(3, 2, seed=1).T, 1, True),
         call(real(2, 65), real(2, 65, seed=1), 0), call(real(0, 3), real(0, 3), 1)], {"x": "a", "a": "a out"}),
    Sampled("cummax", running_like(np.greater_equal), running, tested=lambda x, axis=None: cg.cummax(x, axis)[1]),
    Sampled("cummin", running_like(np.less_equal), running, tested=lambda x, axis=None: cg.cummin(x, axis)[1]),
]
