"""Kernels that need a whole row at a time: softmax and its kin, cross-entropy, products of all others; over the last
axis of dense matrices.

Every row is shifted by its maximum, so no exponential overflows; rows are shared out among threads. The result may be
the operand where it has its shape, but for `others`."""

from libc.stdint cimport int64_t

from cygrad.kernels.array cimport FLOAT32, real, view2d, view2f
from cygrad.kernels.driver cimport range_t, share, threads_for
from cygrad.kernels.lanes cimport dot_of, exps_of, most_of, sum_of
from cygrad.kernels.mathematics cimport exp, log

cdef enum:
    SHORT = 128             # columns below which rows go several at a time,
    GROUP = 1024            # so many elements at a time

ctypedef void (*two_f)(float[:, ::1], float[:, ::1]) noexcept nogil
ctypedef void (*two_d)(double[:, ::1], double[:, ::1]) noexcept nogil
ctypedef void (*three_f)(float[:, ::1], float[:, ::1], float[:, ::1]) noexcept nogil
ctypedef void (*three_d)(double[:, ::1], double[:, ::1], double[:, ::1]) noexcept nogil


# ---- rows ------------------------------------------------------------------------------------------------------------
# Short rows go several at a time: their exponentials are taken in one run, longer than a vector.

cdef inline Py_ssize_t group(Py_ssize_t i, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """How many rows from row i on go at a time."""
    return 1 if n >= SHORT else min(GROUP // n, rows - i)


cdef inline void exponentials(real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = exp(x[i])


cdef void log_sum_exp(real[:, ::1] x, Py_ssize_t i, Py_ssize_t m, real* lse) noexcept nogil:
    """log sum_j e^x_ij of rows i to i + m, the maximum taken out first (a maximum that is no number stays in)."""
    cdef real e[GROUP]
    cdef real most[GROUP]
    cdef Py_ssize_t n = x.shape[1], j, k
    for k in range(m):
        most[k] = most_of[real](&x[i + k, 0], n)
        if most[k] - most[k] != 0: most[k] = 0
        for j in range(n if n < SHORT else 0): e[k * n + j] = x[i + k, j] - most[k]
    if n < SHORT: exponentials[real](e, m * n)
    for k in range(m):
        lse[k] = <real>(sum_of[real](e + k * n, n) if n < SHORT else exps_of[real](&x[i + k, 0], most[k], n))
    for k in range(m):
        lse[k] = most[k] + log(lse[k])


cdef void logsumexp(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef Py_ssize_t i = 0, m
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sum_exp(x, i, m, &y[i, 0])
        i += m


cdef void logsumexp_grad_(const real* g, Py_ssize_t g_step, real[:, ::1] x, const real* y,
                          real[:, ::1] dx) noexcept nogil:
    """dx = g e^(x - y)"""
    cdef Py_ssize_t n = x.shape[1], i, j
    cdef real factor
    for i in range(x.shape[0]):
        factor = g[i * g_step]
        for j in range(n): dx[i, j] = factor * exp(x[i, j] - y[i])


cdef void log_softmax(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef real lse[GROUP]
    cdef Py_ssize_t i = 0, m, j, k
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sum_exp[real](x, i, m, lse)
        for k in range(m):
            for j in range(x.shape[1]):
                y[i + k, j] = x[i + k, j] - lse[k]
        i += m


cdef void log_softmax_grad(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = g - e^y sum_j g"""
    cdef real e[GROUP]
    cdef Py_ssize_t n = y.shape[1], i = 0, m, j, k
    cdef real total
    while i < y.shape[0]:
        m = group(i, y.shape[0], n)
        if n < SHORT:
            for j in range(m * n): e[j] = exp((&y[i, 0])[j])
        for k in range(i, i + m):
            total = <real>sum_of[real](&g[k, 0], n)
            if n < SHORT:
                for j in range(n): dx[k, j] = g[k, j] - e[(k - i) * n + j] * total
            else:
                for j in range(n): dx[k, j] = g[k, j] - exp(y[k, j]) * total
        i += m


cdef void softmax(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    """y = e^(x - max) / sum e^(x - max): nan for a row that has inf, or -inf alone"""
    cdef Py_ssize_t n = x.shape[1], i = 0, m, j, k
    cdef real most, factor
    while i < x.shape[0]:
        m = group(i, x.shape[0], n)
        for k in range(i, i + m):
            most = most_of[real](&x[k, 0], n)
            if n < SHORT:
                for j in range(n): y[k, j] = x[k, j] - most
            else:
                for j in range(n): y[k, j] = exp(x[k, j] - most)
        if n < SHORT: exponentials[real](&y[i, 0], m * n)
        for k in range(i, i + m):
            factor = <real>(1 / sum_of[real](&y[k, 0], n))
            for j in range(n): y[k, j] *= factor
        i += m


cdef void softmax_grad(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = y (g - sum_j g y)"""
    cdef Py_ssize_t n = y.shape[1], i, j
    cdef real mean
    for i in range(y.shape[0]):
        mean = <real>dot_of[real](&g[i, 0], &y[i, 0], n)
        for j in range(n):
            dx[i, j] = y[i, j] * (g[i, j] - mean)


cdef void others(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    """y_ij = the product of all x_ik but x_ij: what comes before times what comes after, so that zeros are no matter;
    eight rows at a time, as one product waits for the one before"""
    cdef real product[8]
    cdef Py_ssize_t i = 0, j, n = x.shape[1], m, l
    while i < x.shape[0]:
        m = 8 if x.shape[0] - i >= 8 else 1
        for l in range(m): product[l] = 1
        for j in range(n):
            for l in range(m):
                y[i + l, j] = product[l]
                product[l] *= x[i + l, j]
        for l in range(m): product[l] = 1
        for j in range(n - 1, -1, -1):
            for l in range(m):
                y[i + l, j] *= product[l]
                product[l] *= x[i + l, j]
        i += m


cdef void cross_entropy_(real[:, ::1] x, const int64_t* labels, real* loss, real* lse) noexcept nogil:
    cdef Py_ssize_t i = 0, m, k
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sum_exp(x, i, m, lse + i)
        for k in range(i, i + m):
            loss[k] = lse[k] - x[k, labels[k]]
        i += m


cdef void cross_entropy_grad_(const real* g, Py_ssize_t g_step, real scale, real[:, ::1] x, const int64_t* labels,
                              const real* lse, real[:, ::1] dx) noexcept nogil:
    """dx = g scale (e^(x - lse) - [j = label])"""
    cdef Py_ssize_t n = x.shape[1], i = 0, m, j, k
    cdef real factor
    while i < x.shape[0]:
        m = group(i, x.shape[0], n)
        if n < SHORT:
            for k in range(i, i + m):
                for j in range(n): dx[k, j] = x[k, j] - lse[k]
            exponentials[real](&dx[i, 0], m * n)
        for k in range(i, i + m):
            factor = g[k * g_step] * scale
            if n < SHORT:
                for j in range(n): dx[k, j] *= factor
            else:
                for j in range(n): dx[k, j] = factor * exp(x[k, j] - lse[k])
            dx[k, labels[k]] -= factor
        i += m


cdef void dots_(real[:, ::1] x, real[:, ::1] y, real* z) noexcept nogil:
    """z_i = sum_j x_ij y_ij"""
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        z[i] = <real>dot_of[real](&x[i, 0], &y[i, 0], x.shape[1])


# ---- the doors: from raw memory to views, ranges of rows to threads --------------------------------------------------

cdef RowLoop LOG_SOFTMAX = RowLoop(<void*>log_softmax[float], <void*>log_softmax[double], 2, False)
cdef RowLoop LOG_SOFTMAX_GRAD = RowLoop(<void*>log_softmax_grad[float], <void*>log_softmax_grad[double], 3, False)
cdef RowLoop SOFTMAX = RowLoop(<void*>softmax[float], <void*>softmax[double], 2, False)
cdef RowLoop SOFTMAX_GRAD = RowLoop(<void*>softmax_grad[float], <void*>softmax_grad[double], 3, False)
cdef RowLoop LOGSUMEXP = RowLoop(<void*>logsumexp[float], <void*>logsumexp[double], 2, True)
cdef RowLoop OTHERS = RowLoop(<void*>others[float], <void*>others[double], 2, False)

cdef struct Rows:               # what threads share
    const RowLoop* loop
    int dtype
    Py_ssize_t columns
    const char* x
    const char* y
    char* z
    const int64_t* labels       # of a cross-entropy,
    const char* g               # and of its gradient
    Py_ssize_t g_step
    double scale


cdef inline void share_rows(range_t f, Rows* job, Py_ssize_t rows) noexcept nogil:
    """An exponential in a vector is worth two plain elements, one of double precision sixteen."""
    cdef int t = threads_for((2 if job.dtype == FLOAT32 else 16) * rows * job.columns)
    share(f, job, rows, rows if t == 1 else (rows + 4 * t - 1) // (4 * t), t)


cdef void each_row(const RowLoop* loop, int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y,
                   char* z) noexcept nogil:
    """z = loop(x) or loop(x, y), matrices all of them; of a narrow loop the result has one column. There is at least
    one column."""
    cdef Rows job = Rows(loop, dtype, columns, x, y, z, NULL, NULL, 0, 0)
    share_rows(some_rows, &job, rows)


cdef void some_rows(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t n = b - a, columns = r.columns, step = a * columns, width = 1 if r.loop.narrow else columns
    if r.loop.operands == 2:
        if r.dtype == FLOAT32:
            (<two_f>r.loop.single)(view2f(<float*>r.x + step, n, columns), view2f(<float*>r.z + a * width, n, width))
        else:
            (<two_d>r.loop.double)(view2d(<double*>r.x + step, n, columns), view2d(<double*>r.z + a * width, n, width))
    elif r.dtype == FLOAT32:
        (<three_f>r.loop.single)(view2f(<float*>r.x + step, n, columns), view2f(<float*>r.y + step, n, columns),
                                 view2f(<float*>r.z + a * width, n, width))
    else:
        (<three_d>r.loop.double)(view2d(<double*>r.x + step, n, columns), view2d(<double*>r.y + step, n, columns),
                                 view2d(<double*>r.z + a * width, n, width))


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
    cdef Rows job = Rows(NULL, dtype, columns, x, lse, loss, labels, NULL, 0, 0)
    share_rows(some_cross_entropy, &job, rows)


cdef void some_cross_entropy(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t step = a * r.columns
    if r.dtype == FLOAT32:
        cross_entropy_[float](view2f(<float*>r.x + step, b - a, r.columns), r.labels + a, <float*>r.z + a,
                              <float*>r.y + a)
    else:
        cross_entropy_[double](view2d(<double*>r.x + step, b - a, r.columns), r.labels + a, <double*>r.z + a,
                               <double*>r.y + a)


cdef void cross_entropy_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                             double scale, const char* x, const int64_t* labels, const char* lse,
                             char* dx) noexcept nogil:
    cdef Rows job = Rows(NULL, dtype, columns, x, lse, dx, labels, g, g_step, scale)
    share_rows(some_cross_entropy_grad, &job, rows)


cdef void some_cross_entropy_grad(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t step = a * r.columns
    if r.dtype == FLOAT32:
        cross_entropy_grad_[float](<float*>r.g + a * r.g_step, r.g_step, <float>r.scale,
                                   view2f(<float*>r.x + step, b - a, r.columns), r.labels + a, <float*>r.y + a,
                                   view2f(<float*>r.z + step, b - a, r.columns))
    else:
        cross_entropy_grad_[double](<double*>r.g + a * r.g_step, r.g_step, r.scale,
                                    view2d(<double*>r.x + step, b - a, r.columns), r.labels + a, <double*>r.y + a,
                                    view2d(<double*>r.z + step, b - a, r.columns))


cdef void logsumexp_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                         const char* x, const char* y, char* dx) noexcept nogil:
    cdef Rows job = Rows(NULL, dtype, columns, x, y, dx, NULL, g, g_step, 0)
    share_rows(some_logsumexp_grad, &job, rows)


cdef void some_logsumexp_grad(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t step = a * r.columns
    if r.dtype == FLOAT32:
        logsumexp_grad_[float](<float*>r.g + a * r.g_step, r.g_step, view2f(<float*>r.x + step, b - a, r.columns),
                               <float*>r.y + a, view2f(<float*>r.z + step, b - a, r.columns))
    else:
        logsumexp_grad_[double](<double*>r.g + a * r.g_step, r.g_step, view2d(<double*>r.x + step, b - a, r.columns),
                                <double*>r.y + a, view2d(<double*>r.z + step, b - a, r.columns))
