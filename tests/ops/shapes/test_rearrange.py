"""The functions of ops/shapes/rearrange: values as NumPy's, gradients, views, sizes of 0."""

import numpy as np
import pytest

import cygrad as cg

X = np.arange(24.0).reshape(2, 3, 4)
VECTORS = [np.arange(3.0), np.arange(3.0, 6.0)]

CALLS = [
    ("tile", X, [(2,), ((2, 1),), ((1, 2, 3),), ((2, 1, 1, 3),), ((0, 2),), ((),), (1,)]),
    ("tile", np.array(3.0), [((2, 2),), (3,)]),
    ("repeat", X, [(2,), (2, 1), ([1, 0, 3], 1), (0, 2), ([2], 0), (np.array([1, 2]), 0)]),
    ("repeat", np.zeros((0, 2)), [(2, 0), (2, 1), ([], 0)]),
    ("roll", X, [(1,), (-2, 1), ((1, 2), (0, 2)), (5, (0, 1)), ((1, 2), 1), (0, 0), (25, 2)]),
    ("roll", np.zeros((0, 2)), [(2,), (2, 0)]),
    ("moveaxis", X, [(0, 2), ((0, 1), (2, 0)), (-1, 0), ([0, 2], [1, 0]), ((), ())]),
    ("rot90", X, [(k, axes) for k in range(-3, 6) for axes in ((0, 1), (2, 0))]),
    ("fliplr", X, [()]),
    ("flipud", X, [()]),
    *[(name, x, [()]) for name in ("atleast_1d", "atleast_2d", "atleast_3d")
      for x in (np.array(2.0), X[0, 0], X[0], X, np.zeros(0))],
    ("array_split", X, [(3, 2), ([1, 2], 1), (5, 0), (1, 0), ((3,), -1)]),
    ("hsplit", X, [(3,), ([1],)]),
    ("hsplit", X[0, 0], [(2,)]),
    ("vsplit", X, [(2,)]),
    ("dsplit", X, [([1, 3],)]),
]
CASES = [pytest.param(name, x, args, id=f"{name}{x.shape}-{args}") for name, x, calls in CALLS for args in calls]


def same(y, wanted):
    if isinstance(wanted, (list, tuple)):
        assert isinstance(y, tuple) and len(y) == len(wanted)
        for a, b in zip(y, wanted, strict=True): same(a, b)
    else:
        assert y.shape == wanted.shape and y.dtype == wanted.dtype
        np.testing.assert_array_equal(y.detach().numpy(), wanted)


@pytest.mark.parametrize("name, x, args", CASES)
def test_values(name, x, args):
    f, like = getattr(cg, name), getattr(np, name)
    for dtype in ("float32", "float64", "int16", "bool"):
        same(f(cg.tensor(x.astype(dtype)), *args), like(x.astype(dtype), *args))
    strided = cg.tensor(np.ascontiguousarray(x.T)).T
    same(f(strided, *args), like(x, *args))


@pytest.mark.parametrize("name, x, args", CASES)
def test_gradients(name, x, args):
    """The gradient of the sum of squares: each element counts as often as it is in the result."""
    v = cg.tensor(x).attach_grad()
    with cg.record():
        y = getattr(cg, name)(v, *args)
        loss = sum([(part * part).sum() for part in (y if isinstance(y, tuple) else (y,))])
    loss.backward()
    where = getattr(np, name)(np.arange(x.size).reshape(x.shape), *args)
    places = np.concatenate([np.ravel(p) for p in where]) if isinstance(where, (list, tuple)) else np.ravel(where)
    counts = np.bincount(places, minlength=x.size).reshape(x.shape)
    np.testing.assert_array_equal(v.grad.numpy(), 2 * x * counts)


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack"])
def test_stacks(name):
    f, like = getattr(cg, name), getattr(np, name)
    for xs in (VECTORS, [X[0], X[1]], [X, X], [np.zeros(0), np.ones(3)] if name == "hstack" else VECTORS):
        same(f([cg.tensor(x) for x in xs]), like(xs))
        same(f(xs), like(xs))
    same(f(cg.tensor(X)), like(list(X)))
    a, b = (cg.tensor(x).attach_grad() for x in VECTORS)
    with cg.record(): y = f((a, b)) * f((a, b))
    y.backward()
    np.testing.assert_array_equal(a.grad.numpy(), 2 * VECTORS[0])
    np.testing.assert_array_equal(b.grad.numpy(), 2 * VECTORS[1])


def test_shapes_that_match():
    shapes = [(2, 3, 4), (3, 1), ()]
    arrays = [np.arange(np.prod(s, dtype=int), dtype="float32").reshape(s) for s in shapes]
    same(cg.broadcast_arrays(*arrays), tuple(np.broadcast_arrays(*arrays)))
    assert cg.broadcast_arrays() == ()
    for indexing in ("xy", "ij"):
        for n in range(4):
            vectors = [np.arange(float(k + 2)) for k in range(n)]
            same(cg.meshgrid(*vectors, indexing=indexing), tuple(np.meshgrid(*vectors, indexing=indexing)))
    same(cg.atleast_2d(1.0, [2.0, 3.0])[1], np.array([[2.0, 3.0]], "float32"))
    assert [y.tolist() for y in cg.unstack(cg.tensor(X), 1)] == [X[:, i].tolist() for i in range(3)]
    v = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record():
        a, b = cg.meshgrid(v, cg.ones(3))
        y = a * b
    y.backward()
    assert v.grad.tolist() == [3.0, 3.0]


def test_repeats_of_each_element():
    x = np.arange(6.0).reshape(2, 3)
    for counts, axis in (([2, 0, 3], 1), ([1, 4], 0), ([0, 1, 2, 3, 4, 5], None), ([0, 0], 0), ([True, False], 0)):
        np.testing.assert_array_equal(cg.repeat(x, counts, axis).numpy(), np.repeat(x, counts, axis))
    with cg.memory.limit("1MiB"), pytest.raises(cg.MemoryLimitError): cg.repeat(x, [2**40, 1], 0)    # (no list of them)


def test_views_take_no_memory():
    x = cg.tensor(X)
    with cg.memory.events() as log:
        views = [cg.moveaxis(x, 0, 2), cg.rot90(x), cg.rot90(x, 2), cg.fliplr(x), cg.flipud(x), cg.atleast_3d(x),
                 *cg.array_split(x, 3, 2), *cg.unstack(x), *cg.broadcast_arrays(x, x[:1]),
                 *cg.meshgrid(x[0, 0], x[0, 0])]
    assert not [kind for kind, *_ in log if kind == "allocate"]
    x[...] = 0
    assert all(not v.numpy().any() for v in views)


def test_roll_and_tile_copy():
    """Also where nothing moves: a later write to the operand does not reach the result."""
    x = cg.ones((2, 2))
    for y in (cg.roll(x, 0), cg.roll(x, 2, 0), cg.tile(x, 1), cg.tile(x, (1, 1, 1)), cg.repeat(x, 1)):
        assert not np.shares_memory(y.numpy(), x.numpy())


def test_chunks():
    """At most as many parts as asked for, as in PyTorch: 7 in 4 parts are 2, 2, 2 and 1, and 5 are 2, 2 and 1."""
    for n, chunks, wanted in ((7, 4, [2, 2, 2, 1]), (5, 4, [2, 2, 1]), (6, 3, [2, 2, 2]), (2, 5, [1, 1]), (0, 3, [0])):
        x = cg.tensor(np.arange(3.0 * n).reshape(3, n)).attach_grad()
        with cg.record(): parts = cg.chunk(x, chunks, 1)
        assert [y.shape[1] for y in parts] == wanted
        np.testing.assert_array_equal(np.concatenate([y.detach().numpy() for y in parts], 1), x.numpy())
        cg.backward(list(parts))
        assert (x.grad.numpy() == 1).all()


def test_append():
    x = cg.tensor(X).attach_grad()
    for more, axis in ((X[:1], 0), (X, None), (2.0, None), (3, None), (X[:, :, :2], -1)):
        values = cg.tensor(more).attach_grad() if isinstance(more, np.ndarray) else more
        with cg.record(): y, z = cg.append(x, values, axis), np.append(x, values, axis)
        same(y, np.append(X, more, axis))
        same(z, np.append(X, more, axis))
        y.backward()
        assert (x.grad.numpy() == 1).all() and (values is more or (values.grad.numpy() == 1).all())
