"""Sorting: results equal NumPy's bit for bit, for every dtype, ties, all NaNs, both zeros and any strides. sort and
topk save positions along the axis in the smallest integers that can hold them."""

import numpy as np
import pytest
from rows import ALL_DTYPES, same_bits

import cygrad as cg

LENGTHS = (0, 1, 2, 15, 16, 17, 33, 100, 127, 128, 129, 257, 383, 384, 385, 767, 768, 769, 3000, 5000)
SIZES = [(1, 1), (2, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4)]    # of an axis, and bytes of a position on it


def numbers(rng, shape, dtype, kind):
    """Numbers with ties. kind 1: of the whole range of the dtype; 2: ascending; 3: descending."""
    n = int(np.prod(shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        a = rng.integers(0, 4, n).astype("uint8").view(bool)        # a bool may be any byte
    elif kind == 1:
        a = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()
    elif kind == 0:
        a = rng.integers(-20, 20, n).astype(dtype)
        if dtype.kind == "f" and n:
            special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 5e-324], dtype)
            at = rng.integers(0, n, n // 3)
            a[at] = special[rng.integers(0, len(special), len(at))]
    else:
        a = np.arange(n)[::5 - 2 * kind].astype(dtype)
    return a.reshape(shape)


def order(a, axis, descending):
    """NumPy's stable order."""
    a = a.view(np.uint8) != 0 if a.dtype == bool else a
    if not descending:
        return np.argsort(a, axis, kind="stable")
    return a.shape[axis] - 1 - np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_rows_of_any_length(dtype):
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        for kind in range(4):
            a = numbers(rng, n, dtype, kind)
            x = cg.asarray(a)
            for descending in (False, True):
                wanted = order(a, 0, descending)
                assert np.array_equal(cg.argsort(x, descending=descending).numpy(), wanted), (n, kind, descending)
                values = np.sort(a)[::-1] if descending else np.sort(a)
                same_bits(cg.sort(x, descending=descending).numpy(), values)
                for k in {0, min(n, 1), n // 9, n // 4, n // 2, n}:
                    found, places = cg.topk(x, k, largest=descending)
                    assert np.array_equal(places.numpy(), wanted[:k]), (n, kind, k)
                    same_bits(found.numpy(), a[wanted[:k]])


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_axes_and_strides(dtype):
    rng = np.random.default_rng(1)
    for shape in ((7, 3, 5), (70, 9), (9, 700), (1, 40), (40, 1), (3, 0, 2), (2, 900, 2)):
        for kind in (0, 1):
            a = numbers(rng, shape, dtype, kind)
            for b in (a, a.T, a[::-1], a[:, ::2], np.broadcast_to(a[:1], shape)):
                x = cg.asarray(b)
                for axis in range(b.ndim):
                    for descending in (False, True):
                        assert np.array_equal(cg.argsort(x, axis, descending).numpy(), order(b, axis, descending))
                        values = np.sort(b, axis)
                        same_bits(cg.sort(x, axis, descending).numpy(), np.flip(values, axis) if descending else values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recorded_values_are_in_the_same_order(dtype):
    rng = np.random.default_rng(2)
    for shape, axis in (((1000,), 0), ((30, 40), 0), ((30, 40), 1)):
        a = numbers(rng, shape, dtype, 0)
        for descending in (False, True):
            x = cg.tensor(a, requires_grad=True)
            places = order(a, axis, descending)
            with cg.record():
                y = cg.sort(x, axis, descending)
            same_bits(y.numpy(), np.take_along_axis(a, places, axis))
            g = rng.standard_normal(shape).astype(dtype)
            y.backward(cg.tensor(g))
            wanted = np.empty_like(g)
            np.put_along_axis(wanted, places, g, axis)
            same_bits(x.grad.numpy(), wanted)


def peak(f):
    with cg.memory.track() as t:
        y = f()
    return t.peak_bytes - (y[0] if isinstance(y, tuple) else y).nbytes


def test_workspace_is_counted():
    """The positions of a row are in the result itself. A column is packed and needs two rows of 32 bits."""
    n = 10000
    x = cg.ones((n, 2), "float64")
    before = cg.memory.stats()["live_bytes"]
    assert peak(lambda: cg.argsort(x.T, 1)) - before == 8 * n               # the packed row
    assert peak(lambda: cg.argsort(x, 0)) - before == 8 * n + 2 * 4 * n
    assert peak(lambda: cg.sort(x, 0)) - before == 2 * 8 * n                # both columns, as rows
    assert peak(lambda: cg.argsort(x)) - before == 0
    with cg.memory.limit(cg.memory.stats()["live_bytes"] + cg.memory.stats()["cached_bytes"]):
        cg.memory.empty_cache()
        with pytest.raises(cg.MemoryLimitError, match="argsort"):
            cg.argsort(cg.broadcast_to(x[:1, 0], (1 << 28,)))


def test_sorting_in_place_is_recomputed_alike():
    """A strided view of a bool tensor with bytes other than 0 and 1."""
    a = np.arange(12, dtype="uint8").view(bool).reshape(3, 4)
    x = cg.asarray(a)
    assert cg.argsort(x.T, 0).tolist() == order(a.T, 0, False).tolist()
    assert cg.argmax(x, 1).tolist() == [1, 0, 0] and cg.argmin(x, 1).tolist() == [0, 0, 0]


@pytest.mark.parametrize("n, size", SIZES)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_keeps_the_smallest_places(n, size, descending):
    a = np.random.default_rng(0).permutation(n).astype("float64").reshape(n, 1)
    for axis in (0, 1):
        x = cg.tensor(np.broadcast_to(a, (n, 2))).attach_grad()
        with cg.record() as tape:
            y = cg.sort(x, axis, descending)
        assert tape.saved_bytes == 2 * n * (size if axis == 0 else 1)
        g = np.random.default_rng(1).normal(size=(n, 2))
        order = np.argsort(-x.detach().numpy() if descending else x.detach().numpy(), axis, kind="stable")
        wanted = np.zeros((n, 2))
        np.put_along_axis(wanted, order, g, axis)
        for how in ({"create_graph": True}, {}):
            (dx,) = cg.autograd.grad(y, [x], cg.tensor(g), **how)
            assert np.array_equal(dx.detach().numpy(), wanted)


@pytest.mark.parametrize("n, size", SIZES)
def test_topk_keeps_the_smallest_places(n, size):
    """The returned positions are int64. Backward saves positions of its own, so writing to the former has no effect."""
    k = min(n, 3)
    a = np.random.default_rng(0).permutation(2 * n).astype("float32").reshape(2, n)
    x = cg.tensor(a).attach_grad()
    with cg.record() as tape:
        values, places = cg.topk(x, k)
    assert places.dtype == np.int64 and tape.saved_bytes == 2 * k * size
    wanted = np.zeros((2, n), "float32")
    np.put_along_axis(wanted, places.numpy().copy(), np.arange(2.0 * k).reshape(2, k), 1)
    places[...] = 0
    for how in ({"create_graph": True}, {"retain_graph": True}, {}):
        (dx,) = cg.autograd.grad(values, [x], cg.tensor(np.arange(2 * k, dtype="float32").reshape(2, k)), **how)
        assert np.array_equal(dx.detach().numpy(), wanted)


def test_higher_derivatives():
    x = cg.tensor(np.array([3.0, 1.0, 2.0, 5.0])).attach_grad()
    w = cg.tensor([1.0, 2.0, 3.0, 4.0], "float64")

    def f(x):
        values, _ = cg.topk(x * x, 3)
        return (cg.sort(x) ** 3 * w).sum() + (values ** 2).sum()

    assert cg.testing.gradcheck(f, [x], order=2)


def test_values_alone_make_no_places():
    x = cg.tensor(np.random.default_rng(0).normal(size=1000)).attach_grad()
    before = cg.memory.stats()["live_bytes"]
    y = cg.sort(x)
    assert cg.memory.stats()["live_bytes"] - before == y.nbytes
    with cg.record() as tape:
        whole = cg.sort(cg.arange(5))               # integers have no gradient
    assert tape.saved_bytes == 0 and whole.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("kind", ["near", "equal", "two", "nan", "wide", "-0", "-nan"])
def test_the_first_of_many(dtype, kind):
    """One digit chooses the elements that are sorted, whatever their highest digits are. -0 has the key of 0, and a NaN
    with a sign that of NaN, so their bits are not those of keys."""
    rng = np.random.default_rng(0)
    n = 30_001
    a = {"near": 100 + rng.integers(0, 50, n) / 8, "equal": np.full(n, 7.0), "two": rng.integers(0, 2, n),
         "nan": np.where(rng.random(n) < 0.01, np.nan, rng.choice([0.0, -0.0, np.inf, -np.inf], n)),
         "wide": rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n),
         "-0": np.where(rng.random(n) < 0.01, -0.0, -np.abs(rng.normal(size=n))),
         "-nan": np.where(rng.random(n) < 0.01, np.copysign(np.nan, -1), -np.abs(rng.normal(size=n)))}[kind]
    if dtype[0] in "iu": a = np.nan_to_num(np.clip(a, 0 if dtype[0] == "u" else -1e15, 200))
    a = a.astype(dtype)
    b = np.stack([a, a[::-1]])
    for x in (b, np.asfortranarray(b)):
        for k in (17, 100, 5000, n // 4, n // 4 + 1):
            for largest in (False, True):
                values, places = cg.topk(cg.asarray(x), k, largest=largest)
                for row in range(2):
                    wanted = order(b[row], 0, largest)[:k]
                    assert np.array_equal(places.numpy()[row], wanted)
                    same_bits(values.numpy()[row], b[row][wanted])
