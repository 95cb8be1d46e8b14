"""Sample calls and NumPy references of ops/scan."""

import numpy as np

from . import Sampled
from .makers import call, real


def cumsum_like(x, axis=None):
    return np.cumsum(x, axis)


SAMPLES = [
    Sampled("cumsum", cumsum_like,
        lambda: [call(real(5)), call(real(2, 3), 0), call(real(2, 3, 4), 1), call(real(2, 3), -1), call(real(2, 3)),
         call(real(0, 3), 1), call(real())]),
]
