"""Sample calls and NumPy references of ops/linalg/solve."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, matrices, real


def triangular_like(x, b, *, upper, left=True, unitriangular=False):
    x = np.triu(x) if upper else np.tril(x)
    if unitriangular:
        x = x * (1 - np.eye(x.shape[-1], dtype=x.dtype)) + np.eye(x.shape[-1], dtype=x.dtype)
    if left:
        return np.linalg.solve(x, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(x, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def lstsq_like(x, b):
    return np.linalg.pinv(x) @ b


SAMPLES = [
    Sampled("solve", np.linalg.solve,
        lambda: [call(matrices(3, 3), real(3, 2)), call(matrices(3, 3), real(3)),
         call(matrices(2, 3, 3), real(2, 3, 1)),
         call(matrices(3, 3), real(2, 3, 2)), call(matrices(2, 1, 2, 2), real(3, 2, 2)),
         call(matrices(1, 1), real(1, 4)),
         call(matrices(0, 0), real(0, 2)), call(matrices(2, 2), real(2, 0)), call(matrices(0, 2, 2), real(0, 2, 1))],
        {"x": "x out", "b": "x"}),
    Sampled("solve_triangular", triangular_like,
        lambda: [call(matrices(3, 3), real(3, 2), upper=False), call(matrices(3, 3), real(3, 2), upper=True),
         call(matrices(2, 3, 3), real(2, 2, 3), upper=True, left=False),
         call(matrices(3, 3), real(2, 3, 1), upper=False),
         call(matrices(2, 1, 2, 2), real(3, 2, 2), upper=False, unitriangular=True),
         call(matrices(2, 2), real(3, 2), upper=True, left=False, unitriangular=True),
         call(matrices(2, 2), real(3, 2), upper=False, left=False), call(matrices(0, 0), real(0, 2), upper=True),
         call(matrices(2, 2), real(2, 0), upper=True), call(matrices(0, 2, 2), real(0, 2, 1), upper=False)],
        {"x": "x out", "b": "x"}),
    Sampled("inv", np.linalg.inv,
        lambda: [call(matrices(3, 3)), call(matrices(2, 4, 4)), call(matrices(1, 1)), call(matrices(0, 0)),
         call(matrices(0, 2, 2))], {"x": "out"}),
    Sampled("pinv", lambda x, rtol=None: np.linalg.pinv(x, rtol),
        lambda: [call(matrices(3, 3)), call(matrices(4, 2)), call(matrices(2, 4)), call(matrices(2, 3, 2)),
         call(matrices(2, 2), 1e-3), call(matrices(0, 2)), call(matrices(0, 2, 2))], {"x": "x out"}),
    Sampled("lstsq", lstsq_like,
        lambda: [call(matrices(4, 2), real(4, 3)), call(matrices(2, 4), real(2, 2)), call(matrices(3, 3), real(3, 1)),
         call(matrices(2, 3, 2), real(2, 3, 2)), call(matrices(0, 2), real(0, 3)), call(matrices(2, 2), real(2, 0)),
         call(matrices(0, 3, 2), real(0, 3, 1))], {"x": "x b out", "b": "x"},
        tested=lambda x, b: cg.lstsq(x, b).x),
]
