"""Sample calls and NumPy references of ops/linalg/determinant."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, matrices


def cofactor_like(x):
    return np.linalg.det(x)[..., None, None] * np.swapaxes(np.linalg.inv(x), -1, -2)


def square():
    return [call(matrices(3, 3)), call(matrices(2, 4, 4)), call(-matrices(2, 2)), call(matrices(1, 1)),
            call(matrices(0, 0)), call(matrices(0, 2, 2))]


SAMPLES = [
    Sampled("det", np.linalg.det, square, {"x": "x"}),
    Sampled("slogdet", lambda x: np.stack(np.linalg.slogdet(x)), square, {"x": "x"},
        tested=lambda x: cg.stack(cg.slogdet(x))),
    Sampled("cofactor", cofactor_like, square, {"x": "x out"}),
]
