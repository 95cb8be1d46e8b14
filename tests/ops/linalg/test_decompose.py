"""Decompositions and linear systems: properties at sizes around blocks, batches, singular matrices, repeated values."""

import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import gradcheck

SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130)
both_dtypes = pytest.mark.parametrize("dtype", ("float32", "float64"))


def random(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)


def near(a, b, n, dtype):
    a, b = (x.numpy() if isinstance(x, cg.Tensor) else x for x in (a, b))
    assert a.shape == b.shape and a.dtype == dtype
    assert np.abs(a - b).max(initial=0) <= 100 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("n", SIZES)
@both_dtypes
def test_factors_have_their_properties(n, dtype):
    x = random(n, n, dtype=dtype) / np.sqrt(n).astype(dtype)
    eye = np.eye(n, dtype=dtype)
    s = x @ x.T + eye
    factor = cg.cholesky(s)
    near(factor @ factor.T, s, n, dtype)
    assert np.array_equal(factor.numpy(), np.tril(factor.numpy()))
    near(cg.cholesky(s, upper=True), factor.T, n, dtype)
    w, v = cg.eigh(s)
    near(v * w @ v.T, s, n, dtype)
    near(v.T @ v, eye, n, dtype)
    near(cg.eigvalsh(s, "U"), w, n, dtype)
    near(cg.inv(s) @ s, eye, n, dtype)
    b = random(n, 3, dtype=dtype)
    near(s @ cg.solve(s, b), b, n, dtype)
    near(cg.matmul(factor, cg.solve_triangular(factor, b, upper=False)), b, n, dtype)
    near(cg.slogdet(s).logabsdet / n, np.linalg.slogdet(s).logabsdet / n, n, dtype)
    near(cg.pinv(s) @ s, eye, n, dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("more", [-1, 0, 5])
@both_dtypes
def test_rectangular_factors_have_their_properties(n, more, dtype):
    m = n + more
    x = random(m, n, dtype=dtype) / np.sqrt(n).astype(dtype)
    k = min(m, n)
    for mode, full in (("reduced", False), ("complete", True)):
        q, r = cg.qr(x, mode)
        assert q.shape == (m, m if full else k) and r.shape == (m if full else k, n)
        near(q @ r, x, n, dtype)
        near(q.T @ q, np.eye(q.shape[1], dtype=dtype), n, dtype)
        assert np.array_equal(r.numpy(), np.triu(r.numpy()))
        u, s, vh = cg.svd(x, full)
        assert u.shape == (m, m if full else k) and vh.shape == (n if full else k, n)
        near(u[:, :k] * s @ vh[:k], x, n, dtype)
        near(u.T @ u, np.eye(u.shape[1], dtype=dtype), n, dtype)
        near(vh @ vh.T, np.eye(vh.shape[0], dtype=dtype), n, dtype)
    near(cg.svdvals(x), s, n, dtype)


@both_dtypes
def test_threads_agree_bit_for_bit(dtype, two_threads):
    x = random(9, 40, 40, dtype=dtype)
    s = x @ np.swapaxes(x, 1, 2) + 40 * np.eye(40, dtype=dtype)
    found = []
    for threads in (1, 2):
        cg.set_num_threads(threads)
        ys = [cg.cholesky(s), *cg.qr(x), *cg.svd(x), *cg.eigh(s), cg.solve(s, x), cg.solve(s[0], x), cg.inv(x),
              cg.det(x / 6), cg.pinv(x), cg.lstsq(x, x[..., :2]).x, cg.svdvals(x), cg.eigvalsh(s)]
        found.append([y.numpy().tobytes() for y in ys])
    assert found[0] == found[1]


def test_workspace_counts():
    """The peak of an operation is its result and its declared workspace, and nothing is left."""
    x = cg.tensor(random(256, 256))
    one, near = x.nbytes, cg.eye(256, dtype="float64")
    for f, most in ((lambda: cg.cholesky(near), 1), (lambda: cg.inv(x), 1.2),
                    (lambda: cg.solve(x, x), 2.1), (lambda: cg.qr(x), 2.2), (lambda: cg.det(x), 1.1),
                    (lambda: cg.eigh(x), 3.2)):
        f()
        before = cg.memory.stats()["live_bytes"]
        with cg.memory.track() as track:
            y = f()
        assert 0 < track.peak_bytes - before <= most * one
        del y
        assert cg.memory.stats()["live_bytes"] == before


def test_the_gradient_of_cholesky_is_written_over_the_incoming_one():
    x = cg.tensor(np.eye(64)).attach_grad()
    with cg.record():
        y = cg.cholesky(x)
        z = y * 2
    with cg.memory.events() as log:
        z.backward()
    assert sum(kind == "allocate" for kind, *_ in log) == 1         # the head gradient; scaled and differentiated in it


# ---- matrices without a result or a derivative -----------------------------------------------------------------------

def singular():
    x = np.stack([np.eye(3)] * 6).reshape(2, 3, 3, 3).copy()
    x[1, 2, 1] = 0
    return x


@pytest.mark.parametrize("f, words", [
    (cg.inv, r"inv: x\[1, 2\] is singular: pivot 1 is zero"),
    (lambda x: cg.solve(x, np.ones(3)), r"solve: x\[1, 2\] is singular: pivot 1 is zero"),
    (lambda x: cg.solve(x[1, 2], np.ones((4, 3, 1))), "solve: x is singular: pivot 1 is zero"),
    (lambda x: cg.solve_triangular(x, x, upper=True), r"solve_triangular: x\[1, 2\] is singular: pivot 1 is zero"),
    (cg.cholesky, r"cholesky: x\[1, 2\] is not positive definite: its leading minor of order 2 is not positive"),
    (lambda x: cg.svd(x * np.nan), r"svd: x\[0, 0\]: the iteration did not converge; nan and inf are a usual cause"),
    (lambda x: cg.lstsq(x[1] * np.nan, x[1]), r"lstsq: x\[0\]: the iteration did not converge"),
])
def test_a_matrix_that_cannot_be_decomposed_is_named(f, words):
    with pytest.raises(np.linalg.LinAlgError, match=words):
        f(singular())


def test_the_determinant_of_a_singular_matrix_has_a_first_derivative():
    rank_two, rank_one = random(3, 2) @ random(2, 3), random(3, 1) @ random(1, 3)
    for x in (rank_two, rank_one, np.zeros((3, 3))):
        assert gradcheck(cg.det, cg.tensor(x), atol=1e-6)
    x = cg.tensor(np.diag([2.0, 3.0, 0.0])).attach_grad()
    with cg.record():
        y = cg.det(x)
        slope = cg.autograd.grad(y, x, create_graph=True)
    assert np.allclose(slope.numpy(), np.diag([0.0, 0.0, 6.0]), atol=1e-14)
    with pytest.raises(np.linalg.LinAlgError, match="^second derivative of det: x is singular"):
        cg.autograd.grad(slope, x, cg.ones((3, 3), dtype="float64"))
    with cg.record():
        y = cg.slogdet(x)
    assert y.sign.item() == 0 and y.logabsdet.item() == -np.inf
    with pytest.raises(np.linalg.LinAlgError, match="^backward of slogdet: x is singular"):
        y.logabsdet.backward()


def test_determinants_do_not_overflow_on_the_way():
    x = np.diag([1e200, 1e-200, 1e200, 1e-200, 7.0])
    assert np.isclose(cg.det(x).item(), 7) and cg.det(np.eye(9) * 1e200).item() == np.inf
    assert cg.det(np.eye(3)[[1, 0, 2]]).item() == -1
    x = cg.tensor(np.diag([1e140, 1e150, 2e150])).attach_grad()
    with cg.record(): y = cg.det(x)
    y.backward()
    assert y.item() == np.inf and np.allclose(x.grad.numpy(), np.diag([2e300, 2e290, 1e290]), rtol=1e-14)


def test_repeated_values_have_no_vector_gradient():
    x = cg.tensor(np.diag([1.0, 2.0, 2.0])).attach_grad()
    for f, words in ((cg.eigh, "eigh: eigenvalues of x are equal to rounding error"),
                     (cg.svd, "svd: singular values of x are equal to rounding error")):
        with cg.record():
            y = f(x)[0 if f is cg.svd else 1]
        with pytest.raises(np.linalg.LinAlgError, match=words):
            y.backward()
    with cg.record():
        y = cg.svd(cg.stack([x * 1.5, x[:, ::-1]]))[2]
    with pytest.raises(np.linalg.LinAlgError, match=r"singular values of x \(matrix 0 of the batch\)"):
        y.backward()
    for f in (lambda x: cg.eigh(x).eigenvalues, cg.eigvalsh, lambda x: cg.svd(x).S, cg.svdvals):
        with cg.record():
            y = f(x).sum()
        y.backward()
        assert np.allclose(x.grad.numpy(), np.eye(3), atol=1e-14)


def test_a_zero_singular_value_of_a_rectangular_matrix():
    x = cg.tensor(np.array([[2.0, 0], [0, 0], [0, 0]])).attach_grad()
    with cg.record():
        y = cg.svd(x, full_matrices=False).U
    with pytest.raises(np.linalg.LinAlgError, match="svd: singular values of x are equal or zero to rounding error"):
        y.backward()


def test_dependent_columns_have_no_qr_gradient():
    x = cg.tensor(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])).attach_grad()
    with cg.record():
        q = cg.qr(x).Q
    with pytest.raises(np.linalg.LinAlgError, match="is singular"):
        q.backward()


def test_only_one_triangle_is_read():
    x = np.array([[4.0, np.nan], [1.0, 3.0]])
    assert np.allclose(cg.cholesky(x).numpy(), np.linalg.cholesky(np.array([[4.0, 1], [1, 3]])))
    assert np.allclose(cg.eigvalsh(x).numpy(), cg.eigvalsh(x.T, "U").numpy())
    assert cg.solve_triangular(x, np.ones((2, 1)), upper=False).tolist() == [[0.25], [0.25]]


def test_pinv_and_lstsq_at_constant_rank():
    x, b = random(5, 2) @ random(2, 4), random(5, 2)
    assert np.allclose(cg.pinv(x).numpy(), np.linalg.pinv(x, 1e-13))
    found, wanted = cg.lstsq(x, b), np.linalg.lstsq(x, b, None)
    assert np.allclose(found.x.numpy(), wanted[0]) and found.rank.item() == wanted[2] == 2
    assert np.allclose(found.s.numpy(), wanted[3])
    assert gradcheck(lambda a, c: cg.pinv(a @ c), [cg.tensor(random(5, 2)), cg.tensor(random(2, 4))], order=2)
    assert gradcheck(lambda a, c, b: cg.lstsq(a @ c, b).x, [cg.tensor(v) for v in (random(5, 2), random(2, 4), b)])
    assert cg.pinv(np.diag([1.0, 1e-3]), rtol=1e-2).tolist() == [[1, 0], [0, 0]]
    x = random(6, 3)
    found, wanted = cg.lstsq(x, b[[0, 1, 2, 3, 4, 0]]), np.linalg.lstsq(x, b[[0, 1, 2, 3, 4, 0]], None)
    assert np.allclose(found.residuals.numpy(), wanted[1])
    assert cg.lstsq(x, b[[0, 1, 2, 3, 4, 0], 0]).x.shape == (3,) and cg.lstsq(x.T, b[:3]).residuals.shape == (0,)
    assert gradcheck(lambda x: cg.lstsq(x, np.ones(6)).residuals, cg.tensor(x))


def test_integers_become_the_default_dtype():
    x = cg.tensor([[2, 1], [1, 2]])
    assert cg.det(x).dtype == "float32" and cg.det(x).item() == 3
    assert cg.cholesky(x).dtype == cg.solve(x, [1, 1]).dtype == "float32"


def test_results_have_names():
    x = random(3, 3) + 3 * np.eye(3)
    assert cg.qr(x)._fields == ("Q", "R") and cg.svd(x)._fields == ("U", "S", "Vh")
    assert cg.eigh(x)._fields == ("eigenvalues", "eigenvectors") and cg.slogdet(x)._fields == ("sign", "logabsdet")
    assert cg.lstsq(x, x)._fields == ("x", "residuals", "rank", "s")


def test_the_import_does_not_load_lapack():
    code = "import sys, cygrad; assert 'scipy' not in sys.modules and 'cygrad.ops.linalg.decompose' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
