"""Tensors, contract 1: attributes, reading, printing, comparing, copies."""

import copy
import math

import numpy as np
import pytest
from rows import ALL_DTYPES

import cygrad as cg


# ---- attributes ------------------------------------------------------------------------------------------------------

def test_attributes():
    x = cg.zeros((2, 3, 4))
    assert (x.shape, x.strides, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3, 4), (12, 4, 1), 3, 24, 4, 96)
    assert len(x) == 2 and x.version == 0
    assert x.T.shape == (4, 3, 2) and x.T.strides == (1, 4, 12)
    assert x.dtype is np.dtype("float32")


def test_length_and_iteration():
    x = cg.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = x
    assert a.tolist() == [1, 2] and b.tolist() == [3, 4]
    for f in (len, iter, list):
        with pytest.raises(TypeError, match="a 0-d tensor"):
            list(f(cg.tensor(1.0))) if f is iter else f(cg.tensor(1.0))


def test_iteration_is_recorded():
    x = cg.tensor([1.0, 2.0, 3.0]).attach_grad()
    with cg.record():
        a, b, c = x
        y = a * b * c
    y.backward()
    assert x.grad.tolist() == [6.0, 3.0, 2.0]


# ---- reading ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_item(dtype):
    value = cg.tensor([[1]], dtype=dtype).item()
    assert value == 1 and type(value) is (bool if dtype == "bool" else int if "int" in dtype else float)
    if "int" in dtype:
        for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            assert cg.tensor(np.array(limit, dtype)).item() == limit
    with pytest.raises(ValueError, match=r"item\(\) takes a tensor of one element; this one has shape \(2,\)"):
        cg.zeros(2, dtype=dtype).item()


def test_scalars():
    x = cg.tensor([2.75])
    assert float(x) == 2.75 and int(x) == 2 and bool(x) is True and bool(cg.tensor(0.0)) is False
    assert math.floor(float(x)) == 2 and f"{cg.tensor(2.75):.1f}" == "2.8"
    assert [10, 20, 30][cg.tensor(1)] == 20 and list(range(cg.tensor(3))) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"the truth value of a tensor of shape \(2,\) is ambiguous; use any"):
        bool(cg.zeros(2))
    with pytest.raises(ValueError, match="item"):
        float(cg.zeros(2))
    with pytest.raises(TypeError, match="a float32 tensor cannot be an index; only integer tensors can"):
        [1, 2][cg.tensor(1.0)]


def test_reading_works_while_recording():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record() as tape:
        y = x * 2
        s = y.sum()
        nodes = tape.nodes
        assert y.tolist() == [2.0, 4.0] and len(y) == 2 and y.nbytes == 8
        assert (s.item(), float(s), int(s), bool(s)) == (6.0, 6.0, 6, True)
        assert repr(y) == "tensor([2., 4.], grad_fn=<mul>)" and str(y) == repr(y)
        assert (y == y).tolist() == [True, True] and (y > 3).tolist() == [False, True]
        assert tape.nodes == nodes
        assert y.copy().tolist() == [2.0, 4.0] and y.copy().requires_grad and not y.detach().copy().requires_grad
        assert y.astype("float64").requires_grad and not y.astype("int64").requires_grad


def test_printing():
    assert repr(cg.tensor([1.0, 2.5])) == "tensor([1. , 2.5])"
    assert repr(cg.tensor([[1, 2], [3, 4]])) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(cg.tensor(1.5)) == "tensor(1.5)"
    assert repr(cg.tensor([True, False])) == "tensor([ True, False])"
    assert repr(cg.tensor([1.0], dtype="float64")) == "tensor([1.], dtype=float64)"
    assert repr(cg.tensor([1], dtype="int8")) == "tensor([1], dtype=int8)"
    assert repr(cg.zeros((0, 3))) == "tensor([], shape=(0, 3), dtype=float32)"
    x = cg.tensor([1.0]).attach_grad()
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert "..." in repr(cg.zeros(10_000)) and len(repr(cg.zeros(10_000))) < 200


# ---- comparing, hashing ----------------------------------------------------------------------------------------------

def test_comparing_is_elementwise_and_hashing_by_identity():
    x, y = cg.tensor([1.0, 2.0]), cg.tensor([1.0, 3.0])
    assert (x == y).tolist() == [True, False] and (x != y).tolist() == [False, True]
    for found in (x < y, x >= 2, 1 < x):
        assert found.tolist() == [False, True]
    assert (x == y).dtype == "bool"
    assert len({x, y, x}) == 2 and hash(x) == hash(x)
    assert (x == "text") is False and (x != None) is True  # noqa: E711


# ---- copies ----------------------------------------------------------------------------------------------------------

def test_copy_and_astype():
    x = cg.tensor([1.5, -2.5]).attach_grad()
    for y, variable in ((x.copy(), False), (copy.copy(x), True)):
        assert y.tolist() == x.tolist() and y.requires_grad == variable
        assert not np.shares_memory(y.numpy(), x.numpy())
    assert x.astype("float32") is x
    assert x.astype(cg.int32).tolist() == [1, -2] and x.astype(bool).tolist() == [True, True]
    with pytest.raises(TypeError, match="cygrad has no dtype complex64"):
        x.astype("complex64")
