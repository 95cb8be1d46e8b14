"""Indexing as in NumPy, for reading and writing: random expressions compared with NumPy and PyTorch, refused indices,
saved bytes, and later writes, which are detected or have no effect."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import assert_no_leak, gradcheck

from peers import torch
DTYPES = ("float32", "float64", "int64", "int16", "uint8", "bool")


# ---- random expressions ----------------------------------------------------------------------------------------------

def array_entry(rng, n, shape):
    index = rng.integers(-n, n, shape) if n else np.zeros(tuple(shape[:-1]) + (0,), int)
    return (index, index.astype("int32"), index.tolist())[rng.integers(3)] if index.size else index


def slice_entry(rng):
    def bound():
        return None if rng.random() < 0.4 else int(rng.integers(-6, 7))

    step = (None, 1, 2, -1, -2, 3)[rng.integers(6)]
    return slice(bound(), bound(), step)


def expression(rng, shape, arrays=True):
    """A random index for a tensor of this shape."""
    entries, d, many = [], 0, (3,) if rng.random() < 0.5 else (2, 3)
    while d < len(shape):
        kind = rng.random()
        if kind < 0.12:
            entries.append(None)
        elif kind < 0.2 and Ellipsis not in [e for e in entries if not isinstance(e, (np.ndarray, list))]:
            entries.append(Ellipsis)
            d += int(rng.integers(0, len(shape) - d + 1))
        elif kind < 0.4 and shape[d]:
            entries.append(int(rng.integers(-shape[d], shape[d])))
            d += 1
        elif kind < 0.65 or not arrays:
            entries.append(slice_entry(rng))
            d += 1
        elif kind < 0.9:
            entries.append(array_entry(rng, shape[d], many[int(rng.integers(0, len(many))):]))
            d += 1
        elif kind < 0.97:
            m = int(rng.integers(1, len(shape) - d + 1))
            mask = np.zeros(shape[d:d + m], bool)
            places = rng.permutation(mask.size)[:many[-1] if rng.random() < 0.8 else 1]
            mask.flat[places] = True
            entries.append(mask)
            d += m
        else:
            entries.append(bool(rng.integers(2)))
        if rng.random() < 0.2:
            break
    return tuple(entries) if len(entries) != 1 or rng.random() < 0.5 else entries[0]


def as_tensors(index):
    """The same index with tensors in place of arrays."""
    if isinstance(index, tuple):
        return tuple(cg.tensor(e) if isinstance(e, np.ndarray) else e for e in index)
    return cg.tensor(index) if isinstance(index, np.ndarray) else index


SHAPES = [(4,), (3, 4), (2, 3, 4), (3, 1, 2), (2, 3, 2, 3), (0, 3), (3, 0, 2), ()]


def cases(n, arrays=True, start=0):
    """`n` pairs of an array and an index that NumPy accepts."""
    found = 0
    seed = start
    while found < n:
        rng = np.random.default_rng(seed)
        seed += 1
        shape = SHAPES[seed % len(SHAPES)]
        x = rng.integers(-99, 100, shape).astype(float)
        x = np.moveaxis(x, 0, -1).copy().transpose(np.roll(range(x.ndim), 1)) if x.ndim and seed % 3 == 0 else x
        index = expression(rng, x.shape, arrays)
        try:
            x[index]
        except IndexError:
            continue
        if x.size == 0 and any(isinstance(e, np.ndarray) and e.dtype == bool
                               for e in (index if isinstance(index, tuple) else (index,))):
            continue                                # NumPy accepts masks of wrong shapes if the result is empty
        found += 1
        yield seed, x, index


def refused():
    """Pairs that NumPy refuses."""
    for seed in range(9000, 9600):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=SHAPES[seed % len(SHAPES)])
        index = expression(rng, x.shape)
        try:
            x[index]
        except IndexError:
            yield x, index


def test_reading_is_numpys():
    arrays = 0
    for seed, x, index in cases(1500):
        dtype = DTYPES[seed % len(DTYPES)]
        given = np.abs(x).astype(dtype)
        wanted = given[index]
        for t, at in ((cg.asarray(given), index), (cg.tensor(given), as_tensors(index))):
            found = t[at]
            assert found.shape == wanted.shape and found.dtype == wanted.dtype, (given.shape, index)
            assert np.array_equal(found.numpy(), wanted), (given.shape, index)
            if wanted.ndim:                         # (NumPy returns a number where cygrad returns a 0-d view)
                assert np.shares_memory(found.numpy(), t.numpy()) == np.shares_memory(wanted, given)
        arrays += any(isinstance(e, (np.ndarray, list)) for e in (index if isinstance(index, tuple) else (index,)))
    assert arrays > 600


def test_writing_is_numpys():
    for seed, x, index in cases(1500, start=20000):
        rng = np.random.default_rng(seed)
        dtype = DTYPES[seed % len(DTYPES)]
        given = np.abs(x).astype(dtype)
        shape = given[index].shape
        narrow = tuple(1 if rng.random() < 0.2 else n for n in shape)[int(rng.integers(0, len(shape) + 1)):]
        value = rng.integers(0, 99, (shape, narrow, ())[seed % 3]).astype(dtype)
        wanted = np.array(given)
        wanted[index] = value
        for at, v in ((index, value), (as_tensors(index), cg.tensor(value))):
            t = cg.tensor(given)
            t[at] = v
            assert np.array_equal(t.numpy(), wanted), (given.shape, index, value.shape)
            assert t.version == 1


def test_what_numpy_refuses_is_refused_and_changes_nothing():
    pairs = list(refused())
    assert len(pairs) > 20
    for x, index in pairs:
        t = cg.tensor(x)
        with pytest.raises((IndexError, ValueError)):
            t[index]
        with pytest.raises((IndexError, ValueError)):
            t[index] = 1
        assert np.array_equal(t.numpy(), x) and t.version == 0


def torch_index(index):
    """The same for PyTorch, or None: it has no negative steps, and other rules for True and False among numbers."""
    entries = index if isinstance(index, tuple) else (index,)
    if any(isinstance(e, slice) and e.step is not None and e.step < 0 or isinstance(e, bool) for e in entries):
        return None
    return tuple(torch.tensor(e, dtype=None if np.size(e) else torch.int64) if isinstance(e, (np.ndarray, list)) else e
                 for e in entries)


def test_gradients_are_pytorchs():
    """Value, first and second gradient of a read, with repeated indices."""
    compared = 0
    for seed, x, index in cases(400, start=40000):
        at = torch_index(index)
        if at is None:
            continue
        ours, theirs = cg.tensor(x).attach_grad(), torch.tensor(x, requires_grad=True)
        wanted = theirs[at]
        rng = np.random.default_rng(seed)
        if tuple(wanted.shape) != x[index].shape:
            continue                                # PyTorch has another order of dimensions for a number among arrays
        head, direction = rng.normal(size=x[index].shape), rng.normal(size=x.shape)
        with cg.record():
            y = ours[index]
            (dx,) = cg.autograd.grad(y * y, [ours], cg.tensor(head), create_graph=True)
            plain = ours[index]
            (d2,) = cg.autograd.grad(dx, [ours], cg.tensor(direction))
        (dx_plain,) = cg.autograd.grad(plain, [ours], cg.tensor(head))
        (t1,) = torch.autograd.grad(wanted * wanted, theirs, torch.tensor(head), create_graph=True)
        (t2,) = torch.autograd.grad(t1, theirs, torch.tensor(direction))
        (t_plain,) = torch.autograd.grad(theirs[at], theirs, torch.tensor(head))
        np.testing.assert_allclose(y.detach().numpy(), wanted.detach().numpy())
        for a, b in ((dx, t1), (d2, t2), (dx_plain, t_plain)):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-12)
        compared += 1
    assert compared > 200


def test_gradients_of_writes_are_pytorchs():
    """x[index] = v on an intermediate: gradients of x and of v, and of those."""
    compared = 0
    for seed, x, index in cases(400, start=60000):
        at = torch_index(index)
        rng = np.random.default_rng(seed)
        shape = x[index].shape
        places = np.arange(x.size).reshape(x.shape)[index]
        if at is None or len(set(places.ravel().tolist())) != places.size:
            continue                                # of two writes to one position PyTorch keeps an arbitrary one
        v = rng.normal(size=shape if seed % 2 else ())
        head = rng.normal(size=x.shape)
        theirs, tv = torch.tensor(x, requires_grad=True), torch.tensor(v, requires_grad=True)
        if tuple(theirs[at].shape) != shape:
            continue
        ours, ov = cg.tensor(x).attach_grad(), cg.tensor(v).attach_grad()
        with cg.record():
            y, u = ours * 2.0, ov * ov
            y[index] = u
            first = cg.autograd.grad(y * y, [ours, ov], cg.tensor(head), create_graph=True)
            second = cg.autograd.grad(first[0].sum() + (first[1] * first[1]).sum(), [ours, ov], allow_unused=True)
        z = theirs * 2.0
        z[at] = tv * tv
        t_first = torch.autograd.grad(z * z, [theirs, tv], torch.tensor(head), create_graph=True)
        t_second = torch.autograd.grad(t_first[0].sum() + (t_first[1] * t_first[1]).sum(), [theirs, tv],
                                       allow_unused=True)
        for a, b in zip((*first, *second), (*t_first, *t_second), strict=True):
            a = np.zeros(b.shape) if a is None else a.detach().numpy()
            b = np.zeros(a.shape) if b is None else b.detach().numpy()
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        compared += 1
    assert compared > 150


def test_of_several_writes_to_one_place_the_last_has_the_gradient():
    v = cg.tensor([1.0, 2.0, 3.0, 4.0]).attach_grad()
    x = cg.zeros(3)
    with cg.record():
        y = x * 1
        y[[0, 2, 0, -1]] = v
    assert y.detach().tolist() == [3, 0, 4]
    y.backward(cg.tensor([5.0, 6.0, 7.0]))
    assert v.grad.tolist() == [0, 0, 5, 7]

    def f(x, v):
        y = x * 1
        y[np.array([[0, 1], [0, 1]]), :, [1, 0]] = v
        return y * y

    with assert_no_leak():
        assert gradcheck(f, [cg.tensor(np.random.default_rng(s).normal(size=(2, 2, 2))) for s in range(2)], order=2)


def test_writes_that_read_themselves():
    """The value, or the index, shares memory with the target."""
    for write in (lambda x: x.__setitem__(slice(None, None, -1), x), lambda x: x.__setitem__([2, 0, 1], x),
                  lambda x: x.__setitem__(slice(1, None), x[:-1]), lambda x: x.__setitem__(x, x[::-1]),
                  lambda x: x.__setitem__(x > 0, x[:2])):
        a, t = np.array([2, 0, 1]), cg.tensor([2, 0, 1])
        write(a)
        write(t)
        assert t.tolist() == a.tolist()
    shared = np.array([2, 0, 1])
    t = cg.asarray(shared)
    t[shared] = cg.tensor([5, 6, 7])
    assert shared.tolist() == [6, 7, 5]
    for flag in ([True, False], [False, False]):
        a, t = np.array(flag), cg.tensor(flag)
        a[a], t[t] = False, False
        assert t.tolist() == a.tolist()
    v = cg.tensor([1.0, 2.0, 3.0]).attach_grad()
    with cg.record():
        y = v * 1
        y[[1, 2, 0]] = y
    y.backward(cg.tensor([1.0, 10.0, 100.0]))
    assert y.detach().tolist() == [3, 1, 2] and v.grad.tolist() == [10, 100, 1]


def test_updates_in_place_through_an_index():
    a, t = np.arange(12.0).reshape(3, 4), cg.tensor(np.arange(12.0).reshape(3, 4))
    for x in (a, t):
        x[[0, 2], 1:] += 10
        x[x > 15] *= 2
        x[1, [0, -1]] -= 1
    assert np.array_equal(t.numpy(), a)


# ---- saved bytes, and later writes -----------------------------------------------------------------------------------

def test_kept_bytes():
    x = cg.ones((4, 6), dtype="float64").attach_grad()
    mask, rows = x.detach() > 0, cg.tensor([0, 1, 0])
    with cg.record():
        with cg.record() as tape:
            y = x[mask]
        assert tape.saved_bytes == 3                # the mask: a bit per element
        with cg.record() as tape:
            z = x[rows[:, None] * 0 + rows, rows]
        assert tape.saved_bytes == 9 * 8 + 3 * 8    # arrays before broadcasting
        with cg.record() as tape:
            u = x[1:, ::2].T[None]
        assert tape.saved_bytes == 0
    assert y.requires_grad and z.shape == (3, 3) and u.shape == (1, 3, 3)


def test_later_writes_are_found_or_harmless():
    x = cg.ones((3, 2)).attach_grad()
    index = np.array([0, 2])
    given = index.copy()
    with cg.record():
        y = x[given]
    given[:] = 0
    y.backward()
    assert x.grad.tolist() == [[1, 1], [0, 0], [1, 1]]
    t = cg.tensor(index)
    with cg.record():
        y = x[t]
    t[0] = 0
    with pytest.raises(cg.InplaceError, match="saved a tensor of shape .* for backward at version 0"):
        y.backward()


def test_writes_through_numpy_cannot_reach_other_memory():
    x, t = cg.ones((3, 2)).attach_grad(), cg.tensor(np.array([0, 2]))
    with cg.record():
        y = x[t]
    t.numpy()[:] = 2**40
    with pytest.raises(cg.InplaceError, match="take: index 1099511627776 is out of range for a dimension of size 3; "
                                              "it was modified since"):
        y.backward()


def test_indices_carry_no_gradient():
    x, i = cg.ones(3).attach_grad(), cg.tensor([0, 1])
    with cg.record():
        y = x[i]
    assert [node is not None for node, _ in y.grad_fn.next_functions] == [True, False]
    with pytest.raises((TypeError, RuntimeError)):
        i.attach_grad()


# ---- named operators -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_every_dtype(dtype):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, (3, 4)).astype(dtype)
    i = rng.integers(-3, 3, (2, 2))
    x = cg.asarray(a)
    pairs = [
        (cg.take(x, i), a.take(i)), (cg.take(x, i, 0), a.take(i, 0)), (x.take(cg.tensor(i), 1), a.take(i, 1)),
        (cg.gather(x, 1, i), np.take_along_axis(a[:2], i, 1)), (cg.argwhere(x), np.argwhere(a)),
        (cg.argwhere(x.T), np.argwhere(a.T)),
    ]
    if dtype != "bool":
        src = np.ones((2, 2), dtype)
        wanted = a.copy()
        np.add.at(wanted, (np.arange(2)[:, None], i), src)
        pairs.append((cg.scatter_add(x, 1, i, src), wanted))
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype and np.array_equal(found.numpy(), wanted)


def test_large_takes_of_two_threads(two_threads):
    rng = np.random.default_rng(0)
    a, i = rng.normal(size=(1000, 100)), rng.integers(0, 1000, 3000)
    x = cg.tensor(a).attach_grad()
    with cg.record():
        y = x[i]
        z = cg.gather(x.T, 1, np.broadcast_to(i, (100, 3000)))
    assert np.array_equal(y.detach().numpy(), a[i]) and np.array_equal(z.detach().numpy(), a.T[:, i])
    y.backward(cg.tensor(np.repeat(np.arange(3000.0)[:, None], 100, 1)))
    wanted = np.zeros(1000)
    np.add.at(wanted, i, np.arange(3000.0))
    np.testing.assert_allclose(x.grad.numpy(), np.repeat(wanted[:, None], 100, 1))


def test_along_an_axis_is_numpys():
    """gather, scatter_add and take over runs shorter and longer than a strip, with indices from both ends and strided
    indices. One bad index anywhere is refused."""
    rng = np.random.default_rng(7)
    shapes = ((530,), (3, 530), (530, 3), (1, 5), (5, 1), (2, 1, 3), (2, 3, 520), (520, 2, 2))
    for shape, dtype in [(s, d) for s in shapes for d in DTYPES[:5]]:
        x = rng.integers(0, 50, shape).astype(dtype)
        for axis, low in [(a, b) for a in range(x.ndim) for b in (0, -x.shape[a])]:
            many = 1030 if x.size <= 10 * x.shape[axis] else 30             # more than a strip in either case
            wanted = tuple(rng.choice([1, 4, many]) if d == axis else n for d, n in enumerate(shape))
            index = rng.integers(low, x.shape[axis], wanted)
            src = rng.integers(0, 9, wanted).astype(dtype)
            turned = cg.tensor(np.ascontiguousarray(index.T)).transpose()
            sums, places = x.copy(), list(np.indices(wanted))
            places[axis] = index
            np.add.at(sums, tuple(places), src)
            for i in (index, turned):
                np.testing.assert_array_equal(cg.gather(x, axis, i).numpy(), np.take_along_axis(x, index, axis))
                np.testing.assert_array_equal(cg.scatter_add(x, axis, i, src).numpy(), sums)
            some = index.reshape(-1)[:600]
            np.testing.assert_array_equal(cg.take(x, some, axis).numpy(), np.take(x, some, axis))
            bad = index.copy()
            bad.flat[rng.integers(bad.size)] = (x.shape[axis], -x.shape[axis] - 1, 2**63 - 1, -2**63)[rng.integers(4)]
            for f in (lambda: cg.gather(x, axis, bad), lambda: cg.scatter_add(x, axis, bad, src),
                      lambda: cg.take(x, [*some[:-1], bad[bad != index][0]], axis)):
                with pytest.raises(IndexError, match="is out of range for a dimension of size"): f()
    for empty in ((3, 0), (0, 3), (0,)):
        with pytest.raises(IndexError, match="index 5 is out of range"): cg.take(np.zeros(empty), [5], 0)


def test_one_hot():
    assert cg.one_hot([0, 2], 3).dtype == cg.float32
    assert cg.one_hot([[0], [2]], 3, dtype="int8").tolist() == [[[1, 0, 0]], [[0, 0, 1]]]
    assert cg.one_hot(cg.tensor([0, 1, 2])[::-2], 3, dtype="bool").tolist() == [[0, 0, 1], [1, 0, 0]]


def test_masks_and_rows_longer_than_a_strip():
    rng = np.random.default_rng(0)
    for shape, covered in (((3, 700, 4), 2), ((2000,), 1), ((40, 60), 2), ((1500, 2, 3), 1), ((5, 3, 300), 1)):
        a, mask = rng.normal(size=shape), rng.random(shape[:covered]) < 0.6
        for x, m in ((a, mask), (a.copy("F"), mask.copy("F")), (a[::-1].copy()[::-1], mask[::-1].copy()[::-1])):
            t = cg.asarray(x.copy("K")).attach_grad()
            with cg.record():
                y = t[m]
            assert np.array_equal(y.detach().numpy(), x[m])
            head = rng.normal(size=y.shape)
            wanted = np.zeros(shape)
            wanted[m] = head
            y.backward(cg.tensor(head))
            assert np.array_equal(t.grad.numpy(), wanted)
            for value in (head, 2.5, head[:, ...][:1]):
                wanted, t = x.copy(), cg.tensor(x)
                wanted[m] = value
                t[m] = value
                assert np.array_equal(t.numpy(), wanted)


def test_gradients_that_repeat_one_element():
    """The gradient of a sum has strides of 0, so one element stands for a whole row."""
    i = np.array([[0, 2], [2, 2]])
    x = cg.ones((3, 5)).attach_grad()
    with cg.record():
        y = x[i].sum() + (x[i].sum(2) * cg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype="float32")).sum()
    y.backward()
    assert x.grad.tolist() == [[2.0] * 5, [0.0] * 5, [12.0] * 5]


def test_iterating_over_a_0_d_tensor_raises_at_once():
    """Libraries call iter() to test for elements. An error only at the first next() would look like elements."""
    x = cg.tensor(1.5)
    for look in (iter, list, tuple, np.iterable):
        if look is np.iterable: assert not look(x)
        else:
            with pytest.raises(TypeError, match="a 0-d tensor cannot be iterated over"): look(x)
    elements = iter(cg.tensor([1.0, 2.0]))
    assert iter(elements) is elements and [e.item() for e in elements] == [1, 2] and list(elements) == []
