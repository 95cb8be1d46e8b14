"""Functions of one number: a sample of tests/support/ulps.py against its bounds, special numbers against NumPy."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special

import cygrad as cg
import ulps

DTYPES = ["float32", "float64"]
NUMPY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": np.vectorize(math.erf),
    "log2": np.log2, "log10": np.log10, "exp2": np.exp2, "erfc": np.vectorize(math.erfc),
    "erfinv": lambda x: np.copysign(scipy.special.erfinv(x.astype("float64")), x),      # (-0.0 of -0.0)
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0),
}


def special(dtype):
    info = np.finfo(dtype)
    positive = [0, info.smallest_subnormal, info.smallest_normal, info.eps, 0.5, 1, 2, 3, 1e4, info.max, np.inf]
    with np.errstate(over="ignore"):
        return np.array([np.nan, *positive, *(-v for v in positive), -0.0], dtype)


def same(y, wanted, ulp):
    """The same NaN, infinities and zeros, with the same signs; else equal within `ulp` plus one for NumPy's error."""
    assert y.dtype == wanted.dtype
    exact = ~np.isfinite(wanted) | (wanted == 0)
    np.testing.assert_array_equal(y[exact], wanted[exact])
    numbers = ~np.isnan(wanted) & exact
    np.testing.assert_array_equal(np.signbit(y[numbers]), np.signbit(wanted[numbers]))
    np.testing.assert_array_max_ulp(y[~exact], wanted[~exact], math.ceil(ulp) + 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ulps.CASES)
def test_sample_within_bounds(name, dtype):
    wrong, numbers = ulps.measure(name, dtype, 2000)
    worst = int(wrong.argmax())
    assert wrong[worst] <= ulps.bound(name, dtype), [float(column[worst]).hex() for column in numbers]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NUMPY)
def test_special_numbers(name, dtype):
    x = special(dtype)
    with np.errstate(all="ignore"):
        wanted = NUMPY[name](x).astype(dtype)
    same(getattr(cg, name)(cg.tensor(x)).numpy(), wanted, ulps.bound(name, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_powers(dtype):
    x, y = (a.ravel().copy() for a in np.meshgrid(special(dtype), special(dtype)))
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    same(cg.pow(cg.tensor(x), cg.tensor(y)).numpy(), wanted, ulps.bound("pow", dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, like", [("atan2", np.arctan2), ("hypot", np.hypot), ("logaddexp", np.logaddexp),
                                        ("remainder", np.remainder), ("floor_divide", np.floor_divide)])
def test_special_pairs(name, like, dtype):
    """All pairs of special numbers, then each row of them among ordinary numbers, where kernels take another path."""
    x, y = (a.ravel().copy() for a in np.meshgrid(special(dtype), special(dtype)))
    plain = np.linspace(-9, 9, 4100).astype(dtype)
    x, y = np.concatenate([plain, x, plain]), np.concatenate([plain[::-1], y, 0 * plain + 3])
    precise = np.float64 if name == "logaddexp" else dtype      # of float32, NumPy's own digits cancel near 0
    with np.errstate(all="ignore"):
        wanted = like(x.astype(precise), y.astype(precise)).astype(dtype)
    got = getattr(cg, name)(cg.tensor(x), cg.tensor(y)).numpy()
    near = np.abs(wanted) < 1e-3 if name == "logaddexp" and dtype == "float64" else np.zeros(x.size, bool)
    same(got[~near], wanted[~near], 4)
    np.testing.assert_allclose(got[near], wanted[near], rtol=1e-4)      # of two nearly opposite terms


def test_logaddexp_near_zero():
    """float32, where e^x + e^y is nearly 1, so that the larger number and the logarithm nearly cancel: compared with
    200 bits."""
    rng = np.random.default_rng(3)
    x = -np.exp(rng.uniform(-20, 0.3, 3000)).astype(np.float32)
    with np.errstate(invalid="ignore"): y = np.log(-np.expm1(x.astype(np.float64)))
    x, y = (np.where(rng.random(x.size) < 0.5, *pair) for pair in ((x, y), (y, x)))     # either is the larger
    x, y = x.astype(np.float32), (y * (1 + 1e-4 * rng.standard_normal(x.size))).astype(np.float32)
    keep = np.isfinite(x) & np.isfinite(y)
    x, y = x[keep], y[keep]
    with mpmath.workprec(200):
        exact = [mpmath.log(mpmath.exp(a) + mpmath.exp(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    exact = np.array([float(v) for v in exact])
    assert (np.abs(exact) < 1e-4).sum() > 1000
    wrong = ulps.errors(cg.logaddexp(cg.tensor(x), cg.tensor(y)).numpy(), exact, np.zeros(exact.size))
    assert wrong.max() < 2


def test_quotients_that_round_to_an_integer():
    """Quotients of float32 next to integers, up to the largest that float64 decides, and beyond; floor and remainder
    are those of exact arithmetic."""
    rng = np.random.default_rng(5)
    y = rng.uniform(0.5, 2, 3000).astype(np.float32)
    whole = np.exp2(rng.uniform(0, 30, y.size)).astype(np.float32)
    x = np.nextafter((whole * y).astype(np.float32), np.float32(0)) * rng.choice([-1, 1], y.size).astype(np.float32)
    exact = [math.floor(Fraction(float(a)) / Fraction(float(b))) for a, b in zip(x, y, strict=True)]
    rest = [Fraction(float(a)) - n * Fraction(float(b)) for a, b, n in zip(x, y, exact, strict=True)]
    for few in (slice(None), whole < 1 << 26):
        np.testing.assert_array_equal(cg.floor_divide(cg.tensor(x[few]), cg.tensor(y[few])).numpy(),
                                      np.array(exact, np.float64)[few].astype(np.float32))
        np.testing.assert_array_equal(cg.remainder(cg.tensor(x[few]), cg.tensor(y[few])).numpy(),
                                      np.array(rest, np.float64)[few].astype(np.float32))


def test_logarithms_and_powers_of_bases_are_integers():
    powers = np.arange(-149, 128)
    x = np.exp2(powers.astype(np.float64)).astype(np.float32)
    assert cg.log2(cg.tensor(x)).numpy().tolist() == powers.tolist()
    assert cg.exp2(cg.tensor(powers.astype(np.float32))).numpy().tolist() == x.tolist()
    tens = np.arange(11)
    assert cg.log10(cg.tensor((10.0 ** tens).astype(np.float32))).numpy().tolist() == tens.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [-1, 3, 1.5, 2.5])
def test_powers_of_special_numbers(p, dtype):
    """Exponents that need no logarithm, and one that does, agree with NumPy within the bounds. Special exponents are
    among others, in packed strips."""
    x = np.concatenate([special(dtype), np.linspace(1e-6, 9, 1200).astype(dtype), special(dtype)])
    with np.errstate(all="ignore"):
        wanted = np.power(x, np.full(x.size, p, dtype))
    same(cg.pow(cg.tensor(x), p).numpy(), wanted, ulps.bound("pow", dtype))
    same(cg.pow(cg.tensor(np.repeat(x, 2))[::2], p).numpy(), wanted, ulps.bound("pow", dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "gelu", "pow", "atan", "asinh"])
def test_place_does_not_matter(name, dtype):
    """A single number, one at the end of a strip, or one next to an argument for the C library's sin: the same bits."""
    x = np.linspace(0.01, 8, 97).astype(dtype)
    more = {"pow": (1.7,)}.get(name, ())
    function = getattr(cg, name)
    together = function(cg.tensor(x), *more).numpy()
    alone = np.concatenate([function(cg.tensor(x[i:i + 1]), *more).numpy() for i in range(x.size)])
    among = function(cg.tensor(np.append(x, np.asarray(1e30, dtype))), *more).numpy()[:-1]
    assert together.tobytes() == alone.tobytes() == among.tobytes()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_far_angles_in_gradients(name):
    """Arguments beyond 1e7, infinite or NaN: kernels take another path for the whole strip, in the gradient too."""
    x = np.array([1, 1e8, -3e30, np.inf, np.nan, 2], np.float32)
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        wanted = {"sin": np.cos(wide), "cos": -np.sin(wide), "tan": 1 / np.cos(wide) ** 2}[name]
    a = cg.tensor(x).attach_grad()
    with cg.record():
        y = getattr(cg, name)(a)
    y.backward()
    np.testing.assert_allclose(a.grad.numpy(), wanted.astype(np.float32), rtol=1e-6)


def test_gelu_of_very_negative_numbers():
    """Value and gradient are accurate, although rounding x / sqrt 2 would make erfc inaccurate."""
    x = np.array([-5, -8.123, -10.7, -12.5], np.float32)
    exact = [ulps.CASES["gelu"].exact(ulps.mpmath.mpf(float(v))) for v in x]
    slope = [ulps.normal(ulps.mpmath.mpf(float(v))) + float(v) * ulps.mpmath.npdf(float(v)) for v in x]
    a = cg.tensor(x).attach_grad()
    with cg.record():
        y = cg.gelu(a)
    y.backward()
    np.testing.assert_allclose(y.numpy(), np.array(exact, np.float64), rtol=5e-7)
    np.testing.assert_allclose(a.grad.numpy(), np.array(slope, np.float64), rtol=1e-6)
