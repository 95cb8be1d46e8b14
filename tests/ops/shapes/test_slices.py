"""Slices, views and writes of plain tensors, contract 1. Array indices are in test_index.py, recorded writes in
test_inplace.py and test_views.py."""

import numpy as np
import pytest

import cygrad as cg


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
    ((0, 0, 0), IndexError, "too many indices: 3 for a tensor of 2 dimensions"),
    ((Ellipsis, Ellipsis), IndexError, "an index has at most one Ellipsis"),
    ("a", TypeError, "only ints, slices, ..., None and arrays of integers or bools can index; got str"),
    (1.0, TypeError, "got float"),
    (np.array(1.0), TypeError, "got float64"),
    ([0.5], TypeError, r"indices must be integers, got a float32 tensor of shape \(1,\)"),
    ([0, 2], IndexError, "index 2 is out of range for a dimension of size 2"),
    ((0, [0, -4]), IndexError, "index -4 is out of range for a dimension of size 3"),
    (([0], [0], 0), IndexError, "too many indices: 3 for a tensor of 2 dimensions"),
    ([True, False, True], IndexError, r"a mask of shape \(3,\) cannot index dimensions of sizes \(2,\)"),
])
def test_wrong_indices(index, error, match):
    x = cg.zeros((2, 3))
    with pytest.raises(error, match=match):
        x[index]
    with pytest.raises(error, match=match):
        x[index] = 1.0
    assert x.version == 0


def test_reshape_of_any_strides():
    """A view if NumPy returns a view, else a copy, for slices, orders of axes and broadcasting in combination."""
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
    x[...] = x.T.T[::-1]                            # from itself, reversed
    assert x.tolist() == [[9.0, 2.0, 3.0], [8.0, 5.0, 7.0]]
    n = cg.zeros(2, dtype="int64")
    n[0] = 3
    assert n.tolist() == [3, 0]
    with pytest.raises(TypeError, match="setitem: cannot write float32 values into a tensor of dtype int64"):
        n[0] = cg.tensor(1.5)
    with pytest.raises(ValueError):
        x[0] = cg.zeros(2)
    assert n.tolist() == [3, 0]
    d = cg.zeros(3, dtype="float64")
    d[0], d[1:] = 0.1, [0.2, 0.3]
    assert d.tolist() == [0.1, 0.2, 0.3] and d.fill_(0.7).tolist() == d.copy_(0.7).tolist() == [0.7] * 3


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
    """An operand that overlaps the target is read first."""
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


@pytest.mark.parametrize("leaf", [False, True], ids=["of a result", "of a variable"])
@pytest.mark.parametrize("parts", [lambda y: [y[i] for i in range(6)], lambda y: [y[i:i + 2] for i in range(5)],
                                   lambda y: cg.split(y, 6), lambda y: [y[:, ::-1], y[1:5], y[0]]],
                         ids=["rows", "overlapping", "split", "several"])
def test_slices_of_one_tensor_add_their_gradients_in_one_place(parts, leaf):
    """A slice needs no array of the whole size."""
    a = np.random.default_rng(0).normal(size=(6, 50))
    x = cg.tensor(a).attach_grad()
    x.grad.fill_(0)                                 # (zeros would have no memory)
    with cg.record():
        seen = parts(x if leaf else x * 1.0)
        loss = sum((part * (k + 1.0)).sum() for k, part in enumerate(seen))
    with cg.memory.events() as log:
        loss.backward()
    whole = [n for kind, _, n, _ in log if kind == "allocate" and n == a.nbytes]
    assert len(whole) <= (0 if leaf else 1) + sum(part.nbytes == a.nbytes for part in seen)
    wanted = np.zeros_like(a)
    for k, part in enumerate(parts(wanted) if not isinstance(seen, tuple) else np.split(wanted, 6)): part += k + 1.0
    np.testing.assert_array_equal(x.grad.numpy(), wanted)
