"""Sample calls and NumPy references of ops/shapes/shape."""

import numpy as np

from . import Sampled
from .makers import call, one, real


SAMPLES = [
    Sampled("reshape", lambda x, shape: np.reshape(x, shape),
        lambda: [call(real(2, 6), (3, 4)), call(real(2, 3), (-1,)), call(real(0, 3), (3, 0)), call(real(), (1, 1)),
         call(real(2, 3), (1, 2, 1, 3))]),
    Sampled("transpose", lambda x, axes=None: np.transpose(x, axes),
        lambda: [call(real(2, 3)), call(real(2, 3, 4), (1, 2, 0)), call(real(0, 2)), call(real(3))]),
    Sampled("permute", np.transpose,
        lambda: [call(real(2, 3), (1, 0)), call(real(2, 3, 4), (2, 0, -2)), call(real(0, 2), (1, 0)),
         call(real(), ())]),
    Sampled("squeeze", np.squeeze,
        lambda: [call(real(1, 3, 1)), call(real(1, 3, 1), axis=0), call(real(1, 3, 1), axis=(0, -1)), call(real(2, 3)),
         call(real(1, 0))]),
    Sampled("expand_dims", np.expand_dims,
        lambda: [call(real(2, 3), 1), call(real(2, 3), (0, -1)), call(real(), 0), call(real(0, 2), -1)]),
    Sampled("flip", np.flip,
        lambda: [call(real(2, 3)), call(real(2, 3), axis=1), call(real(2, 3, 2), axis=(0, -1)), call(real(0, 2)),
         call(real())]),
    Sampled("broadcast_to", np.broadcast_to,
        lambda: [call(real(3), (2, 3)), call(real(2, 1), (2, 4)), call(real(), (2, 2)), call(real(1, 3), (0, 3)),
         call(real(2, 3), (2, 3)), call(real(0), (2, 0))]),
    Sampled("copy", np.copy, one),
    Sampled("astype", lambda x, dtype: x.astype(dtype),
        lambda: [call(real(2, 3), "float64"), call(real(2, 3), "float32"), call(real(0, 2), "float64")]),
]
