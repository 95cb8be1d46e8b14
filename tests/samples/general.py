"""Sample calls and NumPy references of ops/linalg/general."""

import numpy as np
import scipy.linalg

import cygrad as cg

from . import Sampled
from .decompose import vector
from .makers import call, matrices


def batch(*shape):
    """Matrices whose eigenvalues are real, positive and apart."""
    return 0.2 * matrices(*shape) + np.diag(np.arange(1.0, shape[-1] + 1))


def square():
    return [call(batch(3, 3)), call(batch(2, 2, 2)), call(batch(1, 1)), call(np.zeros((0, 0))),
            call(np.zeros((0, 2, 2)))]


def each(f):
    """f of each matrix, in float64."""
    def of_each(x):
        y = np.empty(x.shape)
        for index in np.ndindex(x.shape[:-2]) if x.size else (): y[index] = f(x[index].astype("float64"))
        return y.astype(x.dtype)

    return of_each


SAMPLES = [
    Sampled("eig", lambda x: vector([a.astype(x.dtype) for a in np.linalg.eig(x)]), square, {"x": "out"},
        tested=lambda x: vector(cg.eig(x))),
    Sampled("eigvals", lambda x: np.linalg.eigvals(x).astype(x.dtype), square, {"x": "x"}),
    Sampled("expm", each(scipy.linalg.expm), lambda: [call(matrices(3, 3)), *square()[1:]], {"x": "x"}),
    Sampled("logm", each(scipy.linalg.logm), square, {"x": "x"}),
    Sampled("sqrtm", each(scipy.linalg.sqrtm), square, {"x": "x"}),
]
