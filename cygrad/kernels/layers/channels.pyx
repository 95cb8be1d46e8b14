"""Kernels of the normalization of channels: group_norm and batch_norm. x is (n, channels, size) and dense."""

from libc cimport math

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport call, number, put_number
from cygrad.kernels.lanes cimport differences_of, mean_of, squares_of, sum_of, two_sums
from cygrad.kernels.threads cimport parallel_for, range_t, threads_for

cdef enum:
    COLUMNS = 64            # channels of a block, if each channel is a column

cdef inline void shift_scale(const real* x, real mean, real a, real b, Py_ssize_t n, real* y) noexcept nogil:
    """y = (x - mean) a + b"""
    for i in range(n): y[i] = (x[i] - mean) * a + b


cdef inline void combine(const real* g, const real* x, real mean, real a, real b, real c, Py_ssize_t n,
                         real* dx) noexcept nogil:
    """dx = g a - b - (x - mean) c"""
    for i in range(n): dx[i] = g[i] * a - b - (x[i] - mean) * c


cdef inline real weight_of(const char* w, Py_ssize_t i, real other) noexcept nogil:
    """Weight or bias i, or `other` if there is none."""
    return (<const real*>w)[i] if w != NULL else other


# ---- groups of channels, in each sample ------------------------------------------------------------------------------

cdef void group_norm_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """Groups `start` to `stop` - 1 of all samples."""
    cdef Py_ssize_t per = c.channels // c.groups, n = per * c.size, i, k, first
    cdef real mean, r, a
    cdef const real* x
    cdef real* y
    for i in range(start, stop):
        x, y = <const real*>c.x + i * n, <real*>c.y + i * n
        mean = mean_of[real](x, n)
        r = <real>(1 / math.sqrt(squares_of[real](x, mean, n) / n + c.eps))
        if c.stats != NULL: (<real*>c.stats)[2 * i], (<real*>c.stats)[2 * i + 1] = mean, r
        if c.w == NULL:
            shift_scale[real](x, mean, r, <real>0, n, y)
            continue
        first = i % c.groups * per
        for k in range(per):
            a = r * weight_of[real](c.w, first + k, <real>1)
            shift_scale[real](x + k * c.size, mean, a, weight_of[real](c.b, first + k, <real>0), c.size,
                              y + k * c.size)


cdef void group_norm_grad_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """dx = rate (g w - mean(g w) - z mean(g w z)), and for each channel the sums of g z and of g."""
    cdef Py_ssize_t per = c.channels // c.groups, n = per * c.size, i, k, channel
    cdef real mean, r, w
    cdef double sum_g, sum_gx, a, b
    cdef const real* x
    cdef const real* g
    for i in range(start, stop):
        x, g = <const real*>c.x + i * n, <const real*>c.g + i * n
        mean = r = 0
        if c.x != NULL: mean, r = (<real*>c.stats)[2 * i], (<real*>c.stats)[2 * i + 1]
        a = b = 0
        for k in range(per):
            channel = i % c.groups * per + k
            sum_g = sum_gx = 0
            if c.x == NULL: sum_g = sum_of[real](g + k * c.size, c.size)
            else: two_sums[real](g + k * c.size, x + k * c.size, mean, c.size, &sum_g, &sum_gx)
            w = weight_of[real](c.w, channel, <real>1)
            a, b = a + w * sum_g, b + w * sum_gx
            if c.sums != NULL:
                channel += i // c.groups * c.channels
                c.sums[2 * channel], c.sums[2 * channel + 1] = sum_gx * r, sum_g
        if c.dx == NULL: continue
        a, b = a / n * r, b / n * r * r * r
        for k in range(per):
            w = weight_of[real](c.w, i % c.groups * per + k, <real>1)
            combine[real](g + k * c.size, x + k * c.size, mean, r * w, <real>a, <real>b, c.size,
                          <real*>c.dx + i * n + k * c.size)


cdef void group_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Channels* c = <Channels*>job
    if c.g == NULL: call(c.dtype, group_norm_[float], group_norm_[double], c, start, stop, 0)
    else:           call(c.dtype, group_norm_grad_[float], group_norm_grad_[double], c, start, stop, 0)


cdef void group_norm(Channels* c) noexcept nogil:
    """y, and the statistics if `stats` is not NULL; y may be x. No size is 0."""
    over_parts(group_range, c, c.n * c.groups)


cdef void group_norm_grad(Channels* c) noexcept nogil:
    """dx, and at the beginning of `sums` (or NULL), for each channel the sums of g z and of g over all samples."""
    cdef Py_ssize_t i, width = 2 * c.channels
    over_parts(group_range, c, c.n * c.groups)
    if c.sums == NULL: return
    for i in range(width, c.n * width): c.sums[i % width] += c.sums[i]


cdef void over_parts(range_t f, Channels* c, Py_ssize_t rows) noexcept nogil:
    """Run f over `rows` rows of equal work."""
    cdef int t = threads_for(2 * c.n * c.channels * c.size)
    parallel_for(f, c, rows, rows if t == 1 else (rows + 4 * t - 1) // (4 * t), t)


# ---- each channel over all samples -----------------------------------------------------------------------------------

cdef inline real rate_of(const Channels* c, Py_ssize_t k, real _) noexcept nogil:
    """1 / sqrt(var + eps) of channel k."""
    cdef real v = (<const real*>c.stats)[c.channels + k]
    cdef double n = <double>(c.n * c.size)
    return <real>(1 / math.sqrt(v * ((n - 1) / n) + c.eps)) if c.training else v


cdef void batch_stats_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """The mean and the unbiased variance of channels `start` to `stop` - 1."""
    cdef Py_ssize_t k, i, step = c.channels * c.size
    cdef double n = <double>(c.n * c.size), v
    cdef real* stats = <real*>c.stats
    cdef const real* x
    for k in range(start, stop):
        x = <const real*>c.x + k * c.size
        v = 0
        for i in range(c.n): v += differences_of[real](x + i * step, x[0], c.size)
        stats[k] = <real>(x[0] + v / n)
        v = 0
        for i in range(c.n): v += squares_of[real](x + i * step, stats[k], c.size)
        stats[c.channels + k] = <real>(v / (n - 1))


cdef void column_stats_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """batch_stats_() if each channel is a column, at most COLUMNS of them."""
    cdef double lane[COLUMNS]
    cdef Py_ssize_t m = stop - start, i, j
    cdef const real* x = <const real*>c.x + start
    cdef real* mean = <real*>c.stats + start
    cdef const real* row
    cdef real v
    for j in range(m): lane[j] = 0
    for i in range(1, c.n):
        row = x + i * c.channels
        for j in range(m): lane[j] += row[j] - x[j]
    for j in range(m):
        mean[j] = <real>(x[j] + lane[j] / c.n)
        lane[j] = 0
    for i in range(c.n):
        row = x + i * c.channels
        for j in range(m):
            v = row[j] - mean[j]
            lane[j] += v * v
    for j in range(m): mean[c.channels + j] = <real>(lane[j] / (c.n - 1))


cdef void batch_norm_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """y = (x - mean) rate w + b"""
    cdef real scale[COLUMNS]
    cdef real bias[COLUMNS]
    cdef Py_ssize_t k, i, j, m, at
    cdef real* mean = <real*>c.stats
    cdef const real* x
    cdef real* y
    if c.size > 1:
        if c.training: batch_stats_[real](c, start, stop, _)
        for k in range(start, stop):
            scale[0] = rate_of[real](c, k, _) * weight_of[real](c.w, k, <real>1)
            bias[0] = weight_of[real](c.b, k, <real>0)
            for i in range(c.n):
                at = (i * c.channels + k) * c.size
                shift_scale[real](<const real*>c.x + at, mean[k], scale[0], bias[0], c.size, <real*>c.y + at)
        return
    while start < stop:
        m = min(stop - start, COLUMNS)
        if c.training: column_stats_[real](c, start, start + m, _)
        for j in range(m):
            scale[j] = rate_of[real](c, start + j, _) * weight_of[real](c.w, start + j, <real>1)
            bias[j] = weight_of[real](c.b, start + j, <real>0)
        for i in range(c.n):
            x, y = <const real*>c.x + i * c.channels + start, <real*>c.y + i * c.channels + start
            for j in range(m): y[j] = (x[j] - mean[start + j]) * scale[j] + bias[j]
        start += m


cdef void batch_norm_grad_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """dx = w rate (g - mean(g) - z mean(g z)), or w rate g if not training; dw = sum g z; db = sum g"""
    cdef Py_ssize_t k, i, at
    cdef double n = <double>(c.n * c.size), a, b
    cdef real mean, r, w
    for k in range(start, stop):
        mean = r = 0
        if c.stats != NULL: mean, r = (<real*>c.stats)[k], rate_of[real](c, k, _)
        a = b = 0
        for i in range(c.n):
            at = (i * c.channels + k) * c.size
            if c.x != NULL: two_sums[real](<const real*>c.g + at, <const real*>c.x + at, mean, c.size, &a, &b)
            elif c.db != NULL: a += sum_of[real](<const real*>c.g + at, c.size)
        if c.dw != NULL: (<real*>c.dw)[k] = <real>(b * r)
        if c.db != NULL: (<real*>c.db)[k] = <real>a
        if c.dx == NULL: continue
        w = r * weight_of[real](c.w, k, <real>1)
        a, b = a / n * w, b / n * r * r * w
        for i in range(c.n):
            at = (i * c.channels + k) * c.size
            if c.training: combine[real](<const real*>c.g + at, <const real*>c.x + at, mean, w, <real>a, <real>b,
                                         c.size, <real*>c.dx + at)
            else: shift_scale[real](<const real*>c.g + at, <real>0, w, <real>0, c.size, <real*>c.dx + at)


cdef void column_norm_grad_(Channels* c, Py_ssize_t start, Py_ssize_t stop, real _) noexcept nogil:
    """batch_norm_grad_() if each channel is a column, at most COLUMNS of them."""
    cdef double sum_g[COLUMNS]
    cdef double sum_gx[COLUMNS]
    cdef real scale[COLUMNS]
    cdef real a[COLUMNS]
    cdef real b[COLUMNS]
    cdef Py_ssize_t m = stop - start, i, j, at
    cdef real* mean = <real*>c.stats + start
    cdef const real* x
    cdef const real* g
    cdef real* dx
    cdef real r
    for j in range(m): sum_g[j] = sum_gx[j] = 0
    for i in range(c.n):
        at = i * c.channels + start
        x, g = <const real*>c.x + at, <const real*>c.g + at
        for j in range(m): sum_g[j] += g[j]
        for j in range(m if c.x != NULL else 0): sum_gx[j] += g[j] * (x[j] - mean[j])
    for j in range(m):
        r = rate_of[real](c, start + j, _) if c.stats != NULL else 0
        if c.dw != NULL: (<real*>c.dw)[start + j] = <real>(sum_gx[j] * r)
        if c.db != NULL: (<real*>c.db)[start + j] = <real>sum_g[j]
        scale[j] = r * weight_of[real](c.w, start + j, <real>1)
        a[j], b[j] = <real>(sum_g[j] / c.n * scale[j]), <real>(sum_gx[j] / c.n * r * r * scale[j])
    for i in range(c.n if c.dx != NULL else 0):
        at = i * c.channels + start
        x, g, dx = <const real*>c.x + at, <const real*>c.g + at, <real*>c.dx + at
        if c.training:
            for j in range(m): dx[j] = g[j] * scale[j] - a[j] - (x[j] - mean[j]) * b[j]
        else:
            for j in range(m): dx[j] = g[j] * scale[j]


cdef void batch_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Channels* c = <Channels*>job
    if c.g == NULL: call(c.dtype, batch_norm_[float], batch_norm_[double], c, start, stop, 0)
    elif c.size > 1: call(c.dtype, batch_norm_grad_[float], batch_norm_grad_[double], c, start, stop, 0)
    else:
        while start < stop:
            call(c.dtype, column_norm_grad_[float], column_norm_grad_[double], c, start, min(start + COLUMNS, stop), 0)
            start += COLUMNS


cdef void batch_norm(Channels* c) noexcept nogil:
    """y, and the statistics if training; y may be x."""
    over_parts(batch_range, c, c.channels)


cdef void batch_norm_grad(Channels* c) noexcept nogil:
    """The gradients that are not NULL. x may be NULL if dw is, and if dx is or if not training; stats too if only db is
    computed."""
    over_parts(batch_range, c, c.channels)


cdef void running_stats(Channels* c, const char* mean, const char* var) noexcept nogil:
    """Set `stats` to the means, and the rates for the variances."""
    cdef Py_ssize_t k
    for k in range(c.channels):
        put_number(c.dtype, c.stats, k, number(c.dtype, mean, k))
        put_number(c.dtype, c.stats, c.channels + k, 1 / math.sqrt(number(c.dtype, var, k) + c.eps))
