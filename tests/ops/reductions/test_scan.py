"""Cumulative products and maxima beyond the table: zeros, NaN and ties as in PyTorch, integers and bools as in NumPy;
searches in sorted numbers; nan_to_num."""

import numpy as np
import pytest
from peers import torch

import cygrad as cg

NAN, INF = np.nan, np.inf
EVERY = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def gradients(x, axis, library):
    """cumprod, its first gradient, the second and the third, as NumPy arrays."""
    ours = library is cg
    rng = np.random.default_rng(3)
    head, direction = rng.normal(size=x.shape), rng.normal(size=x.shape)
    number = cg.tensor if ours else torch.tensor
    grad = cg.autograd.grad if ours else torch.autograd.grad
    t = number(x, requires_grad=True)
    with cg.record():
        y = library.cumprod(t, axis)
        first, = grad([y], [t], [number(head)], create_graph=True)
        second, = grad([(first * number(direction)).sum()], [t], create_graph=True)
        third, = grad([(second * second).sum()], [t])
    return [v.detach().numpy() for v in (y, first, second, third)]


@pytest.mark.parametrize("zeros", [(), (0,), (4,), (2,), (1, 2), (0, 3, 4), (0, 1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_cumprod_with_zeros(zeros, axis):
    x = np.random.default_rng(1).uniform(0.5, 2, (5, 5))
    x[list(zeros), 1] = 0
    x[2, list(zeros)] = 0
    for mine, theirs in zip(gradients(x, axis, cg), gradients(x, axis, torch), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-11)


def test_cumprod_of_tiny_numbers_has_gradients():
    x = np.array([1e-30, 1e-30, 1e30, 1e30], "float32")     # the products of float32 would be 0
    t = cg.tensor(x, requires_grad=True)
    with cg.record(): y = cg.cumprod(t)
    y.backward(cg.tensor([0, 0, 0, 1.0]))
    np.testing.assert_allclose(y.numpy(), np.cumprod(x.astype("float64")).astype("float32"), 1e-6)
    np.testing.assert_allclose(t.grad.numpy(), 1 / x, 1e-6)


@pytest.mark.parametrize("dtype", EVERY)
def test_dtypes(dtype):
    x = np.array([[3, 0, 2, 2], [1, 1, 0, 5]]).astype(dtype)
    for axis in (None, 0, 1):
        found, wanted = cg.cumprod(cg.tensor(x), axis).numpy(), np.cumprod(x, axis)
        assert found.dtype == wanted.dtype and (found == wanted).all()
        for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
            values, places = getattr(cg, name)(cg.tensor(x), axis)
            flat = x.ravel() if axis is None else x
            wanted = ufunc.accumulate(flat, axis or 0)
            assert values.dtype == wanted.dtype and (values.numpy() == wanted).all()
            assert (np.take_along_axis(flat, places.numpy(), axis or 0) == wanted).all()
    v = np.array([[0, 1], [2, 9]]).astype(dtype)
    for side in ("left", "right"):
        ordered = np.sort(x[0])
        assert (cg.tensor(ordered).searchsorted(cg.tensor(v), side).numpy() == ordered.searchsorted(v, side)).all()


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_extremes_are_pytorchs(name, dtype):
    x = np.array([[1, 3, 3, 2, NAN, 5, NAN, 1], [0.0, -0.0, 0, INF, 1, -INF, INF, -INF]], dtype)
    for a, axis in ((x, 1), (x.T, 0), (np.tile(x, (70, 1)).T, 0)):
        ours, theirs = cg.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
        with cg.record(): values, places = getattr(ours, name)(axis)
        wanted, where = getattr(theirs, name)(axis)
        assert np.array_equal(values.detach().numpy(), wanted.detach().numpy(), equal_nan=True)
        assert np.array_equal(places.numpy(), where.numpy())
        head = np.random.default_rng(2).normal(size=a.shape).astype(dtype)
        values.backward(cg.tensor(head))
        wanted.backward(torch.tensor(head))
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-5)


def test_searchsorted_with_nan():
    a, v = np.array([-INF, -1, 0.0, 2, INF, NAN, NAN]), np.array([[NAN, INF, -INF], [-0.0, 3, -2]])
    for side in ("left", "right"):
        assert (cg.searchsorted(a, v, side).numpy() == np.searchsorted(a, v, side)).all()
    assert (cg.searchsorted(a[::-1][::-1], v).numpy() == np.searchsorted(a, v)).all()
    shuffled = a[[3, 0, 5, 2, 1, 6, 4]]
    order = np.argsort(shuffled)
    assert (cg.searchsorted(shuffled, v, sorter=order).numpy() == np.searchsorted(shuffled, v, sorter=order)).all()
    assert cg.searchsorted([1, 2, 3], 2.5).item() == 2      # common dtypes
    n = np.sort(np.random.default_rng(0).normal(size=1000))
    assert (cg.searchsorted(n, n).numpy() == np.arange(1000)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_nan_to_num(dtype):
    x = np.array([[1, -2, 0], [3, 4, 5]]).astype(dtype)
    if dtype != "int32": x[0] = NAN, INF, -INF
    for arguments in ({}, {"nan": 7.0, "posinf": 8.0, "neginf": -9.0}, {"posinf": 1e3}):
        found, wanted = cg.nan_to_num(cg.tensor(x), **arguments).numpy(), np.nan_to_num(x, **arguments)
        assert found.dtype == wanted.dtype and (found == wanted).all()


def test_gradient_of_nan_to_num():
    t = cg.tensor([NAN, INF, -INF, 2.0, -0.0], requires_grad=True)
    with cg.record(): y = cg.nan_to_num(t)
    y.backward(cg.tensor([1.0, 2, 3, 4, 5]))
    assert t.grad.tolist() == [0, 0, 0, 4, 5]


def test_ravel_is_flatten():
    assert cg.ravel(cg.ones((2, 3))).shape == (6,)
