"""cygrad's own factors at sizes around their blocks: triangular systems in every position, pivots, and the triangle
that is not read."""

from itertools import product

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops.linalg.solve import solve_transposed, solve_triangular_transposed

SIZES = (1, 2, 8, 9, 15, 16, 17, 33, 64, 65, 100, 131)
both_dtypes = pytest.mark.parametrize("dtype", ("float32", "float64"))
rng = np.random.default_rng(0)


def near(x, y, dtype):
    """Within rounding of sums of a hundred terms."""
    x = x.numpy() if isinstance(x, cg.Tensor) else x
    assert x.dtype == dtype and x.shape == y.shape
    assert np.abs(x - y).max(initial=0) <= 1000 * np.finfo(dtype).eps * max(1, np.abs(y).max(initial=0))


@pytest.mark.parametrize("n", SIZES)
@both_dtypes
def test_triangular_systems(n, dtype):
    """What is not in the triangle is NaN, and so is a diagonal of ones."""
    for upper, left, unit, transposed, k in product(*[(False, True)] * 4, (0, 1, 3, 70)):
        whole = (rng.normal(size=(n, n)) / n + 2 * np.eye(n)).astype(dtype)
        a = np.triu(whole) if upper else np.tril(whole)
        if unit: a[np.arange(n), np.arange(n)] = 1
        read = np.triu(np.ones((n, n)), unit) if upper else np.tril(np.ones((n, n)), -unit)
        given = np.where(read == 1, a, np.nan).astype(dtype)
        b = rng.normal(size=(n, k) if left else (k, n)).astype(dtype)
        solver = solve_triangular_transposed if transposed else cg.solve_triangular
        x = solver(given, b, upper=upper, left=left, unitriangular=unit).numpy().astype("float64")
        used = a.T.astype("float64") if transposed else a.astype("float64")
        near((used @ x if left else x @ used).astype(dtype), b, dtype)


@pytest.mark.parametrize("n", SIZES)
@both_dtypes
def test_systems_whose_rows_must_be_exchanged(n, dtype):
    """Rows of very different sizes, with zeros on the diagonal."""
    a = rng.normal(size=(n, n)) + 2 * np.roll(np.eye(n), 1, 0) * n
    if n > 1: a[np.arange(n), np.arange(n)] = 0
    a, b = a.astype(dtype), rng.normal(size=(n, 5)).astype(dtype)
    wide = a.astype("float64")
    near(cg.solve(a, b), np.linalg.solve(wide, b), dtype)
    near(solve_transposed(a, b), np.linalg.solve(wide.T, b), dtype)
    near(cg.inv(a), np.linalg.inv(wide), dtype)
    sign, size = np.linalg.slogdet(wide)
    found = cg.slogdet(a)
    assert found.sign.item() == sign and abs(found.logabsdet.item() - size) <= 1e3 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("n", (2, 16, 17, 40, 131))
def test_the_first_pivot_that_is_zero_is_named(n):
    for i in {0, n // 2, n - 1}:
        a = np.triu(rng.normal(size=(n, n))) + 3 * np.eye(n)
        a[i, i] = 0
        with pytest.raises(np.linalg.LinAlgError, match=f"^solve_triangular: x is singular: pivot {i} is zero$"):
            cg.solve_triangular(a, np.ones((n, 1)), upper=True)
        with pytest.raises(np.linalg.LinAlgError, match=f"^inv: x is singular: pivot {i} is zero$"):
            cg.inv(np.diag(np.where(np.arange(n) == i, 0.0, 1.0)))
        s = np.diag(np.where(np.arange(n) == i, -1.0, 1.0))
        with pytest.raises(np.linalg.LinAlgError, match=f"its leading minor of order {i + 1} is not positive$"):
            cg.cholesky(s)
        s[i, i] = np.nan
        with pytest.raises(np.linalg.LinAlgError, match=f"its leading minor of order {i + 1} is not positive$"):
            cg.cholesky(s, upper=True)


@pytest.mark.parametrize("n", SIZES)
@both_dtypes
def test_cholesky_reads_one_triangle(n, dtype):
    a = rng.normal(size=(n, n)) / np.sqrt(n)
    s = (a @ a.T + np.eye(n)).astype(dtype)
    wanted = np.linalg.cholesky(s.astype("float64"))
    low, high = s.copy(), s.copy()
    low[np.triu_indices(n, 1)], high[np.tril_indices(n, -1)] = np.nan, np.nan
    near(cg.cholesky(low), wanted, dtype)
    near(cg.cholesky(high, upper=True), wanted.T, dtype)


@both_dtypes
def test_nan_and_infinity_reach_the_results(dtype):
    for n in (3, 20, 70):
        a = np.eye(n, dtype=dtype) * 2
        a[n // 2, n // 3] = np.nan
        for f in (cg.inv, lambda x: cg.qr(x).R, lambda x: cg.det(x), lambda x: cg.solve(x, np.ones(n, x.dtype))):
            assert np.isnan(f(a).numpy()).any()
        b = np.ones((n, 2), dtype)
        b[0, 1] = np.inf
        x = cg.solve_triangular(np.eye(n, dtype=dtype) + np.eye(n, k=-1, dtype=dtype), b, upper=False).numpy()
        assert np.isfinite(x[:, 0]).all() and not np.isfinite(x[:, 1]).any()


@pytest.mark.parametrize("m, n", [(1, 1), (5, 1), (1, 5), (4, 4), (5, 4), (33, 32), (32, 33), (200, 40), (40, 200),
                                  (300, 131), (131, 300)])
@both_dtypes
def test_qr_is_that_of_lapack(m, n, dtype):
    """With its signs; also of numbers whose squares overflow or vanish, and of columns of zeros."""
    x = rng.normal(size=(m, n)).astype(dtype)
    for mode in ("reduced", "complete"):
        for scale in (1, 1e-30, 1e30) if dtype == "float32" else (1, 1e-200, 1e200):
            q, r = cg.qr(x * np.array(scale, dtype), mode)
            wanted = np.linalg.qr((x * np.array(scale, dtype)).astype("float64"), mode)
            near(q, wanted.Q, dtype)
            near(r.numpy() / np.array(scale, dtype), wanted.R / scale, dtype)
    x[:, n // 2:] = 0
    q, r = cg.qr(x, "complete")
    near(q @ r, x, dtype)
    near(q.T @ q, np.eye(m), dtype)


@both_dtypes
def test_nan_is_not_lost(dtype):
    """Whatever comes after it in a column."""
    for column in ([1, np.nan, 0], [np.nan, 0, 0], [0, 0, np.nan], [np.nan, 2, 3]):
        a = np.array([column, [2, 5, 7], [1, 0, 3]], dtype).T.copy()
        assert np.isnan(cg.qr(cg.tensor(a))[1].numpy()).any(), column
        assert np.isnan(cg.det(cg.tensor(a)).item()), column
        assert np.isnan(cg.slogdet(cg.tensor(a))[1].item()), column
