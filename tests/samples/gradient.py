"""Sample calls and NumPy references of ops/layers/gradient."""

from . import Sampled
from .makers import call, real


SAMPLES = [
    Sampled("scale_gradient", lambda x, s: x,
        lambda: [call(real(2, 3), 1.0), call(real(), 1), call(real(0, 2), 1), call(real(2, 3), -0.5),
         call(real(3), 0.0)], own_gradient=True),
]
