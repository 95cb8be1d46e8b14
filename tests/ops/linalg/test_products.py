"""Products, diagonals, norms and powers against NumPy, and the namespace cygrad.linalg."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops.linalg.einsum import path_of
from cygrad.testing import gradcheck


def random(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape)


CALLS = [
    ("outer", np.outer, [(2, 3), (4,)], {}), ("outer", np.outer, [(0,), (2, 2)], {}),
    ("outer", np.outer, [(), (2,)], {}),
    ("outer", np.outer, [(2,), (0, 3)], {}),
    ("inner", np.inner, [(3,), (3,)], {}), ("inner", np.inner, [(2, 3), (4, 5, 3)], {}),
    ("inner", np.inner, [(), (2, 3)], {}), ("inner", np.inner, [(2, 0), (3, 0)], {}),
    ("kron", np.kron, [(2, 3), (3, 2)], {}), ("kron", np.kron, [(3,), (2, 3, 2)], {}),
    ("kron", np.kron, [(), (2,)], {}),
    ("kron", np.kron, [(2, 2), (0, 3)], {}), ("kron", np.kron, [(), ()], {}),
    ("cross", np.cross, [(3,), (3,)], {}), ("cross", np.cross, [(2, 3), (4, 1, 3)], {}),
    ("cross", np.cross, [(3, 4), (3, 4)], {"axis": 0}), ("cross", np.cross, [(2, 3, 4), (2, 3, 4)], {"axis": 1}),
    ("cross", np.cross, [(0, 3), (3,)], {}),
    ("tensordot", np.tensordot, [(2, 3, 4), (3, 4, 5)], {}), ("tensordot", np.tensordot, [(2, 3), (4,)], {"axes": 0}),
    ("tensordot", np.tensordot, [(2, 3, 4), (4, 5)], {"axes": 1}),
    ("tensordot", np.tensordot, [(2, 3, 4), (4, 5, 2)], {"axes": ((0, -1), (2, 0))}),
    ("tensordot", np.tensordot, [(2, 3), (5, 3)], {"axes": (1, 1)}),
    ("tensordot", np.tensordot, [(2, 0), (0, 3)], {"axes": 1}),
    ("vecdot", np.vecdot, [(3,), (3,)], {}), ("vecdot", np.vecdot, [(2, 3), (4, 1, 3)], {}),
    ("vecdot", np.vecdot, [(3, 4), (3, 4)], {"axis": 0}), ("vecdot", np.vecdot, [(2, 0), (2, 0)], {}),
    ("trace", np.trace, [(3, 3)], {}), ("trace", np.trace, [(2, 3, 4)], {"offset": 1, "axis1": 1, "axis2": 2}),
    ("trace", np.trace, [(0, 3)], {}),
    ("matrix_power", np.linalg.matrix_power, [(3, 3)], {"n": 5}),
    ("matrix_power", np.linalg.matrix_power, [(2, 3, 3)], {"n": -2}),
    ("matrix_power", np.linalg.matrix_power, [(2, 3, 3)], {"n": 1}),
    ("matrix_power", np.linalg.matrix_power, [(0, 0)], {"n": 3}),
    *[("matrix_norm", lambda x, ord, keepdims=False: np.linalg.norm(x, ord, (-2, -1), keepdims), [(2, 3, 4)],
       {"ord": p, "keepdims": k}) for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf) for k in (False, True)],
]


@pytest.mark.parametrize("name, like, shapes, kwargs", CALLS, ids=[f"{c[0]}-{i}" for i, c in enumerate(CALLS)])
def test_value_and_gradients(name, like, shapes, kwargs):
    f = getattr(cg, name)
    args = [random(*shape, seed=i) for i, shape in enumerate(shapes)]
    wanted = like(*args, **kwargs)
    for change in (lambda a: a, lambda a: a.copy("F"), lambda a: np.repeat(a[None], 2, 0)[1]):
        y = f(*[cg.asarray(change(a)) for a in args], **kwargs)
        assert y.shape == wanted.shape and y.dtype == wanted.dtype
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12, atol=1e-12)
    assert gradcheck(lambda *xs: f(*xs, **kwargs), [cg.tensor(a) for a in args], order=2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name, n", [(name, 1 + (i > 2)) for i, name in enumerate(
    ("trace", "diagonal", "diag", "outer", "inner", "kron", "cross", "tensordot", "vecdot"))])
def test_integers(name, n):
    args = [np.arange(9).reshape(3, 3) - 4, np.arange(9).reshape(3, 3) % 4][:n]
    y, wanted = getattr(cg, name)(*args), getattr(np, name)(*args)
    assert y.dtype == wanted.dtype and np.array_equal(y.numpy(), wanted)


def test_the_power_zero_is_the_identity():
    for dtype in ("float32", "int64"):
        y = cg.matrix_power(np.ones((2, 3, 3), dtype), 0)
        assert y.dtype == dtype and np.array_equal(y.numpy(), [np.eye(3)] * 2)


def test_diagonals_are_views():
    x = cg.arange(12).reshape(3, 4)
    for y in (cg.diagonal(x, 1), cg.diag(x, 1), cg.diagonal(x.T, -1), cg.einsum("ii->i", x[:, 1:])):
        assert np.shares_memory(y.numpy(), x.numpy()) and y.tolist() == [1, 6, 11]
    cg.diagonal(x)[...] = 0
    assert x.tolist() == [[0, 1, 2, 3], [4, 0, 6, 7], [8, 9, 0, 11]]
    with cg.memory.track() as track:
        before = cg.memory.stats()["live_bytes"]
        cg.trace(x)
    assert track.peak_bytes - before <= 8


def test_diagonals_outside_are_empty():
    x = np.ones((2, 3))
    for k in (3, -2, 2**62, 2**63, -2**63, 2**70, -2**70):
        for y in (cg.diagonal(x, k), cg.diag(x, k)): assert y.shape == (0,)
        assert cg.trace(x, k).item() == 0


def test_a_write_through_a_recorded_diagonal():
    x = cg.ones((2, 2), dtype="float64").attach_grad()
    with cg.record():
        y = x * 3
        cg.diagonal(y)[...] = cg.diagonal(y) * 2
        z = (y * y).sum()
    z.backward()
    assert x.grad.tolist() == [[72, 18], [18, 72]]


def test_products_keep_their_inputs_only():
    x, y = (cg.tensor(random(4, 3, seed=i)).attach_grad() for i in range(2))
    for f, kept in ((cg.cross, 2), (cg.outer, 2), (cg.kron, 2), (cg.vecdot, 2), (cg.inner, 2),
                    (lambda a, b: cg.trace(a), 0)):
        with cg.record():
            a, b = x * 1.0, y * 1.0
            with cg.record() as tape:
                z = f(a, b)
        assert tape.saved_bytes == kept * x.nbytes
        del z


# ---- einsum ----------------------------------------------------------------------------------------------------------

def test_einsum_with_lists_of_axes():
    x, y = random(2, 3, 4), random(4, 5, seed=1)
    for args in ((x, [0, 1, 2], y, [2, 3], [0, 1, 3]), (x, [0, 1, 2], x, [0, 3, 2]),
                 (x, [..., 2], y, [2, 30], [..., 30]), (y, [1, 0]), (y[:, :4], [5, 5]), (x, [0, 51, 26], [26, 0])):
        given = [cg.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
        np.testing.assert_allclose(cg.einsum(*given).numpy(), np.einsum(*args), 1e-6)
    assert cg.einsum([[1.0, 2.0]], [0, 1], [1]).tolist() == [1.0, 2.0]


def chain():
    return [random(3, 40), random(40, 50, seed=1), random(50, 2, seed=2), random(2, seed=3)]


@pytest.mark.parametrize("path", [[(2, 3), (1, 2), (0, 1)], [(0, 3), (0, 1), (0, 1)], [(0, 1), (0, 2), (0, 1)],
                                  [(0, 1, 2), (0, 1)]])
def test_einsum_contracts_in_the_order_of_opt_einsum(path, monkeypatch):
    asked = []

    def contract_path(equation, *shapes, **kwargs):
        asked.append((equation, shapes, kwargs))
        return path, None

    monkeypatch.setitem(sys.modules, "opt_einsum", SimpleNamespace(contract_path=contract_path))
    path_of.cache_clear()                           # orders are cached by shapes
    try:
        y = cg.einsum("ab,bc,cd,d->a", *chain())
    finally:
        path_of.cache_clear()
    assert asked == [("ab,bc,cd,d->a", tuple(a.shape for a in chain()), {"shapes": True})]
    np.testing.assert_allclose(y.numpy(), np.einsum("ab,bc,cd,d->a", *chain()), rtol=1e-11)


def test_einsum_of_many_operands_by_opt_einsum():
    opt_einsum = pytest.importorskip("opt_einsum")
    arrays = chain()
    equation = "ia,ab,bc,c->i"
    assert opt_einsum.contract_path(equation, *arrays)[0][0] != (0, 1)
    peaks = []
    for f in (lambda *xs: cg.einsum(equation, *xs), lambda *xs: xs[0] @ xs[1] @ xs[2] @ xs[3]):
        xs = [cg.tensor(a) for a in arrays]
        with cg.memory.track() as track:
            y = f(*xs)
        peaks.append(track.peak_bytes)
        np.testing.assert_allclose(y.numpy(), np.einsum(equation, *arrays), rtol=1e-11)
    assert peaks[0] < peaks[1]
    assert gradcheck(lambda *xs: cg.einsum("ij,jk,kl->il", *xs),
                     [cg.tensor(random(2, 3)), cg.tensor(random(3, 2)), cg.tensor(random(2, 2))], order=2)


# ---- the namespace ---------------------------------------------------------------------------------------------------

OTHERS = "expm logm normalize solve_triangular sqrtm".split()      # those of SciPy, and one of PyTorch


def test_linalg_has_the_names_of_numpy_and_of_the_array_api():
    standard = ("cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_transpose outer "
                "pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm").split()
    assert set(standard) <= set(cg.linalg.__all__) and "linalg" in dir(cg)
    for name in cg.linalg.__all__:
        value = getattr(cg.linalg, name)
        assert hasattr(np.linalg, name) or name in OTHERS or name.endswith("Result")
        assert value.__doc__
        if name not in ("norm", "vector_norm", "diagonal", "trace") and hasattr(cg, name):
            assert value is getattr(cg, name)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (4, 2, 3, 3), (2, 0, 3), (0, 2, 3)])
@pytest.mark.parametrize("offset", [0, 1, -1, 5])
def test_diagonals_of_linalg_are_those_of_matrices(shape, offset):
    """numpy.linalg and the Array API take the last two axes, cygrad.diagonal and numpy.diagonal the first two."""
    a = random(*shape)
    x = cg.tensor(a).attach_grad()
    for f, like in ((cg.linalg.diagonal, np.linalg.diagonal), (cg.linalg.trace, np.linalg.trace)):
        with cg.record(): y = f(x, offset=offset)
        wanted = like(a, offset=offset)
        assert y.shape == np.shape(wanted)
        np.testing.assert_allclose(y.detach().numpy(), wanted, rtol=1e-13)
        y.backward()
        where = np.broadcast_to(np.eye(*shape[-2:], offset), shape)
        assert np.array_equal(x.grad.numpy(), where)
    assert np.array_equal(cg.diagonal(a, offset), np.diagonal(a, offset))
    assert np.array_equal(cg.trace(a, offset), np.trace(a, offset))


def test_the_dtype_of_a_trace():
    x = cg.tensor(np.ones((2, 3, 3), "float32")).attach_grad()
    with cg.record(): y = cg.linalg.trace(x, dtype="float64")
    assert y.dtype == "float64" and y.tolist() == [3, 3]
    y.backward()
    assert x.grad.dtype == "float32" and np.array_equal(x.grad.numpy(), np.broadcast_to(np.eye(3), (2, 3, 3)))
    for a in (np.ones((2, 2), "int8"), np.ones((2, 2), bool)):
        for dtype in (None, "int32", "float32"):
            found, wanted = cg.linalg.trace(a, dtype=dtype), np.linalg.trace(a, dtype=dtype)
            assert found.item() == wanted == 2 and (dtype is None or found.dtype == dtype)
    with pytest.raises(ValueError, match="^diagonal: x is \\(3,\\); wanted at least 2 dimensions"):
        cg.linalg.diagonal(np.ones(3))
    with pytest.raises(ValueError, match="^trace: x is \\(3,\\); wanted at least 2 dimensions"):
        cg.linalg.trace(np.ones(3))


def test_a_captured_trace_of_linalg():
    net = cg.graph.Net.capture(lambda x: cg.linalg.trace(x, offset=1), cg.ones((2, 3, 4)))
    a, ws = random(2, 3, 4), cg.graph.Workspace()
    ws.feed(net.inputs[0], a.astype("float32"))
    ws.run(net)
    np.testing.assert_allclose(ws.fetch(net.outputs[0]).numpy(), np.linalg.trace(a, offset=1), rtol=1e-5)


@pytest.mark.parametrize("shape, args", [
    ((2, 3, 4), ()), ((4,), (1,)), ((3, 4), ("nuc",)), ((3, 4), (np.inf,)), ((2, 3, 4), (None, 1)),
    ((2, 3, 4), (3, -1)), ((2, 3, 4), (None, (0, 2))), ((2, 3, 4), (2, (2, 0))), ((2, 3, 4), ("nuc", (1, 2), True)),
    ((2, 3, 4), ("fro", (0, 1), True)), ((4,), (None, None, True)),
])
def test_linalg_norm_is_numpys(shape, args):
    x = random(*shape)
    wanted = np.linalg.norm(x, *args)
    y = cg.linalg.norm(x, *args)
    assert y.shape == np.shape(wanted)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)
