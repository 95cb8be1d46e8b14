"""Kernels of softmax, log_softmax and logsumexp along an axis.

Each row or column is shifted by its maximum, so no exponential overflows. kernels/reductions/rows.pyx runs the kernels;
the result may be the operand where it has its shape."""

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport call, element, matrix, reals
from cygrad.kernels.lanes cimport NEAR, PLAIN, PRODUCT, Term, dot_of, max_of, sum_of, sum_terms, term
from cygrad.kernels.mathematics cimport down, exp, exp_up, log
from cygrad.kernels.reductions.rows cimport MIN_COLUMNS, TILE, RowLoop, Rows, share_rows
from cygrad.kernels.reductions.shifted cimport (
    GROUP, SHORT, column_sums, exponentials_up, exps_by, group, log_sums, prefetch,
)


# ---- rows ------------------------------------------------------------------------------------------------------------

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


# ---- columns ---------------------------------------------------------------------------------------------------------
# Memory is read once for the sums and once for the result, from the last row up, because the last rows are still in the
# cache.

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


cdef RowLoop LOG_SOFTMAX = RowLoop(reals(<void*>log_softmax[float], <void*>log_softmax[double]),
                                   reals(<void*>log_softmax_across[float], <void*>log_softmax_across[double]),
                                   2, False)
cdef RowLoop LOG_SOFTMAX_GRAD = RowLoop(reals(<void*>log_softmax_grad[float], <void*>log_softmax_grad[double]),
                                        reals(<void*>log_softmax_grad_across[float],
                                              <void*>log_softmax_grad_across[double]), 3, False)
cdef RowLoop SOFTMAX = RowLoop(reals(<void*>softmax[float], <void*>softmax[double]),
                               reals(<void*>softmax_across[float], <void*>softmax_across[double]), 2, False)
cdef RowLoop SOFTMAX_GRAD = RowLoop(reals(<void*>softmax_grad[float], <void*>softmax_grad[double]),
                                    reals(<void*>softmax_grad_across[float], <void*>softmax_grad_across[double]),
                                    3, False)
cdef RowLoop LOGSUMEXP = RowLoop(reals(<void*>logsumexp[float], <void*>logsumexp[double]),
                                 reals(<void*>logsumexp_across[float], <void*>logsumexp_across[double]), 2, True)


# ---- the gradient of logsumexp ---------------------------------------------------------------------------------------

cdef void logsumexp_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                         const char* x, const char* y, char* dx) noexcept nogil:
    cdef Rows job = Rows(NULL, dtype, columns, x, y, dx, g, g_step, 1, 0)
    share_rows(some_logsumexp_grad, &job, rows)


cdef void some_logsumexp_grad(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t step = a * r.columns
    call(r.dtype, logsumexp_grad_[float], logsumexp_grad_[double], element(r.dtype, r.g, a * r.g_step), r.g_step,
         matrix(r.dtype, element(r.dtype, r.x, step), b - a, r.columns), element(r.dtype, r.y, a),
         matrix(r.dtype, element(r.dtype, r.z, step), b - a, r.columns))
