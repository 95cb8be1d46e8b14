"""Reductions of narrow operands, which are widened: windows of images, short rows, few columns. Compared with NumPy in
float64 at sizes around the limits of the kernels (rows of 7 or 8 elements, 32 columns, tiles of 2048 results)."""

import numpy as np
import pytest

import cygrad as cg

NAMES = ("max", "min", "sum", "prod", "mean", "var", "norm")
SHAPES = [
    ((3, 14, 2, 14, 2), (2, 4)), ((3, 5, 3, 4, 3), (2, 4)), ((2, 3, 7, 9, 7), (2, 4)), ((2, 3, 8, 9, 8), (2, 4)),
    ((2, 9, 2, 9, 2, 5), (2, 4)), ((40, 2, 33), (1,)), ((200, 3, 31), (1,)), ((5, 70, 2, 3), (2,)), ((9, 600, 2), (2,)),
    ((1023, 2), (1,)), ((1024, 2), (1,)), ((1025, 2), (1,)), ((682, 3), (1,)), ((683, 3), (1,)), ((2049, 1, 5), (2,)),
    ((300, 7), (1,)), ((300, 8), (1,)), ((64, 4, 4), (0, 2)), ((64, 4, 33), (0, 2)), ((2, 300, 4, 4), (1, 3)),
    ((70000, 2, 2), (0, 2)), ((3, 40000, 2), (1,)), ((4, 3, 5, 2, 3, 2, 2), (1, 3, 5)), ((6, 2, 1500), (1,)),
]


def expected(name, x, axes):
    if name == "norm": return np.sqrt((x * x).sum(axes))
    return getattr(x, name)(axes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, axes", SHAPES, ids=str)
def test_narrow_reductions(shape, axes, dtype, two_threads):
    x = np.random.default_rng(5).uniform(0.9, 1.1, shape).astype(dtype)
    for a in (x, np.ascontiguousarray(x.T).T):                          # the same numbers with other strides
        for name in NAMES:
            values = {}
            for threads in (1, 2):
                cg.set_num_threads(threads)
                values[threads] = getattr(cg.asarray(a), name)(axis=axes).numpy()
            assert values[1].tobytes() == values[2].tobytes(), name
            reference = expected(name, x.astype("float64"), axes).astype(dtype)
            rtol = (1e-4 if name in ("prod", "var") else 1e-6) if dtype == "float32" else 1e-11
            np.testing.assert_allclose(values[1], reference, rtol, err_msg=name)


@pytest.mark.parametrize("place", [0, 27, 55])
def test_nan_of_a_window(place):
    x = np.arange(6 * 14 * 2 * 14 * 2, dtype="float32").reshape(6, 14, 2, 14, 2)
    x.reshape(-1)[place] = np.nan
    for name in ("max", "min"):
        found = getattr(cg.tensor(x), name)((2, 4)).numpy()
        assert np.array_equal(found, getattr(x, name)((2, 4)), equal_nan=True)
        assert np.isnan(found).sum() == 1
