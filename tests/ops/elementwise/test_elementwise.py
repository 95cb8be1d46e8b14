"""Elementwise operators compared with PyTorch in float64: value, first and second gradients at ordinary and special
points and at kinks. And what the table test does not cover: dtypes, syntax, masks, names.

The rows' own samples are compared in tests/ops/test_table.py; here are the points where formulas go wrong."""

import itertools
import operator

import numpy as np
import pytest
import scipy.special
from peers import torch

import cygrad as cg
from cygrad.testing import gradcheck

F = torch.nn.functional


ORDINARY = [-3.7, -1.3, -0.4, 0.2, 0.9, 1.0, 2.6, 11.0]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 1e30, 40.0, -40.0, 800.0, -800.0]


def number(x):
    return torch.tensor(x, dtype=torch.float64)


UNARY = {
    **{name: (getattr(cg, name), getattr(torch, name)) for name in (
        "abs sign floor ceil trunc round square sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan asin acos atan "
        "sinh cosh tanh asinh acosh atanh erf sigmoid relu neg").split()},
    "softplus": (cg.softplus, F.softplus),
    "softplus, beta 3": (lambda x: cg.softplus(x, beta=3.0), lambda x: F.softplus(x, beta=3.0)),
    "silu": (cg.silu, F.silu),
    "gelu": (cg.gelu, F.gelu),
    "gelu by tanh": (lambda x: cg.gelu(x, approximate="tanh"), lambda x: F.gelu(x, approximate="tanh")),
    "clip": (lambda x: cg.clip(x, -0.4, 0.9), lambda x: torch.clip(x, -0.4, 0.9)),
    "clip, one bound": (lambda x: cg.clip(x, max=0.2), lambda x: torch.clip(x, max=0.2)),
    "maximum of a number": (lambda x: cg.maximum(x, 0.9), lambda x: torch.maximum(x, number(0.9))),
    "a number to the power of x": (lambda x: 2.5**x, lambda x: 2.5**x),
    "0 to the power of x": (lambda x: 0.0**x, lambda x: 0.0**x),
    **{f"x to the power of {p}": (lambda x, p=p: x**p, lambda x, p=p: x**p) for p in (2, 3, 0.5, -1, -1.5)},
}
BINARY = {
    "maximum": (cg.maximum, torch.maximum),
    "minimum": (cg.minimum, torch.minimum),
    "where": (lambda x, y: cg.where(x < y, x * y, y), lambda x, y: torch.where(x < y, x * y, y)),
    "clip from below": (lambda x, y: cg.clip(x, y), torch.clip),
    "clip": (lambda x, y: cg.clip(x, y, 0.9), lambda x, y: torch.clip(x, y, number(0.9))),
    "clip between": (lambda x, y: cg.clip(0.2 * x, x, y), lambda x, y: torch.clip(0.2 * x, x, y)),
    "power": (cg.power, torch.pow),
}


def derivatives(f, xs, variable, grad):
    """Value, first and second gradients as arrays, with zeros for missing ones. Heads are ones, so nothing cancels."""
    xs = [variable(x) for x in xs]
    y = f(*xs)
    first = grad([y.sum()], xs, create_graph=True, allow_unused=True)
    found = [y, *first]
    for dx in first:
        if dx is None or not dx.requires_grad:
            found += [None] * len(xs)
        else:
            found += grad([dx.sum()], xs, retain_graph=True, create_graph=False, allow_unused=True)
    return [np.zeros(xs[0].shape) if a is None else in_numpy(a) for a in found]


def in_numpy(a):
    return a.detach().numpy().copy() if isinstance(a, cg.Tensor) else a.numpy(force=True)


def ours(f, *xs):
    with cg.record():
        return derivatives(f, xs, lambda x: cg.tensor(x, requires_grad=True), cg.autograd.grad)


def theirs(f, *xs):
    return derivatives(f, xs, lambda x: torch.tensor(x, requires_grad=True), torch.autograd.grad)


def plain(f, *xs):
    """Value and first gradients by the fused kernels."""
    xs = [cg.tensor(x).attach_grad() for x in xs]
    with cg.record():
        y = f(*xs)
    y.backward()
    return [in_numpy(y), *[in_numpy(x.grad) for x in xs]]


def close(found, wanted, but=False):
    """Equal up to rounding, including infinities and nan, except at points where `but` is true. In second gradients, a
    0 is accepted where PyTorch has nan."""
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        free = but | (np.isnan(b) & (a == 0) & (k > len(found) // 3))
        np.testing.assert_allclose(np.where(free, 0, a), np.where(free, 0, b), rtol=1e-11, atol=1e-12,
                                   err_msg=f"number {k}: value, first, second gradients")


def grid(points):
    """All pairs of points, including each point with itself."""
    return [np.array(v) for v in zip(*itertools.product(points, points), strict=True)]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("points", [ORDINARY, SPECIAL], ids=["ordinary", "special"])
def test_unary_as_in_torch(name, points):
    mine, like = UNARY[name]
    x = np.array(points)
    with np.errstate(invalid="ignore"):
        but = {
            "sign": np.isnan(x),                    # NumPy: nan
            "acosh": x == -1,                       # outside its domain
            "x to the power of 0.5": (x == 0) & np.signbit(x) | (x == -np.inf),     # PyTorch computes sqrt
        }.get(name, False)
    close(ours(mine, x), theirs(like, x), but)
    close(plain(mine, x), theirs(like, x)[:2], but)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("points", [ORDINARY, [*SPECIAL[:9], 2.0]], ids=["ordinary", "special"])
def test_binary_as_in_torch(name, points):
    mine, like = BINARY[name]
    x, y = grid(points)
    but = (y == np.inf) & (name == "clip from below")       # no upper bound is inf in cygrad
    constant = (y == 0) & (name == "power")         # for PyTorch; see the next test
    close(ours(mine, x, y), theirs(like, x, y), but | constant)
    close(plain(mine, x, y), theirs(like, x, y)[:3], but)


def test_power_at_zero():
    """Where formulas have 0 log 0 and 0 / 0, the first gradients are PyTorch's. The second are right where PyTorch's
    are nan, or 0 because it treats y = 0 as a constant."""
    x, y = cg.tensor([0.0, 0.0, 2.0], "float64", True), cg.tensor([0.0, 2.0, 0.0], "float64", True)
    with cg.record():
        dx, dy = cg.autograd.grad(x**y, [x, y], cg.ones_like(x), create_graph=True)
    assert dx.tolist() == [0, 0, 0] and dy.tolist() == [0, 0, np.log(2)]
    xx, xy = cg.autograd.grad(dx, [x, y], cg.ones_like(x), retain_graph=True)
    yx, yy = cg.autograd.grad(dy, [x, y], cg.ones_like(x))
    assert xx.tolist() == [0, 2, 0] and xy.tolist() == yx.tolist() == [0, 0, 0.5]
    assert yy.tolist() == [0, 0, np.log(2) ** 2]
    assert gradcheck(cg.power, [np.array([0.7, 2.0]), np.array([0.0, 0.0])], order=2)


@pytest.mark.parametrize("name", [*UNARY])
def test_third_derivative(name):
    """Third derivatives by formulas, compared with finite differences, inside the domain and away from kinks."""
    f, _ = UNARY[name]
    at = dict.fromkeys(("atanh", "asin", "acos"), [-0.4, 0.6]) | {"acosh": [1.4, 3.0]}
    at = at.get(name, [0.3, 0.7, 1.2])
    assert gradcheck(f, np.array(at), order=3, rtol=1e-4, atol=1e-6)


# ---- dtypes ----------------------------------------------------------------------------------------------------------

FLOATING = ("sqrt rsqrt reciprocal exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
            "sigmoid softplus silu gelu").split()


@pytest.mark.parametrize("name", FLOATING)
def test_functions_of_integers_give_the_default_dtype(name):
    x = np.array([1, 0, 1])
    for dtype in ("int64", "uint8", "bool"):
        y = getattr(cg, name)(cg.tensor(x.astype(dtype)))
        assert y.dtype == np.float32 and not y.requires_grad
        wanted = getattr(cg, name)(cg.tensor(x.astype("float32"))).numpy()
        assert y.numpy().tobytes() == wanted.tobytes()


def test_integers_stay_integers():
    x, y = np.array([[-3, 0, 5]], "int32"), np.array([[2], [0]], "int8")
    tx, ty = cg.tensor(x), cg.tensor(y)
    for found, wanted in [
        (cg.abs(tx), np.abs(x)), (cg.floor(tx), x), (cg.round(tx), x),
        (cg.sign(tx), np.sign(x)), (cg.square(tx), np.square(x)),
        (cg.maximum(tx, ty), np.maximum(x, y)), (cg.minimum(tx, 1), np.minimum(x, 1)),
        (cg.clip(tx, -1, 2), np.clip(x, -1, 2)), (cg.clip(tx, -1), np.clip(x, -1, None)),
        (cg.clip(tx, max=2), np.clip(x, None, 2)), (cg.clip(tx), x), (cg.power(tx, ty), np.power(x, y)),
        (tx ** cg.abs(ty), np.power(x, np.abs(y))), (2**cg.abs(tx), 2**np.abs(x)),
        (cg.where(tx > 0, tx, ty), np.where(x > 0, x, y)), (cg.where(tx > 0, tx, -1), np.where(x > 0, x, -1)),
        (tx & ty, x & y), (tx | 1, x | 1), (1 ^ tx, 1 ^ x), (~tx, ~x), (abs(tx), abs(x)),
    ]:
        assert found.dtype == wanted.dtype and np.array_equal(found.numpy(), wanted)
    assert cg.clip(tx, 0.5, 2).dtype == np.float32
    with pytest.raises(ValueError, match="negative integer powers"):
        cg.power(tx, -ty)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "bool", "float32", "float64"])
def test_comparisons_and_logic_of_every_dtype(dtype):
    x, y = (v.astype(dtype) for v in np.random.default_rng(0).integers(0, 3, (2, 5, 7)))
    for name in ("less less_equal equal not_equal greater greater_equal logical_and logical_or logical_xor "
                 "maximum minimum").split():
        like = getattr(np, name)
        for a, b in [(x, y), (x.T, y.T), (x[::2], y[0]), (x[:, :1], y), (x, y[0, 0])]:
            found = getattr(cg, name)(cg.asarray(a), cg.asarray(b)).numpy()
            assert found.dtype == like(a, b).dtype and np.array_equal(found, like(a, b))
    for name in ("logical_not", "isnan", "isinf", "isfinite"):
        assert np.array_equal(getattr(cg, name)(cg.tensor(x)).numpy(), getattr(np, name)(x))


def test_large_comparisons_by_two_threads(two_threads):
    """Bools and floats: strips of operands with different element sizes, contiguous and packed."""
    n = 2 * 32768 + 777
    x, y = np.random.default_rng(0).normal(size=(2, n, 2))
    for a, b in [(x, y), (x.T, y.T), (x, y[:, :1]), (x[:, 0], y[::-1, 1])]:
        assert np.array_equal(cg.less(cg.asarray(a), cg.asarray(b)).numpy(), a < b)
        assert np.array_equal(cg.logical_xor(cg.asarray(a > 0), cg.asarray(b > 0)).numpy(), (a > 0) ^ (b > 0))


def test_where_leaves_its_condition_alone():
    x = cg.tensor([1.0, 2.0, 3.0], "float64").attach_grad()
    c = np.array([True, False, True])
    with cg.record() as tape:
        y = cg.where(c, x, 0.5)
    assert y.dtype == np.float64 and y.tolist() == [1.0, 0.5, 3.0] and tape.saved_bytes == 1
    y.backward()
    assert x.grad.tolist() == [1, 0, 1]
    assert cg.where(c, 1, 0).dtype == np.int64 and cg.where(c, 1, 2.5).dtype == np.float32
    assert cg.where(cg.tensor([2.0, 0.0]), 1.0, -1.0).tolist() == [1, -1]
    with cg.record() as tape:
        y = cg.where(x > 1.5, x, -x)
    assert tape.saved_bytes == 1                    # a bit per element


# ---- syntax and names ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operands_of_one_element_at_every_size(dtype):
    """They are expanded as a whole for small results, in strips for larger ones, and not at all for single numbers."""
    for n in (0, 1, 2, 63, 64, 65, 511, 512, 513, 1100):
        a, one = np.linspace(-1, 1, n).astype(dtype), np.array([0.25], dtype)
        x, y = cg.tensor(a), cg.tensor(one)
        for v, w in ((y, one), (cg.broadcast_to(y, (n,)), one), (cg.tensor(one[0]), one), (0.25, one)):
            np.testing.assert_array_equal((x * v).numpy(), a * w)
            np.testing.assert_array_equal((v - x).numpy(), w - a)
            np.testing.assert_array_equal(cg.clip(x, v, x).numpy(), np.clip(a, w, a))
            np.testing.assert_array_equal(cg.clip(x, v - 1, v).numpy(), np.clip(a, w - 1, w))
            np.testing.assert_array_equal(cg.where(x > v, x, v).numpy(), np.where(a > w, a, w))
        for c in (True, False):
            np.testing.assert_array_equal(cg.where(cg.tensor([c]), x, y).numpy(), np.where([c], a, one))


def test_syntax():
    x = cg.tensor([-1.5, 0.0, 2.0])
    a, b = np.array([True, True, False]), np.array([True, False, False])
    assert abs(x).tolist() == [1.5, 0, 2]
    for f in (operator.and_, operator.or_, operator.xor):
        for other in (cg.tensor(b), b, True, False):
            wanted = f(a, b if isinstance(other, cg.Tensor) else other)
            assert f(cg.tensor(a), other).tolist() == f(other, cg.tensor(a)).tolist() == wanted.tolist()
    assert (~cg.tensor(a)).tolist() == [False, False, True]
    assert ((x > -1) & (x < 1)).tolist() == [False, True, False]
    assert (2**cg.tensor([1.0, 3.0])).tolist() == [2, 8]
    assert (cg.tensor([2.0, 3.0]) ** np.array([2.0, 1.0], "float32")).tolist() == [4, 3]
    assert (np.array([2.0, 3.0]) ** cg.tensor([2.0, 1.0], "float64")).tolist() == [4, 3]
    assert x.clip(-1, 1).tolist() == cg.clamp(x, -1, 1).tolist() == [-1, 0, 1]
    for f in (operator.and_, operator.lt, operator.pow):
        with pytest.raises(TypeError):
            f(x, "1")


def test_names_of_the_array_api():
    names = ("abs acos acosh add asin asinh atan atanh bitwise_and bitwise_or bitwise_xor clip cos cosh divide equal "
             "exp expm1 greater greater_equal isfinite isinf isnan less less_equal log log1p logical_and logical_not "
             "logical_or logical_xor maximum minimum multiply negative not_equal pow reciprocal sign sin sinh sqrt "
             "square subtract tan tanh where").split()
    for name in names:
        assert callable(getattr(cg, name))
    assert cg.multiply is cg.mul and cg.arcsin is cg.asin and cg.clamp is cg.clip


def test_a_number_may_be_the_variable_side():
    """Numbers are constants, of which nothing is saved on either side. (The choices take a byte each: two bits per
    element, and one.)"""
    x = cg.tensor(np.full(4, 0.5)).attach_grad()
    with cg.record() as tape:
        ys = [cg.maximum(0.2, x), cg.clip(x, 0, 1), 3**x]
    assert tape.saved_bytes == 1 + 1 + ys[2].nbytes     # 3^x
    cg.backward(ys)
    np.testing.assert_allclose(x.grad.numpy(), 1 + 1 + np.sqrt(3) * np.log(3))


def test_gamma_functions_near_zeros_poles_and_ends():
    """In float32 they are computed by series in float64, so the error is that of rounding, also near zeros; poles are
    those of SciPy."""
    rng = np.random.default_rng(0)
    near = rng.uniform(-0.01, 0.01, 500)
    x = np.concatenate([rng.uniform(-40, 40, 2000), 1 + near, 2 + near, near - 2.455, np.arange(-9.0, 10),
                        -2.0 ** np.arange(20, 40), [-0.0, 1e-40, 3e38, np.inf, np.nan]]).astype("float32")
    wide = x.astype("float64")
    with np.errstate(all="ignore"):
        wanted = {"lgamma": scipy.special.gammaln(wide), "digamma": scipy.special.digamma(wide)}
        trigamma = scipy.special.polygamma(1, abs(wide)).astype("float32")
    for name, exact in wanted.items():
        found = getattr(cg, name)(x).numpy()
        with np.errstate(all="ignore"): nearest = exact.astype("float32")
        np.testing.assert_array_max_ulp(found, nearest, 1)
    np.testing.assert_array_max_ulp(cg.polygamma(1, abs(x)).numpy(), trigamma, 1)
    assert cg.lgamma(cg.tensor([-np.inf])).item() == np.inf and np.isnan(cg.digamma(cg.tensor([-np.inf])).item())


def test_polygamma_of_the_largest_numbers():
    """x^-2 of 1e200 is 0, but 1 / x is not."""
    x = cg.tensor([1e200, np.inf], "float64")
    np.testing.assert_allclose(cg.polygamma(1, x).numpy(), [1e-200, 0], rtol=1e-15)
    np.testing.assert_allclose(cg.polygamma(2, x).numpy(), [0, 0])
