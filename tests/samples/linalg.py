"""Sample calls and NumPy references of ops/linalg/linalg."""

import numpy as np

from . import Sampled
from .makers import call, real, sigmoid_like


def activated(x, name):
    """The activation of linear."""
    return np.maximum(x, 0) if name == "relu" else np.tanh(x) if name == "tanh" else sigmoid_like(x) if name else x


SAMPLES = [
    Sampled("matmul", np.matmul,
        lambda: [call(real(2, 3), real(3, 4)), call(real(2, 2, 3), real(3, 4)), call(real(2, 1, 2, 3), real(3, 3, 2)),
         call(real(3), real(3, 2)), call(real(2, 3), real(3)), call(real(3), real(3, seed=1)),
         call(real(0, 3), real(3, 2)),
         call(real(2, 0), real(0, 3)), call(real(2, 2, 3), real(2, 3, 1))], {"x": "y", "y": "x"}),
    Sampled("linear", lambda x, w, b=0.0, activation=None: activated(x @ w.T + b, activation),
        lambda: [call(real(4, 3), real(2, 3), real(2)), call(real(4, 3), real(2, 3)),
         call(real(2, 2, 3), real(4, 3), real(4)),
         call(real(3), real(2, 3), real(2)), call(real(0, 3), real(2, 3), real(2)),
         call(real(4, 3), real(2, 3), real(2), activation="relu"), call(real(5, 3), real(2, 3), activation="relu"),
         call(real(2, 2, 3), real(4, 3), real(4), activation="tanh"), call(real(3), real(2, 3), activation="sigmoid"),
         call(real(0, 3), real(2, 3), real(2), activation="sigmoid")],
        lambda x, w, b=None, activation=None: (
            {"x": "w", "w": "x"} if activation is None else {"x": "w out", "w": "x out", "b": "out"})),
]
