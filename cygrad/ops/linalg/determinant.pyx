"""Determinants of the matrices in the last two dimensions: det and slogdet, from their LU factors.

Backward saves the matrix alone, because its factors need as much memory. Source of the gradients: M. B. Giles, An
extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
2.2.4."""

from collections import namedtuple

from numpy.linalg import LinAlgError

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.execute.composed cimport rename
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.linalg cimport matrices, spectra
from cygrad.kernels.array cimport Layout
from cygrad.kernels.linalg.matrices cimport Task, begin_task
from cygrad.ops.linalg.matrices cimport OfMatrices, add_result, matrices_in, set_room, set_target

from cygrad.core.interop.creation import zeros
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import expand_dims, matrix_transpose
from cygrad.ops.linalg.solve import inv


cdef class Determinant(OfMatrices):
    """The base of det and slogdet."""
    reads = "x"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        self.describe(c, True)
        for k in range(self.results()): add_result(c, k, c.x[0].dtype, 0, 0, 0)
        return set_room(c, matrices_in(x), matrices.factor_room(c.x[0].dtype, x.shape[x.ndim - 1]))

    cdef int results(self) noexcept nogil:
        return 1

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t n = c.x[0].layout.shape[c.x[0].layout.ndim - 1]
        cdef Task t
        begin_task(&t, c.y[0].dtype, n, n)
        t.room = matrices.factor_room(t.dtype, n)
        for k in range(self.results()): set_target(&t, k, &c.y[k], 1)
        return self.compute(matrices.determinant, &t, c)


cdef class Det(Determinant):
    """y = det x        dx = g cofactor(x), which is g y x^-T if x is not singular"""

    cdef object formula(self, c, int i, g):
        return expand_dims(g, (-2, -1)) * apply1(COFACTOR, c.input(0), None)


cdef class SLogDet(Determinant):
    """y = log |det x|, after the sign of det x        dx = g x^-T        (the derivative of the sign is 0)"""
    called = "slogdet"
    outputs = "sign y"

    cdef int results(self) noexcept nogil:
        return 2

    cdef object formula(self, c, int i, g):
        _, dy = g
        x = c.input(0)
        if dy is None: return c.locally_constant(zeros(x.shape, x.dtype))
        return expand_dims(dy, (-2, -1)) * matrix_transpose(inv(x))


cdef class Cofactor(OfMatrices):
    """y = the cofactors of x: det(x) x^-T, also if x is singular        dx = sum(g y) x^-T - y g' x^-T

    If x = u s v' is singular, y is det(u) det(v) u q v', where q has for each singular value the product of the
    others."""
    reads = "x y"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t n
        self.describe(c, True)
        n = x.shape[x.ndim - 1]
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        return set_room(c, matrices_in(x), spectra.pinv_room(c.x[0].dtype, n, n, 0), True)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t n = c.x[0].layout.shape[c.x[0].layout.ndim - 1]
        cdef Task t
        if c.x[0].layout.size == 0: return 0
        begin_task(&t, c.x[0].dtype, n, n, True)
        t.room = spectra.pinv_room(t.dtype, n, n, 0)
        set_target(&t, 0, &c.y[0], n * n)
        return self.compute(spectra.cofactors, &t, c)

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        try: inverse = matrix_transpose(inv(c.input(0)))
        except LinAlgError as e:
            rename(e, "second derivative of det")
            raise
        return sum(g * y, (-2, -1), True) * inverse - matmul(matmul(y, matrix_transpose(g)), inverse)


cdef Operator DET = Det(), COFACTOR = Cofactor(), SLOGDET = SLogDet()
OPERATORS = {o.name: o for o in (DET, COFACTOR, SLOGDET)}

SlogdetResult = namedtuple("SlogdetResult", ("sign", "logabsdet"), module=__name__)
SlogdetResult.__annotations__ = dict.fromkeys(SlogdetResult._fields, Tensor)
SlogdetResult.__doc__ = "The result of slogdet: the sign of a determinant, and the logarithm of its absolute value."


def det(x: Data) -> Tensor:
    """The determinant of each matrix of `x` (..., n, n). The first derivative exists for any matrix; further ones raise
    numpy.linalg.LinAlgError for a singular matrix. Raises ValueError unless the matrices are square. Gradient: Giles
    (2008), 2.2.4."""
    return apply1(DET, x, None)


def slogdet(x: Data) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinant of each matrix of `x` (..., n, n): a named
    tuple (sign, logabsdet), which cannot overflow. For a singular matrix these are 0 and -inf, and there is no
    derivative: numpy.linalg.LinAlgError. Raises ValueError unless the matrices are square. Gradient: Giles (2008),
    2.2.4."""
    return SlogdetResult(*apply1(SLOGDET, x, None))


def cofactor(x: Data) -> Tensor:
    """The matrix of the cofactors of each matrix of `x` (..., n, n): the gradient of det. Its own derivative raises
    numpy.linalg.LinAlgError for a singular matrix."""
    return apply1(COFACTOR, x, None)
