"""Tensors, contract 1: making them, to and from NumPy, reading, printing, promotion, views, writes."""

import copy
import math

import numpy as np
import pytest

import cygrad as cg

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
ALL = ["bool", *INTEGERS, "float32", "float64"]


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
        with pytest.raises(TypeError, match=f"the default dtype is float32 or float64, got {wrong}"):
            cg.set_default_dtype(wrong)
    with pytest.raises(TypeError, match="cygrad has no dtype float16; it has bool, int8, .* convert with astype first"):
        cg.set_default_dtype("float16")
    with pytest.raises(TypeError, match="'nonsense' is not a dtype; cygrad has bool"):
        cg.set_default_dtype("nonsense")
    assert cg.get_default_dtype() == "float32"


@pytest.mark.parametrize("dtype", ALL)
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
    ("text", TypeError, "a tensor holds numbers; this str has dtype"),
    ([1, "a"], TypeError, "a tensor holds numbers"),
    (None, TypeError, "a tensor holds numbers; this NoneType has dtype object"),
    ([[1, 2], [3]], ValueError, "the data is no rectangular array of numbers"),
    (1j, TypeError, "a tensor holds numbers; this complex has dtype complex128"),
    (np.zeros(2, "float16"), TypeError, "cygrad has no dtype float16"),
    (np.zeros((1,) * 17), ValueError, "a tensor has at most 16 dimensions"),
])
def test_what_is_no_tensor(data, error, match):
    for make in (cg.tensor, cg.asarray):
        with pytest.raises(error, match=match):
            make(data)


def test_tensor_is_not_called():
    with pytest.raises(TypeError, match=r"a Tensor is made by cygrad.tensor\(data\)"):
        cg.Tensor([1.0])
    with pytest.raises(TypeError, match=r"a Tensor is made by cygrad.tensor\(data\)"):
        cg.Tensor.__new__(cg.Tensor)


# ---- creation --------------------------------------------------------------------------------------------------------

def test_creation():
    for shape in ((2, 3), (), 4, (0, 2), [2, 1]):
        for make, value in ((cg.zeros, 0), (cg.ones, 1)):
            for dtype in (None, *ALL):
                x = make(shape, dtype=dtype)
                assert x.shape == ((shape,) if isinstance(shape, int) else tuple(shape))
                assert x.dtype == (dtype or "float32") and (x.numpy() == value).all() and not x.requires_grad
        assert cg.empty(shape).dtype == "float32" and cg.empty(shape).shape == cg.zeros(shape).shape
    assert cg.full(2, 7).dtype == "int64" and cg.full(2, 7.0).dtype == "float32" and cg.full((), True).dtype == "bool"
    assert cg.full((2, 2), 7, dtype="float64").tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_arange_linspace_eye():
    for args in ((5,), (2, 5), (5, 2, -1), (0, 10, 3), (3, 3)):
        x = cg.arange(*args)
        assert x.dtype == "int64" and x.tolist() == list(range(*args))
    assert cg.arange(0, 1, 0.25).tolist() == [0.0, 0.25, 0.5, 0.75] and cg.arange(1.0).dtype == "float32"
    assert cg.arange(3, dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="arange wants a step other than 0"):
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
    ((2, -1), ValueError, r"a shape has no negative sizes, got \(2, -1\)"),
    ((2.0,), TypeError, "a shape is a whole number or a tuple of them"),
    ("ab", TypeError, "a shape is a whole number or a tuple of them"),
    ((1,) * 17, ValueError, "a tensor has at most 16 dimensions, got a shape of 17"),
    ((2**40, 2**40), ValueError, "has too many elements"),
    ((2**62, 4), ValueError, "has too many elements"),
])
def test_shapes_are_checked(shape, error, match):
    for make in (cg.zeros, cg.empty, lambda s: cg.full(s, 1.0)):
        with pytest.raises(error, match=match):
            make(shape)


def test_memory_that_is_not_there():
    with pytest.raises(MemoryError, match="more than any machine has|the system gave no block of"):
        cg.empty(2**47, dtype="float64")
    assert cg.memory.stats()["live_bytes"] == 0


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


# ---- to NumPy --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ALL)
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


# ---- reading ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ALL)
def test_item(dtype):
    value = cg.tensor([[1]], dtype=dtype).item()
    assert value == 1 and type(value) is (bool if dtype == "bool" else int if "int" in dtype else float)
    if "int" in dtype:
        for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            assert cg.tensor(np.array(limit, dtype)).item() == limit
    with pytest.raises(ValueError, match=r"item\(\) wants a tensor of one element, this one has shape \(2,\)"):
        cg.zeros(2, dtype=dtype).item()


def test_scalars():
    x = cg.tensor([2.75])
    assert float(x) == 2.75 and int(x) == 2 and bool(x) is True and bool(cg.tensor(0.0)) is False
    assert math.floor(float(x)) == 2 and f"{cg.tensor(2.75):.1f}" == "2.8"
    assert [10, 20, 30][cg.tensor(1)] == 20 and list(range(cg.tensor(3))) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"the truth of a tensor of shape \(2,\) is not one value; use any"):
        bool(cg.zeros(2))
    with pytest.raises(ValueError, match="item"):
        float(cg.zeros(2))
    with pytest.raises(TypeError, match="a float32 tensor is no index; only integers are"):
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


# ---- promotion -------------------------------------------------------------------------------------------------------

def api_promotion(a, b):
    """The Array API's table; with a float and an integer, the float."""
    kinds = np.dtype(a).kind + np.dtype(b).kind
    if "f" in kinds:
        return max((d for d in (a, b) if np.dtype(d).kind == "f"), key=lambda d: np.dtype(d).itemsize)
    together = np.promote_types(a, b)
    return None if together.kind == "f" else str(together)


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_promotion(a, b):
    x, y, wanted = cg.ones(2, dtype=a), cg.ones(2, dtype=b), api_promotion(a, b)
    if wanted is None:
        with pytest.raises(TypeError, match=f"{a} and {b} have no common integer dtype; convert one with astype"):
            x + y
        return
    assert (x + y).dtype == (x * y).dtype == wanted
    quotient = (x / y).dtype
    assert quotient == (wanted if "float" in wanted else "float32")
    assert (x == y).dtype == "bool"


@pytest.mark.parametrize("dtype", ALL)
def test_python_numbers_are_weak(dtype):
    x = cg.ones(2, dtype=dtype)
    assert (x + True).dtype == dtype
    assert (x + 1).dtype == (1 + x).dtype == ("int64" if dtype == "bool" else dtype)
    assert (x + 1.5).dtype == (1.5 * x).dtype == (dtype if "float" in dtype else "float32")
    assert (x / 2).dtype == (dtype if "float" in dtype else "float32")


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError, match="the number 300 does not fit the dtype uint8 of the other operand"):
        cg.ones(2, dtype="uint8") + 300
    with pytest.raises(OverflowError, match="the number -1 does not fit the dtype uint64"):
        cg.ones(2, dtype="uint64") * -1


def test_means_and_sums_of_integers():
    x = cg.tensor([1, 2], dtype="int8")
    assert x.mean().dtype == "float32" and x.mean().item() == 1.5
    assert x.sum().dtype == "int64" and cg.tensor([True, True]).sum().item() == 2
    assert cg.ones(2, dtype="uint8").sum().dtype == "uint64"
    assert cg.exp(cg.tensor([0, 1])).dtype == "float32" and (x / x).dtype == "float32"


def test_arrays_take_part_in_arithmetic():
    x, a = cg.tensor([1.0, 2.0]).attach_grad(), np.array([3.0, 4.0], "float32")
    with cg.record():
        for y in (x * a, a * x, np.float32(3) * x, x + a[0], a - x, a / x):
            assert isinstance(y, cg.Tensor) and y.requires_grad and y.dtype == "float32"
    assert (x * np.ones(2)).dtype == "float64"
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        x * None


def test_mixed_dtypes_are_differentiated():
    x, y = cg.tensor([1.0, 2.0]).attach_grad(), cg.tensor([3.0, 4.0], dtype="float64").attach_grad()
    with cg.record():
        z = x * y * cg.tensor([2, 3])
    assert z.dtype == "float64"
    z.backward()
    assert (x.grad.dtype, y.grad.dtype) == ("float32", "float64")
    assert x.grad.tolist() == [6.0, 12.0] and y.grad.tolist() == [2.0, 6.0]


# ---- views -----------------------------------------------------------------------------------------------------------

def test_views_share_memory():
    x = cg.arange(24, dtype="float32").reshape(2, 3, 4)
    live = cg.memory.stats()["live_bytes"]
    for view in (x[0], x[:, 1:], x[..., ::-1], x[None], x.T, x.reshape(6, 4), x.transpose(1, 0, 2),
                 x.broadcast_to((5, 2, 3, 4)), x[0, 1, 2], x[1:1], cg.broadcast_to(x, (2, 2, 3, 4)), x.detach()):
        assert cg.memory.stats()["live_bytes"] == live
        if view.size:
            assert np.shares_memory(view.numpy(), x.numpy())
    assert x.T.reshape(24).tolist() == x.numpy().T.reshape(24).tolist()     # which copies
    with cg.no_grad():
        y = x[0, 1]
        y += 100
    assert x[0, 1].tolist() == [104.0, 105.0, 106.0, 107.0] and x.version == 1


INDICES = [0, -1, (1, 2), (0, -1, 3), slice(None), slice(1, None), slice(None, None, -1),
           (slice(None), slice(2, 0, -1)), (Ellipsis, 0), (0, Ellipsis), (None, 0), (Ellipsis, None), (slice(5, 9),),
           (slice(None, None, 2), None, -1, slice(3, 0, -2)), (), Ellipsis, None,
           (slice(-1, -100, -1), Ellipsis, slice(-2, None))]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_basic_indexing(index):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = cg.asarray(a)
    assert x[index].shape == a[index].shape and x[index].tolist() == a[index].tolist()
    b, y = a.copy(), cg.tensor(a)
    b[index] = -1.0
    y[index] = -1.0
    assert y.tolist() == b.tolist()
    value = np.arange(b[index].size, dtype=float).reshape(b[index].shape)
    b[index] = value
    y[index] = value
    assert y.tolist() == b.tolist()


@pytest.mark.parametrize("use", [
    lambda x, i: x[i], lambda x, i: cg.take(x, i), lambda x, i: cg.gather(x, 0, i), lambda x, i: cg.one_hot(i, 3),
    lambda x, i: cg.scatter_add(x, 0, i, cg.ones(1)), lambda x, i: x.__setitem__(i, 1.0)])
def test_a_large_uint64_is_no_place_from_the_end(use):
    x = cg.zeros(3)
    for n in (2**64 - 1, 2**63):
        with pytest.raises(IndexError, match=f"index {n} is out of range for any dimension"):
            use(x, cg.tensor(np.array([n], dtype="uint64")))
    assert x.tolist() == [0.0, 0.0, 0.0]
    use(x, cg.tensor(np.array([2], dtype="uint64")))


@pytest.mark.parametrize("index, error, match", [
    (2, IndexError, "index 2 is out of range for dimension 0 of size 2"),
    ((0, -4), IndexError, "index -4 is out of range for dimension 1 of size 3"),
    ((0, 0, 0), IndexError, "3 indices for a tensor of 2 dimensions"),
    ((Ellipsis, Ellipsis), IndexError, "an index has at most one Ellipsis"),
    ("a", TypeError, "an index is made of ints, slices, ..., None and arrays of integers or bools, got str"),
    (1.0, TypeError, "got float"),
    (np.array(1.0), TypeError, "got float64"),
    ([0.5], TypeError, r"indices are integers, got a float32 tensor of shape \(1,\)"),
    ([0, 2], IndexError, "index 2 is out of range for a dimension of size 2"),
    ((0, [0, -4]), IndexError, "index -4 is out of range for a dimension of size 3"),
    (([0], [0], 0), IndexError, "3 indices for a tensor of 2 dimensions"),
    ([True, False, True], IndexError, r"a mask of shape \(3,\) for dimensions of sizes \(2,\)"),
])
def test_wrong_indices(index, error, match):
    x = cg.zeros((2, 3))
    with pytest.raises(error, match=match):
        x[index]
    with pytest.raises(error, match=match):
        x[index] = 1.0
    assert x.version == 0


def test_reshape_of_any_strides():
    """A view where NumPy makes one, and a copy where it has to: slices, orders of axes and broadcasting together."""
    rng, views = np.random.default_rng(0), 0
    for _ in range(400):
        a = np.arange(24.0).reshape([(24,), (2, 12), (4, 6), (2, 3, 4), (2, 1, 12)][rng.integers(5)])
        if rng.random() < 0.4: a = a[tuple(slice(None, None, int(rng.choice([1, 2, -1]))) for _ in a.shape)]
        if rng.random() < 0.6: a = np.broadcast_to(a, (2, *(3 if n == 1 else n for n in a.shape)))
        a = a.transpose(rng.permutation(a.ndim))
        x = cg.asarray(a)
        for shape in [(a.size,), (2, -1), (-1, 2), a.shape[::-1], (*a.shape[:-2], -1), (a.shape[0], -1)]:
            if a.size % 2 and 2 in shape: continue
            y, wanted = x.reshape(shape), a.reshape(shape)
            assert np.array_equal(y.numpy(), wanted), (a.shape, a.strides, shape)
            assert np.shares_memory(y.numpy(), a) == np.shares_memory(wanted, a), (a.shape, a.strides, shape)
            views += np.shares_memory(wanted, a)
    assert views > 500


def test_setitem_broadcasts_and_casts():
    x = cg.zeros((2, 3))
    x[:, 1] = 5
    x[1] = cg.tensor([1, 2, 3])
    x[0, 2:] = np.float64(7)
    x[:, :1] = np.array([[8.0], [9.0]])
    assert x.tolist() == [[8.0, 5.0, 7.0], [9.0, 2.0, 3.0]]
    x[...] = x.T.T[::-1]                            # from itself, the other way round
    assert x.tolist() == [[9.0, 2.0, 3.0], [8.0, 5.0, 7.0]]
    n = cg.zeros(2, dtype="int64")
    n[0] = 3
    assert n.tolist() == [3, 0]
    with pytest.raises(TypeError, match="setitem: a float32 value cannot be written into a int64 tensor"):
        n[0] = cg.tensor(1.5)
    with pytest.raises(ValueError):
        x[0] = cg.zeros(2)
    assert n.tolist() == [3, 0]
    d = cg.zeros(3, dtype="float64")
    d[0], d[1:] = 0.1, [0.2, 0.3]
    assert d.tolist() == [0.1, 0.2, 0.3] and d.fill_(0.7).tolist() == d.copy_(0.7).tolist() == [0.7] * 3


def test_copy_and_astype():
    x = cg.tensor([1.5, -2.5]).attach_grad()
    for y in (x.copy(), copy.copy(x)):
        assert y.tolist() == x.tolist() and not y.requires_grad
        assert not np.shares_memory(y.numpy(), x.numpy())
    assert x.astype("float32") is x
    assert x.astype(cg.int32).tolist() == [1, -2] and x.astype(bool).tolist() == [True, True]
    with pytest.raises(TypeError, match="cygrad has no dtype complex64"):
        x.astype("complex64")


def test_in_place_shapes_and_dtypes():
    x = cg.zeros(2)
    for wrong, error, match in (
        (cg.zeros((2, 2)), ValueError, r"the result has shape \(2, 2\), but the tensor written to has shape \(2,\)"),
        (cg.zeros(2, dtype="float64"), TypeError, "result has dtype float64, but the tensor written to has dtype flo"),
        (cg.zeros(3), ValueError, "do not broadcast"),
    ):
        with pytest.raises(error, match=match):
            x += wrong
    assert x.version == 0 and x.tolist() == [0.0, 0.0]
    before = x
    x += cg.tensor([1])
    x *= 3
    assert x is before and x.tolist() == [3.0, 3.0]
    n = cg.tensor([3])
    with pytest.raises(TypeError, match="div in place: the result has dtype float32"):
        n /= 2
    n += 2
    assert n.tolist() == [5] and n.dtype == "int64"


def test_in_place_over_itself():
    """An operand that lies across what is written is read first."""
    x = cg.arange(6, dtype="float64")
    x[1:] += x[:-1]
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
    y = cg.arange(4, dtype="float64").reshape(2, 2)
    y += y.T
    assert y.tolist() == [[0.0, 3.0], [3.0, 6.0]]
    z = cg.arange(3, dtype="float64")
    z *= z
    assert z.tolist() == [0.0, 1.0, 4.0]
    w = cg.arange(4, dtype="float64")
    w[::-1] = w
    assert w.tolist() == [3.0, 2.0, 1.0, 0.0]
    v = cg.arange(4, dtype="float64")
    v.copy_(v[::-1])
    assert v.tolist() == [3.0, 2.0, 1.0, 0.0]
