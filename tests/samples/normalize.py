"""Sample calls and NumPy references of ops/layers/normalize."""

import numpy as np

from . import Sampled
from .makers import call, real


def layer_norm_like(x, weight=None, bias=None, eps=1e-5):
    axes = tuple(range(-weight.ndim, 0)) if weight is not None else -1
    z = x - x.mean(axes, keepdims=True)
    y = z / np.sqrt((z ** 2).mean(axes, keepdims=True) + eps) * (1 if weight is None else weight)
    return y if bias is None else y + bias


def rms_norm_like(x, weight=None, eps=None):
    axes = tuple(range(-weight.ndim, 0)) if weight is not None else -1
    eps = np.finfo(x.dtype).eps if eps is None else eps
    return x / np.sqrt((x ** 2).mean(axes, keepdims=True) + eps) * (1 if weight is None else weight)


def kept(x, weight=None, *_, **__):
    return {"x": "x rates"} if weight is None else {"x": "x weight rates", "weight": "x rates"}


SAMPLES = [
    Sampled("layer_norm", layer_norm_like,
        lambda: [call(real(4, 3), real(3, seed=1), real(3, seed=2)),
         call(real(2, 3, 4), real(3, 4, seed=1), real(3, 4, seed=2), eps=0.5),
         call(real(5), real(5, seed=1), real(5, seed=2)), call(real(0, 3), real(3, seed=1), real(3, seed=2)),
         call(real(40, 200), real(200, seed=1), real(200, seed=2)),
         call(real(4, 3), real(3, seed=1)), call(real(2, 3, 4), real(3, 4, seed=1), eps=0.5),
         call(real(4, 3)), call(real(0, 3)), call(real(3, 137), eps=0.1), call(real(3, 65))], kept),
    Sampled("rms_norm", rms_norm_like,
        lambda: [call(real(4, 3), real(3, seed=1)), call(real(2, 3, 4), real(3, 4, seed=1), eps=0.5),
         call(real(5), real(5, seed=1)), call(real(0, 3), real(3, seed=1)), call(real(40, 200), real(200, seed=1)),
         call(real(4, 3)), call(real(3, 137), eps=0.1)], kept),
]
