"""The wording of errors: decompositions of matrices and linear systems."""

import sys
from unittest import mock

import numpy as np

import cygrad as cg

ERROR = np.linalg.LinAlgError


def recorded(f, *shape):
    """f of a variable, while recording."""
    x = cg.ones(shape).attach_grad()
    with cg.record():
        f(x)


def differentiated(f, x):
    """The gradient of f at x."""
    x = cg.tensor(x).attach_grad()
    with cg.record():
        y = f(x)
    y.backward()


def without_scipy(f):
    """f in a process that has no SciPy."""
    def call():
        with mock.patch.dict(sys.modules, {"scipy.linalg": None}): f()

    return call


CASES = [
    (lambda: cg.cholesky(cg.ones(3)), ValueError,
     "cholesky: x is (3,); wanted square matrices (..., n, n)"),
    (lambda: cg.inv(cg.ones((2, 3))), ValueError,
     "inv: x is (2, 3); wanted square matrices (..., n, n)"),
    (lambda: cg.svd(cg.ones(())), ValueError,
     "svd: x is (); wanted matrices (..., m, n)"),
    (lambda: cg.solve(cg.eye(3), cg.ones((2, 3))), ValueError,
     "solve: x is (3, 3) and b is (2, 3); wanted square matrices (..., n, n) and right sides (..., n, k)"),
    (lambda: cg.solve_triangular(cg.eye(3), cg.ones((3, 2)), upper=True, left=False), ValueError,
     "solve_triangular: x is (3, 3) and b is (3, 2); wanted square matrices (..., n, n) and right sides (..., k, n)"),
    (lambda: cg.lstsq(cg.eye(3), cg.ones((2, 3, 1))), ValueError,
     "lstsq: x is (3, 3) and b is (2, 3, 1); wanted matrices (..., m, n) and right sides (..., m, k) with the same "
     "leading dimensions"),
    (lambda: cg.qr(cg.eye(3), "r"), ValueError,
     "qr: mode must be 'reduced' or 'complete', got 'r'"),
    (lambda: cg.eigh(cg.eye(3), "lower"), ValueError,
     "eigh: UPLO must be 'L' or 'U', got 'lower'"),
    (lambda: cg.pinv(cg.eye(3), -1), ValueError,
     "pinv: rtol must be a number of at least 0 or None, got -1"),
    (lambda: cg.lstsq(cg.eye(3), cg.ones(3), "gels"), ValueError,
     "lstsq: rcond must be a number of at least 0 or None, got 'gels'"),
    (lambda: recorded(lambda x: cg.qr(x, "complete"), 4, 2), ValueError,
     "qr: x is (4, 2), which has more rows than columns, and with mode='complete' q is not unique and has no "
     "derivative; use mode='reduced' or x.detach()"),
    (lambda: recorded(cg.svd, 4, 2), ValueError,
     "svd: x is (4, 2), which is not square, and with full_matrices=True the factors are not unique and have no "
     "derivative; use full_matrices=False or x.detach()"),
    (lambda: cg.cholesky(-cg.eye(2)), ERROR,
     "cholesky: x is not positive definite: its leading minor of order 1 is not positive"),
    (lambda: cg.inv(cg.stack([cg.eye(2), cg.ones((2, 2))])), ERROR,
     "inv: x[1] is singular: pivot 1 is zero"),
    (lambda: cg.svdvals(cg.eye(2) * np.nan), ERROR,
     "svdvals: x: the iteration did not converge; nan and inf are a usual cause"),
    (lambda: cg.svdvals(cg.broadcast_to(0.0, (70_000_000, 1))), ValueError,
     "a matrix of shape (70000000, 1) is larger than the 32-bit sizes of LAPACK allow"),
    (lambda: differentiated(lambda x: cg.eigh(x).eigenvectors, np.stack([np.diag([1.0, 2.0]), np.eye(2)])), ERROR,
     "eigh: eigenvalues of x (matrix 1 of the batch) are equal to rounding error, so their vectors have no derivative; "
     "eigvalsh has one"),
    (lambda: differentiated(lambda x: cg.svd(x, False).U, np.zeros((3, 1))), ERROR,
     "svd: singular values of x are equal or zero to rounding error, so their vectors have no derivative; svdvals has "
     "one"),
    (lambda: cg.matrix_norm(cg.zeros(3)), ValueError,
     "matrix_norm: x is (3,); wanted matrices (..., m, n)"),
    (lambda: cg.matrix_norm(cg.zeros((3, 3)), 3), ValueError,
     "matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got 3"),
    (lambda: cg.linalg.norm(cg.zeros((2, 3, 4)), 2), ValueError,
     "linalg.norm: x is (2, 3, 4); with ord and without axis, wanted a vector or a matrix"),
    (lambda: cg.linalg.norm(cg.zeros((2, 3, 4)), 2, (0, 1, 2)), ValueError,
     "linalg.norm: axis must be one or two axes, got (0, 1, 2)"),
    (lambda: cg.linalg.norm(cg.zeros((2, 3, 4)), 2, (0, -3)), ValueError,
     "linalg.norm: the axes are both 0; wanted two different ones"),
    (lambda: cg.matrix_power(cg.zeros((2, 3)), 2), ValueError,
     "matrix_power: x is (2, 3); wanted square matrices (..., m, m)"),
    (lambda: cg.eig(cg.tensor([[0.0, -1.0], [1.0, 0.0]])), ERROR,
     "eig: x has complex eigenvalues; cygrad has real dtypes alone, so call numpy.linalg.eig(x.detach().numpy()), "
     "which returns complex numbers"),
    (lambda: cg.eigvals(cg.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]]])), ERROR,
     "eigvals: x[1] has complex eigenvalues; cygrad has real dtypes alone, so call "
     "numpy.linalg.eigvals(x.detach().numpy()), which returns complex numbers"),
    (lambda: cg.eig(cg.tensor([[np.nan]])), ERROR, "eig: x contains nan or inf"),
    (lambda: cg.sqrtm(cg.tensor([[-1.0]])), ERROR,
     "sqrtm: x has a complex sqrtm; cygrad has real dtypes alone, so call scipy.linalg.sqrtm(x.detach().numpy()), "
     "which returns complex numbers"),
    (lambda: cg.logm(cg.zeros((2, 2))), ERROR,
     "logm: x is singular, so its logm does not exist or has no derivative"),
    (lambda: cg.expm(cg.tensor([[1e4]])), ERROR, "expm: x: its expm is not finite"),
    (lambda: cg.expm(cg.zeros((2, 3))), ValueError, "expm: x is (2, 3); wanted square matrices (..., n, n)"),
    (lambda: differentiated(lambda x: cg.eig(x).eigenvectors, np.eye(2)), ERROR,
     "eig: eigenvalues of x are equal to rounding error, so their vectors have no derivative; eigvals has one"),
    (without_scipy(lambda: cg.expm(cg.eye(2))), ImportError,
     "expm is SciPy's; install it with: pip install 'cygrad[linalg]'"),
]
