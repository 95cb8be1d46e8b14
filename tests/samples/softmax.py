"""Sample calls and NumPy references of ops/reductions/softmax."""

import numpy as np

from . import Sampled
from .makers import along_axes, call, log_softmax_like, real


def softmax_like(x, axis=-1):
    return np.exp(log_softmax_like(x, axis))


def logsumexp_like(x, axis=None, keepdims=False):
    most = x.max(axis, keepdims=True)
    y = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return y if keepdims else y.reshape(x.sum(axis).shape)


SAMPLES = [
    Sampled("log_softmax", log_softmax_like,
        lambda: [call(real(4, 3)), call(real(2, 3, 4), axis=1), call(real(5)), call(real(0, 3)),
         call(1000 * real(2, 3))],
        {"x": "out"}),
    Sampled("softmax", softmax_like,
        lambda: [call(real(4, 3)), call(real(2, 3, 4), axis=1), call(real(5)), call(real(0, 3)),
         call(1000 * real(2, 3))], {"x": "out"}),
    Sampled("logsumexp", logsumexp_like,
        lambda: [*along_axes(), call(1000 * real(2, 3), axis=1), call(1000 * real(2, 3), axis=0)], {"x": "x out"}),
]
