"""Conversion to NumPy: memory is shared, read-only if gradients flow, and lives as long as its last reader."""

import gc

import numpy as np
import pytest
from rows import ALL_DTYPES

import cygrad as cg


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_numpy_shares_memory(dtype):
    x = cg.tensor([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    for t in (x, x.T, x[:, ::-1], x[1]):
        for a in (t.numpy(), np.asarray(t)):
            assert a.dtype == dtype and a.shape == t.shape and a.tolist() == t.tolist()
            assert np.shares_memory(a, x.numpy()) and a.flags.writeable
    x.numpy()[0, 0] = 0
    assert x.tolist()[0][0] == 0 and x.version == 0


def test_numpy_keeps_the_memory_alive():
    a = cg.tensor([1.0, 2.0]).numpy()
    assert a.tolist() == [1.0, 2.0] and cg.memory.stats()["live_bytes"] == 8
    b = a[1:]
    del a
    assert cg.memory.stats()["live_bytes"] == 8
    del b
    assert cg.memory.stats()["live_bytes"] == 0


def test_numpy_of_what_gradients_flow_through_is_read_only():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        y = x * 2
    for t in (x, y):
        a = t.numpy()
        assert a.tolist() == t.tolist() and not a.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1
        assert not np.asarray(t).flags.writeable
        assert t.detach().numpy().flags.writeable


def test_numpy_while_recording():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    plain = cg.tensor([1.0])
    with cg.record():
        y = x * 2
        for t in (x, y):
            for f in (cg.Tensor.numpy, np.asarray, np.array):
                with pytest.raises(RuntimeError, match=r"while recording: the gradients would be lost .*; use detach"):
                    f(t)
            assert t.detach().numpy().tolist() == t.tolist()
        assert plain.numpy().tolist() == [1.0] and np.asarray(plain).tolist() == [1.0]
        with cg.pause():
            assert x.numpy().tolist() == [1.0, 2.0]


def test_asarray_protocol_arguments():
    x = cg.tensor([1.0, 2.0])
    assert np.asarray(x, dtype="float64").dtype == "float64"
    assert not np.shares_memory(np.array(x), x.numpy()) and np.array(x, copy=None) is not None
    with pytest.raises(ValueError, match="a float32 tensor cannot become float64 without a copy"):
        x.__array__("float64", copy=False)
    with pytest.raises(ValueError, match="avoid copy"):         # NumPy itself raises this error
        np.array(x, dtype="float64", copy=False)


def test_read_only_memory_refuses_writes():
    a = np.array([1.0, 2.0])
    a.flags.writeable = False
    for data in (a, b"\x01\x02", np.broadcast_to(np.float64(3), (2,))):
        x = cg.asarray(np.frombuffer(data, "uint8") if isinstance(data, bytes) else data)
        before = x.tolist()

        def add(x=x):
            x += 1

        for write in (add, lambda x=x: x.__setitem__(0, 1), lambda x=x: x.fill_(0), lambda x=x: x.copy_(x + 1)):
            with pytest.raises(ValueError, match="has read-only memory and cannot be written; copy"):
                write()
        assert x.tolist() == before and x.version == 0 and not x.numpy().flags.writeable
        y = x.copy()
        y += 1
        assert y.tolist() == [n + 1 for n in before]


# ---- NumPy's functions on tensors ------------------------------------------------------------------------------------

def test_arithmetic_beside_arrays_is_recorded():
    x, a = cg.tensor([1.0, 2.0]).attach_grad(), np.array([3.0, 4.0], "float32")
    m = np.ones((2, 2), "float32")
    with cg.record():
        for y in (a + x, a - x, a * x, a / x, a ** x, a @ x, m @ x, np.float32(2) * x, np.float64(2) * x,
                  np.multiply(a, x), np.add(x, 1), np.int64(2) - x, np.float32(2) ** x):
            assert isinstance(y, cg.Tensor) and y.requires_grad and y.dtype == "float32"
    (a * x).sum()
    for y, wanted in ((a > x, [True, True]), (a == x, [False, False]), (a != x, [True, True]), (a <= x, [False] * 2),
                      ((a > 3) & (x > 0), [False, True]), ((a > 3) | (x > 0), [True, True]),
                      ((a > 3) ^ (x > 0), [True, False])):
        assert isinstance(y, cg.Tensor) and y.tolist() == wanted
    z = cg.tensor([2.1])                            # NumPy's float64 scalars are weak, on either side
    assert (np.float64(2.1) == z).tolist() == (z == np.float64(2.1)).tolist() == [True]


def test_writing_a_tensor_into_an_array():
    """a += x writes the array, or raises where a gradient would be lost."""
    x, a = cg.tensor([1.0, 2.0]).attach_grad(), np.zeros(2, "float32")
    b = a
    a += x
    a *= x
    a[:1] -= x[:1]
    assert a is b and a.tolist() == [0.0, 4.0]
    np.add(a, x, out=a)
    assert a.tolist() == [1.0, 6.0]
    with cg.record():
        with pytest.raises(RuntimeError, match="while recording: the gradients would be lost silently; use detach"):
            a += x
        a += x.detach()
    assert a.tolist() == [2.0, 8.0]
    with pytest.raises(RuntimeError, match="a leaf variable of shape .* cannot be written in place"), cg.record():
        np.add(a, a, out=x)
    x[...] = 0
    assert np.add(a, a, out=x) is x and x.tolist() == [4.0, 16.0]


def test_matplotlib_draws_tensors():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    x, y, image = cg.arange(4.0).attach_grad(), cg.ones(4), cg.ones((3, 3))
    axes = Figure().subplots()
    [line] = axes.plot(x, y)
    assert line.get_xdata().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert axes.hist(x)[0].sum() == 4
    assert axes.scatter(x, y).get_offsets().shape == (4, 2)
    assert axes.imshow(image).get_array().shape == (3, 3)
    assert len(axes.bar(x, y)) == 4 and axes.errorbar(x, y, y) and axes.fill_between(x, y) and axes.step(x, y)
    axes.figure.clear()
    del axes, line
    gc.collect()


def test_a_lease_without_memory():
    from cygrad.core.interop.numpy import Lease

    for read in (bytes, memoryview):
        with pytest.raises(BufferError, match="this Lease has no memory, because it was not made for a tensor; call "
                                              r"numpy\(\) of a tensor"):
            read(Lease())
