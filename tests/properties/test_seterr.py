"""numpy.seterr and warnings as errors: NumPy inside a cygrad operation reports no more than cygrad's kernels."""

import warnings

import numpy as np
import pytest

import cygrad as cg
from rows import ALL_DTYPES, every_case, is_array, is_floating

NUMBERS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324, 1e-310, 1e-45, -1.5, 3e9]


def arrays(args):
    """The arguments, and variants with other arrays: special numbers, large integers, bools."""
    yield args
    for dtype in ALL_DTYPES:
        if np.dtype(dtype).kind == "f":
            info = np.finfo(dtype)
            numbers = [0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.smallest_subnormal, -1]
        elif dtype == "bool":
            numbers = [True, False, False]
        else:
            info = np.iinfo(dtype)
            numbers = [info.max, info.min, 0, 1, info.max - 1, 2]
        yield [np.resize(np.array(numbers, dtype), a.shape) if is_floating(a) else a for a in args]


def contents(y):
    """The comparable contents of a call's result."""
    if isinstance(y, (tuple, list)):
        return [contents(v) for v in y]
    return (y.dtype, y.shape, y.detach().numpy().tobytes()) if isinstance(y, cg.Tensor) else repr(y)


def outcome(f):
    try:
        return contents(f())
    except Exception as e:
        return type(e).__name__, str(e)


def quiet(f):
    """Whether f() does the same under all settings of numpy.seterr."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = outcome(f)
    for do in ("raise", "warn"):
        with np.errstate(all=do), warnings.catch_warnings():
            warnings.simplefilter("error")
            found = outcome(f)
        assert found == wanted, f"with {do}"


@every_case
def test_every_operation(row, args, kwargs):
    for given in arrays(args):
        def run(given=given):
            xs = [cg.tensor(a, requires_grad=is_floating(a)) if is_array(a) else a for a in given]
            leaves = [x for x in xs if isinstance(x, cg.Tensor) and x.requires_grad]
            with cg.record():
                y = row.tested(*xs, **kwargs)
                if not leaves or not isinstance(y, cg.Tensor) or not y.requires_grad:
                    return y, str(y)
                g = cg.ones(y.shape, dtype=y.dtype)
                by_formula = cg.autograd.grad(y, leaves, g, create_graph=True, allow_unused=True)
            return y, repr(y), by_formula, cg.autograd.grad(y, leaves, g, allow_unused=True)
        quiet(run)


def written(write, dtype):
    x = cg.zeros(len(NUMBERS), dtype=dtype)
    write(x)
    return x


CONVERSIONS = {
    "astype": lambda dtype: cg.tensor(np.array(NUMBERS)).astype(dtype),
    "tensor of an array": lambda dtype: cg.tensor(np.array(NUMBERS), dtype=dtype),
    "tensor of a list": lambda dtype: cg.tensor(NUMBERS, dtype=dtype),
    "tensor of a list in the default dtype": lambda dtype: cg.tensor(NUMBERS),
    "full": lambda dtype: cg.full((3,), 1e300, dtype=dtype),
    "full of a scalar": lambda dtype: cg.full((3,), np.float64(1e300), dtype=dtype),
    "full_like": lambda dtype: cg.full_like(cg.zeros(3, dtype=dtype), np.nan),
    "fill_": lambda dtype: written(lambda x: x.fill_(1e300), dtype),
    "copy_": lambda dtype: written(lambda x: x.copy_(cg.tensor(np.array(NUMBERS))), dtype),
    "x[...] = number": lambda dtype: written(lambda x: x.__setitem__(..., np.nan), dtype),
    "x[...] = array": lambda dtype: written(lambda x: x.__setitem__(..., np.array(NUMBERS)), dtype),
    "x[list] = number": lambda dtype: written(lambda x: x.__setitem__([0, 2], -1e300), dtype),
    "x[mask] = number": lambda dtype: written(lambda x: x.__setitem__(x == 0, 1e300), dtype),
    "x += number": lambda dtype: cg.ones(3, dtype=dtype).__iadd__(1e300),
    "pad": lambda dtype: cg.pad(cg.zeros(3, dtype=dtype), 1, value=1e300),
    "where": lambda dtype: cg.where(True, cg.zeros(3, dtype=dtype), 1e300),
    "arange": lambda dtype: cg.arange(0, 1e9, 1e8, dtype=dtype),
    "linspace": lambda dtype: cg.linspace(-1.7e308, 1.7e308, 4, dtype=dtype),
    "power": lambda dtype: cg.full((3,), 100, dtype=dtype) ** 20,
    "division": lambda dtype: cg.zeros(3, dtype=dtype) / cg.zeros(3, dtype=dtype),
    "mean of nothing": lambda dtype: cg.zeros((0,), dtype=dtype).mean(),
    "std of one": lambda dtype: cg.zeros((1,), dtype=dtype).std(correction=1),
    "sum": lambda dtype: cg.full((300,), 100, dtype=dtype).sum(),
    "concat": lambda dtype: cg.concat([cg.tensor(np.array(NUMBERS)), cg.zeros(2, dtype=dtype)]),
    "comparison": lambda dtype: cg.zeros(3, dtype=dtype) < 1e300,
}


@pytest.mark.parametrize("f", CONVERSIONS.values(), ids=CONVERSIONS)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_conversions(f, dtype):
    quiet(lambda: f(dtype))


def test_seterr_itself():
    """The global setting, at the top of a user's program."""
    before = np.seterr(all="raise")
    try:
        x = cg.tensor([1e30, 0.0, np.nan], requires_grad=True)
        with cg.record():
            y = (x * x / x).sum()
        y.backward()
        assert np.isnan(y.item()) and "nan" in repr(x.grad) and f"{cg.tensor(1e-45):.3f}" == "0.000"
        assert cg.testing.gradcheck(cg.exp, [cg.tensor([1.0, -745.0], dtype="float64")])
        with pytest.raises(FloatingPointError):
            np.array([1e30], "float32") * np.float32(1e30)      # NumPy's own operations still raise
    finally:
        np.seterr(**before)
