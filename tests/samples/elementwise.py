"""Sample calls and NumPy references of ops/elementwise/elementwise."""

import numpy as np

from . import Sampled
from .makers import call, one, positive, real, two, unequal


SAMPLES = [
    Sampled("add", np.add, two),
    Sampled("sub", np.subtract, two),
    Sampled("mul", np.multiply, two, {"x": "y", "y": "x"}),
    Sampled("div", np.divide, two, {"x": "y", "y": "y out"}),
    Sampled("floor_divide", np.floor_divide, unequal, ties=((2.0, 1.0), (0.0, 0.0))),
    Sampled("remainder", np.remainder, unequal, {"y": "x y"}, ties=((2.0, 1.0), (1.0, -2.0))),
    Sampled("neg", np.negative, one),
    Sampled("abs", np.abs, one, {"x": "codes"}, ties=(0.0, 0.0)),
    Sampled("sign", np.sign, one, ties=(0.0, 0.0)),
    Sampled("floor", np.floor, one, ties=(1.0, 0.0)),
    Sampled("ceil", np.ceil, one, ties=(1.0, 0.0)),
    Sampled("trunc", np.trunc, one, ties=(1.0, 0.0)),
    Sampled("round", np.round, one, ties=(1.0, 0.0)),
    Sampled("pow", np.power,
        lambda: [call(real(2, 3), 3), call(positive(2, 3), 0.5), call(positive(3), -1.5),
        call(real(3), 2), call(real(2), 0), call(real(2), 1), call(real(0, 2), 2), call(positive(), 2.5)],
        lambda x, p: {} if p in (0, 1) else {"x": "x"}),
    Sampled("power", np.power,
        lambda: [*two(positive), call(positive(3), np.array([0.5, 1.0, 2.0]))], {"x": "x y", "y": "x out"}),
    Sampled("square", np.square, one, {"x": "x"}),
    Sampled("sqrt", np.sqrt, lambda: one(positive), {"x": "out"}),
    Sampled("rsqrt", lambda x: 1 / np.sqrt(x), lambda: one(positive), {"x": "out"}),
    Sampled("reciprocal", np.reciprocal, one, {"x": "out"}),
]
