"""Sample calls and NumPy references of ops/layers/activations."""

import numpy as np

from . import Sampled
from .functions import silu_like
from .makers import call, one, real, sigmoid_like

SCALE, SCALE_ALPHA = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123


def wide(*shape):
    """Numbers on each piece of the functions with three, none near a kink."""
    return np.where(np.abs(np.abs(real(*shape, low=-5, high=5)) - 3) < 0.1, 3.5, real(*shape, low=-5, high=5))


def expm1_below(x):
    return np.expm1(np.where(x > 0, 0, x))


def prelu_like(x, weight):
    if weight.size > 1: weight = weight.reshape(weight.shape + (1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight.reshape(() if weight.size == 1 else weight.shape) * x)


def mish_like(x):
    far = silu_like(x)                              # the same far below 0, where e^x is denormal
    return np.where(x < -50, far, x * np.tanh(np.log1p(np.exp(np.minimum(x, 50))))).astype(x.dtype)


def hard_like(x):
    return np.clip(x + 3, 0, 6) / 6


def glu_like(x, axis=-1):
    a, b = np.split(x, 2, axis)
    return a * sigmoid_like(b)


def many():
    """one(), and sizes around those of vectors, words of codes and strips."""
    return [*one(wide), *[call(wide(n)) for n in (7, 8, 9, 15, 16, 17, 63, 64, 65, 2049)]]


SAMPLES = [
    Sampled("leaky_relu", lambda x, negative_slope=0.01: np.where(x > 0, x, x * x.dtype.type(negative_slope)),
        lambda: [*many(), call(real(3), negative_slope=0.3), call(real(2, 2), 0.0)], {"x": "out"}, ties=(0.0, 0.01)),
    Sampled("prelu", prelu_like,
        lambda: [call(real(4, 3, 2), real(3, seed=1)), call(real(4, 3), real(3, seed=1)), call(real(2, 3), real(1)),
                 call(real(), real(1)), call(real(65), real()), call(real(0, 3), real(3, seed=1))],
        {"x": "x weight", "weight": "x"}),
    Sampled("threshold", lambda x, threshold, value: np.where(x <= threshold, x.dtype.type(value), x),
        lambda: [call(*args, 0.05, 2.0) for args, _ in many()], {"x": "truths"}),
    Sampled("hardtanh", lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
        lambda: [*many(), call(real(2, 3), -0.05, max_val=1.7)], {"x": "truths"}, ties=(1.0, 0.0)),
    Sampled("hardsigmoid", hard_like, many, {"x": "truths"}, ties=(3.0, 0.0)),
    Sampled("hardswish", lambda x: x * hard_like(x), many, {"x": "x"}, ties=(3.0, 1.0)),
    Sampled("elu", lambda x, alpha=1.0: np.where(x > 0, x, x.dtype.type(alpha) * expm1_below(x)),
        lambda: [*many(), call(real(3), alpha=0.3), call(real(2, 2), 2.5)], {"x": "out"}),
    Sampled("selu", lambda x: np.where(x > 0, x.dtype.type(SCALE) * x, x.dtype.type(SCALE_ALPHA) * expm1_below(x)),
        many, {"x": "out"}, ties=(0.0, SCALE_ALPHA)),
    Sampled("celu", lambda x, alpha=1.0: np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(
        np.where(x > 0, 0, x) / x.dtype.type(alpha))),
        lambda: [*many(), call(real(3), alpha=0.3), call(real(2, 2), -2.5)], {"x": "out"}),
    Sampled("softsign", lambda x: x / (1 + np.abs(x)), many, {"x": "out"}),
    Sampled("logsigmoid", lambda x: -np.logaddexp(0, -x), many, {"x": "out"}),
    Sampled("mish", mish_like, many, {"x": "x"}),
    Sampled("glu", glu_like,
        lambda: [call(real(2, 6)), call(real(4, 3, 2), axis=0), call(real(3, 4, 5), axis=1), call(real(8), 0),
                 call(real(0, 4)), call(real(2, 0)), *[call(wide(3, 2 * n)) for n in (1, 7, 16, 33, 2049)]],
        {"x": "x"}),
]
