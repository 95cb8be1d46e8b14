"""Sample calls and NumPy references of ops/linalg/diagonal."""

import numpy as np

from . import Sampled
from .makers import call, real

SAMPLES = [
    Sampled("diagonal", np.diagonal,
        lambda: [call(real(3, 3)), call(real(3, 4), 1), call(real(4, 3), -2), call(real(2, 3, 4), 0, 1, 2),
         call(real(2, 3, 2), axis1=2, axis2=0), call(real(3, 3), 5), call(real(0, 3)), call(real(2, 2, 0), -1, 1, 2)]),
    Sampled("diag", np.diag,
        lambda: [call(real(3)), call(real(3), 1), call(real(2), -2), call(real(0)), call(real(0), 2), call(real(1))]),
]
