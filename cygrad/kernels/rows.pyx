"""Kernels that need a whole row at a time: log-softmax and cross-entropy, over the last axis of dense matrices.

Every row is shifted by its maximum, so no exponential overflows; rows are shared out among threads. The result may be
the operand."""

from cython.parallel cimport prange
from libc cimport math
from libc.stdint cimport int64_t

from cygrad.kernels.array cimport FLOAT32, real, view2d, view2f
from cygrad.kernels.driver cimport threads_for


cdef inline real exp(real x) noexcept nogil: return math.expf(x) if real is float else math.exp(x)
cdef inline real log(real x) noexcept nogil: return math.logf(x) if real is float else math.log(x)


cdef real log_sum_exp(real[:, ::1] x, Py_ssize_t i) noexcept nogil:
    """log sum_j exp(x_ij), the maximum taken out first."""
    cdef Py_ssize_t j
    cdef real most = x[i, 0], total = 0
    for j in range(x.shape[1]):
        if x[i, j] > most: most = x[i, j]
    if most == -math.INFINITY: return most          # a row of -inf
    if most == math.INFINITY: most = 0              # exp gives inf, and so does the sum
    for j in range(x.shape[1]):
        total += exp(x[i, j] - most)
    return most + log(total)


cdef void log_softmax_(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef real lse
    for i in prange(x.shape[0], num_threads=threads_for(8 * x.shape[0] * x.shape[1]), schedule="static"):
        lse = log_sum_exp(x, i)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] - lse


cdef void log_softmax_grad_(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = g - exp(y) sum_j g"""
    cdef Py_ssize_t i, j
    cdef real total
    for i in prange(y.shape[0], num_threads=threads_for(8 * y.shape[0] * y.shape[1]), schedule="static"):
        total = 0
        for j in range(y.shape[1]):
            total = total + g[i, j]
        for j in range(y.shape[1]):
            dx[i, j] = g[i, j] - exp(y[i, j]) * total


cdef void cross_entropy_(real[:, ::1] x, const int64_t* labels, real* loss, real* lse) noexcept nogil:
    cdef Py_ssize_t i
    for i in prange(x.shape[0], num_threads=threads_for(8 * x.shape[0] * x.shape[1]), schedule="static"):
        lse[i] = log_sum_exp(x, i)
        loss[i] = lse[i] - x[i, labels[i]]


cdef void cross_entropy_grad_(const real* g, Py_ssize_t g_step, real scale, real[:, ::1] x, const int64_t* labels,
                              const real* lse, real[:, ::1] dx) noexcept nogil:
    """dx = g scale (exp(x - lse) - [j = label])"""
    cdef Py_ssize_t i, j
    cdef real factor
    for i in prange(x.shape[0], num_threads=threads_for(8 * x.shape[0] * x.shape[1]), schedule="static"):
        factor = g[i * g_step] * scale
        for j in range(x.shape[1]):
            dx[i, j] = factor * exp(x[i, j] - lse[i])
        dx[i, labels[i]] -= factor


# ---- the doors: from raw memory to views -----------------------------------------------------------------------------

cdef void log_softmax(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, char* y) noexcept nogil:
    cdef float[:, ::1] xf = None, yf = None
    cdef double[:, ::1] xd = None, yd = None
    if columns == 0: return
    if dtype == FLOAT32:
        view2f(xf, <float*>x, rows, columns, columns)
        view2f(yf, <float*>y, rows, columns, columns)
        log_softmax_[float](xf, yf)
    else:
        view2d(xd, <double*>x, rows, columns, columns)
        view2d(yd, <double*>y, rows, columns, columns)
        log_softmax_[double](xd, yd)


cdef void log_softmax_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, const char* y,
                           char* dx) noexcept nogil:
    cdef float[:, ::1] gf = None, yf = None, df = None
    cdef double[:, ::1] gd = None, yd = None, dd = None
    if dtype == FLOAT32:
        view2f(gf, <float*>g, rows, columns, columns)
        view2f(yf, <float*>y, rows, columns, columns)
        view2f(df, <float*>dx, rows, columns, columns)
        log_softmax_grad_[float](gf, yf, df)
    else:
        view2d(gd, <double*>g, rows, columns, columns)
        view2d(yd, <double*>y, rows, columns, columns)
        view2d(dd, <double*>dx, rows, columns, columns)
        log_softmax_grad_[double](gd, yd, dd)


cdef Py_ssize_t cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const int64_t* labels,
                              char* loss, char* lse) noexcept nogil:
    """Returns the first row whose label is no column, before anything is computed; -1: all are good."""
    cdef float[:, ::1] xf = None
    cdef double[:, ::1] xd = None
    cdef Py_ssize_t i
    for i in range(rows):
        if labels[i] < 0 or labels[i] >= columns: return i
    if dtype == FLOAT32:
        view2f(xf, <float*>x, rows, columns, columns)
        cross_entropy_[float](xf, labels, <float*>loss, <float*>lse)
    else:
        view2d(xd, <double*>x, rows, columns, columns)
        cross_entropy_[double](xd, labels, <double*>loss, <double*>lse)
    return -1


cdef void cross_entropy_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                             double scale, const char* x, const int64_t* labels, const char* lse,
                             char* dx) noexcept nogil:
    cdef float[:, ::1] xf = None, df = None
    cdef double[:, ::1] xd = None, dd = None
    if dtype == FLOAT32:
        view2f(xf, <float*>x, rows, columns, columns)
        view2f(df, <float*>dx, rows, columns, columns)
        cross_entropy_grad_[float](<float*>g, g_step, <float>scale, xf, labels, <float*>lse, df)
    else:
        view2d(xd, <double*>x, rows, columns, columns)
        view2d(dd, <double*>dx, rows, columns, columns)
        cross_entropy_grad_[double](<double*>g, g_step, scale, xd, labels, <double*>lse, dd)
