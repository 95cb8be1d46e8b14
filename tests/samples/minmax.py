"""Sample calls and NumPy references of ops/reductions/minmax."""

import numpy as np

from . import Sampled
from .makers import along_axes


SAMPLES = [
    Sampled("max", lambda x, axis=None, keepdims=False: np.max(x, axis, keepdims=keepdims),
        along_axes, {"x": "bits"}, ties=(1.0, 0.25)),
    Sampled("min", lambda x, axis=None, keepdims=False: np.min(x, axis, keepdims=keepdims),
        along_axes, {"x": "bits"}, ties=(1.0, 0.25)),
    Sampled("argmax", lambda x, axis=None, keepdims=False: np.argmax(x, axis, keepdims=keepdims),
        lambda: along_axes(several=False)),
    Sampled("argmin", lambda x, axis=None, keepdims=False: np.argmin(x, axis, keepdims=keepdims),
        lambda: along_axes(several=False)),
]
