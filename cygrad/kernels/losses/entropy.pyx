"""Kernels of cross-entropy, with labels or with probabilities, and of the selection by labels.

With w = weight, s = smoothing, C classes and y = probabilities, or 1 at the label and 0 elsewhere:

    t = w ((1 - s) y + s / C)        T = sum t        logs = log sum e^(x - max)
    loss = T logs - sum t (x - max)        dx = g (T e^(x - max - logs) - t)        dy = g (1 - s) w (logs - (x - max))

Where inner is 1, kernels run on rows, otherwise on columns, a tile at a time.

read_labels() checks the labels before a kernel runs. Another thread may write them meanwhile, for example through
NumPy. So label_of() and class_of(), by which all kernels read them, check each again: a row whose label is no class any
more is one that is ignored."""

from libc.float cimport DBL_MAX, FLT_MAX
from libc.stdint cimport int64_t
from libc.string cimport memset

from cygrad.kernels.array cimport MAX_NDIM, Array, itemsize, real, steps2d, steps2f, view2d, view2f
from cygrad.kernels.by_dtype cimport call, element, number
from cygrad.kernels.lanes cimport sum_of
from cygrad.kernels.mathematics cimport exp, log
from cygrad.kernels.reductions.rows cimport TILE, exponential_cost
from cygrad.kernels.reductions.shifted cimport (
    GROUP, SHORT, column_sums, exponentials, group, larger, log_sums, prefetch, shift_of,
)
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    LONG = 4096             # rows with at most this many columns leave space for the next row in the L1 cache
    BLOCK = 256             # elements of t at a time
    NARROW = 64             # columns of a tile where wider tiles would leave threads without work


# ---- labels and weights ----------------------------------------------------------------------------------------------

cdef Py_ssize_t read_labels(Py_ssize_t rows, Py_ssize_t classes, const int64_t* labels, int64_t ignored, int dtype,
                            const char* weight, double* total) noexcept nogil:
    """The first row whose label is neither a class nor `ignored`, or -1. `total` receives the sum of the weights of the
    labels that are not ignored: the divisor of the mean."""
    cdef Py_ssize_t row, counted = 0
    cdef int64_t label
    total[0] = 0
    for row in range(rows):
        label = labels[row]
        if label == ignored: continue
        if label < 0 or label >= classes: return row
        counted += 1
        if weight != NULL: total[0] += weight_of(dtype, weight, label)
    if weight == NULL: total[0] = counted
    return -1


cdef inline double weight_of(int dtype, const char* weight, int64_t label) noexcept nogil:
    if weight == NULL: return 1
    return number(dtype, weight, label)


cdef inline void fill_targets(const Entropy* e, const real* y, Py_ssize_t j, Py_ssize_t n, real* t) noexcept nogil:
    """t for the classes j to j + n - 1 of a row of probabilities. For labels (y is NULL) without the label's part."""
    cdef real uniform = <real>(e.smoothing / e.classes), rest = <real>(1 - e.smoothing)
    cdef const real* w = <const real*>e.weight
    cdef Py_ssize_t i
    if y != NULL:
        for i in range(n): t[i] = rest * y[j + i] + uniform
    else:
        for i in range(n): t[i] = uniform
    if w != NULL:
        for i in range(n): t[i] *= w[j + i]


cdef inline Py_ssize_t class_of(int64_t label, Py_ssize_t classes, int64_t ignored) noexcept nogil:
    """The label, or -1 if it is that of ignored rows or no class."""
    return label if label != ignored and 0 <= label < classes else -1


cdef inline Py_ssize_t label_of(const Entropy* e, Py_ssize_t row) noexcept nogil:
    """The class of a row, or -1 if it is ignored."""
    return class_of(e.labels[row], e.classes, e.ignored)


cdef inline double label_part(const Entropy* e, Py_ssize_t label) noexcept nogil:
    """t at the label of a row, without the uniform part."""
    return (1 - e.smoothing) * weight_of(e.dtype, e.weight, label)


cdef inline double uniform_total(const Entropy* e) noexcept nogil:
    """The sum of the uniform part of t."""
    return e.smoothing / e.classes * e.weights


# ---- rows ------------------------------------------------------------------------------------------------------------

cdef void plain_rows(const Entropy* e, real[:, ::1] x, Py_ssize_t a) noexcept nogil:
    """Labels without weights and smoothing. Row 0 of x is row `a` of e."""
    cdef real shift[GROUP]
    cdef Py_ssize_t i = 0, m, k, label
    cdef real* loss = <real*>e.loss + a
    cdef real* logs = <real*>e.logs + a
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sums[real](x, i, m, shift, logs + i)
        for k in range(i, i + m):
            logs[k] += logs[k] - logs[k]            # inf becomes NaN, also for the gradient
            label = label_of(e, a + k)
            loss[k] = 0 if label < 0 else logs[k] - (x[k, label] - shift[k - i])
        i += m


cdef void plain_rows_grad(const Entropy* e, real[:, ::1] x, Py_ssize_t a) noexcept nogil:
    """dx = g scale (e^(x - max - logs) - [j = label]); the maximum is computed again, because only logs is saved"""
    cdef Py_ssize_t n = x.shape[1], i = 0, m, j, k, label
    cdef const real* logs = <const real*>e.logs + a
    cdef const real* g = <const real*>e.g + a * e.g_step
    cdef real* dx = <real*>e.dx + a * n
    cdef real factor, shift, scale = <real>e.scale
    while i < x.shape[0]:
        m = group(i, x.shape[0], n)
        if n < SHORT:
            for k in range(i, i + m):
                shift = shift_of[real](&x[k, 0], n)
                for j in range(n): dx[k * n + j] = (x[k, j] - shift) - logs[k]
            exponentials[real](dx + i * n, m * n)
        for k in range(i, i + m):
            factor = g[k * e.g_step] * scale
            label = label_of(e, a + k)
            if label < 0:
                memset(dx + k * n, 0, n * sizeof(real))
                continue
            if n < SHORT:
                for j in range(n): dx[k * n + j] *= factor
            else:
                shift = shift_of[real](&x[k, 0], n)
                if n <= LONG: prefetch(x, k + 1)    # its maximum is memory-bound
                for j in range(n): dx[k * n + j] = factor * exp((x[k, j] - shift) - logs[k])
            dx[k * n + label] -= factor
        i += m


cdef double row_total(const Entropy* e, const real* y, Py_ssize_t label) noexcept nogil:
    """T of a row, of probabilities or with a label."""
    cdef real t[BLOCK]
    cdef Py_ssize_t j = 0, n
    cdef double total = 0
    if y == NULL: return label_part(e, label) + uniform_total(e)
    while j < e.classes:
        n = min(<Py_ssize_t>BLOCK, e.classes - j)
        fill_targets[real](e, y, j, n, t)
        total += sum_of[real](t, n)
        j += n
    return total


cdef void rows_(const Entropy* e, real[:, ::1] x, Py_ssize_t a) noexcept nogil:
    """The loss of rows in general."""
    cdef real shift[GROUP]
    cdef Py_ssize_t i = 0, m, k
    cdef real* loss = <real*>e.loss + a
    cdef real* logs = <real*>e.logs + a
    while i < x.shape[0]:
        m = group(i, x.shape[0], x.shape[1])
        log_sums[real](x, i, m, shift, logs + i)
        for k in range(i, i + m):
            logs[k] += logs[k] - logs[k]
            loss[k] = row_loss[real](e, &x[k, 0], a + k, shift[k - i], logs[k])
        i += m


cdef real row_loss(const Entropy* e, const real* x, Py_ssize_t row, real shift, real logs) noexcept nogil:
    cdef real t[BLOCK]
    cdef const real* y = <const real*>e.target
    cdef Py_ssize_t j = 0, n, i, label = 0
    cdef double sum = 0
    if y != NULL: y += row * e.classes
    if y == NULL:
        label = label_of(e, row)
        if label < 0: return 0
        sum = label_part(e, label) * (x[label] - shift)
    while j < e.classes and (y != NULL or e.smoothing != 0):
        n = min(<Py_ssize_t>BLOCK, e.classes - j)
        fill_targets[real](e, y, j, n, t)
        for i in range(n): t[i] *= x[j + i] - shift
        sum += sum_of[real](t, n)
        j += n
    return <real>(row_total[real](e, y, label) * logs - sum)


cdef void rows_grad(const Entropy* e, real[:, ::1] x, Py_ssize_t a) noexcept nogil:
    """The gradients of rows in general. dx may overwrite x, and so may dtarget where dx is not wanted."""
    cdef real t[BLOCK]
    cdef Py_ssize_t n = x.shape[1], k, j, m, i, row, label = 0
    cdef real f, logs, shift, rest = <real>(1 - e.smoothing), total
    cdef const real* y
    cdef const real* w = <const real*>e.weight
    cdef real* d
    for k in range(x.shape[0]):
        row = a + k
        f = (<const real*>e.g)[row * e.g_step] * <real>e.scale
        logs, shift = (<const real*>e.logs)[row], shift_of[real](&x[k, 0], n)
        y = <const real*>e.target
        if y != NULL: y += row * n
        else: label = label_of(e, row)
        if label < 0:
            memset(<real*>e.dx + row * n, 0, n * sizeof(real))
            continue
        if e.dtarget != NULL:
            d = <real*>e.dtarget + row * n
            for j in range(n): d[j] = f * rest * (logs - (x[k, j] - shift))
            if w != NULL:
                for j in range(n): d[j] *= w[j]
        if e.dx == NULL: continue
        d = <real*>e.dx + row * n
        total, j = <real>row_total[real](e, y, label), 0
        while j < n:
            m = min(<Py_ssize_t>BLOCK, n - j)
            fill_targets[real](e, y, j, m, t)
            for i in range(m): d[j + i] = f * (total * exp((x[k, j + i] - shift) - logs) - t[i])
            j += m
        if y == NULL: d[label] -= f * <real>label_part(e, label)


# ---- columns ---------------------------------------------------------------------------------------------------------
# `at` is the first element of the tile in x, `row` its first row.

cdef void columns_(const Entropy* e, real[:, ::1] x, Py_ssize_t at, Py_ssize_t row) noexcept nogil:
    cdef real max_[TILE]
    cdef double sums[TILE]
    cdef double totals[TILE]
    cdef real* loss = <real*>e.loss + row
    cdef real* logs = <real*>e.logs + row
    cdef Py_ssize_t wide = x.shape[1], i, label
    column_sums(x, max_, sums)
    for i in range(wide): logs[i] = log(<real>(sums[i] + (sums[i] - sums[i])))      # inf becomes NaN
    for i in range(wide): logs[i] += logs[i] - logs[i]
    if e.target != NULL or e.smoothing != 0: column_targets[real](e, x, at, max_, totals, sums)
    else:
        for i in range(wide): sums[i] = 0
    for i in range(wide):
        if e.target != NULL:
            loss[i] = <real>(totals[i] * logs[i] - sums[i])
            continue
        label = label_of(e, row + i)
        if label < 0:
            loss[i] = 0
        else:
            sums[i] += label_part(e, label) * (x[label, i] - max_[i])
            loss[i] = <real>((label_part(e, label) + uniform_total(e)) * logs[i] - sums[i])


cdef void column_targets(const Entropy* e, real[:, ::1] x, Py_ssize_t at, const real* shift, double* restrict totals,
                         double* restrict sums) noexcept nogil:
    """T and sum t (x - shift) of each column. For labels without the label's part."""
    cdef real rest = <real>(1 - e.smoothing), uniform = <real>(e.smoothing / e.classes), t, w
    cdef const real* y
    cdef Py_ssize_t wide = x.shape[1], k, i
    for i in range(wide): totals[i], sums[i] = 0, 0
    for k in range(e.classes):
        w = 1 if e.weight == NULL else (<const real*>e.weight)[k]
        if e.target == NULL:
            t = w * uniform
            for i in range(wide): sums[i] += t * (x[k, i] - shift[i])
            continue
        y = <const real*>e.target + at + k * e.inner
        for i in range(wide):
            t = w * (rest * y[i] + uniform)
            totals[i] += t
            sums[i] += t * (x[k, i] - shift[i])


cdef void columns_grad(const Entropy* e, real[:, ::1] x, Py_ssize_t at, Py_ssize_t row) noexcept nogil:
    cdef real shift[TILE]
    cdef real f[TILE]
    cdef real total[TILE]
    cdef double totals[TILE]
    cdef double sums[TILE]
    cdef Py_ssize_t labels[TILE]
    cdef const real* logs = <const real*>e.logs + row
    cdef const real* g = <const real*>e.g
    cdef real limit = <real>(FLT_MAX if real is float else DBL_MAX)
    cdef Py_ssize_t wide = x.shape[1], k, i
    for i in range(TILE): shift[i] = -limit
    for k in range(e.classes):
        for i in range(wide): shift[i] = larger(x[k, i], shift[i])
    for i in range(wide):
        shift[i] = limit if shift[i] > limit else shift[i]
        f[i] = g[(row + i) * e.g_step] * <real>e.scale
    if e.target != NULL: column_targets[real](e, x, at, shift, totals, sums)
    for i in range(wide):
        if e.target != NULL:
            total[i] = <real>totals[i]
            continue
        labels[i] = label_of(e, row + i)
        if labels[i] < 0: total[i] = f[i] = 0
        else: total[i] = <real>(label_part(e, labels[i]) + uniform_total(e))
    if e.dtarget != NULL: columns_dtarget[real](e, x, at, shift, f, logs)
    if e.dx == NULL: return
    columns_dx[real](e, x, at, shift, f, total, logs)
    for i in range(wide if e.target == NULL else 0):
        if labels[i] >= 0:
            (<real*>e.dx)[at + labels[i] * e.inner + i] -= f[i] * <real>label_part(e, labels[i])
            continue
        for k in range(e.classes): (<real*>e.dx)[at + k * e.inner + i] = 0      # also if x is NaN


cdef void columns_dtarget(const Entropy* e, real[:, ::1] x, Py_ssize_t at, const real* shift, const real* f,
                          const real* logs) noexcept nogil:
    cdef Py_ssize_t k, i
    cdef real w
    cdef real* d
    for k in range(e.classes):
        w = <real>((1 - e.smoothing) * weight_of(e.dtype, e.weight, k))
        d = <real*>e.dtarget + at + k * e.inner
        for i in range(x.shape[1]): d[i] = f[i] * w * (logs[i] - (x[k, i] - shift[i]))


cdef void columns_dx(const Entropy* e, real[:, ::1] x, Py_ssize_t at, const real* shift, const real* f,
                     const real* total, const real* logs) noexcept nogil:
    """The gradient without the label's part."""
    cdef real rest = <real>(1 - e.smoothing), uniform = <real>(e.smoothing / e.classes), w, u
    cdef const real* y
    cdef real* d
    cdef Py_ssize_t wide = x.shape[1], k, i
    for k in range(e.classes - 1, -1, -1):          # the last rows are still in the cache
        w = 1 if e.weight == NULL else (<const real*>e.weight)[k]
        d = <real*>e.dx + at + k * e.inner
        prefetch(x, k - 2)
        if e.target == NULL:
            u = w * uniform
            for i in range(wide): d[i] = f[i] * (total[i] * exp((x[k, i] - shift[i]) - logs[i]) - u)
        else:
            y = <const real*>e.target + at + k * e.inner
            for i in range(wide):
                d[i] = f[i] * (total[i] * exp((x[k, i] - shift[i]) - logs[i]) - w * (rest * y[i] + uniform))


# ---- threads ---------------------------------------------------------------------------------------------------------

cdef void some_rows(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    call((<const Entropy*>job).dtype, some[float], some[double], job, a, b, 0)


cdef inline void some(const Entropy* e, Py_ssize_t a, Py_ssize_t b, real zero) noexcept nogil:
    """Rows a to b - 1, or tiles if inner is not 1. Without loss: their gradients."""
    cdef Py_ssize_t tiles = (e.inner + e.tile - 1) // e.tile, n = e.classes, i, start, at, wide
    cdef bint plain = e.target == NULL and e.weight == NULL and e.smoothing == 0
    cdef real[:, ::1] x
    if e.inner == 1:
        if real is float: x = view2f(<float*>e.x + a * n, b - a, n)
        else:             x = view2d(<double*>e.x + a * n, b - a, n)
        if e.loss == NULL and plain: plain_rows_grad[real](e, x, a)
        elif e.loss == NULL:         rows_grad[real](e, x, a)
        elif plain:                  plain_rows[real](e, x, a)
        else:                        rows_[real](e, x, a)
        return
    for i in range(a, b):
        start = i % tiles * e.tile
        at = i // tiles * n * e.inner + start
        wide = min(e.tile, e.inner - start)
        if real is float: x = steps2f(<float*>e.x + at, n, wide, e.inner)
        else:             x = steps2d(<double*>e.x + at, n, wide, e.inner)
        if e.loss == NULL: columns_grad[real](e, x, at, i // tiles * e.inner + start)
        else:              columns_[real](e, x, at, i // tiles * e.inner + start)


cdef void share(Entropy* e) noexcept nogil:
    """Distribute rows, or tiles of columns, among threads."""
    cdef Py_ssize_t k, n = e.outer
    cdef int t = threads_for(exponential_cost(e.dtype) * e.outer * e.classes * e.inner)
    if e.outer * e.inner == 0: return
    e.tile = NARROW if e.outer * e.inner < t * TILE else TILE
    e.weights = e.classes
    if e.weight != NULL:
        e.weights = 0
        for k in range(e.classes): e.weights += weight_of(e.dtype, e.weight, k)
    if e.inner != 1: n = e.outer * ((e.inner + e.tile - 1) // e.tile)
    parallel_for(some_rows, e, n, n if t == 1 else (n + 4 * t - 1) // (4 * t), t)


cdef void cross_entropy(Entropy* e) noexcept nogil:
    """Write loss and logs. The labels have been checked."""
    share(e)


cdef void cross_entropy_grad(Entropy* e) noexcept nogil:
    """Write dx and dtarget, those that are not NULL."""
    e.loss = NULL
    share(e)


# ---- selection by labels ---------------------------------------------------------------------------------------------

cdef inline void put_product(const real* x, double w, real* y) noexcept nogil:
    y[0] = -<real>w * x[0]


cdef void pick_run(const real* x, Py_ssize_t step, Py_ssize_t class_step, const int64_t* labels, Py_ssize_t n,
                   Py_ssize_t classes, int64_t ignored, const real* weight, real* y) noexcept nogil:
    """pick() for n rows that are `step` elements apart."""
    cdef Py_ssize_t i, label
    cdef real v
    for i in range(n):
        label = class_of(labels[i], classes, ignored)
        v = x[i * step + label * class_step] if label >= 0 else 0
        y[i] = (-v if weight == NULL else -weight[label] * v) if label >= 0 else 0


cdef void pick(const Array* x, int axis, const int64_t* labels, int64_t ignored, const char* weight,
               char* y) noexcept nogil:
    """y = -weight[label] x[label] for each row; 0 for the rows that are ignored. The classes are along `axis`."""
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t row = 0, at = 0, rows = 1, n = 1, step = 0
    cdef const Py_ssize_t* shape = x.layout.shape
    cdef int d, last = x.layout.ndim - 1 - (axis == x.layout.ndim - 1)      # the axis of rows that are neighbours
    for d in range(x.layout.ndim):
        index[d] = 0
        if d != axis: rows *= shape[d]
    if last >= 0: n, step = shape[last], x.layout.strides[last]
    while row < rows:
        call(x.dtype, pick_run[float], pick_run[double], element(x.dtype, x.data, at), step, x.layout.strides[axis],
             labels + row, n, shape[axis], ignored, <void*>weight, element(x.dtype, y, row))
        row += n
        d = last - 1
        while d >= 0:
            if d != axis:
                index[d] += 1
                at += x.layout.strides[d]
                if index[d] < shape[d]: break
                at -= shape[d] * x.layout.strides[d]
                index[d] = 0
            d -= 1


cdef void place(const Entropy* e) noexcept nogil:
    """dx = 0, but -g scale weight[label] at the label of each row that is not ignored."""
    cdef Py_ssize_t row, at, label
    memset(e.dx, 0, e.outer * e.classes * e.inner * itemsize(e.dtype))
    for row in range(e.outer * e.inner):
        label = label_of(e, row)
        if label < 0: continue
        at = (row // e.inner * e.classes + label) * e.inner + row % e.inner
        call(e.dtype, put_product[float], put_product[double], element(e.dtype, e.g, row * e.g_step),
             weight_of(e.dtype, e.weight, label) * e.scale, element(e.dtype, e.dx, at))


# ---- the gradient of a bias ------------------------------------------------------------------------------------------

cdef void add_rows_(Py_ssize_t rows, Py_ssize_t columns, const real* x, double* restrict sums) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(rows):
        for j in range(columns): sums[j] += x[i * columns + j]


cdef void add_rows(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, double* sums) noexcept nogil:
    """Add each row of x to `sums`."""
    call(dtype, add_rows_[float], add_rows_[double], rows, columns, <void*>x, sums)
