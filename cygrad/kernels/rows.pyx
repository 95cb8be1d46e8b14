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
    for i in range(x.shape[0]):
        lse = log_sum_exp(x, i)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] - lse


cdef void log_softmax_grad_(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = g - exp(y) sum_j g"""
    cdef Py_ssize_t i, j
    cdef real total
    for i in range(y.shape[0]):
        total = 0
        for j in range(y.shape[1]):
            total += g[i, j]
        for j in range(y.shape[1]):
            dx[i, j] = g[i, j] - exp(y[i, j]) * total


cdef void cross_entropy_(real[:, ::1] x, const int64_t* labels, real* loss, real* lse) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        lse[i] = log_sum_exp(x, i)
        loss[i] = lse[i] - x[i, labels[i]]


cdef void cross_entropy_grad_(const real* g, Py_ssize_t g_step, real scale, real[:, ::1] x, const int64_t* labels,
                              const real* lse, real[:, ::1] dx) noexcept nogil:
    """dx = g scale (exp(x - lse) - [j = label])"""
    cdef Py_ssize_t i, j
    cdef real factor
    for i in range(x.shape[0]):
        factor = g[i * g_step] * scale
        for j in range(x.shape[1]):
            dx[i, j] = factor * exp(x[i, j] - lse[i])
        dx[i, labels[i]] -= factor


cdef void dots_(real[:, ::1] x, real[:, ::1] y, real* z) noexcept nogil:
    """z_i = sum_j x_ij y_ij, in four sums that do not wait for each other."""
    cdef Py_ssize_t i, j, n = x.shape[1]
    cdef real a, b, c, d
    for i in range(x.shape[0]):
        a = b = c = d = 0
        for j in range(0, n - 3, 4):
            a += x[i, j] * y[i, j]
            b += x[i, j + 1] * y[i, j + 1]
            c += x[i, j + 2] * y[i, j + 2]
            d += x[i, j + 3] * y[i, j + 3]
        for j in range(n - n % 4, n): a += x[i, j] * y[i, j]
        z[i] = (a + b) + (c + d)


# ---- the doors: from raw memory to views, one block of rows to a thread ----------------------------------------------

cdef inline int blocks(Py_ssize_t rows, Py_ssize_t columns) noexcept nogil:
    """How many threads; an exponential is worth eight plain elements."""
    cdef int t = threads_for(8 * rows * columns)
    return t if t <= rows else 1


cdef void log_softmax(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, char* y) noexcept nogil:
    cdef int t = blocks(rows, columns), i
    cdef Py_ssize_t part = (rows + t - 1) // t
    if t == 1:
        log_softmax_block(dtype, 0, rows, columns, x, y)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        log_softmax_block(dtype, i * part, min(rows, (i + 1) * part), columns, x, y)


cdef void log_softmax_block(int dtype, Py_ssize_t a, Py_ssize_t b, Py_ssize_t columns, const char* x,
                            char* y) noexcept nogil:
    if a >= b: return
    if dtype == FLOAT32:
        log_softmax_[float](view2f(<float*>x + a * columns, b - a, columns),
                            view2f(<float*>y + a * columns, b - a, columns))
    else:
        log_softmax_[double](view2d(<double*>x + a * columns, b - a, columns),
                             view2d(<double*>y + a * columns, b - a, columns))


cdef void dots(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y, char* z) noexcept nogil:
    if dtype == FLOAT32:
        dots_[float](view2f(<float*>x, rows, columns), view2f(<float*>y, rows, columns), <float*>z)
    else:
        dots_[double](view2d(<double*>x, rows, columns), view2d(<double*>y, rows, columns), <double*>z)


cdef void log_softmax_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, const char* y,
                           char* dx) noexcept nogil:
    cdef int t = blocks(rows, columns), i
    cdef Py_ssize_t part = (rows + t - 1) // t
    if t == 1:
        log_softmax_grad_block(dtype, 0, rows, columns, g, y, dx)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        log_softmax_grad_block(dtype, i * part, min(rows, (i + 1) * part), columns, g, y, dx)


cdef void log_softmax_grad_block(int dtype, Py_ssize_t a, Py_ssize_t b, Py_ssize_t columns, const char* g,
                                 const char* y, char* dx) noexcept nogil:
    if a >= b: return
    if dtype == FLOAT32:
        log_softmax_grad_[float](view2f(<float*>g + a * columns, b - a, columns),
                                 view2f(<float*>y + a * columns, b - a, columns),
                                 view2f(<float*>dx + a * columns, b - a, columns))
    else:
        log_softmax_grad_[double](view2d(<double*>g + a * columns, b - a, columns),
                                  view2d(<double*>y + a * columns, b - a, columns),
                                  view2d(<double*>dx + a * columns, b - a, columns))


cdef Py_ssize_t bad_label(Py_ssize_t rows, Py_ssize_t columns, const int64_t* labels) noexcept nogil:
    """The first row whose label is no column; -1: all are good."""
    cdef Py_ssize_t row
    for row in range(rows):
        if labels[row] < 0 or labels[row] >= columns: return row
    return -1


cdef Py_ssize_t cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const int64_t* labels,
                              char* loss, char* lse) noexcept nogil:
    """Returns the first row whose label is no column, before anything is computed; -1: all are good."""
    cdef int t = blocks(rows, columns), i
    cdef Py_ssize_t part = (rows + t - 1) // t, row
    row = bad_label(rows, columns, labels)
    if row >= 0: return row
    if t == 1:
        cross_entropy_block(dtype, 0, rows, columns, x, labels, loss, lse)
        return -1
    for i in prange(t, num_threads=t, schedule="static"):
        cross_entropy_block(dtype, i * part, min(rows, (i + 1) * part), columns, x, labels, loss, lse)
    return -1


cdef void cross_entropy_block(int dtype, Py_ssize_t a, Py_ssize_t b, Py_ssize_t columns, const char* x,
                              const int64_t* labels, char* loss, char* lse) noexcept nogil:
    if a >= b: return
    if dtype == FLOAT32:
        cross_entropy_[float](view2f(<float*>x + a * columns, b - a, columns), labels + a, <float*>loss + a,
                              <float*>lse + a)
    else:
        cross_entropy_[double](view2d(<double*>x + a * columns, b - a, columns), labels + a, <double*>loss + a,
                               <double*>lse + a)


cdef void cross_entropy_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                             double scale, const char* x, const int64_t* labels, const char* lse,
                             char* dx) noexcept nogil:
    cdef int t = blocks(rows, columns), i
    cdef Py_ssize_t part = (rows + t - 1) // t
    if t == 1:
        cross_entropy_grad_block(dtype, 0, rows, columns, g, g_step, scale, x, labels, lse, dx)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        cross_entropy_grad_block(dtype, i * part, min(rows, (i + 1) * part), columns, g, g_step, scale, x, labels, lse,
                                 dx)


cdef void cross_entropy_grad_block(int dtype, Py_ssize_t a, Py_ssize_t b, Py_ssize_t columns, const char* g,
                                   Py_ssize_t g_step, double scale, const char* x, const int64_t* labels,
                                   const char* lse, char* dx) noexcept nogil:
    if a >= b: return
    if dtype == FLOAT32:
        cross_entropy_grad_[float](<float*>g + a * g_step, g_step, <float>scale,
                                   view2f(<float*>x + a * columns, b - a, columns), labels + a, <float*>lse + a,
                                   view2f(<float*>dx + a * columns, b - a, columns))
    else:
        cross_entropy_grad_[double](<double*>g + a * g_step, g_step, scale,
                                    view2d(<double*>x + a * columns, b - a, columns), labels + a, <double*>lse + a,
                                    view2d(<double*>dx + a * columns, b - a, columns))
