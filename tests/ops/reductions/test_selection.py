"""The functions of ops/reductions/selection: values as NumPy's, gradients, edges."""

import numpy as np
import pytest

import cygrad as cg

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4, 5))
ODD = np.array([1.0, np.inf, np.nan, -np.inf, 1e-9, 2.0, np.inf])
OTHER = np.array([1 + 1e-6, np.inf, np.nan, np.inf, 0.0, 2.1, 1.0])


def same(y, wanted):
    if isinstance(wanted, tuple):
        assert isinstance(y, tuple) and len(y) == len(wanted)
        for a, b in zip(y, wanted, strict=True): same(a, b)
    else:
        assert y.shape == wanted.shape and y.dtype == wanted.dtype
        np.testing.assert_array_equal(y.numpy(), wanted)


def test_take_along_axis():
    t = cg.tensor(X)
    for shape in ((3, 2, 5), (1, 2, 5), (3, 6, 1), (3, 0, 5)):
        i = rng.integers(-4, 4, shape)
        same(cg.take_along_axis(t, i, 1), np.take_along_axis(X, i, 1))
    same(cg.take_along_axis(t, [3, -1, 3], None), np.take_along_axis(X, np.array([3, -1, 3]), None))
    same(cg.take_along_axis(t, cg.argsort(t, 2)), np.sort(X, 2))
    assert cg.testing.gradcheck(lambda x: cg.take_along_axis(x, i[:, :0], 1).sum() + cg.take_along_axis(
        x, rng.integers(0, 4, (3, 7, 5)) * 0 + 1, 1), t)


def test_index_add():
    wanted = X.copy()
    np.add.at(wanted, (slice(None), [0, 2, 0]), 1.5)
    same(cg.index_add(cg.tensor(X), 1, [0, 2, 0], np.full((3, 3, 5), 1.5)), wanted)
    same(cg.index_add(cg.tensor(X), 0, np.zeros(0, int), np.zeros((0, 4, 5))), X)
    assert cg.testing.gradcheck(lambda x, s: cg.index_add(x, 1, [0, -2, 0], s), cg.tensor(X), cg.tensor(X[:, :3]))


def test_masked_fill():
    same(cg.masked_fill(cg.tensor(X), X[0] > 0, 3.0), np.where(X[0] > 0, 3.0, X))
    assert cg.masked_fill(cg.arange(3), cg.tensor([True, False, True]), -1).tolist() == [-1, 1, -1]
    assert cg.testing.gradcheck(lambda x, v: cg.masked_fill(x, X > 0, v), cg.tensor(X), cg.tensor(2.0, dtype="float64"))


def test_nonzero():
    for x in (np.round(X), np.zeros((0, 3)), np.array([True, False, True]), np.zeros(3)):
        same(cg.nonzero(x), np.nonzero(x))
        same(cg.tensor(x)[cg.nonzero(x)], x[np.nonzero(x)])


@pytest.mark.parametrize("x", [
    np.array([3, 1, 2, 3, 1]), np.array([[2.0, np.nan], [np.nan, 1.0]]), np.zeros(0), np.array([True, False, True]),
    np.array([[3, 1], [3, 0]], "uint8"), np.array(7.0), np.array([0.0, -0.0, np.inf, -np.inf]),
    rng.integers(0, 9, 1000),
], ids=lambda x: f"{x.dtype}{x.shape}")
@pytest.mark.parametrize("more", range(8))
def test_unique(x, more):
    options = dict(return_index=bool(more & 1), return_inverse=bool(more & 2), return_counts=bool(more & 4))
    same(cg.unique(cg.tensor(x), **options), np.unique(x, **options))


def test_unique_has_no_gradient():
    x = cg.tensor([2.0, 1.0, 2.0]).attach_grad()
    with cg.record():
        y = cg.unique(x)
    assert y.tolist() == [1.0, 2.0] and y.grad_fn is None


@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness(equal_nan):
    same(cg.isclose(ODD, OTHER, equal_nan=equal_nan), np.isclose(ODD, OTHER, equal_nan=equal_nan))
    same(cg.isclose(cg.tensor(X), X[0], 0.5, 0.1), np.isclose(X, X[0], 0.5, 0.1))
    for a, b in ((ODD, ODD), (ODD, OTHER), (X, X), (X, X + 1e-9), (np.zeros(0), np.zeros(0)), ([1, 2], [1, 2])):
        assert cg.allclose(a, b, equal_nan=equal_nan) is np.allclose(a, b, equal_nan=equal_nan)
        assert cg.array_equal(a, b, equal_nan) is bool(np.array_equal(a, b, equal_nan))
    assert not cg.array_equal([1], [1, 1]) and not cg.array_equal([[1]], [1])
    x = cg.ones(3).attach_grad()
    with cg.record() as tape:
        assert cg.allclose(x, x) and cg.array_equal(x, x)
    assert tape.saved_bytes == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(5,), (1, 7), (6, 1), (4, 70), (5, 3, 40), (3, 0, 2)])
def test_rows_are_added_in_order(shape, dtype):
    """Along any axis and over any strides: repeated, negative and no indices."""
    rng = np.random.default_rng(0)
    for axis, n in ((axis, n) for axis in range(len(shape)) for n in (0, 1, 9)):
        if not shape[axis]: continue
        a = rng.integers(-9, 9, shape).astype(dtype) / (1 if dtype == "int64" else 8)
        a = a.astype(dtype)
        s = rng.integers(-9, 9, (*shape[:axis], n, *shape[axis + 1:])).astype(dtype)
        index = rng.integers(-shape[axis], shape[axis], n)
        wanted = a.copy()
        np.add.at(np.moveaxis(wanted, axis, 0), index, np.moveaxis(s, axis, 0))
        for x, y in ((a, s), (np.asfortranarray(a), s), (a, np.asfortranarray(s)), (a[::-1][::-1], s)):
            assert np.array_equal(cg.index_add(x, axis, index, y).numpy(), wanted)
        one = np.broadcast_to(s.reshape(-1)[:1].reshape((1,) * s.ndim), s.shape) if s.size else s
        wanted = a.copy()
        np.add.at(np.moveaxis(wanted, axis, 0), index, np.moveaxis(one, axis, 0))
        assert np.array_equal(cg.index_add(a, axis, index, cg.asarray(one)).numpy(), wanted)
        places = np.broadcast_to(index.reshape([-1 if d == axis else 1 for d in range(len(shape))]), s.shape)
        assert np.array_equal(cg.gather(cg.asarray(a), axis, cg.asarray(places)).numpy(),
                              np.take_along_axis(a, places, axis) if n else s)
        if not (n and a.size): continue
        with pytest.raises(IndexError, match="out of range|out of bounds"):
            cg.index_add(a, axis, np.full(n, shape[axis]), s)


def test_gradients_of_added_rows_are_pytorchs():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a, s, index = rng.normal(size=(5, 40)), rng.normal(size=(9, 40)), rng.integers(0, 5, 9)
    x, y = cg.tensor(a).requires_grad_(), cg.tensor(s).requires_grad_()
    u, v = (torch.from_numpy(b.copy()).requires_grad_() for b in (a, s))
    with cg.record(): (cg.index_add(x, 0, index, y) ** 3).sum().backward()
    (torch.index_add(u, 0, torch.from_numpy(index), v) ** 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-13)
    np.testing.assert_allclose(y.grad.numpy(), v.grad.numpy(), rtol=1e-13)
