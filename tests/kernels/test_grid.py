"""Rows of strided operands, against NumPy bit by bit: lengths and numbers of rows on both sides of where the driver
(kernels/driver.pyx) changes how it reads an operand, in place, filled, packed or transposed."""

import threading

import numpy as np
import pytest

import cygrad as cg

pytestmark = pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")      # NumPy's, of special numbers

DTYPES = ("float32", "float64")
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 0.0])
LENGTHS = (1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025)
ROWS = (1, 7, 8, 15, 16, 17, 33)


@pytest.fixture(autouse=True, params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = cg.get_num_threads()
    cg.set_num_threads(request.param)
    yield
    cg.set_num_threads(before)


def numbers(shape, dtype, seed=0):
    """Normal numbers; every seventh is special."""
    x = np.random.default_rng(seed).standard_normal(shape)
    x.reshape(-1)[::7] = np.resize(SPECIAL, x.reshape(-1)[::7].shape)
    return x.astype(dtype)


def equal(y, wanted):
    y, wanted = y.numpy(), np.ascontiguousarray(wanted)
    nan = np.isnan(wanted) if wanted.dtype.kind == "f" else np.zeros(wanted.shape, bool)
    assert y.shape == wanted.shape and y.dtype == wanted.dtype
    np.testing.assert_array_equal(np.where(nan, 0, y).view(np.uint8), np.where(nan, 0, wanted).view(np.uint8))
    assert wanted.dtype.kind != "f" or (np.isnan(y) == nan).all()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_broadcast_operands(dtype, length):
    """Rows, columns and single numbers, before and after an operand that is contiguous; and parts of wider rows."""
    for rows in ROWS:
        x, wide = numbers((rows, length), dtype), numbers((rows, length + 3), dtype, 1)
        row, column, number = x[0].copy(), wide[:, :1].copy(), np.full((1, 1), -0.5, dtype)
        for a, b in ((x, row), (column, x), (row, column), (x, number), (wide[:, 1:-2], column), (wide[:, 3:], row),
                     (wide[::-1, 2:-1], x), (column, column)):
            t, u = (cg.tensor(v) if v.flags.c_contiguous else cg.tensor(wide)[whole_of(v, wide)] for v in (a, b))
            equal(t + u, a + b)
            equal(t > u, a > b)
            equal(cg.where(t > u, u, t), np.where(a > b, b, a))


def whole_of(part, wide):
    """The index of a part of `wide` that is a view of it."""
    offset = (part.__array_interface__["data"][0] - wide.__array_interface__["data"][0]) // wide.itemsize
    rows = slice(None, None, -1) if part.strides[0] < 0 else slice(None)
    first = offset % wide.shape[1]
    return rows, slice(first, first + part.shape[1])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [*DTYPES, "int8", "int16", "int64"])
def test_transposed_operands(dtype, length):
    for rows in ROWS:
        x = numbers((length, rows), "float64")
        if np.dtype(dtype).kind == "i": x = np.nan_to_num(x * 30, posinf=5, neginf=-5)
        x = x.astype(dtype)
        y, t = x[::-1].T.copy(), cg.tensor(x)
        equal(t.T.copy(), x.T)
        equal(t.T.reshape(-1), x.T.reshape(-1))
        equal(t.T + cg.tensor(y), x.T + y)
        equal(t.T * 2 if x.dtype.kind == "f" else t.T + t.T, x.T * x.dtype.type(2))
        equal(t.T + cg.tensor(y[0]), x.T + y[0])
        equal(t.T + cg.tensor(y[:, :1].copy()), x.T + y[:, :1])
        equal(t.T.astype("float64"), x.T.astype("float64"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_axes_that_are_merged(dtype):
    """Channels, permuted images, sizes of 1, reversed and empty axes."""
    x = numbers((3, 5, 17, 33), dtype)
    t, channel = cg.tensor(x), numbers((5, 1, 1), dtype, 2)
    equal(t + cg.tensor(channel), x + channel)
    equal(t.permute((0, 2, 3, 1)).copy(), x.transpose(0, 2, 3, 1))
    equal(t.permute((3, 1, 0, 2)) * 1, x.transpose(3, 1, 0, 2) * 1)
    equal(t.permute((0, 2, 3, 1)).copy().permute((0, 3, 1, 2)) + t, x + x)
    equal(t[:, ::-1] + cg.tensor(channel), x[:, ::-1] + channel)
    equal(t[:, :, ::2, 1:] - 1, x[:, :, ::2, 1:] - 1)
    equal(t[:, 2:3] + t, x[:, 2:3] + x)
    equal(t[:, :0].permute((1, 0, 3, 2)) + 1, x[:, :0].transpose(1, 0, 3, 2) + 1)
    equal(t.permute((2, 0, 1, 3)).copy(), x.transpose(2, 0, 1, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_broadcast_and_transposed_operands(dtype):
    """A gradient that arrives transposed or repeated is written whole."""
    x = np.random.default_rng(3).standard_normal((70, 300)).astype(dtype)
    g = np.random.default_rng(4).standard_normal((300, 70)).astype(dtype)
    a = cg.tensor(x).attach_grad()
    with cg.record():
        y = a.T
    y.backward(cg.tensor(g))
    equal(a.grad, g.T)
    with cg.record():
        y = a.sum(axis=1)
    y.backward(cg.tensor(g[0].copy()))
    equal(a.grad, np.broadcast_to(g[0][:, None], x.shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [100, 1024, 40_000])
def test_an_operand_may_have_fewer_axes(n, dtype):
    """It has as many elements as the result, whose first axes have one."""
    a, b = numbers(2 * n, dtype), numbers((1, 1, n), dtype, seed=1)
    for step in (2, -2):
        x, y = cg.tensor(a)[::step], cg.tensor(b)
        equal(x + y, a[::step] + b)
        equal(cg.maximum(y, x), np.maximum(b, a[::step]))


def test_a_small_stack_is_enough():
    """Operands that are packed and transposed have scratch memory on the stack, of a thread with 256 KiB too."""
    found, x, y = [], cg.tensor(numbers((200, 5000), "float64")), cg.tensor(numbers((5000, 200), "float64", seed=1))
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(x.T + y))
        thread.start()
    finally: threading.stack_size(before)
    thread.join()
    equal(found.pop(), x.numpy().T + y.numpy())
