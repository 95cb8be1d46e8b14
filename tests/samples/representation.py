"""Sample calls and NumPy references of ops/elementwise/representation."""

import numpy as np

from . import Sampled
from .makers import call, one, two


def shifts():
    n = np.array([[0, 1, 6], [-1, 7, 12]])
    return [call(n, np.array([[1], [3]])), call(n.astype("uint8"), np.array(3, "uint8")), call(n, 5),
            call(n.astype("int16")[:0], n[0].astype("int16"))]


SAMPLES = [
    Sampled("bitwise_left_shift", np.left_shift, shifts),
    Sampled("bitwise_right_shift", np.right_shift, shifts),
    Sampled("signbit", np.signbit, one),
    Sampled("nextafter", np.nextafter, two),
]
