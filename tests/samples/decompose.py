"""Sample calls and NumPy references of ops/linalg/decompose.

Results of several tensors are joined to a vector, so that all of them are compared. The matrices are made symmetric
inside the tested function, because only a triangle is read and the gradient is symmetric."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, matrices


def symmetric(x):
    return x + (np.swapaxes(x, -1, -2) if isinstance(x, np.ndarray) else cg.matrix_transpose(x))


def vector(ys):
    """The elements of several tensors or arrays."""
    if isinstance(ys[0], np.ndarray):
        return np.concatenate([np.reshape(y, -1) for y in ys])
    return cg.concat([cg.reshape(y, -1) for y in ys])


def cholesky_like(x, upper=False):
    y = np.linalg.cholesky(symmetric(x))
    return np.swapaxes(y, -1, -2) if upper else y


SAMPLES = [
    Sampled("cholesky", cholesky_like,
        lambda: [call(matrices(3, 3)), call(matrices(3, 3), upper=True), call(matrices(2, 4, 4)), call(matrices(1, 1)),
         call(matrices(2, 2, 2, 2), upper=True), call(matrices(0, 0)), call(matrices(0, 2, 2))], {"x": "out"},
        tested=lambda x, upper=False: cg.cholesky(symmetric(x), upper)),
    Sampled("qr", lambda x, mode="reduced": vector(np.linalg.qr(x, mode)),
        lambda: [call(matrices(3, 3)), call(matrices(4, 2)), call(matrices(2, 4)), call(matrices(2, 3, 2)),
         call(matrices(3, 3), mode="complete"), call(matrices(2, 2, 3), mode="complete"), call(matrices(1, 1)),
         call(matrices(0, 2)), call(matrices(3, 0)), call(matrices(0, 2, 2))],
        lambda x, mode="reduced": {"x": "out x" if x.shape[-1] > x.shape[-2] else "out"},
        tested=lambda x, mode="reduced": vector(cg.qr(x, mode))),
]
