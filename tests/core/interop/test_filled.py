"""Numbers that are filled in or counted by loops, against NumPy: dtypes, signs of zero, NaN, empty and large."""

import numpy as np
import pytest

import cygrad as cg


@pytest.mark.parametrize("args", [(10,), (0,), (2, 10, 3), (10, 2, -3), (0.0, 1.0, 0.1), (5.0, 1.0, -0.3),
                                  (0, 2 ** 40, 2 ** 38), (-3, 9000), (0.5, 9000.0)])
@pytest.mark.parametrize("dtype", [None, "float32", "float64", "int64", "int32"])
def test_arange(args, dtype):
    y = cg.arange(*args, dtype=dtype).numpy()
    np.testing.assert_array_equal(y, np.arange(*args).astype(y.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2049,), (5000, 1000)])
def test_full(shape, dtype):
    for value in (1, -0.0, np.nan, np.inf, 0.1):
        assert cg.full(shape, value, dtype=dtype).numpy().tobytes() == np.full(shape, value, dtype).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 513, 70000])
def test_gradients_of_a_dot_product(n, dtype):
    x, y = np.random.default_rng(n).standard_normal((2, n)).astype(dtype)
    a, b = cg.tensor(x).attach_grad(), cg.tensor(y).attach_grad()
    with cg.record():
        z = a @ b
    z.backward(cg.tensor(np.asarray(2, dtype)))
    np.testing.assert_array_equal(a.grad.numpy(), 2 * y)
    np.testing.assert_array_equal(b.grad.numpy(), 2 * x)
