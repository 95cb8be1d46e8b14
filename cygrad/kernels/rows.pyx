"""Kernels that need a whole row at a time: softmax and its kin, cross-entropy, products of all others; over the last
axis of dense matrices.

Every row is shifted by its maximum, so no exponential overflows; rows are shared out among threads. The result may be
the operand where it has its shape, but for `others`."""

from cython.parallel cimport prange
from libc cimport math
from libc.stdint cimport int64_t

from cygrad.kernels.array cimport FLOAT32, itemsize, real, view2d, view2f
from cygrad.kernels.driver cimport threads_for
from cygrad.kernels.mathematics cimport exp, log


ctypedef void (*two_f)(float[:, ::1], float[:, ::1]) noexcept nogil
ctypedef void (*two_d)(double[:, ::1], double[:, ::1]) noexcept nogil
ctypedef void (*three_f)(float[:, ::1], float[:, ::1], float[:, ::1]) noexcept nogil
ctypedef void (*three_d)(double[:, ::1], double[:, ::1], double[:, ::1]) noexcept nogil


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


cdef void log_softmax(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef real lse
    for i in range(x.shape[0]):
        lse = log_sum_exp(x, i)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] - lse


cdef void log_softmax_grad(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = g - exp(y) sum_j g"""
    cdef Py_ssize_t i, j
    cdef real total
    for i in range(y.shape[0]):
        total = 0
        for j in range(y.shape[1]):
            total += g[i, j]
        for j in range(y.shape[1]):
            dx[i, j] = g[i, j] - exp(y[i, j]) * total


cdef void softmax(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    """y = e^(x - max) / sum e^(x - max): nan for a row that has inf, or -inf alone"""
    cdef Py_ssize_t i, j
    cdef real most, factor
    cdef double total
    for i in range(x.shape[0]):
        most = x[i, 0]
        for j in range(x.shape[1]):
            if x[i, j] > most: most = x[i, j]
        total = 0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - most)
            total += y[i, j]
        factor = <real>(1 / total)
        for j in range(x.shape[1]):
            y[i, j] *= factor


cdef void softmax_grad(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = y (g - sum_j g y)"""
    cdef Py_ssize_t i, j
    cdef double total
    cdef real mean
    for i in range(y.shape[0]):
        total = 0
        for j in range(y.shape[1]):
            total += <double>g[i, j] * y[i, j]
        mean = <real>total
        for j in range(y.shape[1]):
            dx[i, j] = y[i, j] * (g[i, j] - mean)


cdef void logsumexp(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        y[i, 0] = log_sum_exp(x, i)


cdef void others(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    """y_ij = the product of all x_ik but x_ij: what comes before times what comes after, so that zeros are no matter"""
    cdef Py_ssize_t i, j, n = x.shape[1]
    cdef real product
    for i in range(x.shape[0]):
        product = 1
        for j in range(n):
            y[i, j] = product
            product *= x[i, j]
        product = 1
        for j in range(n):
            y[i, n - 1 - j] *= product
            product *= x[i, n - 1 - j]


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


cdef RowLoop LOG_SOFTMAX = RowLoop(<void*>log_softmax[float], <void*>log_softmax[double], 2, False)
cdef RowLoop LOG_SOFTMAX_GRAD = RowLoop(<void*>log_softmax_grad[float], <void*>log_softmax_grad[double], 3, False)
cdef RowLoop SOFTMAX = RowLoop(<void*>softmax[float], <void*>softmax[double], 2, False)
cdef RowLoop SOFTMAX_GRAD = RowLoop(<void*>softmax_grad[float], <void*>softmax_grad[double], 3, False)
cdef RowLoop LOGSUMEXP = RowLoop(<void*>logsumexp[float], <void*>logsumexp[double], 2, True)
cdef RowLoop OTHERS = RowLoop(<void*>others[float], <void*>others[double], 2, False)


cdef void each_row(const RowLoop* loop, int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y,
                   char* z) noexcept nogil:
    """z = loop(x) or loop(x, y), matrices all of them; of a narrow loop the result has one column. There is at least
    one column."""
    cdef int t = blocks(rows, columns), i
    cdef Py_ssize_t part = (rows + t - 1) // t
    if t == 1:
        row_block(loop, dtype, 0, rows, columns, x, y, z)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        row_block(loop, dtype, i * part, min(rows, (i + 1) * part), columns, x, y, z)


cdef void row_block(const RowLoop* loop, int dtype, Py_ssize_t a, Py_ssize_t b, Py_ssize_t columns, const char* x,
                    const char* y, char* z) noexcept nogil:
    cdef Py_ssize_t n = b - a, step = columns * itemsize(dtype), width = 1 if loop.narrow else columns
    if n <= 0: return
    x += a * step
    z += a * width * itemsize(dtype)
    if loop.operands == 2:
        if dtype == FLOAT32:
            (<two_f>loop.single)(view2f(<float*>x, n, columns), view2f(<float*>z, n, width))
        else:
            (<two_d>loop.double)(view2d(<double*>x, n, columns), view2d(<double*>z, n, width))
        return
    y += a * step
    if dtype == FLOAT32:
        (<three_f>loop.single)(view2f(<float*>x, n, columns), view2f(<float*>y, n, columns),
                               view2f(<float*>z, n, width))
    else:
        (<three_d>loop.double)(view2d(<double*>x, n, columns), view2d(<double*>y, n, columns),
                               view2d(<double*>z, n, width))


cdef void dots(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y, char* z) noexcept nogil:
    if dtype == FLOAT32:
        dots_[float](view2f(<float*>x, rows, columns), view2f(<float*>y, rows, columns), <float*>z)
    else:
        dots_[double](view2d(<double*>x, rows, columns), view2d(<double*>y, rows, columns), <double*>z)


cdef Py_ssize_t bad_label(Py_ssize_t rows, Py_ssize_t columns, const int64_t* labels) noexcept nogil:
    """The first row whose label is no column; -1: all are good."""
    cdef Py_ssize_t row
    for row in range(rows):
        if labels[row] < 0 or labels[row] >= columns: return row
    return -1


cdef void cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const int64_t* labels,
                        char* loss, char* lse) noexcept nogil:
    """The labels are known to be columns."""
    cdef int t = blocks(rows, columns), i
    cdef Py_ssize_t part = (rows + t - 1) // t
    if t == 1:
        cross_entropy_block(dtype, 0, rows, columns, x, labels, loss, lse)
        return
    for i in prange(t, num_threads=t, schedule="static"):
        cross_entropy_block(dtype, i * part, min(rows, (i + 1) * part), columns, x, labels, loss, lse)


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
