# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""log cosh as an operator of cygrad: near 0 it is x^2 / 2, far from 0 it is |x| - log 2."""

from cython cimport final
from libc.math cimport exp, fabs, log1p, sinh, tanh

from cygrad.core.graph.operator cimport Operator
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.array cimport real
from cygrad.kernels.registry cimport register
from cygrad.ops.base cimport Elementwise

import cygrad as cg

cdef double LOG_2 = 0.69314718055994530942


# ---- the loops: contiguous memory, operands in the order of the formula, the result last -----------------------------

cdef inline double of_one(double x) noexcept nogil:
    """cosh x = 1 + 2 sinh^2(x / 2) keeps the digits near 0; cosh x = e^|x| (1 + e^(-2|x|)) / 2 does not overflow."""
    cdef double a = fabs(x), s
    if a < 1:
        s = sinh(a / 2)
        return log1p(2 * s * s)
    return a + log1p(exp(-2 * a)) - LOG_2

cdef void log_cosh_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = <real>of_one(x[i])

cdef void log_cosh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(dx.shape[0]):
        dx[i] = g[i] * <real>tanh(x[i])

register("log_cosh", <void*>log_cosh_[float], <void*>log_cosh_[double], 2)
register("log_cosh_grad", <void*>log_cosh_grad[float], <void*>log_cosh_grad[double], 3)


# ---- the operator ----------------------------------------------------------------------------------------------------

@final
cdef class LogCosh(Elementwise):
    """y = log cosh x        dx = g tanh x"""
    dx = "log_cosh_grad g x"

    cdef object formula(self, c, int i, g):
        return g * cg.tanh(c.input(0))


cdef Operator LOG_COSH = LogCosh()


def log_cosh(x):
    """log(cosh(x)), elementwise, without overflow; integers are brought to the default dtype first."""
    return apply1(LOG_COSH, x, None)
