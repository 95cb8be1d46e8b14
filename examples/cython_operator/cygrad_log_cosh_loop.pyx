# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The loops of log cosh for a Function in Python: one pass over memory, which the caller has allocated."""

from cython cimport floating
from libc.math cimport exp, fabs, log1p, tanh

cdef double LOG_2 = 0.69314718055994530942


def log_cosh(const floating[::1] x, floating[::1] y):
    cdef Py_ssize_t i
    cdef double a
    with nogil:
        for i in range(y.shape[0]):
            a = fabs(x[i])
            y[i] = <floating>(a + log1p(exp(-2 * a)) - LOG_2)


def log_cosh_grad(const floating[::1] g, const floating[::1] x, floating[::1] dx):
    cdef Py_ssize_t i
    with nogil:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * <floating>tanh(x[i])
