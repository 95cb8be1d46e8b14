"""Kernels of the normalization of the rows of dense matrices (layer_norm, rms_norm), with a weight and a bias for each
column."""

from libc cimport math

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport call, element, matrix
from cygrad.kernels.threads cimport parallel_for, threads_for
from cygrad.kernels.lanes cimport LANES, WIDE, dot_of, mean_of, reduce_lanes, squares_of, total, two_sums

cdef enum:
    F32_ROWS = 32           # rows whose terms of dw and db are added in float32 before their sum is added in float64


cdef void row_norm_(bint centred, real[:, ::1] x, const real* w, const real* b, double eps, real* rate,
                    real[:, ::1] y) noexcept nogil:
    """y = (x - mean) / sqrt(var + eps) w + b; without w and b (NULL) if they are 1 and 0. The mean is 0 if the rows are
    not centred. rate (or NULL) is 1 / sqrt(var + eps)."""
    cdef Py_ssize_t n = x.shape[1], i, j
    cdef real mean, r
    for i in range(x.shape[0]):
        mean = mean_of[real](&x[i, 0], n) if centred else 0
        r = <real>(1 / math.sqrt(squares_of[real](&x[i, 0], mean, n) / n + eps))
        if rate != NULL: rate[i] = r
        if w == NULL:
            for j in range(n): y[i, j] = (x[i, j] - mean) * r
        elif b == NULL:
            for j in range(n): y[i, j] = (x[i, j] - mean) * r * w[j]
        else:
            for j in range(n): y[i, j] = (x[i, j] - mean) * r * w[j] + b[j]


cdef double centred_dot(const real* g, const real* w, const real* x, real mean, Py_ssize_t n) noexcept nogil:
    """sum of g w (x - mean)"""
    cdef real lane[WIDE]
    cdef real partial[LANES]
    cdef Py_ssize_t i = 0, l
    for l in range(LANES): partial[l] = 0
    if n >= WIDE:
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= n:
            for l in range(WIDE): lane[l] += g[i + l] * w[i + l] * (x[i + l] - mean)
            i += WIDE
        reduce_lanes(lane, partial)
    while i + LANES <= n:
        for l in range(LANES): partial[l] += g[i + l] * w[i + l] * (x[i + l] - mean)
        i += LANES
    for l in range(n - i): partial[l] += g[i + l] * w[i + l] * (x[i + l] - mean)
    return total(partial)


cdef void row_norm_grad_(bint centred, real[:, ::1] g, real[:, ::1] x, const real* w, const real* rate, real* dx,
                         real* partial, double* sums) noexcept nogil:
    """dx = rate (g w - mean(g w) - z mean(g w z)), z = (x - mean) rate; both means are 0 if the rows are not centred,
    and w is 1 if it is NULL. Adds g z, then g, over the rows to `sums` (or NULL); `partial` is scratch for 2 n float32
    sums. dx (or NULL) may be g or x."""
    cdef Py_ssize_t n = x.shape[1], i, j
    cdef real mean, a, b, r
    cdef double sum_g, sum_gx
    for j in range(2 * n if sums != NULL else 0): partial[j] = 0
    for i in range(x.shape[0]):
        mean, r = mean_of[real](&x[i, 0], n) if centred else 0, rate[i]
        if sums != NULL:
            for j in range(n): partial[j] += g[i, j] * ((x[i, j] - mean) * r)
            for j in range(n): partial[n + j] += g[i, j]
            if i % F32_ROWS == F32_ROWS - 1 or i == x.shape[0] - 1:
                for j in range(2 * n):
                    sums[j] += partial[j]
                    partial[j] = 0
        if dx != NULL:
            if w != NULL:
                a = <real>(dot_of[real](&g[i, 0], w, n) / n) if centred else 0
                b = <real>(centred_dot[real](&g[i, 0], w, &x[i, 0], mean, n) / n * r * r)
                for j in range(n): dx[i * n + j] = r * (g[i, j] * w[j] - a - (x[i, j] - mean) * b)
                continue
            sum_g = sum_gx = 0
            two_sums[real](&g[i, 0], &x[i, 0], mean, n, &sum_g, &sum_gx)
            a, b = <real>(sum_g / n) if centred else 0, <real>(sum_gx / n * r * r)
            for j in range(n): dx[i * n + j] = r * (g[i, j] - a - (x[i, j] - mean) * b)


cdef struct Rows:
    int dtype
    bint centred
    Py_ssize_t columns
    const char* x
    const char* w
    const char* b
    char* rate
    char* y
    double eps
    const char* g
    char* dx
    char* partial
    double* sums
    Py_ssize_t part


cdef void row_norm(int dtype, bint centred, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* w,
                   const char* b, double eps, char* rate, char* y) noexcept nogil:
    """y = row_norm_(x, w, b) for dense matrices and vectors; y may be x."""
    cdef Rows job = Rows(dtype, centred, columns, x, w, b, rate, y, eps, NULL, NULL, NULL, NULL, 0)
    cdef int t = threads_for(rows * columns)
    parallel_for(rows_range, &job, rows, rows if t == 1 else (rows + 4 * t - 1) // (4 * t), t)


cdef void rows_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t m = stop - start, first = start * r.columns
    call(r.dtype, row_norm_[float], row_norm_[double], r.centred,
         matrix(r.dtype, element(r.dtype, r.x, first), m, r.columns), <void*>r.w, <void*>r.b, r.eps,
         element(r.dtype, r.rate, start) if r.rate != NULL else NULL,
         matrix(r.dtype, element(r.dtype, r.y, first), m, r.columns))


cdef void row_norm_grad(int dtype, bint centred, Py_ssize_t rows, Py_ssize_t columns, const char* g, const char* x,
                        const char* w, const char* rate, char* dx, int parts, char* workspace) noexcept nogil:
    """dx (or NULL) and, at the beginning of the workspace (or NULL), the float64 sums of g z and of g over all rows.
    The rows are divided into `parts` parts, which do not depend on the number of threads. The workspace has 4 columns
    doubles for each part."""
    cdef Py_ssize_t part = (rows + parts - 1) // parts, i, width = 2 * columns
    cdef double* sums = <double*>workspace
    cdef Rows job = Rows(dtype, centred, columns, x, w, NULL, <char*>rate, NULL, 0, g, dx, NULL, sums, part)
    if workspace != NULL:
        job.partial = workspace + parts * width * 8
        for i in range(parts * width): sums[i] = 0
    parallel_for(rows_grad_range, &job, rows, part, threads_for(2 * rows * columns))
    if workspace != NULL:
        for i in range(width, parts * width): sums[i % width] += sums[i]


cdef void rows_grad_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Rows* r = <const Rows*>job
    cdef Py_ssize_t m = stop - start, at = start * r.columns, first = start // r.part * 2 * r.columns
    cdef double* sums = r.sums + first if r.sums != NULL else NULL
    call(r.dtype, row_norm_grad_[float], row_norm_grad_[double], r.centred,
         matrix(r.dtype, element(r.dtype, r.g, at), m, r.columns),
         matrix(r.dtype, element(r.dtype, r.x, at), m, r.columns), <void*>r.w, element(r.dtype, r.rate, start),
         element(r.dtype, r.dx, at) if r.dx != NULL else NULL,
         element(r.dtype, r.partial, first) if r.partial != NULL else NULL, sums)
