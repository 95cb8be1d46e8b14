"""Sample calls and NumPy references of ops/shapes/window."""

import numpy as np

from . import Sampled
from .makers import call, real


def as_view_like(x, shape, strides, offset):
    return np.lib.stride_tricks.as_strided(x.ravel()[offset:], shape, [s * x.itemsize for s in strides])


def put_view_like(x, v, strides, offset):
    out = x.copy()
    as_view_like(out, v.shape, strides, offset)[...] = v
    return out


SAMPLES = [
    Sampled("as_view", as_view_like,
        lambda: [call(real(3, 4), (2, 2), (4, 2), 1), call(real(3, 4), (4,), (-3,), 11),
         call(real(3, 4), (3, 2), (0, 1), 5), call(real(4), (), (), 3), call(real(0, 3), (3, 0), (1, 3), 0)]),
    Sampled("put_view", put_view_like,
        lambda: [call(real(3, 4), real(2, 2), (4, 2), 1), call(real(3, 4), real(4), (-3,), 11),
         call(real(4), real(), (), 3), call(real(4), real(0, 2), (2, 1), 0)]),
]
