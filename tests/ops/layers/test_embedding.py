"""embedding and embedding_bag beyond the table tests: padding, dtypes, sparse bags, PyTorch's results, memory."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak, gradcheck

from peers import torch
FLAT = np.array([3, 0, 2, 3, 1, 2])
STARTS = np.array([0, 2, 2, 5])


def weight(rows=4, columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, columns))


def extra_bytes(f):
    """The peak of live bytes while f() runs, beyond those before."""
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as use:
        f()
    return use.peak_bytes - before


def gradient(f, *arrays, create_graph=False):
    xs = [cg.tensor(a).requires_grad_() for a in arrays]
    with cg.record():
        y = f(*xs)
        head = cg.tensor(np.cos(np.arange(y.size)).reshape(y.shape))
        found = cg.autograd.grad(y, xs, head, create_graph=create_graph)
    return [cg.ensure_dense(g).detach().numpy() for g in found]


# ---- embedding -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("padding", [2, -2, 0])
def test_no_gradient_flows_to_the_padding(padding, sparse):
    indices = np.array([[2, 0, -2], [3, 2, 2]])
    w = torch.tensor(weight(), requires_grad=True)
    y = torch.nn.functional.embedding(torch.tensor(indices % 4), w, padding_idx=padding)
    (y * torch.cos(torch.arange(18.0, dtype=torch.float64)).reshape(y.shape)).sum().backward()

    def f(w):
        return cg.embedding(indices, w, padding, sparse)

    for create_graph in (False, True):
        np.testing.assert_allclose(gradient(f, weight(), create_graph=create_graph)[0], w.grad.numpy(), rtol=1e-14)
    assert np.array_equal(f(weight()).numpy(), weight()[indices])
    if sparse:
        w = cg.tensor(weight()).requires_grad_()
        with cg.record():
            y = f(w)
        y.backward()
        assert len(w.grad) == (indices % 4 != padding % 4).sum()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32"])
def test_any_dtype(dtype):
    w = np.arange(6).reshape(3, 2).astype(dtype)
    y = cg.embedding([[2, -1], [0, 1]], w)
    assert y.dtype == w.dtype and np.array_equal(y.numpy(), w[[[2, -1], [0, 1]]])


@pytest.mark.parametrize("rows, size", [(256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_saved_bytes_and_gradients_by_the_size_of_the_table(rows, size):
    indices = np.array([rows - 1, 0, -1, rows // 2])
    with assert_no_leak():
        w = cg.zeros((rows, 2)).requires_grad_()
        with cg.record() as tape:
            y = cg.embedding(indices, w)
            assert tape.saved_bytes == 4 * size
            y.backward()
        wanted = np.zeros((rows, 2))
        np.add.at(wanted, indices, 1)
        assert np.array_equal(w.grad.numpy(), wanted)
        del w, y, tape


def test_it_adds_directly_to_a_gradient():
    """No second array of the table's size."""
    w = cg.zeros((1000, 64)).attach_grad("add")
    w.grad[...] = 1
    with cg.record():
        y = cg.embedding([5, 5, -1], w)
    assert extra_bytes(y.backward) < w.nbytes
    wanted = np.ones((1000, 64))
    np.add.at(wanted, [5, 5, -1], 1)
    assert np.array_equal(w.grad.numpy(), wanted)


def test_a_sparse_step_touches_no_array_of_the_tables_size():
    w = cg.zeros((100_000, 16)).requires_grad_()
    solver = cg.optim.Sgd(0.1)
    solver.set_parameters(w)
    def step():
        w.grad = None
        with cg.record():
            y = cg.embedding(np.arange(0, 1000, 10), w, sparse=True)
        y.backward()
        solver.update()

    assert extra_bytes(step) < 30_000


# ---- embedding_bag ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_agree_with_torch(mode, padding):
    w = torch.tensor(weight(), requires_grad=True)
    y = torch.nn.functional.embedding_bag(torch.tensor(FLAT), w, torch.tensor(STARTS), mode=mode, padding_idx=padding)
    (y * torch.cos(torch.arange(12.0, dtype=torch.float64)).reshape(4, 3)).sum().backward()

    def f(w):
        return cg.embedding_bag(FLAT, w, STARTS, mode, padding_idx=padding)

    np.testing.assert_allclose(f(weight()).numpy(), y.detach().numpy(), rtol=1e-14)
    for create_graph in (False, True):
        np.testing.assert_allclose(gradient(f, weight(), create_graph=create_graph)[0], w.grad.numpy(), rtol=1e-14)


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean", "scaled"])
def test_sparse_gradients_of_bags(mode, padding):
    scale = [np.linspace(-1, 1, 6)] if mode == "scaled" else []

    def f(sparse):
        return lambda w, *s: cg.embedding_bag(FLAT, w, STARTS, "mean" if mode == "mean" else "sum", sparse,
                                              per_sample_weights=s[0] if s else None, padding_idx=padding)

    for dense, sparse in zip(gradient(f(False), weight(), *scale), gradient(f(True), weight(), *scale), strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-14)
    w = cg.tensor(weight()).attach_grad(stype="row_sparse")
    with cg.record():
        y = f(False)(w, *scale)
    y.backward()
    assert isinstance(w.grad, cg.GradientSlice) and len(w.grad) == (6 if padding is None else 4)


def test_the_first_of_equal_maxima_has_the_gradient():
    w = np.zeros((3, 2))
    found = gradient(lambda w: cg.embedding_bag([[2, 0, 2, 1]], w, mode="max"), w)[0]
    assert np.array_equal(found[[0, 1]], np.zeros((2, 2))) and found[2].all()


def test_nan_is_the_largest():
    w = np.array([[1.0], [np.nan], [3.0]])
    for indices in ([[0, 1, 2]], [[1, 0, 2]], [[2, 0, 1]]):
        assert np.isnan(cg.embedding_bag(indices, w, mode="max").numpy()).all()
        found = gradient(lambda w, i=indices: cg.embedding_bag(i, w, mode="max"), w)[0]
        assert found.ravel().tolist() == [0, 1, 0]


def test_bags_do_not_store_their_rows():
    w = cg.zeros((1000, 64)).attach_grad()
    indices = np.zeros((100, 50), int)
    with cg.record():
        extra = extra_bytes(lambda: cg.embedding_bag(indices, w))
    assert extra < indices.nbytes + indices.size * 2 + 100 * 64 * 4 + 1000


def test_second_derivatives_of_sparse_calls():
    assert gradcheck(lambda w: cg.square(cg.embedding(FLAT, w, sparse=True)), weight(), order=3)
    assert gradcheck(lambda w, s: cg.square(cg.embedding_bag(FLAT, w, STARTS, "sum", True, s)), weight(),
                     np.linspace(-1, 1, 6), order=2)
