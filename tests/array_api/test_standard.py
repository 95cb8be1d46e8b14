"""The namespace cygrad.array_api against array_api_strict, the reference of the array API standard 2025.12: names,
signatures, and for each function and each dtype that the standard has for it, the dtype and the values of the result.

CYGRAD_ARRAY_API is the number of random arrays of each case (`make array-api` takes 200). The calls are written from
the text of the standard; the suite of its authors, array-api-tests, is not on PyPI."""

import inspect
import os

import numpy as np
import pytest

import cygrad as cg

strict = pytest.importorskip("array_api_strict")
xp = cg.array_api
ROUNDS = int(os.environ.get("CYGRAD_ARRAY_API", "2"))
DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64").split()
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.nan, np.inf, -np.inf, 1e-45, 3e38, 2.0]
NOT_HERE = {"fft", "complex64", "complex128", "Device", "__version__", "ArrayAPIStrictFlags",
            "set_array_api_strict_flags", "get_array_api_strict_flags", "reset_array_api_strict_flags"}


def numbers(rng, dtype, shape=(3, 4)):
    """Random numbers of a dtype: all bools, small and extreme integers, ordinary and special floating numbers."""
    if dtype == "bool": return rng.random(shape) < 0.5
    if dtype.startswith("f"):
        a = np.where(rng.random(shape) < 0.5, rng.normal(size=shape) * 3, rng.choice(SPECIAL, shape))
        with np.errstate(over="ignore"): return a.astype(dtype)
    i = np.iinfo(dtype)
    small = rng.integers(max(i.min, -9), 10, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.9, small, rng.choice(np.array([i.min, i.max], dtype), shape))


def flat(value):
    """The arrays and numbers of a result."""
    if isinstance(value, (tuple, list)): return [v for part in value for v in flat(part)]
    return [value]


def compare(f, *arrays, rtol=None, atol=1e-37):
    """f(xp, *arrays) is in cygrad.array_api what it is in array_api_strict; False if that refuses the dtypes."""
    strict.set_array_api_strict_flags(api_version="2025.12")
    try:
        with np.errstate(all="ignore"): wanted = f(strict, *[strict.asarray(a) for a in arrays])
    except TypeError: return False
    with np.errstate(all="ignore"): found = f(xp, *[xp.asarray(a, copy=True) for a in arrays])
    assert len(flat(found)) == len(flat(wanted))
    for y, w in zip(flat(found), flat(wanted), strict=True):
        if not hasattr(w, "dtype"):
            assert y == w and type(y) is type(w)
            continue
        w = np.asarray(w)
        assert y.dtype == w.dtype and y.shape == w.shape, (y.dtype, w.dtype, y.shape, w.shape)
        if w.dtype.kind != "f": np.testing.assert_array_equal(y.numpy(), w)
        else:
            rtol = rtol or (2e-5 if w.dtype == "float32" else 1e-12)
            np.testing.assert_allclose(y.numpy(), w, rtol, atol)
    return True


def test_names():
    assert {name for name in strict.__all__ if not hasattr(xp, name)} == NOT_HERE
    assert [name for name in strict.linalg.__all__ if not hasattr(xp.linalg, name)] == []
    assert xp.__array_api_version__ == "2025.12" and set(xp.__all__) <= set(dir(xp))
    for name in ("e", "pi", "inf", "newaxis"): assert getattr(xp, name) == getattr(strict, name)
    x = xp.ones(2)
    operators = [name for name in dir(type(strict.ones(2))) if name.startswith("__")]
    missing = {name for name in operators if not hasattr(x, name)}
    in_place = {f"__i{op}__" for op in "and or xor pow lshift rshift matmul".split()}      # `x &= y` is `x = x & y`
    assert missing - in_place <= {
        "__annotations__", "__buffer__", "__slots__", "__complex__", "__weakref__", "__module__"}


@pytest.mark.parametrize("module", ["", "linalg"])
def test_signatures(module):
    """Each argument that the standard passes by keyword has that name and default, and by position there are as
    many."""
    theirs, ours = (strict.linalg, xp.linalg) if module else (strict, xp)
    compared = 0
    for name in theirs.__all__:
        f = getattr(theirs, name)
        if not inspect.isfunction(f) or name in NOT_HERE or name.startswith("__"): continue
        wanted, found = (inspect.signature(g).parameters for g in (f, getattr(ours, name)))
        compared += 1
        by_name = [p for p in wanted.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        for p in by_name:
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty: continue     # (x of astype and others)
            assert p.name in found, (name, p.name)
            if "UNDEF" in str(p.default) or p.default is p.empty: continue
            assert found[p.name].default == p.default, (name, p.name)
        kinds = [p.kind for p in found.values()]
        if inspect.Parameter.VAR_POSITIONAL in kinds: continue
        positional = [p for p in wanted.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        assert sum(k is not inspect.Parameter.KEYWORD_ONLY for k in kinds) >= len(positional), name
        needed = [p for p in found.values() if p.default is p.empty]
        assert len(needed) <= len([p for p in wanted.values() if p.default is p.empty]), name
    assert compared > (20 if module else 130)


UNARY = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor isfinite isinf isnan log log1p
log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
""".split()
BINARY = """
add atan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less
less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder
subtract
""".split()
OPERATORS = {"__add__": lambda x, y: x + y, "__sub__": lambda x, y: x - y, "__mul__": lambda x, y: x * y,
             "__truediv__": lambda x, y: x / y, "__mod__": lambda x, y: x % y, "__lt__": lambda x, y: x < y,
             "__eq__": lambda x, y: x == y, "__ge__": lambda x, y: x >= y, "__and__": lambda x, y: x & y,
             "__or__": lambda x, y: x | y, "__xor__": lambda x, y: x ^ y}


def usual(name, a, b):
    """The operands, without the values for which the standard leaves the result of this function open."""
    if a.dtype.kind in "iu" and name in ("floor_divide", "remainder", "__mod__"): b = np.where(b == 0, 1, b)
    if a.dtype.kind in "iu" and name == "pow": b = np.abs(b) % 4
    return a, b.astype(a.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_elements(name, dtype):
    rng = np.random.default_rng(len(name))
    for _ in range(ROUNDS):
        a = numbers(rng, dtype)
        if not compare(lambda xp, x: getattr(xp, name)(x), a): pytest.skip("not in the standard")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*BINARY, *OPERATORS])
def test_pairs(name, dtype):
    rng = np.random.default_rng(len(name))
    f = OPERATORS.get(name) or (lambda x, y: None)
    for _ in range(ROUNDS):
        a, b = usual(name, numbers(rng, dtype), numbers(rng, dtype))
        if name == "floor_divide" and a.dtype.kind == "f":      # (NumPy, and so strict, gives NaN for inf // 2)
            a = np.where(np.isinf(a), 1, a).astype(dtype)
        call = (lambda xp, x, y: f(x, y)) if name in OPERATORS else (lambda xp, x, y: getattr(xp, name)(x, y))
        if not compare(call, a, b): pytest.skip("not in the standard")
        assert compare(call, a[:1], b[:, :1])


def test_infinity_divided_by_a_number():
    x = xp.asarray([np.inf, -np.inf, np.inf, np.inf, np.nan])
    y = xp.floor_divide(x, xp.asarray([2.0, 2.0, -3.0, np.inf, 1.0]))
    np.testing.assert_array_equal(y, [np.inf, -np.inf, -np.inf, np.nan, np.nan])
    assert xp.floor_divide(xp.asarray([7, -7]), 2).tolist() == [3, -4]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts(name, dtype):
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        a, b = numbers(rng, dtype), rng.integers(0, 7, (3, 4)).astype(dtype)
        assert compare(lambda xp, x, y: getattr(xp, name)(x, y), a, b)
        assert compare(lambda xp, x, y: x << 2 if "left" in name else x >> y, a, b)


@pytest.mark.parametrize("a", DTYPES)
def test_promotion(a):
    for b in DTYPES:
        x, y = np.ones(2, a), np.ones(2, b)
        try: wanted = strict.result_type(strict.asarray(x), strict.asarray(y))
        except TypeError: continue
        assert xp.result_type(xp.asarray(x), xp.asarray(y)) == xp.result_type(np.dtype(a), xp.asarray(y)) == str(
            wanted).rpartition(".")[2]
        assert compare(lambda xp, x, y: xp.maximum(x, y) if "bool" not in (a, b) else xp.logical_or(x, y), x, y)
        assert xp.can_cast(np.dtype(a), np.dtype(b)) == strict.can_cast(getattr(strict, a), getattr(strict, b))
    assert compare(lambda xp, x: (xp.add(x, 1) if a != "bool" else xp.logical_not(x), x == x), np.ones(3, a))
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    for kind in kinds: assert xp.isdtype(np.dtype(a), kind) == strict.isdtype(getattr(strict, a), kind)
    assert xp.isdtype(np.dtype(a), ("bool", xp.float64)) == (a in ("bool", "float64"))


REDUCTIONS = {
    "all": "axis keepdims", "any": "axis keepdims", "max": "axis keepdims", "min": "axis keepdims",
    "mean": "axis keepdims", "prod": "axis keepdims dtype", "sum": "axis keepdims dtype",
    "std": "axis keepdims correction", "var": "axis keepdims correction", "count_nonzero": "axis keepdims",
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    rng = np.random.default_rng(len(name))
    for _ in range(ROUNDS):
        a = numbers(rng, dtype, (2, 3, 4))
        if dtype.startswith("f"): a = np.where(np.abs(a) < 100, a, 1.0).astype(dtype)
        for axis in (None, 0, -1, (0, 2), (1,), ()):
            for keepdims in (False, True):
                if axis == () and name not in ("sum", "all"): continue
                if not compare(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), a, rtol=1e-4,
                               atol=1e-5):
                    pytest.skip("not in the standard")
        if "correction" in REDUCTIONS[name]:
            assert compare(lambda xp, x: getattr(xp, name)(x, axis=1, correction=1), a, rtol=1e-4)
        if "dtype" in REDUCTIONS[name]:
            for to in ("int32", "uint8") if "int" in dtype else ("float64",) if "float" in dtype else ():
                assert compare(lambda xp, x: getattr(xp, name)(x, axis=1, dtype=getattr(xp, to)), a, rtol=1e-4)


# Functions of an array (3, 4) of any dtype.
CALLS = {
    "argmax": lambda xp, x: (xp.argmax(x), xp.argmax(x, axis=1, keepdims=True)),
    "argmin": lambda xp, x: (xp.argmin(x), xp.argmin(x, axis=0)),
    "argsort": lambda xp, x: (xp.argsort(x), xp.argsort(x, axis=0, stable=True), xp.argsort(x, descending=True)),
    "sort": lambda xp, x: (xp.sort(x), xp.sort(x, axis=0, descending=True, stable=False)),
    "astype": lambda xp, x: (xp.astype(x, xp.float64), xp.astype(x, xp.bool), xp.astype(x, x.dtype, copy=False)),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), "clip": lambda xp, x: xp.clip(x, 1, 3),
    "clip one": lambda xp, x: (xp.clip(x, max=3), xp.clip(x, xp.minimum(x[:1, :], 9), xp.asarray(99, dtype=x.dtype))),
    "concat": lambda xp, x: (xp.concat([x, x], axis=-1), xp.concat((x, x[0, :]), axis=None)),
    "cumulative_sum": lambda xp, x: (xp.cumulative_sum(x, axis=1), xp.cumulative_sum(x[0, :], include_initial=True)),
    "cumulative_sum, dtype": lambda xp, x: xp.cumulative_sum(x, axis=0, dtype=xp.float64, include_initial=True),
    "cumulative_prod": lambda xp, x: (xp.cumulative_prod(x[:, :2], axis=1),
                                      xp.cumulative_prod(x, axis=0, include_initial=True)),
    "diff": lambda xp, x: (xp.diff(x), xp.diff(x, axis=0, n=2), xp.diff(x, prepend=x[:, :1], append=x[:, 1:3])),
    "empty_like": lambda xp, x: (xp.empty_like(x).shape, xp.empty((2,), dtype=x.dtype, device=x.device).shape),
    "expand_dims": lambda xp, x: (xp.expand_dims(x, axis=0), xp.expand_dims(x, axis=-1)),
    "flip": lambda xp, x: (xp.flip(x), xp.flip(x, axis=1), xp.flip(x, axis=(0, 1))),
    "full_like": lambda xp, x: (xp.full_like(x, 1), xp.full((2,), 1, dtype=x.dtype)),
    "indexing": lambda xp, x: (x[0, 1], x[..., ::-1], x[1:, None, :2], x[:, -1], x[x == x],
                               x[xp.asarray([2]), xp.asarray([1])]),
    "isin": lambda xp, x: (xp.isin(x, x[0, :]), xp.isin(x, x[0, :2])),
    "iter": lambda xp, x: [xp.unstack(x), xp.unstack(x, axis=1)], "matrix_transpose": lambda xp, x: (
        xp.matrix_transpose(x), x.mT, x.T), "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "meshgrid": lambda xp, x: (xp.meshgrid(x[0, :], x[:, 0]), xp.meshgrid(x[0, :], x[:, 0], indexing="ij")),
    "nonzero": lambda xp, x: xp.nonzero(x), "ones_like": lambda xp, x: (xp.ones_like(x), xp.zeros_like(x)),
    "permute_dims": lambda xp, x: xp.permute_dims(x, axes=(1, 0)), "repeat": lambda xp, x: (
        xp.repeat(x, 2), xp.repeat(x, 2, axis=1), xp.repeat(x, xp.asarray([1, 0, 2]), axis=0)),
    "reshape": lambda xp, x: (xp.reshape(x, (2, 6)), xp.reshape(x, (-1,), copy=True),
                              xp.reshape(x, (4, 3), copy=False)),
    "roll": lambda xp, x: (xp.roll(x, 1), xp.roll(x, (1, 2), axis=(0, 1))), "shape": lambda xp, x: (
        x.shape, x.ndim, x.size), "squeeze": lambda xp, x: xp.squeeze(x[:1, :], axis=0),
    "searchsorted": lambda xp, x: (xp.searchsorted(xp.sort(x[0, :]), x), xp.searchsorted(
        x[0, :], x[1, :], sorter=xp.argsort(x[0, :]), side="right")), "stack": lambda xp, x: (
        xp.stack([x, x]), xp.stack((x, x), axis=-1)), "take": lambda xp, x: (
        xp.take(x, xp.asarray([2, 0]), axis=1), xp.take(x[0, :], xp.asarray([1, -1]))),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0),
    "tile": lambda xp, x: (xp.tile(x, (2,)), xp.tile(x, (2, 1, 3))), "tril": lambda xp, x: (
        xp.tril(x), xp.triu(x, k=1)), "unique": lambda xp, x: (
        xp.unique_values(x), xp.unique_counts(x), xp.unique_inverse(x), xp.unique_all(x)),
    "where": lambda xp, x: (xp.where(x == x, x, xp.zeros_like(x)), xp.where(x != x, x, 1)), "asarray": lambda xp, x: (
        xp.asarray(x, copy=True), xp.asarray(x, dtype=xp.float32, device=x.device), x.to_device(x.device)),
    "matmul": lambda xp, x: (xp.matmul(x, x.mT), x @ x[0, :], xp.vecdot(x, x), xp.tensordot(x, x.mT, axes=1)),
    "linalg": lambda xp, x: (xp.linalg.outer(x[0, :], x[1, :]), xp.linalg.diagonal(x, offset=1), xp.linalg.trace(x),
                             xp.linalg.cross(x[:, :3], x[:, 1:]), xp.linalg.trace(x, dtype=xp.float64)),
    "write": lambda xp, x: write(xp, x),
    "float": lambda xp, x: (float(x[0, 0]), bool(x[1, 1] == x[1, 1]), int(x[2, 2])),
}


def write(xp, x):
    y = xp.asarray(x, copy=True)
    y[0, :] = y[1, :]
    y[:, 1] = 1
    y += x
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_calls(name, dtype):
    rng = np.random.default_rng(len(name))
    for _ in range(ROUNDS):
        a = numbers(rng, dtype)
        ordered = name not in ("unique", "isin", "sort", "argsort", "searchsorted", "indexing", "clip")
        if dtype.startswith("f") and ordered: a = np.where(np.abs(a) < 100, a, 1.0).astype(dtype)
        if name == "argsort": a = a + (0 if dtype == "bool" else np.zeros(1, a.dtype))
        if name == "clip one" and "int" in dtype: a = np.abs(a // 4).astype(dtype)
        if not compare(CALLS[name], a, rtol=1e-4): pytest.skip("not in the standard")


MATRICES = {
    "cholesky": lambda xp, x: (xp.linalg.cholesky(x @ x.mT), xp.linalg.cholesky(x @ x.mT, upper=True)),
    "det": lambda xp, x: (xp.linalg.det(x), xp.linalg.slogdet(x)), "inv": lambda xp, x: xp.linalg.inv(x),
    "eigvalsh": lambda xp, x: (xp.linalg.eigvalsh(x + x.mT), xp.linalg.eigh(x + x.mT).eigenvalues),
    "matrix_norm": lambda xp, x: [xp.linalg.matrix_norm(x, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2, xp.inf)],
    "matrix_power": lambda xp, x: (xp.linalg.matrix_power(x, 3), xp.linalg.matrix_power(x, 0)),
    "matrix_rank": lambda xp, x: (xp.linalg.matrix_rank(x),
                                  xp.linalg.matrix_rank(x[..., :1] @ x[..., :1, :], rtol=1e-3)),
    "pinv": lambda xp, x: (xp.linalg.pinv(x), xp.linalg.pinv(x[..., :2], rtol=1e-3)), "solve": lambda xp, x:
    (xp.linalg.solve(x, x @ x), xp.linalg.solve(x, x[..., :1])), "qr": lambda xp, x: qr(xp, x), "svd": lambda xp, x: (
        xp.linalg.svdvals(x), xp.linalg.svd(x, full_matrices=False).S),
    "vector_norm": lambda xp, x: [xp.linalg.vector_norm(x, ord=o, axis=a, keepdims=k) for o in (1, 2, 3.5, xp.inf, 0)
                                  for a, k in ((None, False), (0, True), ((0, 1), False))],
}


def qr(xp, x):
    q, r = xp.linalg.qr(x)
    return q @ r, xp.abs(r)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name, dtype):
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        a = (rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)).astype(dtype)
        narrow = dtype == "float32"
        assert compare(MATRICES[name], a, rtol=2e-3 if narrow else 1e-9, atol=1e-6 if narrow else 1e-14)


def test_creation():
    calls = [lambda xp: xp.arange(5), lambda xp: xp.arange(1, 4, 0.5), lambda xp: xp.arange(3, dtype=xp.uint8),
             lambda xp: xp.eye(3, 4, k=1), lambda xp: xp.eye(2, dtype=xp.int8), lambda xp: xp.linspace(0, 1, 5),
             lambda xp: xp.linspace(0, 3, num=4, dtype=xp.float64, endpoint=False), lambda xp: xp.ones((2, 3)),
             lambda xp: xp.zeros(3, dtype=xp.uint16), lambda xp: xp.full((2,), True), lambda xp: xp.asarray([[1, 2]]),
             lambda xp: xp.asarray([True]), lambda xp: xp.asarray([1, 2], dtype=xp.int16), lambda xp:
             xp.broadcast_shapes((2, 1), (3,)), lambda xp: xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3)),
             lambda xp: [xp.iinfo(xp.int8).max, xp.iinfo(xp.uint64).max, xp.finfo(xp.float32).bits]]
    for call in calls:
        found, wanted = flat(call(xp)), flat(call(strict))
        for y, w in zip(found, wanted, strict=True):
            if not hasattr(w, "dtype"): assert y == w
            else:
                w = np.asarray(w)
                assert y.shape == w.shape and y.dtype.kind == w.dtype.kind and np.array_equal(y.numpy(), w)
    f = xp.finfo(xp.float64)
    assert (type(f.eps), f.eps, f.dtype, f.max) == (float, 2.0 ** -52, xp.float64, float(np.finfo("float64").max))
    info = xp.__array_namespace_info__()
    assert info.default_dtypes() == {"real floating": "float32", "integral": "int64", "indexing": "int64"}
    assert set(info.dtypes()) == set(DTYPES) and set(info.dtypes(kind=("bool", "real floating"))) == {
        "bool", "float32", "float64"}
    assert info.devices() == [info.default_device()] == [xp.ones(1).device]
    assert set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert xp.ones(2).__array_namespace__(api_version="2024.12") is xp is cg.ones(1).__array_namespace__()


def test_isin_inverted():
    """array_api_strict 2.6.1 inverts when it should not."""
    x = xp.asarray([3, 1, 2, 1])
    assert xp.isin(x, xp.asarray([1, 5]), invert=True).tolist() == [True, False, True, False]
    assert xp.isin(x, xp.asarray([1, 5]), invert=False).tolist() == [False, True, False, True]
    assert xp.isin(2, x).tolist() is True and xp.isin(x, xp.asarray([], dtype=xp.int64)).tolist() == [False] * 4


def test_what_is_recorded_and_counted():
    """The functions are operators: they are recorded, and their memory is counted."""
    x = cg.tensor([[1.0, 2.0], [3.0, 4.0]]).attach_grad()
    with cg.record():
        y = xp.sum(xp.where(x > 1, xp.floor_divide(x, 1) + xp.nextafter(x, 9.0), xp.conj(x)), dtype=xp.float32)
        y = y + xp.cumulative_sum(x, axis=0, include_initial=True).sum() + xp.reshape(x, (4,), copy=True).sum()
    y.backward()
    assert x.grad.tolist() == [[4.0, 4.0], [3.0, 3.0]]
    with cg.memory.track() as t:
        z = cg.ones((1000,), dtype="int32") << 3
    assert z.dtype == "int32" and t.peak_bytes - cg.memory.stats()["live_bytes"] <= 8000 and z.nbytes == 4000


def test_refusals():
    for call in (lambda: xp.zeros(2, device="gpu"), lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False),
                 lambda: xp.cumulative_sum(xp.ones((2, 2))), lambda: xp.asarray([1.0], copy=False),
                 lambda: xp.ones(2).__array_namespace__(api_version="2099.01"), lambda: xp.ones(2).to_device("gpu"),
                 lambda: xp.result_type(1, 2.0), lambda: xp.broadcast_shapes((2,), (3,))):
        with pytest.raises(ValueError): call()
    for call in (lambda: xp.finfo(xp.int8), lambda: xp.iinfo(xp.float32), lambda: xp.isdtype(xp.int8, "number"),
                 lambda: xp.result_type(xp.uint64, xp.int8)):
        with pytest.raises(TypeError): call()
