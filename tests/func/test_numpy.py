"""NumPy's functions inside of transformations, as the suites of HIPS autograd call them: values are NumPy's, and first
and second derivatives agree with finite differences in both modes."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, jvp, vmap

M, V, P = (3, 4), (4,), "positive"      # shapes of arguments, and one with positive elements

# name: (function, shapes of its arguments; P before a shape: positive elements)
CALLS = {
    # elementwise
    **{f.__name__: (f, M) for f in (
        np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.exp, np.exp2, np.expm1, np.arctan, np.arcsinh, np.square,
        np.negative, np.positive, np.absolute, np.fabs, np.sinc, np.nan_to_num, np.deg2rad, np.rad2deg, np.degrees,
        np.radians, np.real, np.sign, np.floor, np.ceil, np.trunc, np.rint)},
    **{f.__name__: (f, P, M) for f in (np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.reciprocal)},
    "arcsin": (lambda x: np.arcsin(x / 9), M), "arccos": (lambda x: np.arccos(x / 9), M),
    "arctanh": (lambda x: np.arctanh(x / 9), M), "arccosh": (lambda x: np.arccosh(x + 2), P, M),
    **{f.__name__: (f, M, V) for f in (
        np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.hypot,
        np.arctan2)},
    **{f.__name__: (f, P, M, P, V) for f in (np.divide, np.power, np.mod, np.copysign)},
    "power of a number": (lambda x: np.power(x, 3), M), "number to a power": (lambda x: np.power(1.7, x), M),
    "ldexp of numbers": (lambda x: 3 * x - x / 2 + 2 / (x * x + 1) - (1 - x), M),
    "clip": (lambda x: np.clip(x, -0.6, 0.7), M), "where": (lambda x, y: np.where(np.arange(4) > 1, x, y), M, V),
    # reductions
    **{f"{f.__name__} {kwargs}": (lambda x, f=f, kwargs=kwargs: f(x, **kwargs), M)
       for f in (np.sum, np.mean, np.prod, np.max, np.min, np.std, np.var)
       for kwargs in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}, {"axis": -1})},
    "std, ddof": (lambda x: np.std(x, ddof=1), M), "var, ddof": (lambda x: np.var(x, axis=0, ddof=1), M),
    "sum of a number": (lambda x: np.sum(x[0, 0]), M), "average": (np.average, M), "median": (np.median, M),
    "median, axis": (lambda x: np.median(x, axis=1), M), "ptp": (np.ptp, M),
    "cumsum": (np.cumsum, M), "cumsum, axis": (lambda x: np.cumsum(x, axis=0), M), "cumprod": (np.cumprod, V),
    "diff": (np.diff, M), "diff, n": (lambda x: np.diff(x, n=2, axis=0), M), "trace": (np.trace, M),
    "trace, offset": (lambda x: np.trace(x, offset=1), M), "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x), M),
    "add.reduce": (lambda x: np.add.reduce(x, axis=1), M), "linalg.norm": (np.linalg.norm, M),
    "linalg.norm, axis": (lambda x: np.linalg.norm(x, axis=1), M),
    "norm of order 3": (lambda x: np.linalg.norm(x, 3), V),
    # products
    "dot": (np.dot, M, V), "dot of matrices": (np.dot, M, (4, 2)), "dot of vectors": (np.dot, V, V),
    "dot of 3 and 2 dimensions": (np.dot, (2, 3, 4), (4, 2)), "matmul": (np.matmul, (2, 3, 4), (4, 3)),
    "matmul, stacked": (np.matmul, (2, 1, 3, 4), (5, 4, 2)), "inner": (np.inner, M, (2, 4)),
    "outer": (np.outer, V, (3,)),
    "vdot": (np.vdot, M, M), "tensordot": (np.tensordot, (2, 3, 4), (3, 4, 2)), "kron": (np.kron, M, (2, 2)),
    "tensordot, axes": (lambda x, y: np.tensordot(x, y, ([0, 2], [1, 0])), (2, 3, 4), (4, 2, 5)),
    "cross": (np.cross, (2, 3), (2, 3)),
    **{f"einsum {rule}": (lambda *xs, rule=rule: np.einsum(rule, *xs), *shapes) for rule, shapes in {
        "ij->ji": [M], "ij->": [M], "ii->i": [(3, 3)], "ii": [(3, 3)], "i,j->ij": [V, (3,)], "ij,j->i": [M, V],
        "ij,kj->ik": [M, (2, 4)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 3)], "...j,j": [(2, 3, 4), V],
        "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)]}.items()},
    # shapes
    "reshape": (lambda x: np.reshape(x, (2, 6)), M), "ravel": (np.ravel, M), "transpose": (np.transpose, M),
    "transpose, axes": (lambda x: np.transpose(x, (2, 0, 1)), (2, 3, 4)),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), M),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), (2, 3, 4)),
    "expand_dims": (lambda x: np.expand_dims(x, 1), M), "squeeze": (np.squeeze, (3, 1, 2)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3, 4)), M), "flip": (np.flip, M), "fliplr": (np.fliplr, M),
    "flipud": (np.flipud, M), "rot90": (np.rot90, M), "roll": (lambda x: np.roll(x, 2), M),
    "roll, axis": (lambda x: np.roll(x, 1, axis=0), M), "tile": (lambda x: np.tile(x, (2, 1)), M),
    "repeat": (lambda x: np.repeat(x, 2), M), "repeat, axis": (lambda x: np.repeat(x, 3, axis=1), M),
    "pad": (lambda x: np.pad(x, ((1, 0), (2, 1))), M), "diag of a matrix": (np.diag, M),
    "diag of a vector": (np.diag, V),
    "diagonal": (np.diagonal, M), "tril": (np.tril, M), "triu": (lambda x: np.triu(x, 1), M),
    "atleast_1d": (lambda x: np.atleast_1d(x[0, 0]), M), "atleast_2d": (np.atleast_2d, V),
    "atleast_3d": (np.atleast_3d, M), "concatenate": (lambda x, y: np.concatenate([x, y, x], 1), M, M),
    "stack": (lambda x, y: np.stack([x, y], axis=1), M, M), "vstack": (lambda x, y: np.vstack([x, y]), M, V),
    "hstack": (lambda x, y: np.hstack([x, y]), M, (3, 2)), "dstack": (lambda x, y: np.dstack([x, y]), M, M),
    "column_stack": (lambda x, y: np.column_stack([x, y]), M, (3,)), "append": (lambda x, y: np.append(x, y), M, V),
    "split": (lambda x: np.split(x, 2, axis=1)[1], M), "array_split": (lambda x: np.array_split(x, 2)[0], M),
    "hsplit": (lambda x: np.hsplit(x, 2)[0], M), "vsplit": (lambda x: np.vsplit(x, 3)[1], M),
    "sort": (np.sort, M), "sort, axis": (lambda x: np.sort(x, axis=0), M), "take": (lambda x: np.take(x, [2, 0, 2]), M),
    "take, axis": (lambda x: np.take(x, [1, 1], axis=1), M),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.array([[1], [0], [3]]), 1), M),
    "meshgrid": (lambda x, y: np.meshgrid(x, y)[0] * np.meshgrid(x, y)[1], V, (3,)),
    # indexing, and attributes of arrays
    "index": (lambda x: x[1], M), "slices": (lambda x: x[::-2, 1:3], M), "ellipsis": (lambda x: x[..., None, 0], M),
    "index array": (lambda x: x[np.array([0, 2, 0])], M), "mask": (lambda x: x[np.arange(3) > 0], M),
    "index arrays": (lambda x: x[np.array([0, 2]), np.array([1, 1])], M), "T": (lambda x: x.T @ x, M),
    "methods": (lambda x: x.sum(0) * x.mean() + x.reshape(4, 3).max(1).prod() + x.ravel()[:4].cumsum(), M),
    # linear algebra
    "inv": (lambda x: np.linalg.inv(x + 3 * np.eye(3)), (3, 3)), "det": (np.linalg.det, (3, 3)),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], (3, 3)), "solve": (
        lambda x, y: np.linalg.solve(x + 3 * np.eye(3), y), (3, 3), (3, 2)),
    "cholesky": (lambda x: np.linalg.cholesky(x @ x.T + np.eye(3)), (3, 3)), "pinv": (np.linalg.pinv, M),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(x + x.T), (3, 3)), "eigh": (
        lambda x: np.linalg.eigh(x + x.T)[1] ** 2, (3, 3)), "svd": (
        lambda x: np.linalg.svd(x, full_matrices=False)[1], M), "matrix_power": (
        lambda x: np.linalg.matrix_power(x, 3), (3, 3)), "lstsq": (
        lambda x, y: np.linalg.lstsq(x, y)[0], (4, 3), (4, 2)), "qr": (lambda x: np.linalg.qr(x)[0], (4, 3)),
    "gradient": (lambda x: np.gradient(x, axis=1), (3, 4)), "partition": (lambda x: np.partition(x, 1), (3, 4)),
    "select": (lambda x: np.select([x > 0.5, x < 0], [x * x, -x], 2.0), (3, 4)),
    "rollaxis": (lambda x: np.rollaxis(x * x, 1), (3, 4)), "logaddexp2": (np.logaddexp2, (3, 4), (4,)),
}

# What cygrad does not have: TypeError, whatever the arguments are.
REFUSED = {
    "convolve": lambda x: np.convolve(x[0], x[1]), "correlate":
    lambda x: np.correlate(x[0], x[1]), "interp": lambda x: np.interp(x, [0, 1], [2, 3]), "cov": np.cov,
    "corrcoef": np.corrcoef, "trapezoid": np.trapezoid, "fft": np.fft.fft,
    "polyval": lambda x: np.polyval([1, 2], x), "histogram": np.histogram,
    "apply_along_axis": lambda x: np.apply_along_axis(np.sum, 0, x), "diagflat": np.diagflat,
    "multi_dot": lambda x: np.linalg.multi_dot([x, x.T, x]), "heaviside": lambda x: np.heaviside(x, 0.5),
    "fmod": lambda x: np.fmod(x, 2), "float_power": lambda x: np.float_power(2, x),
    "unwrap": np.unwrap, "i0": np.i0, "frexp": np.frexp, "modf": np.modf,
}


def arguments(shapes, rng):
    out, positive = [], False
    for shape in shapes:
        if shape == P: positive = True
        else:
            a = rng.permutation(np.linspace(-1.7, 1.9, int(np.prod(shape)))).reshape(shape)     # no two are equal
            out.append(abs(a) + 0.5 + 0.03 * len(out) if positive else a + 0.013 + 0.03 * len(out))
            positive = False
    return out


@pytest.mark.parametrize("name", CALLS)
def test_values_and_derivatives(name):
    f, *shapes = CALLS[name]
    rng = np.random.default_rng(0)
    xs = arguments(shapes, rng)
    ts = [rng.standard_normal(x.shape) for x in xs]
    want = np.asarray(f(*xs))
    found = f(*map(cg.tensor, xs))
    assert isinstance(found, cg.Tensor) and found.shape == want.shape
    np.testing.assert_allclose(found, want, 1e-12, 1e-12)
    weights = rng.standard_normal(want.shape)

    everything = tuple(range(len(xs)))
    def loss(*xs): return (f(*xs) * weights).sum()
    def slope(h): return (float(loss(*moved(h))) - float(loss(*moved(-h)))) / (2 * h)
    def moved(h): return [cg.tensor(x + h * t) for x, t in zip(xs, ts, strict=True)]
    def along(gradients): return sum(float((g * t).sum()) for g, t in zip(gradients, ts, strict=True))

    of_loss = grad(loss, everything)
    gradients = of_loss(*xs)
    value = along(gradients)
    assert value == pytest.approx(slope(1e-6), 1e-6, 1e-6)
    _, tangent = jvp(loss, tuple(xs), tuple(ts))
    assert float(tangent) == pytest.approx(value, 1e-9, 1e-9)
    h = 1e-5
    second = [np.asarray(t) for t in jvp(of_loss, tuple(xs), tuple(ts))[1]]
    ahead, behind = of_loss(*moved(h)), of_loss(*moved(-h))
    for s, a, b in zip(second, ahead, behind, strict=True):
        np.testing.assert_allclose(s, (np.asarray(a) - np.asarray(b)) / (2 * h), 1e-4, 1e-5)


@pytest.mark.filterwarnings("ignore::cygrad.core.errors.PerformanceWarning")
@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("mask", "ptp")])
def test_lanes(name):
    f, *shapes = CALLS[name]
    xs = arguments(shapes, np.random.default_rng(0))
    full = [np.stack([x, x * 1.1, x + 0.1]) for x in xs]
    found = vmap(f)(*full)
    for k in range(3): np.testing.assert_allclose(found[k], f(*[x[k] for x in full]), 1e-9, 1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_what_there_is_not_is_refused(name):
    x = arguments([M], np.random.default_rng(0))[0]
    REFUSED[name](x)
    with pytest.raises(TypeError, match="does not take a tensor"): REFUSED[name](cg.tensor(x))
    with pytest.raises(TypeError, match="does not take a tensor"): grad(lambda x: REFUSED[name](x).sum())(x)
