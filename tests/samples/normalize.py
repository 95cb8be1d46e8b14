"""Sample calls and NumPy references of ops/normalize."""

import numpy as np

from . import Sampled
from .makers import call, real


def layer_norm_like(x, weight, bias, eps=1e-5):
    axes = tuple(range(-weight.ndim, 0))
    z = x - x.mean(axes, keepdims=True)
    return z / np.sqrt((z ** 2).mean(axes, keepdims=True) + eps) * weight + bias


SAMPLES = [
    Sampled("layer_norm", layer_norm_like,
        lambda: [call(real(4, 3), real(3, seed=1), real(3, seed=2)),
         call(real(2, 3, 4), real(3, 4, seed=1), real(3, 4, seed=2), eps=0.5),
         call(real(5), real(5, seed=1), real(5, seed=2)), call(real(0, 3), real(3, seed=1), real(3, seed=2)),
         call(real(40, 200), real(200, seed=1), real(200, seed=2))],
        {"x": "x weight rates", "weight": "x rates"}),
]
