"""Kernels of softmax, log_softmax and logsumexp along an axis, and of cross-entropy.

Each row or column is shifted by its maximum, so no exponential overflows. kernels/rows.pyx runs the kernels; the result
may be the operand where it has its shape."""

from libc.float cimport DBL_MAX, FLT_MAX
from libc.stdint cimport int64_t

from cygrad.kernels.array cimport FLOAT32, real, view2d, view2f
from cygrad.kernels.lanes cimport (
    NEAR, PLAIN, PRODUCT, Term, dot_of, exps_of, exps_up_of, max_of, sum_of, sum_terms, term,
)
from cygrad.kernels.mathematics cimport down, exp, exp_up, log
from cygrad.kernels.rows cimport MIN_COLUMNS, TILE, RowLoop, Rows, share_rows

cdef extern from "cygrad/platform.h" nogil:
    void cg_prefetch(const char* p, size_t nbytes)

cdef enum:
    SHORT = 128             # rows with fewer columns are processed in groups
    GROUP = 1024            # elements of a group, at most
    LONG = 4096             # rows with at most this many columns leave space for the next row in the L1 cache
    COLUMN_ROWS = 16        # rows that a column kernel reads between two changes of the maxima


# ---- rows ------------------------------------------------------------------------------------------------------------
# Short rows are processed in groups: one loop computes the exponentials of a group, so that it fills vectors.

cdef inline Py_ssize_t group(Py_ssize_t i, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """The number of rows in the group that begins at row i."""
    return 1 if n >= SHORT else min(GROUP // n, rows - i)


cdef inline void exponentials(real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = exp(x[i])


cdef inline void exponentials_up(real* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = exp_up(x[i])


cdef inline real shift_of(const real* x, Py_ssize_t n) noexcept nogil:
    """The maximum of a row, by which it is shifted; 0 if the maximum is not finite."""
    cdef real max_ = max_of(x, n)
    return max_ if max_ - max_ == 0 else 0


cdef void log_sums(real[:, ::1] x, Py_ssize_t i, Py_ssize_t m, real* shift, real* logs) noexcept nogil:
    """shift_i and log sum_j e^(x_ij - shift_i) for rows i to i + m - 1. They stay two numbers: if the shift is large,
    their sum rounds the logarithm away, and e^(x - sum) loses as many digits."""
    cdef real e[GROUP]
    cdef real row_max[GROUP]
    cdef Py_ssize_t n = x.shape[1], j, k
    cdef double sum, unit = exp_up(<real>0)
    for k in range(m):
        row_max[k] = max_of[real](&x[i + k, 0], n)
        for j in range(n if n < SHORT else 0): e[k * n + j] = x[i + k, j] - row_max[k]
    if n < SHORT: exponentials_up[real](e, m * n)
    for k in range(m):
        shift[k] = row_max[k]
        if shift[k] - shift[k] != 0:                # not finite: no shift
            shift[k] = 0
            logs[k] = <real>exps_of[real](&x[i + k, 0], <real>0, n)
            continue
        sum = sum_of[real](e + k * n, n) if n < SHORT else exps_up_of[real](&x[i + k, 0], shift[k], n)
        logs[k] = <real>(sum / unit)
    for k in range(m):
        logs[k] = log(logs[k])


cdef void logsumexp(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef real shift[GROUP]
    cdef Py_ssize_t i = 0, m, k
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sums[real](x, i, m, shift, &y[i, 0])
        for k in range(m): y[i + k, 0] += shift[k]
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
    cdef real shift[GROUP]
    cdef real logs[GROUP]
    cdef Py_ssize_t i = 0, m, j, k
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sums[real](x, i, m, shift, logs)
        for k in range(m):
            logs[k] += logs[k] - logs[k]            # inf becomes NaN, like inf / inf
            for j in range(x.shape[1]):
                y[i + k, j] = (x[i + k, j] - shift[k]) - logs[k]
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
    """y = e^(x - max) / sum e^(x - max); NaN for a row that contains inf, or only -inf. The exponentials are scaled by
    exp_up() until the last product."""
    cdef Py_ssize_t n = x.shape[1], i = 0, m, j, k
    cdef real max_, factor
    while i < x.shape[0]:
        m = group(i, x.shape[0], n)
        for k in range(i, i + m):
            max_ = max_of[real](&x[k, 0], n)
            if n < SHORT:
                for j in range(n): y[k, j] = x[k, j] - max_
            else:
                for j in range(n): y[k, j] = exp_up(x[k, j] - max_)
        if n < SHORT: exponentials_up[real](&y[i, 0], m * n)
        for k in range(i, i + m):
            factor = <real>(exp_up(<real>0) / sum_terms[real](NEAR, &y[k, 0], &y[k, 0], 0, n))
            if factor == factor:
                for j in range(n): y[k, j] = down(y[k, j] * factor)
            else:
                for j in range(n): y[k, j] = factor
        i += m


cdef void softmax_grad(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    """dx = y (g - sum_j g y)"""
    cdef Py_ssize_t n = y.shape[1], i, j
    cdef real mean
    for i in range(y.shape[0]):
        mean = <real>dot_of[real](&g[i, 0], &y[i, 0], n)
        for j in range(n):
            dx[i, j] = y[i, j] * (g[i, j] - mean)


cdef void cross_entropy_(real[:, ::1] x, const int64_t* labels, real* loss, real* logs) noexcept nogil:
    cdef real shift[GROUP]
    cdef Py_ssize_t i = 0, m, k
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sums[real](x, i, m, shift, logs + i)
        for k in range(i, i + m):
            logs[k] += logs[k] - logs[k]            # inf becomes NaN, also for the gradient
            loss[k] = logs[k] - (x[k, labels[k]] - shift[k - i])
        i += m


cdef void cross_entropy_grad_(const real* g, Py_ssize_t g_step, real scale, real[:, ::1] x, const int64_t* labels,
                              const real* logs, real[:, ::1] dx) noexcept nogil:
    """dx = g scale (e^(x - max - logs) - [j = label]); the maximum is computed again, because only logs is saved"""
    cdef Py_ssize_t n = x.shape[1], i = 0, m, j, k
    cdef real factor, shift
    while i < x.shape[0]:
        m = group(i, x.shape[0], n)
        if n < SHORT:
            for k in range(i, i + m):
                shift = shift_of[real](&x[k, 0], n)
                for j in range(n): dx[k, j] = (x[k, j] - shift) - logs[k]
            exponentials[real](&dx[i, 0], m * n)
        for k in range(i, i + m):
            factor = g[k * g_step] * scale
            if n < SHORT:
                for j in range(n): dx[k, j] *= factor
            else:
                shift = shift_of[real](&x[k, 0], n)
                if n <= LONG: prefetch(x, k + 1)    # its maximum is memory-bound
                for j in range(n): dx[k, j] = factor * exp((x[k, j] - shift) - logs[k])
            dx[k, labels[k]] -= factor
        i += m


# ---- columns ---------------------------------------------------------------------------------------------------------
# Adjacent elements belong to different columns. After every COLUMN_ROWS rows the maximum of each column is updated, and
# its sum so far is scaled accordingly. Memory is read once for the sums and once for the result, from the last row up,
# because the last rows are still in the cache. With prefetching, the sums of 16 million elements take 4.1 ms instead of
# 6.3. (Transposing, working on rows and transposing back takes ten times as long.)

cdef inline real larger(real x, real y) noexcept nogil: return x if x > y else y


cdef inline void prefetch(real[:, ::1] x, Py_ssize_t k) noexcept nogil:
    """Prefetch row k, if there is one."""
    if 0 <= k < x.shape[0]: cg_prefetch(<const char*>&x[k, 0], x.shape[1] * sizeof(real))


cdef inline void exps_by(bint up, real[:, ::1] x, Py_ssize_t k, Py_ssize_t m, const real* by,
                         real* restrict e) noexcept nogil:
    """e = e^(x - by) for m rows from row k on, in one loop, because the columns alone do not fill a vector"""
    cdef Py_ssize_t wide = x.shape[1], r, i
    for r in range(m):
        for i in range(wide): e[r * wide + i] = x[k + r, i] - by[i]
    if up: exponentials_up(e, m * wide)
    else:  exponentials(e, m * wide)


cdef inline void column_sums(real[:, ::1] x, real* restrict max_, double* restrict sums) noexcept nogil:
    """sum_i e^(x_ij - max_j), where max_j = max_i x_ij, limited to finite numbers. The sum of a column is therefore
    infinite if the column contains inf, and 0 if it contains only -inf."""
    cdef real e[(COLUMN_ROWS + 1) * TILE]
    cdef Py_ssize_t n = x.shape[0], wide = x.shape[1], k = 0, count, r, i
    cdef real limit = <real>(FLT_MAX if real is float else DBL_MAX)
    cdef double unit = exp_up(<real>0)              # the factor of exp_up
    for i in range(wide): max_[i], sums[i] = -limit, 0
    while k < n:
        count = min(n - k, <Py_ssize_t>COLUMN_ROWS)
        for i in range(wide): e[i] = max_[i]
        for r in range(k, k + count):
            for i in range(wide): max_[i] = larger(x[r, i], max_[i])
        for i in range(wide):
            max_[i] = limit if max_[i] > limit else max_[i]
            e[i] -= max_[i]
        exponentials_up(e, wide)
        for i in range(wide):
            sums[i] = sums[i] / unit * e[i]
            e[i] = 0
        if wide % MIN_COLUMNS == 0:
            for r in range(k, k + count):
                prefetch(x, r + COLUMN_ROWS)
                for i in range(wide): e[i] += exp_up(x[r, i] - max_[i])
        else:
            exps_by(True, x, k, count, max_, e + wide)
            for r in range(1, count + 1):
                for i in range(wide): e[i] += e[r * wide + i]
        for i in range(wide): sums[i] += e[i]
        k += count
    for i in range(wide):
        sums[i] /= unit
        if -limit < max_[i] < limit: continue       # else exp_up may not apply
        sums[i] = 0
        for r in range(n): sums[i] += exp(x[r, i] - max_[i])


cdef inline void column_totals(Term what, real[:, ::1] x, real[:, ::1] y, double* restrict sums) noexcept nogil:
    """sum_i x_ij, or sum_i x_ij y_ij"""
    cdef Py_ssize_t n = x.shape[0], wide = x.shape[1], k = 0, i
    cdef real c = 0
    for i in range(wide): sums[i] = 0
    while n - k >= 4:
        for i in range(wide):
            sums[i] += ((term(what, &x[k, 0], &y[k, 0], c, i) + term(what, &x[k + 1, 0], &y[k + 1, 0], c, i))
                        + (term(what, &x[k + 2, 0], &y[k + 2, 0], c, i) + term(what, &x[k + 3, 0], &y[k + 3, 0], c, i)))
        k += 4
    while k < n:
        for i in range(wide): sums[i] += term(what, &x[k, 0], &y[k, 0], c, i)
        k += 1


cdef void logsumexp_across(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef real max_[TILE]
    cdef double sums[TILE]
    cdef Py_ssize_t i
    column_sums(x, max_, sums)
    for i in range(x.shape[1]): y[0, i] = max_[i] + log(<real>sums[i])


cdef void log_softmax_across(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef real max_[TILE]
    cdef real logs[TILE]
    cdef double sums[TILE]
    cdef Py_ssize_t k, i
    column_sums(x, max_, sums)
    for i in range(x.shape[1]): logs[i] = log(<real>(sums[i] + (sums[i] - sums[i])))     # inf becomes NaN
    for k in range(x.shape[0] - 1, -1, -1):
        prefetch(x, k - 2)
        for i in range(x.shape[1]): y[k, i] = (x[k, i] - max_[i]) - logs[i]


cdef void softmax_across(real[:, ::1] x, real[:, ::1] y) noexcept nogil:
    cdef real max_[TILE]
    cdef real factor[TILE]
    cdef real e[TILE]
    cdef real v
    cdef double sums[TILE]
    cdef Py_ssize_t wide = x.shape[1], k = x.shape[0], m, r, i
    column_sums(x, max_, sums)
    for i in range(wide):
        factor[i] = <real>(1 / (sums[i] + (sums[i] - sums[i])))
        factor[i] += factor[i] - factor[i]          # NaN if the sum is inf or 0
    while k > 0:
        m = min(k, TILE // wide) if wide % MIN_COLUMNS else 1
        k -= m
        prefetch(x, k - 2)
        if wide % MIN_COLUMNS == 0:
            for i in range(wide):
                v = down(exp_up(x[k, i] - max_[i]) * factor[i])
                y[k, i] = v if factor[i] == factor[i] else factor[i]
        else:
            exps_by(True, x, k, m, max_, e)
            for r in range(m):
                for i in range(wide):
                    v = down(e[r * wide + i] * factor[i])
                    y[k + r, i] = v if factor[i] == factor[i] else factor[i]


cdef void log_softmax_grad_across(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    cdef real total[TILE]
    cdef real zero[TILE]
    cdef real e[TILE]
    cdef double sums[TILE]
    cdef Py_ssize_t wide = y.shape[1], k = y.shape[0], m, r, i
    column_totals(PLAIN, g, y, sums)
    for i in range(wide): total[i], zero[i] = <real>sums[i], 0
    while k > 0:
        m = min(k, TILE // wide) if wide % MIN_COLUMNS else 1
        k -= m
        prefetch(g, k - 2)
        prefetch(y, k - 2)
        if wide % MIN_COLUMNS == 0:
            for i in range(wide): dx[k, i] = g[k, i] - exp(y[k, i]) * total[i]
        else:
            exps_by(False, y, k, m, zero, e)
            for r in range(m):
                for i in range(wide): dx[k + r, i] = g[k + r, i] - e[r * wide + i] * total[i]


cdef void softmax_grad_across(real[:, ::1] g, real[:, ::1] y, real[:, ::1] dx) noexcept nogil:
    cdef real mean[TILE]
    cdef double sums[TILE]
    cdef Py_ssize_t k, i
    column_totals(PRODUCT, g, y, sums)
    for i in range(y.shape[1]): mean[i] = <real>sums[i]
    for k in range(y.shape[0] - 1, -1, -1):
        prefetch(g, k - 2)
        prefetch(y, k - 2)
        for i in range(y.shape[1]): dx[k, i] = y[k, i] * (g[k, i] - mean[i])


cdef RowLoop LOG_SOFTMAX = RowLoop(<void*>log_softmax[float], <void*>log_softmax[double],
                                   <void*>log_softmax_across[float], <void*>log_softmax_across[double], 2, False)
cdef RowLoop LOG_SOFTMAX_GRAD = RowLoop(<void*>log_softmax_grad[float], <void*>log_softmax_grad[double],
                                        <void*>log_softmax_grad_across[float], <void*>log_softmax_grad_across[double],
                                        3, False)
cdef RowLoop SOFTMAX = RowLoop(<void*>softmax[float], <void*>softmax[double],
                               <void*>softmax_across[float], <void*>softmax_across[double], 2, False)
cdef RowLoop SOFTMAX_GRAD = RowLoop(<void*>softmax_grad[float], <void*>softmax_grad[double],
                                    <void*>softmax_grad_across[float], <void*>softmax_grad_across[double], 3, False)
cdef RowLoop LOGSUMEXP = RowLoop(<void*>logsumexp[float], <void*>logsumexp[double],
                                 <void*>logsumexp_across[float], <void*>logsumexp_across[double], 2, True)


# ---- cross-entropy, and the gradient of logsumexp --------------------------------------------------------------------

cdef Py_ssize_t bad_label(Py_ssize_t rows, Py_ssize_t columns, const int64_t* labels) noexcept nogil:
    """The first row whose label is not a column, or -1."""
    cdef Py_ssize_t row
    for row in range(rows):
        if labels[row] < 0 or labels[row] >= columns: return row
    return -1


cdef void cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const int64_t* labels,
                        char* loss, char* logs) noexcept nogil:
    """The labels have been checked. `logs` receives log sum e^(x - max) of each row, for cross_entropy_grad()."""
    cdef Rows job = Rows(NULL, dtype, columns, x, logs, loss, labels, NULL, 0, 0, 1, 0)
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
                             double scale, const char* x, const int64_t* labels, const char* logs,
                             char* dx) noexcept nogil:
    cdef Rows job = Rows(NULL, dtype, columns, x, logs, dx, labels, g, g_step, scale, 1, 0)
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
    cdef Rows job = Rows(NULL, dtype, columns, x, y, dx, NULL, g, g_step, 0, 1, 0)
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
