"""Making tensors, contract 1: from numbers, arrays and other memory, of a shape; dtypes; what is refused."""

import numpy as np
import pytest
from rows import ALL_DTYPES

import cygrad as cg


# ---- tensor and asarray ----------------------------------------------------------------------------------------------

def test_python_numbers_get_the_default_dtype():
    for data, dtype in ((1.5, "float32"), ([1.5, 2], "float32"), (1, "int64"), ([1, 2], "int64"), (True, "bool"),
                        ([True, False], "bool"), ([], "float32"), ([[], []], "float32")):
        for make in (cg.tensor, cg.asarray):
            assert make(data).dtype == dtype
    cg.set_default_dtype("float64")
    found = [cg.tensor(1.5).dtype, cg.zeros(2).dtype, cg.tensor([1, 2]).mean().dtype, (cg.tensor([1]) / 2).dtype,
             cg.arange(0, 1, 0.5).dtype, cg.linspace(0, 1, 3).dtype, cg.eye(2).dtype, cg.full(2, 1.5).dtype]
    assert cg.get_default_dtype() == "float64"
    cg.set_default_dtype(cg.float32)
    assert found == ["float64"] * 8


def test_default_dtype_is_checked():
    for wrong in ("int64", "bool"):
        with pytest.raises(TypeError, match=f"the default dtype must be float32 or float64, got {wrong}"):
            cg.set_default_dtype(wrong)
    with pytest.raises(TypeError, match="cygrad has no dtype float16; it has bool, int8, .* cast to one of them first"):
        cg.set_default_dtype("float16")
    with pytest.raises(TypeError, match="'nonsense' is not a dtype; cygrad has bool"):
        cg.set_default_dtype("nonsense")
    assert cg.get_default_dtype() == "float32"


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_arrays_keep_their_dtype(dtype):
    a = np.array([[1, 0, 1], [0, 1, 1]], dtype)
    for make in (cg.tensor, cg.asarray):
        x = make(a)
        assert x.dtype == dtype and x.shape == (2, 3) and x.tolist() == a.tolist()
    assert cg.tensor(a[0, 0]).dtype == dtype
    assert getattr(cg, dtype) == np.dtype(dtype)


def test_tensor_copies():
    a = np.array([1.0, 2.0], "float32")
    for data in (a, cg.asarray(a), memoryview(a)):
        x = cg.tensor(data)
        a[0] += 1
        assert x.tolist() == [a[0] - 1, 2.0]
    x = cg.tensor(a, dtype="float64")
    assert x.dtype == "float64" and cg.tensor(x, dtype=cg.int32).dtype == "int32"
    variable = cg.tensor(a, requires_grad=True)
    with cg.record():
        y = cg.tensor(variable)
    assert not y.requires_grad


def test_asarray_shares():
    a = np.arange(6.0).reshape(2, 3)
    live = cg.memory.stats()["live_bytes"]
    for view in (a, a.T, a[::-1], a[:, ::2], a[:, 1], a[..., None], a[0:0], np.broadcast_to(a[0], (3, 3))):
        x = cg.asarray(view)
        assert x.shape == view.shape and np.array_equal(x.numpy(), view)
        assert np.shares_memory(x.numpy(), a) == bool(view.size)
        assert cg.memory.stats()["live_bytes"] == live
    x = cg.asarray(a)
    a[0, 0] = 42
    assert x[0, 0].item() == 42
    x[0, 1] = 43
    assert a[0, 1] == 43
    assert cg.asarray(x) is x and cg.asarray(x, dtype="float64") is x
    assert cg.memory.stats()["external_bytes"] >= a.nbytes


def test_asarray_of_buffers_and_dlpack():
    class Exporter:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a = np.array([1.0, 2.0], "float32")
    raw = bytearray(b"\x01\x02")
    for data, numbers, dtype in ((Exporter(a), [1.0, 2.0], "float32"), (memoryview(a), [1.0, 2.0], "float32"),
                                 (raw, [1, 2], "uint8")):
        x = cg.asarray(data)
        assert x.tolist() == numbers and x.dtype == dtype
    x = cg.asarray(raw)
    raw[0] = 9
    assert x.tolist() == [9, 2]


def test_asarray_copies_where_it_must():
    odd = np.zeros(9, "uint8")[1:].view("float64")
    swapped = np.array([1.0, 2.0]).astype(">f8")
    for a in (odd, swapped, [1.0, 2.0], np.array([(1.0, 2)], [("x", "f4"), ("y", "i2")])["x"]):
        x = cg.asarray(a)
        assert x.tolist() == np.asarray(a).tolist()
        if isinstance(a, np.ndarray) and a is not swapped:
            assert not np.shares_memory(x.numpy(), a)


def test_asarray_keeps_the_memory_alive():
    x = cg.asarray(np.arange(1000.0))
    assert x.tolist() == list(range(1000))
    external = cg.memory.stats()["external_bytes"]
    y = x[1:]
    del x
    assert cg.memory.stats()["external_bytes"] == external and y[0].item() == 1
    del y
    assert cg.memory.stats()["external_bytes"] == external - 8000


@pytest.mark.parametrize("data, error, match", [
    ("text", TypeError, "a tensor holds numbers, but this str has dtype"),
    ([1, "a"], TypeError, "a tensor holds numbers"),
    (None, TypeError, "a tensor holds numbers, but this NoneType has dtype object"),
    ([[1, 2], [3]], ValueError, "the data is not a rectangular array of numbers"),
    (1j, TypeError, "a tensor holds numbers, but this complex has dtype complex128"),
    (np.zeros(2, "float16"), TypeError, "cygrad has no dtype float16"),
    (np.zeros((1,) * 17), ValueError, "a tensor has at most 16 dimensions"),
])
def test_what_is_no_tensor(data, error, match):
    for make in (cg.tensor, cg.asarray):
        with pytest.raises(error, match=match):
            make(data)


def test_tensor_is_not_called():
    with pytest.raises(TypeError, match=r"Tensor is not instantiated; call cygrad.tensor\(data\)"):
        cg.Tensor([1.0])
    with pytest.raises(TypeError, match=r"Tensor is not instantiated; call cygrad.tensor\(data\)"):
        cg.Tensor.__new__(cg.Tensor)


# ---- creation --------------------------------------------------------------------------------------------------------

def test_creation():
    for shape in ((2, 3), (), 4, (0, 2), [2, 1]):
        for make, value in ((cg.zeros, 0), (cg.ones, 1)):
            for dtype in (None, *ALL_DTYPES):
                x = make(shape, dtype=dtype)
                assert x.shape == ((shape,) if isinstance(shape, int) else tuple(shape))
                assert x.dtype == (dtype or "float32") and (x.numpy() == value).all() and not x.requires_grad
        assert cg.empty(shape).dtype == "float32" and cg.empty(shape).shape == cg.zeros(shape).shape
    assert cg.full(2, 7).dtype == "int64" and cg.full(2, 7.0).dtype == "float32" and cg.full((), True).dtype == "bool"
    assert cg.full((2, 2), 7, dtype="float64").tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_ranges_are_numpys_to_the_bit():
    """Also for more than one block, for steps that round, and in every dtype."""
    given = [(0, 20000, 1), (5, -20000, -3), (0.0, 9000.0, 1.0), (0.1, 3000.1, 0.1), (-1e9, 1e9, 12345.678), (3, 3, 1),
             (0, 10.5, 1), (2**53 - 1, 2.0**53 + 40, 3), (np.int64(4), np.int64(30), np.int64(7)), (3, -3, 1),
             (np.float32(0), np.float32(7), np.float32(0.1)), (np.int8(1), np.int8(90), np.int8(2)), (0, 0.5, 2e-5),
             (1e-310, 3e-310, 1e-310), (0, 1, 3), (True, 5, 1)]
    with np.errstate(all="ignore"):
        for args in given:
            wanted = np.arange(*args)
            for dtype in ("float64", "float32", "int64", "int8", "uint16"):
                found = cg.arange(*args, dtype=dtype)
                assert found.numpy().tobytes() == wanted.astype(dtype).tobytes(), (args, dtype)
            assert cg.arange(*args).dtype == ("float32" if wanted.dtype.kind == "f" else wanted.dtype)
        for args in ((0, 1, 20001), (1, -0.3, 8193), (3, 3, 20000), (-0.0, -0.0, 3), (5, 7, 1), (5, 7, 0),
                     (0, 5e-324, 9), (0.1, 1e300, 9000), (1, np.inf, 4), (np.nan, 1, 4), (-1e308, 1e308, 5), (0, 1, 2)):
            for endpoint in (True, False):
                wanted = np.linspace(*map(float, args[:2]), args[2], endpoint=endpoint)
                for dtype in ("float64", "float32", "int32"):
                    found = cg.linspace(*args, dtype=dtype, endpoint=endpoint)
                    assert found.numpy().tobytes() == wanted.astype(dtype).tobytes(), (args, endpoint, dtype)
    for rows, columns in ((3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (1, 1)):
        for k in (0, 1, -1, 2, -2, 4, -4, 9, -9, 2**70, -2**70):
            found = cg.eye(rows, columns, k, "int16")
            assert found.tolist() == np.eye(rows, columns, max(-99, min(k, 99)), "int16").tolist(), (rows, columns, k)


def test_arange_linspace_eye():
    for args in ((5,), (2, 5), (5, 2, -1), (0, 10, 3), (3, 3)):
        x = cg.arange(*args)
        assert x.dtype == "int64" and x.tolist() == list(range(*args))
    assert cg.arange(0, 1, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75] and cg.arange(1.0).dtype == "float32"
    assert cg.arange(3, dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="arange: step must not be 0"):
        cg.arange(0, 3, 0)
    assert cg.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert cg.linspace(0, 1, 4, endpoint=False, dtype="float64").tolist() == [0.0, 0.25, 0.5, 0.75]
    assert cg.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert cg.eye(2, 3, k=1, dtype="int8").tolist() == [[0, 1, 0], [0, 0, 1]]


def test_like():
    x = cg.ones((2, 3), dtype="float64").attach_grad()
    for make, value in ((cg.zeros_like, 0), (cg.ones_like, 1), (lambda x, **k: cg.full_like(x, 7, **k), 7)):
        y = make(x)
        assert y.shape == (2, 3) and y.dtype == "float64" and (y.numpy() == value).all() and not y.requires_grad
        assert make(x.T, dtype="int32").shape == (3, 2) and make(x, dtype="int32").dtype == "int32"
    assert cg.empty_like(x).shape == (2, 3)


@pytest.mark.parametrize("shape, error, match", [
    ((2, -1), ValueError, r"a shape cannot have negative sizes, got \(2, -1\)"),
    ((2.0,), TypeError, "a shape must be an int or a tuple of ints"),
    ("ab", TypeError, "a shape must be an int or a tuple of ints"),
    ((1,) * 17, ValueError, "a tensor has at most 16 dimensions, got a shape of 17"),
    ((2**40, 2**40), ValueError, "has too many elements"),
    ((2**62, 4), ValueError, "has too many elements"),
])
def test_shapes_are_checked(shape, error, match):
    for make in (cg.zeros, cg.empty, lambda s: cg.full(s, 1.0)):
        with pytest.raises(error, match=match):
            make(shape)


def test_memory_that_is_not_there():
    with pytest.raises(MemoryError, match="more than any machine has|the system cannot provide a block of"):
        cg.empty(2**47, dtype="float64")
    assert cg.memory.stats()["live_bytes"] == 0


def test_sizes_that_no_tensor_has_are_found_before_anything_is_allocated():
    wide = cg.broadcast_to(cg.zeros(()), (2**40,))
    before = cg.memory.stats()
    for make in (lambda: cg.zeros((2**40, 2**40)), lambda: cg.pad(wide, 2**62), lambda: cg.pad(wide, 2**48),
                 lambda: cg.concat([wide] * 300), lambda: cg.stack([wide] * 300), lambda: cg.arange(2**49),
                 lambda: cg.arange(2**62), lambda: cg.arange(2**64), lambda: cg.arange(0, 1, 1e-30),
                 lambda: cg.eye(2**33), lambda: cg.linspace(0, 1, 2**62), lambda: cg.one_hot(np.zeros(3, int), 2**62),
                 lambda: cg.one_hot(np.zeros(0, int), 2**70), lambda: cg.random.permutation(2**62),
                 lambda: wide[:, None] + wide, lambda: cg.matmul(wide[:, None], wide[None])):
        with pytest.raises(ValueError, match="too many elements|a tensor has at most 281474976710656 elements"):
            make()
    assert cg.memory.stats() == before
    x = cg.ones((2, 2))
    assert cg.tril(x, 2**70).tolist() == cg.triu(x, -(2**70)).tolist() == [[1, 1], [1, 1]]
    assert not cg.tril(x, -(2**70)).numpy().any() and not cg.triu(x, 2**70).numpy().any()


@pytest.mark.parametrize("arguments", [
    (5,), (0,), (-3,), (2, 7), (7, 2, -2), (0, 1, 0.1), (1.5,), (0, 5, float("inf")), (np.int8(3),), (0, 2**63, 2**61),
    (np.float32(0), 1, 0.25), (True,), (10**30, 10**30)])
def test_ranges_are_numpys(arguments):
    wanted = np.arange(*arguments)
    if wanted.dtype == object:
        wanted = wanted.astype("int64")
    assert np.array_equal(cg.arange(*arguments, dtype=wanted.dtype).numpy(), wanted)
