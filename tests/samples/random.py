"""Sample calls and NumPy references of ops/layers/random."""

import numpy as np

from . import Sampled
from .makers import call, one, real


def philox(key, counter, n):
    """The first n words of Philox4x32-10 from block `counter` on (Salmon et al. 2011), with Python's integers."""
    words = []
    for block in range(counter, counter + (n + 3) // 4):
        c, k = [block & 0xFFFFFFFF, block >> 32 & 0xFFFFFFFF, 0, 0], [key & 0xFFFFFFFF, key >> 32]
        for _ in range(10):
            a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
        words += c
    return words[:n]


def dropout_like(x, p, key, counter):
    kept = np.array(philox(key, counter, x.size), "float64").reshape(x.shape) >= p * 2**32
    return np.where(kept, x * x.dtype.type(1 / (1 - p) if p < 1 else 0), x.dtype.type(0))


SAMPLES = [
    Sampled("dropout_with", dropout_like,
        lambda: [call(real(4, 3), 0.5, 7, 2**40), call(real(2, 3, 5), 0.9, 2**64 - 1, 0), call(real(5), 0.0, 1, 2),
         call(real(5), 1.0, 1, 2), call(real(), 0.25, 3, 1), call(real(0, 3), 0.5, 1, 2), call(real(700), 0.1, 5, 3)]),
    Sampled("dropout_identity", lambda x: x, one),
]
