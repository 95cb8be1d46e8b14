"""Sample calls and NumPy references of ops/reductions/statistics."""

import numpy as np

from . import Sampled
from .makers import along_axes, call, real


def norm_like(x, ord=2, axis=None, keepdims=False):
    size = np.abs(x)
    if ord == np.inf: return size.max(axis, keepdims=keepdims)
    if ord == -np.inf: return size.min(axis, keepdims=keepdims)
    return (size ** ord).sum(axis, keepdims=keepdims) ** x.dtype.type(1 / ord)


SAMPLES = [
    Sampled("var", lambda x, axis=None, keepdims=False, correction=0:
            np.var(x, axis, ddof=correction, keepdims=keepdims),
        lambda: [*along_axes(), call(real(3, 4), axis=0, correction=1)], {"x": "x"}, ties=(0.5, 0.0)),
    Sampled("std", lambda x, axis=None, keepdims=False, correction=0:
            np.std(x, axis, ddof=correction, keepdims=keepdims),
        lambda: [*along_axes(one=False), call(real(3, 4), axis=0, correction=1)], {"x": "x out"}, ties=(0.5, 0.0)),
    Sampled("norm", norm_like,
        lambda: [*along_axes(), call(real(2, 3), 3, 0), call(real(2, 3), np.inf, 1), call(real(2, 3), -np.inf, 1),
         call(real(2, 3), 0.5, 0), call(real(2, 3), -2, None, True), call(real(2, 3), 1, 1)],
        lambda x, ord=2, axis=None, keepdims=False: {"x": "x" if ord == 1 else "x out"},
        ties=(0.0, 0.0)),
]
