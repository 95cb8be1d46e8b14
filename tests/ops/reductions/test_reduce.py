"""Reductions, scans and losses beyond the table: compared with PyTorch and NumPy in float64 at ordinary points, ties,
kinks and special numbers; axes and strides; dtypes of integers; saved bytes."""

import itertools
import math
import warnings

import numpy as np
import pytest
from peers import torch

import cygrad as cg

INF, NAN = math.inf, math.nan
F = torch.nn.functional


# ---- value, first and second gradient compared with PyTorch ----------------------------------------------------------

def derivatives(f, arrays, library):
    """The value, the first gradients of sum(y head) and the second of sum(dx direction), as NumPy arrays."""
    ours = library is cg
    xs = [cg.tensor(a, requires_grad=True) if ours else torch.tensor(a, requires_grad=True) for a in arrays]

    def numbers(shape, seed):
        a = np.random.default_rng(seed).uniform(-1, 1, tuple(shape))
        return cg.tensor(a) if ours else torch.tensor(a)

    grad = cg.autograd.grad if ours else torch.autograd.grad
    with cg.record(), warnings.catch_warnings():
        warnings.simplefilter("ignore")             # PyTorch's variance of nothing
        y = f(*xs)
        first = grad([y], xs, [numbers(y.shape, 7)], create_graph=True)
        total = 0
        for i, (x, dx) in enumerate(zip(xs, first, strict=True)):
            total = total + (dx * numbers(x.shape, 11 + i)).sum()
        second = grad([total], xs, allow_unused=True) if total.requires_grad else [None] * len(xs)
    return [None if t is None else t.detach().numpy() if ours else t.detach().numpy(force=True)
            for t in (y, *first, *second)]


def agree(ours, theirs, arrays, second=True):
    """cygrad's `ours` has the derivatives of PyTorch's `theirs` (without `second` only the first ones, at a kink), and
    fused gradients equal those of the formulas."""
    found, wanted = derivatives(ours, arrays, cg), derivatives(theirs, arrays, torch)
    last = None if second else 1 + len(arrays)
    for a, b in zip(found[:last], wanted[:last], strict=True):
        a, b = [np.zeros(()) if t is None else t for t in (a, b)]
        np.testing.assert_allclose(a, b + np.zeros_like(a), rtol=1e-11, atol=1e-12)
    xs = [cg.tensor(a, requires_grad=True) for a in arrays]
    with cg.record():
        y = ours(*xs)
    head = cg.tensor(np.random.default_rng(7).uniform(-1, 1, y.shape))
    for a, b in zip(cg.autograd.grad([y], xs, [head]), found[1:], strict=False):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-14)


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


AXES = [None, 0, 1, -1, (0, 1), (0, 2), (1, 2), (2, 0, 1)]


def every(x, axis):
    return tuple(range(x.ndim)) if axis is None else axis


def product(x, axis, keepdims):
    axes = every(x, axis)
    for d in sorted([a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)], reverse=True):
        x = x.prod(d, keepdim=keepdims)
    return x


REDUCTIONS = {
    "max": (cg.max, lambda x, a, k: torch.amax(x, every(x, a), k)),
    "min": (cg.min, lambda x, a, k: torch.amin(x, every(x, a), k)),
    "var": (cg.var, lambda x, a, k: torch.var(x, a, correction=0, keepdim=k)),
    "std": (cg.std, lambda x, a, k: torch.std(x, a, correction=0, keepdim=k)),
    "prod": (cg.prod, product),
    "logsumexp": (cg.logsumexp, lambda x, a, k: torch.logsumexp(x, every(x, a), k)),
    "norm": (lambda x, a, k: cg.norm(x, 2, a, k), lambda x, a, k: torch.linalg.vector_norm(x, 2, a, k)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_along_any_axes(name, axis, keepdims):
    ours, theirs = REDUCTIONS[name]
    x = random(3, 4, 5)
    agree(lambda x: ours(x, axis, keepdims), lambda x: theirs(x, axis, keepdims), [x])
    agree(lambda x: ours(x.transpose(2, 0, 1)[:, ::2], axis, keepdims),
          lambda x: theirs(x.permute(2, 0, 1)[:, ::2], axis, keepdims), [x])
    agree(lambda x: ours(x.broadcast_to((3, 4, 5)), axis, keepdims),
          lambda x: theirs(x.broadcast_to((3, 4, 5)), axis, keepdims), [random(4, 1)])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_long_runs(name):
    """Longer than a block of the walk and a strip of the driver, along rows and columns."""
    ours, theirs = REDUCTIONS[name]
    for shape, axis in (((3, 1300), 1), ((1300, 3), 0), ((2, 700, 3), (0, 1)), ((5, 20, 30), None)):
        x = 1 + 0.1 * random(*shape)
        agree(lambda x, axis=axis: ours(x, axis, False), lambda x, axis=axis: theirs(x, axis, False), [x])


# ---- ties and kinks --------------------------------------------------------------------------------------------------

TIES = [np.array(a, float) for a in (
    [[1, 3, 3], [2, 2, 2]], [[0, -0.0, 0], [-1, 0, 0]], [[INF, INF, 1], [-INF, -INF, -INF]], [[5, 5, 1], [1, 5, 5]],
)]


@pytest.mark.parametrize("x", TIES, ids=range(len(TIES)))
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)], ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_extremes_share_the_gradient(name, axis, x):
    ours, theirs = REDUCTIONS[name]
    agree(lambda x: ours(x, axis, True), lambda x: theirs(x, axis, True), [x])
    agree(lambda x: ours(x * x, axis, True), lambda x: theirs(x * x, axis, True), [np.where(np.isinf(x), 7, x)])


def test_extremes_of_nan():
    """The NaNs receive the gradient in equal parts, as in PyTorch's max() of all. Its amax makes the whole row NaN."""
    x = cg.tensor([[1.0, NAN, 3, NAN], [1, 2, 3, 3]]).attach_grad()
    for f, wanted in ((cg.max, [0, 0, 0.5, 0.5]), (cg.min, [1, 0, 0, 0])):
        with cg.record():
            y = f(x, 1)
        y.backward()
        assert math.isnan(y.tolist()[0])
        assert x.grad.tolist() == [[0, 0.5, 0, 0.5], wanted]


@pytest.mark.parametrize("x", [[0.0, 0, 2], [0, 0, 3], [0, 0, 0], [2, 3, 4], [0, -1, 2], [0.0]], ids=str)
def test_products_with_zeros(x):
    agree(lambda x: cg.prod(x), lambda x: torch.prod(x), [np.array(x, float)])


@pytest.mark.parametrize("n", range(1, 10))
def test_third_derivative_of_a_product(n):
    """The formula is a tree over the elements, for any number of elements and any order."""
    def third(x, library):
        grad, y = library.autograd.grad, x.prod() * (x * x).sum()
        for power in (1, 2):
            g = grad([y], [x], create_graph=True)[0]
            y = (g ** power).sum()
        return grad([y], [x])[0]

    a = np.where(np.arange(n) == 2, 0, random(n, seed=n))
    with cg.record():
        found = third(cg.tensor(a, requires_grad=True), cg)
    wanted = third(torch.tensor(a, requires_grad=True), torch)
    np.testing.assert_allclose(found.detach().numpy(), wanted.numpy(force=True), rtol=1e-10, atol=1e-12)


def test_products_that_underflow_have_gradients():
    """Dividing the product by each factor would give 0 here."""
    x = cg.tensor(np.array([1e-200, 1e-200, 2])).attach_grad()
    with cg.record():
        y = x.prod()
    y.backward()
    assert y.item() == 0
    np.testing.assert_allclose(x.grad.numpy(), [2e-200, 2e-200, 0])


ORDERS = [2, 1, INF, -INF, 0, 3, 4, 0.5, 1.5, -1, -2]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_norms(order):
    def theirs(axis, keepdims):
        # (PyTorch has no gradient of order 0, and some of its zeros cannot be read; a zero times x is the same)
        return lambda x: torch.linalg.vector_norm(x, order, axis, keepdims) + 0 * x.sum()

    for axis, keepdims in ((None, False), (1, False), ((0, 2), True)):
        agree(lambda x, axis=axis, k=keepdims: cg.norm(x, order, axis, k), theirs(axis, keepdims), [random(2, 3, 4)])


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("x", [[0.0, 0, 0], [1, -1, 0], [-3, 3, 1]], ids=str)
def test_norms_at_kinks(order, x):
    agree(lambda x: cg.norm(x, order), lambda x: torch.linalg.vector_norm(x, order) + 0 * x.sum(),
          [np.array(x, float)], second=False)


def test_second_gradient_of_a_norm_at_zero():
    """0, where PyTorch gives NaN."""
    for order in (1.5, 2, 3):
        x = cg.tensor([0.0, 0.0], requires_grad=True)
        with cg.record():
            g = cg.autograd.grad(cg.norm(x, order), x, create_graph=True)
            again = cg.autograd.grad(g.sum(), x)
        assert g.tolist() == again.tolist() == [0, 0]


@pytest.mark.parametrize("x", [[1.0, 1, 1], [2.0], [1, 2, 4], [-1.5, -1.5, 3]], ids=str)
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_std_where_it_is_zero(x, correction):
    if len(x) == 1 and correction == 1:
        assert math.isnan(cg.tensor(x).std(correction=1).item())
    else:
        agree(lambda x: cg.std(x, correction=correction), lambda x: torch.std(x, correction=correction),
              [np.array(x, float)])


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("correction", [0, 1, 2, 3, 7])
def test_correction_is_numpys(name, correction):
    for x in (random(3, 4), np.ones((3, 1)), np.zeros((0, 2))):
        for axis in (None, 0, 1):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                wanted = getattr(np, name)(x, axis, ddof=correction)
            np.testing.assert_allclose(getattr(cg.tensor(x), name)(axis, correction=correction).numpy(), wanted)


# ---- softmax, logsumexp ----------------------------------------------------------------------------------------------

ROWS_OF_SPECIALS = [[-INF, -INF, -INF], [INF, 1, 2], [NAN, 1, 2], [1, 2, NAN], [-INF, 1, 2], [INF, INF, 0],
                    [INF, -INF, 0], [1000, 1001, 999], [-1000, -1001, -1002], [1e308, -1e308, 0]]


@pytest.mark.parametrize("row", ROWS_OF_SPECIALS, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("f, g", [(cg.softmax, torch.softmax), (cg.logsumexp, torch.logsumexp)])
def test_softmax_and_logsumexp_of_specials(f, g, axis, row):
    x = np.array([row, [0.5, 1, -1]])
    agree(lambda x: f(x, axis), lambda x: g(x, axis), [x if axis else x.T.copy()], second=False)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_softmax_along_any_axis(axis):
    agree(lambda x: cg.softmax(x, axis), lambda x: torch.softmax(x, axis), [random(3, 4, 5)])
    agree(lambda x: cg.softmax(x.T, axis), lambda x: torch.softmax(x.permute(2, 1, 0), axis), [random(3, 4, 5)])


COLUMNS = [(1, 16), (7, 17), (16, 256), (17, 257), (40, 100), (33, 300), (3, 5, 16), (2, 18, 31)]
ALONG = {"softmax": (cg.softmax, torch.softmax), "log_softmax": (cg.log_softmax, torch.log_softmax),
         "logsumexp": (cg.logsumexp, torch.logsumexp)}


@pytest.mark.parametrize("shape", COLUMNS, ids=str)
@pytest.mark.parametrize("name", ALONG)
def test_softmax_down_columns(name, shape):
    """Adjacent elements belong to different columns. Numbers of columns and rows are multiples of vectors and tiles,
    and others; large numbers, overwritten operands, also in single precision."""
    f, g = ALONG[name]
    x, axis = 30 * random(*shape), len(shape) - 2
    agree(lambda x: f(x, axis), lambda x: g(x, axis), [x])
    agree(lambda x: f(x * 2, axis) * 2, lambda x: g(x * 2, axis) * 2, [x])
    agree(lambda x: f(x[..., ::-1, :], axis), lambda x: g(x.flip(axis), axis), [x])
    single, head = x.astype("float32"), random(*np.delete(shape, axis) if name == "logsumexp" else shape, seed=1)
    ours = cg.tensor(single, requires_grad=True)
    theirs = torch.tensor(single, dtype=torch.float64, requires_grad=True)
    with cg.record():
        y = f(ours, axis)
    z = g(theirs, axis)
    np.testing.assert_allclose(y.detach().numpy(), z.numpy(force=True), rtol=8e-6,
                               atol=1e-37 if name == "softmax" else 8e-6)
    dx = torch.autograd.grad(z, theirs, torch.tensor(head))[0].numpy(force=True)
    np.testing.assert_allclose(cg.autograd.grad(y, ours, cg.tensor(head.astype("float32"))).numpy(), dx, rtol=2e-5,
                               atol=2e-6)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [32, 37])
def test_softmax_of_specials_down_columns(name, dtype, columns):
    """Columns with special numbers among others give the same kinds of special numbers as rows."""
    f, largest = ALONG[name][0], float(np.finfo(dtype).max)
    for n in (1, 2, 15, 16, 17, 40):
        x = np.random.default_rng(n).normal(size=(n, columns)).astype(dtype)
        for at in {0, n // 2, n - 1}:
            x[at, :7] = [INF, -INF, NAN, largest, -largest, 800, -800]
            x[0, 7:11] = [INF, NAN, -INF, INF]
            x[at, 7:11] = [NAN, INF, INF, INF]
        x[:, 11:15] = [INF, -INF, -largest, largest]
        down = f(cg.tensor(x), 0).numpy()
        along = f(cg.tensor(x.T.copy()), 1).numpy()
        np.testing.assert_allclose(down, along.T, rtol=2e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, axis", [((300, 301), 0), ((1200, 64), 0), ((5, 70, 257), 1)], ids=str)
def test_columns_of_threads_agree_bit_for_bit(name, dtype, shape, axis, two_threads):
    f = ALONG[name][0]
    found = []
    for threads in (1, 2):
        cg.set_num_threads(threads)
        x = cg.tensor(random(*shape).astype(dtype)).attach_grad()
        with cg.record():
            y = f(x, axis)
        y.backward(cg.tensor(random(*y.shape, seed=1).astype(dtype)))
        found.append((y.detach().numpy().tobytes(), x.grad.numpy().tobytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ALONG)
def test_softmax_down_columns_takes_its_results_alone(name):
    """Nothing is transposed or copied: besides operand and head, only the result and the gradient are live."""
    x = cg.tensor(random(200, 100).astype("float32")).attach_grad()
    with cg.record():
        head = cg.ones((100,) if name == "logsumexp" else (200, 100))
        live = cg.memory.stats()["live_bytes"]
        cg.memory.reset_peak()
        y = ALONG[name][0](x, 0)
        assert cg.memory.stats()["peak_bytes"] == live + y.nbytes
    g = cg.autograd.grad(y, x, head)
    assert cg.memory.stats()["peak_bytes"] == live + y.nbytes + g.nbytes


def test_logsumexp_of_nothing():
    assert cg.zeros((2, 0)).logsumexp(1).tolist() == [-INF, -INF]
    assert cg.zeros((0, 2)).logsumexp(0, True).tolist() == [[-INF, -INF]]
    assert cg.zeros((0, 2)).logsumexp(1).shape == (0,)


# ---- cumsum ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_cumsum(axis):
    agree(lambda x: cg.cumsum(x, axis) * x, lambda x: torch.cumsum(x, axis) * x, [random(3, 4, 5)])
    agree(lambda x: cg.cumsum(x.T[::-1], axis), lambda x: torch.cumsum(x.permute(2, 1, 0).flip(0), axis),
          [random(3, 4, 5)])


# ---- losses ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    x, t, logits = random(4, 3), np.random.default_rng(1).uniform(size=(4, 3)), 30 * random(4, 3, seed=2)
    labels = np.array([2, 0, 1, 2])
    agree(lambda x, y: cg.mse(x, y, reduction), lambda x, y: F.mse_loss(x, y, reduction=reduction), [x, t])
    agree(lambda x, y: cg.mse(x.T, y.T, reduction), lambda x, y: F.mse_loss(x.T, y.T, reduction=reduction), [x, x])
    for z in (x, logits, 0 * x):
        agree(lambda x, t: cg.bce_with_logits(x, t, reduction),
              lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction=reduction), [z, t])
        agree(lambda x, t: cg.bce_with_logits(x.T, t.T, reduction),
              lambda x, t: F.binary_cross_entropy_with_logits(x.T, t.T, reduction=reduction), [z, t])
    agree(lambda x: cg.nll(cg.log_softmax(x), cg.tensor(labels), reduction=reduction),
          lambda x: F.nll_loss(F.log_softmax(x, 1), torch.tensor(labels), reduction=reduction), [x])
    agree(lambda x: cg.nll(x.T, cg.tensor(labels), reduction=reduction),
          lambda x: F.nll_loss(x.T, torch.tensor(labels), reduction=reduction), [random(3, 4)])
    agree(lambda x: cg.cross_entropy(x.T, cg.tensor(labels), reduction=reduction),
          lambda x: F.cross_entropy(x.T, torch.tensor(labels), reduction=reduction), [random(3, 4)])


def test_bce_is_stable():
    x = cg.tensor(np.array([-1e4, -800, 800, 1e4])).attach_grad()
    with cg.record():
        y = cg.bce_with_logits(x, cg.tensor([0.0, 1.0, 0.0, 1.0]), reduction="none")
        g = cg.autograd.grad(y, x, create_graph=True)
        again = cg.autograd.grad(g.sum(), x)
    assert y.tolist() == [0, 800, 800, 0] and g.tolist() == [0, -1, 1, 0] and again.tolist() == [0] * 4


def test_mse_of_integers():
    """A negative difference is not an unsigned integer."""
    x, y = cg.tensor(np.array([1, 2], "uint8")), cg.tensor(np.array([3, 2], "uint8"))
    assert cg.mse(x, y).item() == 2 and cg.mse(x, y).dtype == cg.float32
    assert cg.mse(x, cg.tensor([1.5, 2.0])).item() == 0.125
    assert cg.mse(cg.tensor([True, False]), cg.tensor([True, True])).item() == 0.5


def test_losses_of_nothing():
    x = cg.zeros((0, 3))
    assert math.isnan(cg.mse(x, x).item()) and cg.mse(x, x, "sum").item() == 0
    assert math.isnan(cg.bce_with_logits(x, x).item()) and cg.bce_with_logits(x, x, "none").shape == (0, 3)
    assert math.isnan(cg.nll(x, cg.zeros(0, dtype="int64")).item())


def test_labels_that_are_kept_are_checked():
    x, labels = cg.ones((2, 3)).attach_grad(), cg.tensor([0, 1])
    with cg.record():
        y = cg.nll(x, labels)
    labels += 1
    with pytest.raises(cg.InplaceError, match="nll"):
        y.backward()


# ---- values compared with NumPy --------------------------------------------------------------------------------------

SPECIALS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5]
VALUES = {name: getattr(np, name) for name in ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all")}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "int8", "uint8", "uint64", "bool"])
def test_values_and_dtypes_are_numpys(name, dtype):
    a = np.random.default_rng(0).integers(0, 5, (2, 3, 4)).astype(dtype)
    for x in (a, a.transpose(2, 0, 1), a[:, ::-1, ::2]):
        for axis in (None, 0, 1, 2, *([] if "arg" in name else [(0, 2), (1, 2), (0, 1, 2)])):
            for keepdims in (False, True):
                wanted = np.asarray(VALUES[name](x, axis, keepdims=keepdims))
                found = getattr(cg.tensor(x), name)(axis, keepdims).numpy()
                assert found.dtype == wanted.dtype and found.shape == wanted.shape and np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "uint64", "bool", "float32"])
def test_cumsum_has_numpys_dtype(dtype):
    a = np.ones((2, 3), dtype)
    for axis in (None, 0, 1):
        found, wanted = cg.cumsum(cg.tensor(a), axis).numpy(), np.cumsum(a, axis)
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


@pytest.mark.parametrize("name", ["var", "std", "norm", "logsumexp", "softmax", "mean"])
def test_integers_become_the_default_dtype(name):
    a = np.arange(6, dtype="int32").reshape(2, 3)
    f = getattr(cg, name)
    found, wanted = f(cg.tensor(a)), f(cg.tensor(a, dtype="float32"))
    assert found.dtype == cg.float32 and np.array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers(name, dtype):
    """Every triple of special numbers, along rows and columns, and in runs longer than few and many lanes."""
    a = np.array(list(itertools.product(SPECIALS, repeat=3)), dtype)
    f = VALUES[name]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(getattr(cg.tensor(a), name)(1).numpy(), f(a, 1))
        np.testing.assert_array_equal(getattr(cg.tensor(a.T.copy()), name)(0).numpy(), f(a, 1))
        for before, after in ((16, 2), (126, 2), (70, 130)):
            wide = np.pad(a, ((0, 0), (before, after)))
            np.testing.assert_array_equal(getattr(cg.tensor(wide), name)(1).numpy(), f(wide, 1))
        if "arg" not in name: return
        lone = np.full((len(SPECIALS) * 200, 200), -INF if name == "argmax" else INF, dtype)
        lone[np.arange(len(lone)), np.arange(len(lone)) % 200] = np.repeat(SPECIALS, 200)   # each at each position
        np.testing.assert_array_equal(getattr(cg.tensor(lone), name)(1).numpy(), f(lone, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 100, 127, 128, 129, 200, 256])
def test_extremes_of_rows(n, dtype):
    """Rows of any length, negative or denormal, some with a NaN of either sign, an infinity, or zeros of both signs."""
    a = np.random.default_rng(n).normal(size=(7 * n, n)).astype(dtype)
    rows, places = np.arange(n), np.arange(n)
    a[rows, places] = -NAN if n % 2 else NAN
    a[rows + n, places] = np.copysign(NAN, -1)
    a[rows + 2 * n, places] = INF
    a[rows + 3 * n, places] = -INF
    a[4 * n:5 * n] = np.copysign(0, a[4 * n:5 * n])
    a[5 * n:6 * n] = -1 - np.abs(a[5 * n:6 * n])
    a[6 * n:] *= np.finfo(dtype).smallest_normal / 8
    x = cg.tensor(a)
    for name in ("max", "min", "argmax", "argmin"):
        np.testing.assert_array_equal(getattr(x, name)(1).numpy(), VALUES[name](a, 1))
    np.testing.assert_array_equal(cg.norm(x, INF, 1).numpy(), np.abs(a).max(1))
    np.testing.assert_array_equal(cg.norm(x, -INF, 1).numpy(), np.abs(a).min(1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [4095, 4096, 4097, 4159, 4161, 8192, 16 * 4096, 17 * 4096 + 77, 34 * 4096 - 1])
def test_long_rows_in_blocks(n, dtype):
    """Rows of one block and of several, with remainders shorter and longer than the number of lanes."""
    a = np.random.default_rng(0).normal(1, 0.1, size=(3, n)).astype(dtype)
    a[1, n - 1], a[2, n // 2] = 3, -3
    x, wide = cg.tensor(a), a.astype("float64")
    for f, wanted in ((cg.sum, np.sum), (cg.mean, np.mean), (cg.var, np.var), (cg.max, np.max), (cg.min, np.min),
                      (lambda x, a: cg.norm(x, 3, a), lambda x, a: (np.abs(x) ** 3).sum(a) ** (1 / 3)),
                      (cg.logsumexp, lambda x, a: np.log(np.exp(x).sum(a)))):
        np.testing.assert_allclose(f(x, 1).numpy(), wanted(wide, 1), rtol=1e-6 if dtype == "float32" else 1e-13)
        np.testing.assert_allclose(f(x, None).numpy(), wanted(wide.ravel(), 0),
                                   rtol=1e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("shape", [(2, 3, 70), (19, 3, 2), (3, 130, 1)])
def test_products_of_all_others(shape, axis, dtype):
    """The gradient of prod with no, one or several zeros in a product, along rows, columns and separate axes."""
    rng = np.random.default_rng(3)
    a = rng.uniform(0.9, 1.1, shape)
    a[rng.random(shape) < 0.01] = 0
    a = a.astype(dtype)
    for order in ((0, 1, 2), (2, 0, 1)):
        x = cg.tensor(a.transpose(order).copy(), requires_grad=True)
        axes = tuple(range(3)) if axis is None else (axis,) if isinstance(axis, int) else axis
        with cg.record():
            y = x.transpose(np.argsort(order).tolist()).prod(axis)
        y.backward(cg.ones(y.shape, dtype=dtype))
        last = np.moveaxis(a, axes, range(3 - len(axes), 3))
        rows = last.reshape(-1, math.prod([shape[d] for d in axes])).astype("float64")
        ahead, behind = np.ones(rows.shape), np.ones(rows.shape)
        ahead[:, 1:] = np.cumprod(rows[:, :-1], 1)
        behind[:, :-1] = np.cumprod(rows[:, :0:-1], 1)[:, ::-1]
        wanted = np.moveaxis((ahead * behind).reshape(last.shape), range(3 - len(axes), 3), axes).transpose(order)
        np.testing.assert_allclose(x.grad.numpy(), wanted, 1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, 8, 33, 64, 127, 128, 255, 256, 300])
def test_sums_of_rows(n, dtype):
    """Rows shorter and longer than few lanes, contiguous, with gaps, and in reverse order."""
    a = np.random.default_rng(n).standard_normal((12, n + 3)).astype(dtype)
    for x in (a[:, :n].copy(), a[:, :n], a[::-1, 1:n + 1], a[::-3, 3:], a[:, n::-1]):
        wanted, sizes = x.astype("float64").sum(1), np.abs(x).sum(1)
        assert np.all(np.abs(cg.tensor(x).sum(1).numpy() - wanted) <= 16 * np.finfo(dtype).eps * sizes)
    view = cg.tensor(a)[::-2, 1:n + 1]
    assert np.all(np.abs(view.sum(1).numpy() - a[::-2, 1:n + 1].sum(1)) <= 16 * np.finfo(dtype).eps * np.abs(a).sum())


def test_nothing():
    """Empty sums, products, any and all have a value. Empty extremes raise (see test_errors.py)."""
    x = cg.zeros((2, 0))
    assert x.sum(1).tolist() == [0, 0] and x.prod(1).tolist() == [1, 1]
    assert x.any(1).tolist() == [False, False] and x.all(1).tolist() == [True, True]
    assert x.max(0).shape == x.argmin(0).shape == (0,)
    assert x.norm(axis=1).tolist() == [0, 0] and math.isnan(x.var().item())


@pytest.mark.parametrize("shape, axis", [((100, 1000), 1), ((1000, 100), 0), ((10, 100, 100), (0, 2))])
def test_variance_does_not_cancel(shape, axis):
    """A small spread around a large mean in float32: the sum of squares minus the square of the sum would be noise."""
    x = (1e4 + np.random.default_rng(0).normal(size=shape)).astype("float32")
    np.testing.assert_allclose(cg.tensor(x).var(axis).numpy(), x.astype("float64").var(axis), rtol=1e-5)


def test_long_sums_in_single_precision():
    x = np.full(1 << 20, 0.1, "float32")
    for f, wanted in ((cg.sum, x.sum(dtype="float64")), (lambda t: cg.norm(t, 1), x.sum(dtype="float64")),
                      (cg.norm, np.sqrt((x.astype("float64") ** 2).sum())), (cg.cumsum, x.sum(dtype="float64")),
                      (lambda t: cg.mse(t, cg.zeros(1), "sum"), (x.astype("float64") ** 2).sum())):
        assert abs(f(cg.tensor(x)).numpy().ravel()[-1] / wanted - 1) < 1e-6


# ---- bytes -----------------------------------------------------------------------------------------------------------

def kept_by(f, *shapes, dtype="float32"):
    xs = [cg.ones(s, dtype=dtype).attach_grad() for s in shapes]
    with cg.record():
        xs = [x * 1.0 for x in xs]
        with cg.record() as tape:
            y = f(*xs)
    assert y.requires_grad
    return tape.saved_bytes


def test_bytes_kept():
    """Cases that the samples of the table do not have."""
    assert kept_by(lambda x: x.max(1), (100, 100)) == 1250      # PyTorch's amax: 40,400
    assert kept_by(lambda x: x.norm(1), (100, 100)) == 40000
    assert kept_by(lambda x: x.norm(0), (100, 100)) == 0
    assert kept_by(lambda x: x.cumsum(), (100, 100)) == 0
    assert kept_by(lambda x, y: cg.mse(x, y), (100, 100), (100, 100)) == 40000      # PyTorch: 80,000
    assert kept_by(lambda x, y: cg.mse(x, y), (100, 100), (100, 1)) == 40000


def test_nothing_is_kept_without_recording():
    """The bits of max are computed for backward only."""
    x = cg.ones((100, 100)).attach_grad()
    before = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    y = x.max(1)
    assert cg.memory.stats()["peak_bytes"] == before + y.nbytes
    with cg.record():
        z = x.max(1)
    assert cg.memory.stats()["by_category"]["saved"] == 1250
    z.backward()
    assert x.grad.numpy().sum() == pytest.approx(100)




def test_mse_of_what_broadcasts_both_ways_warns():
    """(4, 1) with (4,) gives a matrix of all pairs, which is rarely intended."""
    x, y = cg.ones((4, 1)).attach_grad(), cg.arange(4.0)
    with pytest.warns(UserWarning) as caught:
        assert cg.mse(x, y, "none").shape == (4, 4)
        with cg.record():
            cg.mse(y, x)
    assert [str(w.message) for w in caught] == [
        "mse: x is (4, 1) and y is (4,), which broadcast to (4, 4); reshape one of them to compare element by element",
        "mse: x is (4,) and y is (4, 1), which broadcast to (4, 4); reshape one of them to compare element by element"]
    assert all(w.filename == __file__ for w in caught)
    for a, b in ((x, cg.ones((4, 3))), (y, cg.ones((3, 4))), (x, 0.5), (y, cg.ones((1, 4))), (cg.ones((1, 1)), y)):
        cg.mse(a, b)                                # one operand is repeated, usually on purpose
