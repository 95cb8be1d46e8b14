"""Functions of one number: a sample of tests/support/ulps.py against its bounds, special numbers against NumPy."""

import math

import numpy as np
import pytest

import cygrad as cg
import ulps

DTYPES = ["float32", "float64"]
NUMPY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": np.vectorize(math.erf),
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
