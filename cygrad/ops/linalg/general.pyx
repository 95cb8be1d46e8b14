"""Functions of general square matrices, which need not be symmetric: the exponential, logarithm and square root by
SciPy, eigenvalues and eigenvectors by NumPy. Their workspace is that of these libraries, which the counters exclude.

Sources of the gradients: N. J. Higham, Functions of Matrices (2008), theorem 3.6: f([[x, e], [0, x]]) has f(x) on its
diagonal, and above it the derivative of f at x in the direction e; M. B. Giles, An extended collection of matrix
derivative results for forward and reverse mode algorithmic differentiation (2008), 3.1."""

from collections import namedtuple
from importlib import import_module

import numpy as np

from cygrad.core.execute.run cimport apply1
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.interop.numpy cimport lend
from cygrad.kernels.array cimport Layout
from cygrad.ops.linalg.matrices cimport OfMatrices, add_result, matrices_in, refuse_matrix, work_of

from cygrad.core.interop.creation import zeros
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.linalg.solve import solve
from cygrad.ops.linalg.spectra import OPERATORS as SPECTRA
from cygrad.ops.linalg.spectra import Spectrum
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.join import concat
from cygrad.ops.shapes.shape import expand_dims, matrix_transpose

cdef Operator SPECTRAL_GAPS = SPECTRA["spectral_gaps"]
COMPLEX = "; cygrad has real dtypes alone, so call {}(x.detach().numpy()), which returns complex numbers"


cdef class General(OfMatrices):
    """The base of what NumPy or SciPy computes, matrix by matrix."""

    cdef object one(self, x):
        """(the results for a matrix, None), or (None, what is wrong)."""
        raise NotImplementedError

    cdef int forward(self, Call* c) except -1 nogil:
        if c.x[0].layout.size == 0: return 0
        with gil: return self.forward_with_gil(c)

    cdef int forward_with_gil(self, Call* c) except -1:
        """Write the results for each matrix. Raises LinAlgError for one that has none."""
        x = lend(&c.x[0], NULL, False)
        results = [lend(&c.y[k], NULL, True) for k in range(c.n_out)]
        for i, index in enumerate(np.ndindex(x.shape[:-2])):
            found, wrong = None, " contains nan or inf"
            if np.isfinite(x[index]).all():
                with np.errstate(all="ignore"): found, wrong = self.one(x[index])
            if wrong is not None: refuse_matrix(self, i, c.x[0].layout, wrong)
            for y, value in zip(results, found): y[index] = value


# ---- functions of matrices -------------------------------------------------------------------------------------------

cdef class MatrixFunction(General):
    """y = f(x), of each square matrix        dx = the block above the diagonal of f([[x', g], [0, x']])"""
    reads = "x"

    cdef int infer(self, Call* c) except -1 nogil:
        self.describe(c, True)
        Operator.infer(self, c)
        c.work = matrices_in(c.x[0].layout) * work_of(c.x[0].layout)

    cdef object one(self, x):
        scipy, x64 = import_module("scipy.linalg"), x.astype(np.float64)
        if self.name != "expm" and 0 in np.diagonal(scipy.schur(x64)[0]):      # (SciPy would replace 0, and warn)
            return None, f" is singular, so its {self.name} does not exist or has no derivative"
        y = getattr(scipy, self.name)(x64)
        if np.iscomplexobj(y):
            if np.abs(y.imag).max(initial=0) > np.sqrt(np.finfo(x.dtype).eps) * np.abs(y).max(initial=0):
                return None, f" has a complex {self.name}" + COMPLEX.format("scipy.linalg." + self.name)
            y = y.real
        y = y.astype(x.dtype)
        return ((y,), None) if np.isfinite(y).all() else (None, f": its {self.name} is not finite")

    cdef object formula(self, c, int i, g):
        x = matrix_transpose(c.input(0))
        n = x.shape[-1]
        upper, lower = concat([x, g], -1), concat([zeros(x.shape, dtype=x.dtype), x], -1)
        return apply1(self, concat([upper, lower], -2), None)[..., :n, n:]


cdef class Expm(MatrixFunction):
    """y = e^x, of each square matrix        dx = the block above the diagonal of e^[[x', g], [0, x']]"""


cdef class Logm(MatrixFunction):
    """y = log x, of each square matrix        dx = the block above the diagonal of the log of [[x', g], [0, x']]"""


cdef class Sqrtm(MatrixFunction):
    """y = root x, of each square matrix        dx = the block above the diagonal of the root of [[x', g], [0, x']]"""


# ---- eigenvalues -----------------------------------------------------------------------------------------------------

cdef object eigenvalues(str name, x):
    """The eigenvalues and the eigenvectors, of length 1, as General.one() returns them."""
    w, v = np.linalg.eig(x)
    if np.iscomplexobj(w): return None, " has complex eigenvalues" + COMPLEX.format("numpy.linalg." + name)
    return (w, v), None


cdef class Eig(General):
    """x v = v diag(w)        dx = v'^-1 (dw + (v' dv - v' v diag(v' dv)) / gaps) v', gaps[i, j] = w[j] - w[i]

    The columns of v have length 1. Backward saves w and v."""
    outputs = reads = "w v"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t n
        self.describe(c, True)
        n = x.shape[x.ndim - 1]
        add_result(c, 0, c.x[0].dtype, 1, n, 0)
        add_result(c, 1, c.x[0].dtype, 2, n, n)
        c.work = matrices_in(x) * work_of(x)

    cdef object one(self, x):
        return eigenvalues("eig", x)

    cdef object formula(self, c, int i, g):
        w, v = c.output(0), c.output(1)
        dw, dv = g
        t = matrix_transpose(v)
        core = None
        if dv is not None:
            turn, gaps = matmul(t, dv), apply1(SPECTRAL_GAPS, w, Spectrum(False, True, True))
            along = expand_dims(sum(v * dv, -2), -2)        # the lengths do not change
            core = matmul((turn - matmul(t, v) * along) * gaps, t)
        if dw is not None:
            scaled = t * expand_dims(dw, -1)
            core = scaled if core is None else core + scaled
        return solve(t, core)


cdef class EigVals(General):
    """w = the eigenvalues of x        dx = v'^-1 diag(g) v', v of the eig of x, which backward computes"""
    called, reads = "eigvals", "x"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        self.describe(c, True)
        add_result(c, 0, c.x[0].dtype, 1, x.shape[x.ndim - 1], 0)
        c.work = matrices_in(x) * work_of(x)

    cdef object one(self, x):
        found, wrong = eigenvalues("eigvals", x)
        return None if found is None else found[:1], wrong

    cdef object formula(self, c, int i, g):
        t = matrix_transpose(apply1(EIG, c.input(0), None)[1])
        return solve(t, t * expand_dims(g, -1))


cdef Operator EXPM = Expm(), LOGM = Logm(), SQRTM = Sqrtm(), EIG = Eig(), EIGVALS = EigVals()
OPERATORS = {o.name: o for o in (EXPM, LOGM, SQRTM, EIG, EIGVALS)}

EigResult = namedtuple("EigResult", ("eigenvalues", "eigenvectors"), module=__name__)
EigResult.__annotations__ = dict.fromkeys(EigResult._fields, Tensor)
EigResult.__doc__ = "The result of eig: the eigenvalues, and the eigenvectors as columns of length 1."


cdef Tensor of_matrix(Operator op, x):
    """The result of a function of SciPy. Raises ImportError without SciPy."""
    try: import_module("scipy.linalg")
    except ImportError as e:
        raise ImportError(f"{op.name} is SciPy's; install it with: pip install 'cygrad[linalg]'") from e
    return apply1(op, x, None)


def expm(x: Data) -> Tensor:
    """The exponential of each square matrix of `x` (..., n, n), by scipy.linalg.expm. Raises ImportError without SciPy
    (the extra cygrad[linalg]), numpy.linalg.LinAlgError for nan and inf, or if the result overflows. Gradient: Higham
    (2008), theorem 3.6, of a matrix of twice the size."""
    return of_matrix(EXPM, x)


def logm(x: Data) -> Tensor:
    """The principal logarithm of each square matrix of `x` (..., n, n), by scipy.linalg.logm. Raises ImportError
    without SciPy (the extra cygrad[linalg]), numpy.linalg.LinAlgError for a matrix that has none that is real, such as
    a singular one, or one with a negative eigenvalue. Gradient: Higham (2008), theorem 3.6, of a matrix of twice the
    size."""
    return of_matrix(LOGM, x)


def sqrtm(x: Data) -> Tensor:
    """The principal square root of each square matrix of `x` (..., n, n), by scipy.linalg.sqrtm. Raises ImportError
    without SciPy (the extra cygrad[linalg]), numpy.linalg.LinAlgError for a matrix that has none that is real, such as
    one with a negative eigenvalue, and for a singular one. Gradient: Higham (2008), theorem 3.6, of a matrix of twice
    the size."""
    return of_matrix(SQRTM, x)


def eig(x: Data) -> EigResult:
    """The eigenvalues, in no order, and eigenvectors of each square matrix of `x` (..., n, n): a named tuple of (...,
    n) and (..., n, n), with a vector of length 1 in each column, by numpy.linalg.eig. Raises numpy.linalg.LinAlgError
    for complex eigenvalues, because cygrad has real dtypes alone, and in backward for equal ones, whose vectors have
    no derivative. The signs of the vectors are LAPACK's. Gradient: Giles (2008), 3.1."""
    return EigResult(*apply1(EIG, x, None))


def eigvals(x: Data) -> Tensor:
    """The eigenvalues of each square matrix of `x` (..., n, n), in no order, by numpy.linalg.eig. Raises
    numpy.linalg.LinAlgError for complex eigenvalues, because cygrad has real dtypes alone. Gradient: Giles (2008), 3.1.
    """
    return apply1(EIGVALS, x, None)
