"""Sample calls and NumPy references of ops/elementwise/special."""

import numpy as np
import scipy.special

import cygrad as cg

from . import Sampled
from .makers import call, inside, one, positive, real, two, unequal

APART = np.array([[2.5, -1.5, 0.5, 7.25], [3.0, 5.5, 0.4, -0.75]])       # not at a pole of the gamma function


def in_double(f):
    """f computed in float64."""
    return lambda *xs: f(*[np.asarray(x, np.float64) for x in xs]).astype(np.result_type(*xs))


def apart():
    return [call(APART), call(APART.T[:, :1]), call(np.zeros((0, 3)))]


def sinc_derivative_like(x, n):
    """By the integral of s^n cos(t s + n pi / 2) over s from 0 to 1, with t = pi x."""
    s, w = np.polynomial.legendre.leggauss(60)
    s, w = (s + 1) / 2, w / 2
    t = np.pi * np.asarray(x, np.float64)[..., None]
    return ((s ** n * np.cos(t * s + n * np.pi / 2) * w).sum(-1) * np.pi ** n).astype(x.dtype)


SAMPLES = [
    Sampled("log2", np.log2, lambda: one(positive), {"x": "x"}),
    Sampled("log10", np.log10, lambda: one(positive), {"x": "x"}),
    Sampled("exp2", np.exp2, one, {"x": "out"}),
    Sampled("cbrt", np.cbrt, one, {"x": "out"}),
    Sampled("logaddexp", np.logaddexp, two, {"x": "x y", "y": "x y"}),
    Sampled("xlogy", in_double(scipy.special.xlogy), lambda: two(positive), {"x": "x y", "y": "x y"}),
    Sampled("erfc", in_double(scipy.special.erfc), one, {"x": "x"}),
    Sampled("erfinv", in_double(scipy.special.erfinv), lambda: one(inside), {"x": "out"}),
    Sampled("lgamma", in_double(scipy.special.gammaln), apart, {"x": "x"}),
    Sampled("digamma", in_double(scipy.special.digamma), apart, {"x": "x"}),
    Sampled("polygamma", lambda x, n: in_double(lambda x: scipy.special.polygamma(n, x))(x),
        lambda: [call(APART, n=1), call(np.abs(APART), n=2), call(1 + np.abs(APART), n=5), call(np.zeros((0, 3)), n=1)],
        {"x": "x"}, tested=lambda x, n: cg.polygamma(n, x)),
    Sampled("sinc", np.sinc, lambda: [*one(), call(np.array([0.0, 1e-5, 0.3, 1.0, -2.5, 40.25]))], {"x": "x"}),
    Sampled("sinc_derivative", sinc_derivative_like,
        lambda: [*[call(real(3, 4), n=n) for n in (1, 2, 3)], call(np.array([0.0, 1e-5, 1.0, 3.5]), n=2),
                 call(np.zeros((0, 3)), n=1)], {"x": "x"}),
    Sampled("atan2", np.arctan2, two, {"x": "x y", "y": "x y"}, ties=((0.0, 0.0), (0.0, 0.0))),
    Sampled("hypot", np.hypot, two, {"x": "x out", "y": "y out"}, ties=((0.0, 0.0), (0.0, 0.0))),
    Sampled("copysign", np.copysign, two, {"x": "codes"}, ties=((0.0, 1.0), (0.0, 0.0))),
    Sampled("fmax", np.fmax, unequal, {"x": "codes", "y": "codes"}, ties=((1.0, 1.0), (0.5, 0.5))),
    Sampled("fmin", np.fmin, unequal, {"x": "codes", "y": "codes"}, ties=((1.0, 1.0), (0.5, 0.5))),
]
