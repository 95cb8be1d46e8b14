"""Sample calls and NumPy references of ops/shapes/masks."""

import numpy as np

from . import Sampled
from .makers import MASK, call, real


def mask_put_like(x, v, mask):
    out = x.copy()
    out[mask] = v
    return out


SAMPLES = [
    Sampled("select", lambda x, mask: x[mask],
        lambda: [call(real(2, 3), MASK), call(real(2, 3, 2), MASK), call(real(3, 2), MASK[0]),
         call(real(2, 3), MASK[0, :2]),
         call(real(0, 3), MASK[:0]), call(real(3), np.zeros(3, bool))], {"x": "places"}),
    Sampled("mask_put", mask_put_like,
        lambda: [call(real(2, 3), real(4), MASK), call(real(3, 2), real(2, 2), MASK[0]),
         call(real(0, 3), real(0), MASK[:0])], {"x": "places", "v": "places"}),
]
