"""To NumPy: memory is shared, read-only where gradients flow, and lives as long as its last reader."""

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
            for f in (cg.Tensor.numpy, np.asarray, np.linalg.norm):
                with pytest.raises(RuntimeError, match=r"while recording: they would be lost .*; use detach"):
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
    with pytest.raises(ValueError, match="avoid copy"):         # NumPy asks the buffer protocol and says it itself
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
            with pytest.raises(ValueError, match="lies over read-only memory and cannot be written; copy"):
                write()
        assert x.tolist() == before and x.version == 0 and not x.numpy().flags.writeable
        y = x.copy()
        y += 1
        assert y.tolist() == [n + 1 for n in before]
