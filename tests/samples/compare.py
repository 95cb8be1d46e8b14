"""Sample calls and NumPy references of ops/elementwise/compare."""

import numpy as np

from . import Sampled
from .makers import call, mask, one, real, truths, two, unequal, whole


def clip_like(x, min=None, max=None):
    return x if min is None and max is None else np.clip(x, min, max)


SAMPLES = [
    Sampled("less", np.less, two),
    Sampled("less_equal", np.less_equal, two),
    Sampled("equal", np.equal, two),
    Sampled("not_equal", np.not_equal, two),
    Sampled("greater", np.greater, two),
    Sampled("greater_equal", np.greater_equal, two),
    Sampled("isnan", np.isnan, one),
    Sampled("isinf", np.isinf, one),
    Sampled("isfinite", np.isfinite, one),
    Sampled("logical_and", np.logical_and, truths),
    Sampled("logical_or", np.logical_or, truths),
    Sampled("logical_xor", np.logical_xor, truths),
    Sampled("logical_not", np.logical_not, lambda: [call(a) for (a, _), _ in truths()]),
    Sampled("bitwise_and", np.bitwise_and, whole),
    Sampled("bitwise_or", np.bitwise_or, whole),
    Sampled("bitwise_xor", np.bitwise_xor, whole),
    Sampled("bitwise_not", np.bitwise_not, lambda: [call(a) for (a, _), _ in whole()]),
    Sampled("maximum", np.maximum, unequal, {"x": "codes", "y": "codes"},
        ties=((1.0, 1.0), (0.5, 0.5))),
    Sampled("minimum", np.minimum, unequal, {"x": "codes", "y": "codes"},
        ties=((1.0, 1.0), (0.5, 0.5))),
    Sampled("clip", clip_like,
        lambda: [call(real(2, 3), -1, 0.5), call(real(2, 3), min=-1), call(real(3), max=1), call(real()),
         call(real(0, 3), 0, 1), call(real(2, 3), real(3, seed=3), real(2, 1, seed=4)), call(real(3), 1.0, -1.0)],
        {"x": "choice", "min": "choice", "max": "choice"},
        ties=((1.0, 1.0, 2.0), (1.0, 0.0, 0.0))),
    Sampled("where", np.where,
        lambda: [call(mask(2, 3), real(2, 3), real(2, 3, seed=1)), call(mask(3), real(2, 1), real(3, seed=1)),
         call(mask(2, 3), real(3), 0.5), call(mask(2, 3), -1.5, real(2, 3)), call(mask(0, 3), real(3), real(3)),
         call(mask(), real(2), real(1, seed=1))],
        lambda condition, x, y: dict.fromkeys(
            "xy", "truths" if condition.size == np.broadcast(condition, x, y).size else "condition")),
]
