"""Sample calls and NumPy references of ops/elementwise/functions."""

import math

import numpy as np

from . import Sampled
from .makers import above_one, call, inside, one, positive, real, sigmoid_like


def erf_like(x):
    return np.array([math.erf(v) for v in x.ravel()], x.dtype).reshape(x.shape)


def silu_like(x):
    wide = x.astype(np.float64)                     # where the sigmoid is a denormal float32, x times it is not
    return (wide * sigmoid_like(wide)).astype(x.dtype)


def gelu_like(x):
    return x * (0.5 * np.array([math.erfc(-v / math.sqrt(2)) for v in x.ravel()])).reshape(x.shape).astype(x.dtype)


def gelu_tanh_like(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


SAMPLES = [
    Sampled("exp", np.exp, one, {"x": "out"}),
    Sampled("expm1", np.expm1, one, {"x": "out"}),
    Sampled("log", np.log, lambda: one(positive), {"x": "x"}),
    Sampled("log1p", np.log1p, lambda: one(positive), {"x": "x"}),
    Sampled("sin", np.sin, one, {"x": "x"}),
    Sampled("cos", np.cos, one, {"x": "x"}),
    Sampled("tan", np.tan, lambda: one(inside), {"x": "out"}),
    Sampled("asin", np.arcsin, lambda: one(inside), {"x": "x"}),
    Sampled("acos", np.arccos, lambda: one(inside), {"x": "x"}),
    Sampled("atan", np.arctan, one, {"x": "x"}),
    Sampled("sinh", np.sinh, one, {"x": "x"}),
    Sampled("cosh", np.cosh, one, {"x": "x"}),
    Sampled("tanh", np.tanh, one, {"x": "out"}),
    Sampled("asinh", np.arcsinh, one, {"x": "x"}),
    Sampled("acosh", np.arccosh, lambda: one(above_one), {"x": "x"}),
    Sampled("atanh", np.arctanh, lambda: one(inside), {"x": "x"}),
    Sampled("erf", erf_like, one, {"x": "x"}),
    Sampled("sigmoid", sigmoid_like, one, {"x": "out"}),
    Sampled("softplus", lambda x, beta=1.0: np.logaddexp(0, beta * x) / beta,
        lambda: [*one(), call(real(3), beta=2.5), call(real(3), -0.5)], {"x": "out"}),
    Sampled("silu", silu_like, one, {"x": "x"}),
    Sampled("gelu", gelu_like, one, {"x": "x"}),
    Sampled("gelu_tanh", gelu_tanh_like, one, {"x": "x"}),
    Sampled("relu", lambda x: np.maximum(x, 0), one, {"x": "out"}, ties=(0.0, 0.0)),
    Sampled("relu_gradient", lambda g, y: np.where(y > 0, g, 0),
        lambda: [call(real(2, 3), real(2, 3, seed=1)), call(real(0, 3), real(0, 3))], {"g": "bits"}),
]
