"""Sample calls and NumPy references of ops/reductions/reduce."""

import numpy as np

from . import Sampled
from .makers import along_axes, call, real


SAMPLES = [
    Sampled("sum", lambda x, axis=None, keepdims=False: np.sum(x, axis, keepdims=keepdims),
        lambda: [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3, 4), axis=(0, 2), keepdims=True),
         call(real(2, 3), axis=-1), call(real(3, 0), axis=1), call(real(0)), call(real())]),
    Sampled("mean", lambda x, axis=None, keepdims=False: np.mean(x, axis, keepdims=keepdims),
        lambda: [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3, 4), axis=(0, 2), keepdims=True),
         call(real(2, 3), axis=-1), call(real(0, 3), axis=1), call(real())]),
    Sampled("prod", lambda x, axis=None, keepdims=False: np.prod(x, axis, keepdims=keepdims),
        lambda: [*along_axes(), call(real(0, 3), axis=0), call(np.array([[0, 2, 3], [0, 0, 3.0]]), axis=1),
         call(real(5, 2), axis=0)], {"x": "x"}),
    Sampled("any", lambda x, axis=None, keepdims=False: np.any(x, axis, keepdims=keepdims),
        lambda: [*along_axes(), call(real(0, 3), axis=0), call(np.array([[0, 2], [0, 0.0]]), axis=1)]),
    Sampled("all", lambda x, axis=None, keepdims=False: np.all(x, axis, keepdims=keepdims),
        lambda: [*along_axes(), call(real(0, 3), axis=0), call(np.array([[0, 2], [1, 2.0]]), axis=1)]),
]
