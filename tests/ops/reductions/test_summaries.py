"""The functions of ops/reductions/summaries: values as NumPy's, NaN, sizes of 0 and 1, gradients."""

import warnings

import numpy as np
import pytest

import cygrad as cg

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4, 5))
HOLES = X.copy()
HOLES[0, 1, 2], HOLES[1] = np.nan, np.nan
WEIGHTS = rng.random(X.shape)
AXES = [None, 0, -1, (0, 2), (1, 0, 2)]
QUANTILES = [0.3, 0, 1, [0.1, 0.5, 0.77], [[0.2], [1.0]], []]


def same(y, wanted):
    wanted = np.asarray(wanted)
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.numpy(), wanted, 1e-12, atol=1e-13)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("x", [X, HOLES, np.round(X), X[:1, :1, :1], X[:2], X.T],
                         ids=["x", "nan", "ties", "1", "2", "T"])
def test_reductions(x, axis, keepdims):
    t = cg.tensor(np.ascontiguousarray(x.T)).T
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")             # NumPy's mean of nothing
        for name in ("median", "ptp", "nansum", "nanmean", "count_nonzero"):
            same(getattr(cg, name)(t, axis, keepdims=keepdims), getattr(np, name)(x, axis, keepdims=keepdims))
        for q in QUANTILES:
            for method in ("linear", "lower", "higher", "midpoint", "nearest"):
                same(cg.quantile(t, q, axis, keepdims, method),
                     np.quantile(x, q, axis, keepdims=keepdims, method=method))
        same(cg.percentile(t, [10, 99], axis, keepdims), np.percentile(x, [10, 99], axis, keepdims=keepdims))
        w = rng.random(x.shape)
        same(cg.average(t, axis, w, keepdims), np.average(x, axis, w, keepdims=keepdims))
        same(cg.average(t, axis, keepdims=keepdims), np.average(x, axis, keepdims=keepdims))


def test_dtypes():
    x = np.array([[3, 1, 2], [5, 0, 4]])
    for dtype in ("int8", "int64", "uint8", "float32"):
        t = cg.tensor(x.astype(dtype))
        floating = "float32"                        # the default dtype
        assert cg.median(t).dtype == cg.quantile(t, 0.5).dtype == cg.nanmean(t).dtype == cg.average(t).dtype == floating
        assert cg.diff(t).dtype == cg.ptp(t).dtype == dtype and cg.count_nonzero(t).dtype == "int64"
        assert cg.nansum(t).dtype == cg.sum(t).dtype and cg.nansum(t).item() == 15
        assert cg.median(t, 0).tolist() == [4.0, 0.5, 3.0]
    assert cg.average([1, 2, 3], weights=[3, 0, 1]).item() == 1.5
    assert cg.average(cg.tensor(X), 1, np.arange(4) + 1).shape == (3, 5)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_diff(n, axis):
    same(cg.diff(cg.tensor(X), n, axis), np.diff(X, n, axis))
    same(cg.diff(cg.tensor(X), n, axis, prepend=0), np.diff(X, n, axis, prepend=0))
    end = np.take(X, [0, 0], axis)
    same(cg.diff(cg.tensor(X), n, axis, append=end, prepend=1.5), np.diff(X, n, axis, append=end, prepend=1.5))


def test_diff_of_bools_and_nothing():
    b = np.array([True, False, False, True])
    assert cg.diff(b).tolist() == np.diff(b).tolist()
    assert cg.diff(cg.zeros(0)).shape == (0,) and cg.diff(cg.zeros((2, 1))).shape == (2, 0)


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("axis", [None, 0, -1, (2, 0)])
def test_gradient(axis, edge_order):
    count = 3 if axis is None else np.size(axis)
    for spacing in ((), (0.5,), (0.5,) * count, tuple(PLACES[:X.shape[a]] for a in np.arange(3)[axis].ravel().tolist())
                    if isinstance(axis, int) else ()):
        got = cg.gradient(cg.tensor(X), *spacing, axis=axis, edge_order=edge_order)
        wanted = np.gradient(X, *spacing, axis=axis, edge_order=edge_order)
        assert isinstance(got, tuple) == (count > 1)
        for g, w in zip(*(((got,), (wanted,)) if count == 1 else (got, wanted)), strict=True): same(g, w)


PLACES = np.array([0.0, 0.3, 1.0, 1.1, 2.5])


def test_gradient_of_each_axis_and_of_lists():
    x, y = np.arange(3.0) ** 2, PLACES
    for g, w in zip(cg.gradient(cg.tensor(X[:, 0]), x, y), np.gradient(X[:, 0], x, y), strict=True): same(g, w)
    assert cg.gradient([1, 4, 9, 16]).tolist() == [3.0, 4.0, 6.0, 7.0]
    assert cg.gradient([1.0, 3.0]).tolist() == [2.0, 2.0]
    assert np.array_equal(np.gradient(cg.tensor([1.0, 4.0, 9.0]), 2.0), [1.5, 2.0, 2.5])


def test_normalize():
    x = cg.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert cg.normalize(x).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    assert cg.normalize(x, 1, 0).tolist() == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("f", [
    lambda x: cg.median(x, 1), lambda x: cg.median(x, 2), cg.median, lambda x: cg.quantile(x, [0.2, 0.7], 0),
    lambda x: cg.quantile(x, 0.4, method="midpoint"), lambda x: cg.diff(x, 2), lambda x: cg.diff(x, prepend=0),
    lambda x: cg.average(x, 0, WEIGHTS), lambda x: cg.average(x, 1, np.arange(4) + 1.0),
    lambda x: cg.average(X, None, cg.exp(x)), cg.nanmean, lambda x: cg.nansum(x * x, 1), lambda x: cg.ptp(x, 1),
    lambda x: cg.gradient(x, axis=1), lambda x: cg.gradient(X, cg.cumsum(cg.exp(x[0, :, 0])), axis=1, edge_order=2),
    lambda x: cg.normalize(x), lambda x: cg.normalize(x, 3, (0, 2)),
])
def test_gradients(f):
    assert cg.testing.gradcheck(f, cg.tensor(X))
    assert cg.testing.gradcheck(lambda x: f(x * x), cg.tensor(X), order=2)


def test_gradients_at_nan_and_ties():
    x = cg.tensor(HOLES).attach_grad()
    with cg.record():
        y = cg.nansum(x * 3)
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(np.isnan(HOLES), 0, 3))
    x = cg.tensor([2.0, 1.0, 2.0, 2.0]).attach_grad()
    with cg.record():
        y = cg.median(x)
    y.backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5, 0.0]      # those in the middle of the stable order


def test_infinite_neighbours():
    assert cg.quantile([np.inf, np.inf, 1.0], 0.75).item() == np.inf
    assert cg.median([np.inf, np.inf]).item() == np.inf and cg.median([-np.inf, np.inf, 3.0]).item() == 3


def test_diff_of_more_than_all():
    assert cg.diff(cg.arange(3), 2**40).shape == (0,)
