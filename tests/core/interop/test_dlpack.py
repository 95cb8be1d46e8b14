"""Shared memory: DLPack in both directions, the buffer protocol, asarray of exported memory."""

import array
import ctypes
import gc
import hashlib
import mmap
import os
import struct
import sys
import threading
import warnings

import numpy as np
import pytest
from capsules import Exporter, OldFashioned, Speaking, new_capsule
from rows import ALL_DTYPES

import cygrad as cg

both = pytest.mark.parametrize("dtype", ALL_DTYPES)
dlpack_1 = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0",
                              reason="NumPy 2.0 speaks DLPack before 1.0, which has no copies and no read-only flag")


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch", reason="PyTorch is not installed, so nothing is exchanged with it")


def sample(dtype, shape=(3, 4)):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def views(x):
    """Views of a matrix, of all kinds."""
    return [x, x.T, x[1:], x[:, ::2], x[1], x[0, 1], x[:0]]


def address(x):
    return x.detach().numpy().__array_interface__["data"][0]


# ---- DLPack, out -----------------------------------------------------------------------------------------------------

@dlpack_1
@both
def test_numpy_reads_our_capsules(dtype):
    x = cg.tensor(sample(dtype))
    for view in [*views(x), x[::-1], x[::-1, ::-2]]:
        a = np.from_dlpack(view)
        assert a.dtype == dtype and a.shape == view.shape and np.array_equal(a, view.numpy())
        assert a.flags.writeable and (a.size == 0 or np.shares_memory(a, x.numpy()))
        assert a.size == 0 or a.strides == view.numpy().strides
    del a
    x[1, 1] = 1
    assert np.from_dlpack(x)[1, 1] == 1


@both
def test_torch_reads_our_capsules(dtype, torch):
    x = cg.tensor(sample(dtype))
    for view in views(x):
        t = torch.from_dlpack(view)
        assert t.numpy().dtype == dtype and np.array_equal(t.numpy(), view.numpy())
        assert t.numel() == 0 or t.data_ptr() == address(view)
    t = torch.from_dlpack(x)
    t[2, 3] = 1
    assert x[2, 3].item() == 1


def test_capsules_hold_the_memory():
    x = cg.ones((100,))
    before = cg.memory.stats()["live_bytes"]
    capsule, older = x.__dlpack__(max_version=(1, 1)), x.__dlpack__()
    assert 'capsule object "dltensor_versioned"' in repr(capsule) and 'capsule object "dltensor"' in repr(older)
    del x
    assert cg.memory.stats()["live_bytes"] == before
    del capsule                                     # dies without being consumed
    assert cg.memory.stats()["live_bytes"] == before
    del older
    assert cg.memory.stats()["live_bytes"] == before - 400
    a = np.from_dlpack(cg.ones((100,)))
    assert cg.memory.stats()["live_bytes"] == before and a.sum() == 100
    del a
    assert cg.memory.stats()["live_bytes"] == before - 400


@dlpack_1
def test_copies_are_copies():
    v = cg.ones(3).attach_grad()
    a = np.from_dlpack(v, copy=True)
    assert a.flags.writeable and not np.shares_memory(a, v.numpy())
    assert 'capsule object "dltensor"' in repr(v.__dlpack__(copy=True))     # no errors
    assert np.shares_memory(np.from_dlpack(v, copy=False), v.numpy())


@dlpack_1
def test_variables_are_lent_for_reading():
    v = cg.ones(3).attach_grad()
    with cg.record():
        y = v * 2
    for x in (v, y, cg.asarray(np.frombuffer(bytes(8), "float32"))):
        a = np.from_dlpack(x)
        assert not a.flags.writeable and np.shares_memory(a, x.numpy())
        with pytest.raises(BufferError, match="read-only"):
            x.__dlpack__()                          # the older form cannot mark it read-only
        with pytest.raises(BufferError, match="read-only"):
            x.__dlpack__(max_version=(0, 8))
    with cg.record():
        for f in (np.from_dlpack, np.asarray, memoryview, cg.Tensor.__dlpack__):
            with pytest.raises(RuntimeError, match=r"detach\(\)"):
                f(v)
        assert np.from_dlpack(v.detach()).flags.writeable
        assert np.from_dlpack(cg.ones(2)).flags.writeable


@dlpack_1
def test_what_cannot_be_asked_of_us():
    x = cg.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x, device="cpu").tolist() == [1, 1]
    assert x.__dlpack__(dl_device=(1, 0), stream=None, copy=False) is not None
    with pytest.raises(BufferError, match="streams"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))


# ---- DLPack, in ------------------------------------------------------------------------------------------------------

@both
def test_we_read_numpys_capsules(dtype):
    a = sample(dtype)
    before = cg.memory.stats()
    for view in [*views(a)[:-2], a[::-1], a[::-1, ::-2], a[:, :0], np.array(a[1, 1])]:
        x = cg.from_dlpack(view)
        assert x.dtype == dtype and x.shape == view.shape and np.array_equal(x.numpy(), view)
        assert x.size == 0 or np.shares_memory(x.numpy(), view)
        now = cg.memory.stats()
        assert now["external_bytes"] == before["external_bytes"] + view.nbytes
        assert now["live_bytes"] == before["live_bytes"]
    x = cg.from_dlpack(a)
    x[0, 0] = 1
    assert a[0, 0] == 1
    del x
    assert cg.memory.stats()["external_bytes"] == before["external_bytes"]
    assert cg.from_dlpack(a, copy=True).numpy().flags.owndata is False
    assert not np.shares_memory(cg.from_dlpack(a, copy=True).numpy(), a)


@both
def test_we_read_torchs_capsules(dtype, torch):
    t = torch.from_numpy(sample(dtype))
    for view in (t, t.T, t[1:], t[:, ::2], t[1], t[0, 1], t[:0], t[:, None].expand(3, 2, 4)):
        x = cg.from_dlpack(view)
        assert x.dtype == dtype and x.shape == tuple(view.shape) and np.array_equal(x.numpy(), view.numpy())
        assert x.size == 0 or address(x) == view.data_ptr()
    y = cg.asarray(t)
    t[0, 0] = 1
    assert y[0, 0].item() == 1
    del t, view, x
    gc.collect()
    assert y[0, 0].item() == 1                      # its memory stays alive


@dlpack_1
def test_read_only_memory_stays_so():
    a = sample("float32")
    a.flags.writeable = False
    x = cg.from_dlpack(a)
    with pytest.raises(ValueError, match="read-only"):
        x.fill_(0)
    assert not np.from_dlpack(x).flags.writeable
    y = cg.from_dlpack(a, copy=True)
    y.fill_(0)
    assert cg.from_dlpack(cg.from_dlpack(cg.ones(2))).fill_(3).tolist() == [3, 3]
    v = cg.ones(2).attach_grad()
    with pytest.raises(ValueError, match="read-only"):
        cg.from_dlpack(v).fill_(0)


def test_torch_variables_say_what_to_do(torch):
    with pytest.raises(BufferError, match="detach"):
        cg.asarray(torch.ones(2, requires_grad=True))


def test_asarray_shares_with_torch(torch):
    t = torch.ones((2, 3), dtype=torch.float64)
    x = cg.asarray(t)
    assert x.dtype == "float64" and address(x) == t.data_ptr()
    assert cg.asarray(t, dtype="float32").dtype == "float32"
    assert cg.tensor(t).detach().tolist() == t.tolist() and address(cg.tensor(t)) != t.data_ptr()
    assert cg.tensor(torch.ones(2, dtype=torch.float16), dtype="float32").tolist() == [1, 1]
    assert cg.exp(t * 0).tolist() == [[1, 1, 1]] * 2


# ---- wrong capsules -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("major", [None, 1])
def test_hand_made_capsules(major):
    for kwargs, wanted in [
        ({}, [[0, 1, 2], [3, 4, 5]]), ({"strides": (3, 1)}, [[0, 1, 2], [3, 4, 5]]),
        ({"shape": (3, 2), "strides": (1, 3)}, [[0, 3], [1, 4], [2, 5]]), ({"shape": ()}, 0),
        ({"shape": (3,), "strides": (-2,), "offset": 16}, [4, 2, 0]), ({"shape": (0, 2)}, []),
        ({"shape": (6,), "offset": 4}, [1, 2, 3, 4, 5, 6]), ({"deleter": False}, [[0, 1, 2], [3, 4, 5]]),
        ({"shape": (0,), "data": False}, []),
    ]:
        e = Exporter(major=major, **kwargs)
        x = cg.from_dlpack(e)
        assert x.tolist() == wanted and e.deleted == 0
        view = x[...]
        del x
        assert e.deleted == 0
        del view
        assert e.deleted == kwargs.get("deleter", True)
        with pytest.raises(BufferError, match="already consumed"):
            cg.from_dlpack(e)                       # the same capsule a second time
        assert e.deleted == kwargs.get("deleter", True)


def test_memory_that_is_not_aligned_is_copied():
    e = Exporter(shape=(4,), offset=2)
    raw = bytes(e.numbers)
    assert cg.from_dlpack(e).tolist() == list(struct.unpack_from("4f", raw, 2))
    assert e.deleted == 0                           # not consumed: the exporter's capsule still owns it
    with pytest.raises(ValueError, match="copy is False"):
        cg.from_dlpack(Exporter(shape=(4,), offset=2), copy=False)


def test_a_copy_that_the_exporter_made_is_taken():
    e = Exporter(major=1, flags=2)
    x = cg.from_dlpack(e, copy=True)
    assert address(x) == ctypes.addressof(e.numbers)
    y = cg.from_dlpack(Exporter(major=1), copy=True)            # it did not
    assert y.tolist() == x.tolist()
    read_only = cg.from_dlpack(Exporter(major=1, flags=1))
    with pytest.raises(ValueError, match="read-only"):
        read_only.fill_(0)


HOSTILE = [
    (dict(device=2), BufferError, r"device \(2, 0\)"), (dict(said_device=2), BufferError, r"device \(2, 0\)"),
    (dict(lanes=4), TypeError, "4 lanes"), (dict(bits=16), TypeError, "16 bits"),
    (dict(code=4, bits=16), TypeError, "code 4"), (dict(code=5, bits=64), TypeError, "code 5"),
    (dict(code=0, bits=4), TypeError, "4 bits"), (dict(code=6, bits=1), TypeError, "code 6"),
    (dict(shape=(-1, 2)), ValueError, "negative size"), (dict(ndim=-3), ValueError, "-3"),
    (dict(ndim=17), ValueError, "17"), (dict(shape=(2**40, 2**40)), ValueError, "too many elements"),
    (dict(data=False), ValueError, "no memory"), (dict(major=2), BufferError, r"DLPack 2\.0"),
]


@pytest.mark.parametrize("kwargs, error, words", HOSTILE, ids=[str(kwargs) for kwargs, _, _ in HOSTILE])
def test_hostile_capsules(kwargs, error, words):
    for major in (None, 1) if "major" not in kwargs else (2,):
        e = Exporter(**{**kwargs, "major": major})
        with pytest.raises(error, match=words):
            cg.from_dlpack(e)
        assert e.deleted == 0                       # not consumed, so cygrad does not delete it
    no_shape = Exporter()
    no_shape.managed.inner.shape = None
    with pytest.raises(ValueError, match="no shape"):
        cg.from_dlpack(no_shape)


def test_exporters_that_fail():
    with pytest.raises(KeyError, match="mine"):
        cg.from_dlpack(Speaking(KeyError("mine")))
    for answer in (None, 3, new_capsule(1, b"something else", None), new_capsule(1, b"used_dltensor", None)):
        with pytest.raises(BufferError, match="not a DLPack capsule"):
            cg.from_dlpack(Speaking(answer))
    for nothing in (3, [1.0], object()):
        with pytest.raises(TypeError, match="takes an object with __dlpack__"):
            cg.from_dlpack(nothing)
    assert cg.from_dlpack(OldFashioned(cg.ones(2).__dlpack__())).tolist() == [1, 1]
    with pytest.raises(ValueError, match="\"cpu\""):
        cg.from_dlpack(np.ones(2), device="cuda")


def test_capsules_end_in_other_threads():
    start = cg.memory.stats()["live_bytes"]
    borrowed = [np.from_dlpack(cg.ones((50,))) for _ in range(50)]
    assert cg.memory.stats()["live_bytes"] == start + 50 * 200
    threads = [threading.Thread(target=lambda: borrowed and borrowed.pop()) for _ in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not borrowed and cg.memory.stats()["live_bytes"] == start


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_with_memory_lent():
    a = np.from_dlpack(cg.ones((50,)))
    x = cg.from_dlpack(np.ones(50))
    child = os.fork()
    if child == 0:
        good = a.sum() == 50 and float(x.sum()) == 50
        del a, x
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert a.sum() == 50 and float(x.sum()) == 50


# ---- the buffer protocol ---------------------------------------------------------------------------------------------

@both
def test_memoryview(dtype):
    x = cg.tensor(sample(dtype))
    for view in [*views(x), x[::-1, ::-2]]:
        m, a = memoryview(view), view.numpy()
        assert (m.shape, m.strides, m.itemsize, m.nbytes) == (a.shape, a.strides, a.itemsize, a.nbytes)
        assert np.array_equal(np.asarray(m), a) and m.format == memoryview(a).format.replace("l", "q").replace("L", "Q")
        assert (m.c_contiguous, m.f_contiguous) == (a.flags.c_contiguous, a.flags.f_contiguous)
        assert m.readonly is False and m.tolist() == a.tolist()
        assert bytes(view) == bytes(m) == a.tobytes()
    memoryview(x)[0, 1] = 1
    assert x[0, 1].item() == 1 and x.version == 0   # changes no version, as through NumPy


def test_buffers_hold_the_memory():
    before = cg.memory.stats()["live_bytes"]
    m = memoryview(cg.ones((10,)))
    assert cg.memory.stats()["live_bytes"] == before + 40 and m[3] == 1
    part = m[2:5]
    m.release()
    assert cg.memory.stats()["live_bytes"] == before + 40
    part.release()
    assert cg.memory.stats()["live_bytes"] == before
    with memoryview(cg.ones(2)) as m:
        assert m.tolist() == [1, 1]
    assert cg.memory.stats()["live_bytes"] == before


def test_readers_that_want_one_piece():
    x = cg.tensor(sample("float32"))
    assert hashlib.sha256(x).digest() == hashlib.sha256(bytes(x)).digest()
    assert struct.unpack_from("3f", x, 4) == (1, 2, 3)
    assert bytearray(x[1]) == bytes(x[1])
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.sha256(x.T)
    with pytest.raises(BufferError):
        struct.unpack_from("f", x[:, ::2])
    assert memoryview(x.T).f_contiguous and not memoryview(x.T).c_contiguous
    struct.pack_into("f", x, 0, 7.5)
    assert x[0, 0].item() == 7.5


def test_buffers_of_variables_are_for_reading():
    v = cg.ones(3).attach_grad()
    with cg.record():
        y = v * 2
        with pytest.raises(RuntimeError, match=r"detach\(\)"):
            memoryview(v)
        assert bytes(v) == bytes(v.detach())        # a copy, as for printing
    for x in (v, y):
        assert memoryview(x).readonly and not np.asarray(x).flags.writeable
        with pytest.raises(TypeError, match="read-write"):
            struct.pack_into("f", x, 0, 1.0)


def test_numbers_are_no_sizes():
    assert bytes(cg.tensor([3], dtype="uint8")) == b"\x03"
    assert bytes(cg.tensor(3, dtype="uint8")) == b"\x03"
    assert bytes(cg.tensor([1, 2], dtype="uint8")) == b"\x01\x02" == bytes(bytearray(cg.tensor([1, 2], dtype="uint8")))


# ---- asarray ---------------------------------------------------------------------------------------------------------

def test_asarray_of_buffers():
    a = array.array("d", [1, 2, 3])
    x = cg.asarray(a)
    a[1] = 9
    assert x.tolist() == [1, 9, 3] and x.dtype == "float64"
    with pytest.raises(BufferError):
        a.append(1)                                 # it is exported
    del x
    a.append(4)
    for data in (b"ab", bytearray(b"ab"), memoryview(b"ab"), memoryview(bytearray(b"ab"))):
        x = cg.asarray(data)
        assert x.tolist() == [97, 98] and x.dtype == "uint8"
        if isinstance(data, bytes) or isinstance(data, memoryview) and data.readonly:
            with pytest.raises(ValueError, match="read-only"):
                x.fill_(0)
        else:
            assert x.fill_(65).tolist() == list(data) == [65, 65]
    numbers = (ctypes.c_int16 * 3)(1, 2, 3)
    assert cg.asarray(numbers).dtype == "int16" and cg.asarray(numbers).fill_(5).tolist() == list(numbers)
    with mmap.mmap(-1, 4096) as m:
        x = cg.asarray(m)
        x[5] = 77
        assert m[5] == 77
        del x
    assert cg.tensor(memoryview(sample("int32")[:, ::2])).tolist() == sample("int32")[:, ::2].tolist()
    assert cg.asarray(memoryview(cg.ones(3))).tolist() == [1, 1, 1]
    characters = array.array("w" if sys.version_info >= (3, 13) else "u", "ab")
    for data in (characters, (ctypes.c_wchar * 2)(*"ab"), memoryview(b"ab").cast("c"), np.array(["a"]), np.array([1j])):
        with pytest.raises(TypeError):
            cg.asarray(data)


def test_asarray_prefers_no_copy_of_what_has_both():
    class Both:
        def __init__(self):
            self.a = np.ones(3)

        def __dlpack__(self, **kwargs):
            return self.a.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

        def __array__(self, *_):
            raise AssertionError("asked for a copy")

    b = Both()
    x = cg.asarray(b)
    b.a[0] = 5
    assert x.tolist() == [5, 1, 1]


def test_what_repeats_its_elements_is_lent_for_reading_only():
    x = cg.broadcast_to(cg.ones(3), (2, 3))
    assert not x.numpy().flags.writeable and memoryview(x).readonly
    assert x[0].numpy().flags.writeable             # a row of it repeats no elements


def test_pytorchs_loader_stacks_tensors_of_cygrad(torch):
    x = np.arange(40, dtype="f4").reshape(20, 2)
    for workers in (0, 2):
        batches = list(torch.utils.data.DataLoader(cg.tensor(x), 8, collate_fn=cg.stack, num_workers=workers))
        assert [type(b) for b in batches] == [cg.Tensor] * 3
        np.testing.assert_array_equal(cg.concat(batches).numpy(), x)
