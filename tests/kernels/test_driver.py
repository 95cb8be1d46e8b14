"""Results larger than the cache, which are streamed past it. They equal NumPy's bit for bit or, if an operator rounds
differently, the operator's own results in pieces that fit into the cache."""

import functools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.kernels import driver

KERNELS = Path(driver.__file__).parent
STREAM = 1 << int(re.search(r"^    STREAM = 1 << (\d+) ", KERNELS.joinpath("driver.pxd").read_text(), re.M)[1])
MADE = int(re.search(r"^    STREAM_STRIP = (\d+) ", KERNELS.joinpath("driver.pyx").read_text(), re.M)[1])
STRIP = int(re.search(r"^    STRIP = (\d+) ", KERNELS.joinpath("driver.pxd").read_text(), re.M)[1])
DTYPES = ["float32", "float64"]
# Elements beyond the shortest streamed length: one fewer; whole strips; one in the last strip; a cache line of float32;
# strips and a remainder, for both strip lengths.
BEYOND = [-1, 0, 1, 16, 3 * STRIP + 77, MADE + 77]


@pytest.fixture(autouse=True, params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = cg.get_num_threads()
    cg.set_num_threads(request.param)
    if cg.get_num_threads() != request.param:
        pytest.skip("this build works with one thread")
    yield
    cg.set_num_threads(before)


@functools.cache
def supply(dtype):
    """Random numbers and zeros of both signs. They repeat after a prime number of elements, so all strips differ."""
    few = np.random.default_rng(0).standard_normal(65521)
    few[::1000], few[1::1000] = 0.0, -0.0
    a = np.resize(few.astype(dtype), STREAM // (1 if dtype == "float32" else 4) + 100 * STRIP)      # for bools: more
    a.flags.writeable = False
    return a


@pytest.fixture(autouse=True, scope="module")
def no_supply_is_kept():
    yield
    supply.cache_clear()


def numbers(shape, dtype, seed=0):
    """Some of these numbers, selected by a seed."""
    return supply(dtype)[1001 * seed:][:math.prod(shape)].reshape(shape)


def length(dtype):
    """The smallest number of elements that is streamed."""
    return STREAM // np.dtype(dtype).itemsize


def check(f, wanted):
    """Check that f() equals `wanted` bit for bit, in memory that held other data before."""
    dirty = cg.full(wanted.shape, True if wanted.dtype == bool else 1e30, dtype=str(wanted.dtype))
    at = dirty.numpy().ctypes.data
    del dirty
    y = f()
    a = y.numpy()
    assert a.ctypes.data == at                      # so the result is not left over from before
    assert same(a, wanted)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bool((bits(a) == bits(b)).all())


def bits(a):
    return np.ascontiguousarray(a).view(f"u{a.itemsize}")


@pytest.mark.parametrize("more", BEYOND)
@pytest.mark.parametrize("dtype", DTYPES)
def test_flat_operands_and_numbers(dtype, more):
    n = length(dtype) + more
    a, b = numbers((n,), dtype), numbers((n,), dtype, 1)
    x, w = cg.asarray(a), cg.asarray(b)
    check(lambda: x * w, a * b)
    check(lambda: -x, -a)
    check(lambda: 2.5 - x, a.dtype.type(2.5) - a)


@pytest.mark.parametrize("more", BEYOND)
def test_comparisons(more):
    """A bool result: its strips have a quarter of the bytes of float32 operands, an eighth of float64."""
    n = length("bool") + more
    a, b = numbers((n,), "float32"), numbers((n,), "float32", 1)
    x, w = cg.asarray(a), cg.asarray(b)
    check(lambda: x < w, a < b)
    check(lambda: x == 0, a == 0)


# At the shortest streamed length, one row less, and a length that ends inside a strip and a cache line.
@pytest.mark.parametrize("rows, columns", [(2048, STREAM // 2048), (2047, STREAM // 2048), (4111, STREAM // 4096 + 8)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_broadcast_and_transposed_operands(dtype, rows, columns):
    columns //= np.dtype(dtype).itemsize
    whole = (rows, columns)
    a, row, column, turned = (numbers(shape, dtype, k) for k, shape in
                              enumerate([whole, (columns,), (rows, 1), (columns, rows)]))
    x, y, z, t = (cg.asarray(c) for c in (a, row, column, turned))
    check(lambda: x * y, a * row)
    check(lambda: z + x, column + a)
    check(lambda: y - z, row - column)
    check(lambda: t.T / x.abs().add(1), turned.T / (np.abs(a) + 1))
    check(lambda: t.T.copy(), np.ascontiguousarray(turned.T))
    positive = t.T > 0                              # (made here, so that it does not use the memory under test)
    check(lambda: cg.where(positive, x, y), np.where(turned.T > 0, a, row))


@pytest.mark.parametrize("more", [-1, 0, 77])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "tanh", "gelu"])
def test_functions_are_what_they_are_in_pieces(name, dtype, more):
    f = getattr(cg, name)
    x = cg.asarray(numbers((length(dtype) + more,), dtype))
    piece = 64 * STRIP
    check(lambda: f(x), np.concatenate([f(x[k:k + piece]).numpy() for k in range(0, len(x), piece)]))


@pytest.mark.parametrize("more", [-1, 0, 77])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype, more):
    """Gradients are streamed too, if they overwrite no operand."""
    n = length(dtype) + more
    a, b, c = (numbers((n,), dtype, k) for k in range(3))
    x, w, head = cg.tensor(a).attach_grad(), cg.tensor(b).attach_grad(), cg.asarray(c)
    with cg.record():
        y = x * w
    y.backward(head)
    assert same(x.grad.numpy(), c * b) and same(w.grad.numpy(), c * a)


@pytest.mark.parametrize("more", [-1, 0, 77])
@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place(dtype, more):
    """The result is an operand, so its strips are in the cache already, and it is read before it is written."""
    n = length(dtype) + more
    a, b = numbers((n,), dtype), numbers((n,), dtype, 1)
    x, w = cg.tensor(a), cg.asarray(b)
    x += w
    x *= 3
    wanted = (a + b) * 3
    assert same(x.numpy(), wanted)
    x *= x
    assert same(x.numpy(), wanted * wanted)


# The offset of the target in its memory, in elements: zero, not at a cache line, at a cache line.
@pytest.mark.parametrize("behind", [0, 1, 3, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_into_a_part(dtype, behind):
    n = length(dtype) + 77
    a = numbers((n,), dtype)
    x = cg.full(n + behind + 5, 7.0, dtype=dtype)
    x[behind:behind + n] = cg.asarray(a)
    found = x.numpy()
    assert same(found[behind:behind + n], a)
    assert (found[:behind] == 7).all() and (found[behind + n:] == 7).all()
    x[behind:behind + n] += x[5:5 + n]             # an operand that overlaps the target
    old = np.full_like(found, 7)
    old[behind:behind + n] = a
    assert same(x.numpy()[behind:behind + n], a + old[5:5 + n])
    y = cg.tensor(old)
    y[16:] = y[:-16]
    assert same(y.numpy()[16:], old[:-16]) and same(y.numpy()[:16], old[:16])
    y[::-1] = cg.asarray(old)                       # strided: packed, never streamed
    assert same(y.numpy()[::-1], old)
