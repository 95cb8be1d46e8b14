"""Kernels that move elements by index: take, put and add, for index arrays, masks and plain copies.

All of them use the same walk. For each strip it computes the offsets of corresponding rows of x and y, and then one
loop moves the rows. Single elements selected by one index array are moved without storing offsets. Indices are
checked before they are used: the walk ends at an index out of range and reports it, and never reads or writes there.
Another thread may write the indices or the mask meanwhile, for example through NumPy. So each index is read once, into
memory of the kernel, and checked there; and no more rows are moved for a mask than y has.
Additions run on one thread in row-major order of y, so sums over repeated indices have the same bits every time."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, itemsize, real
from cygrad.kernels.by_dtype cimport call_words
from cygrad.kernels.driver cimport STRIP, gather
from cygrad.kernels.elements cimport word
from cygrad.kernels.threads cimport parallel_for, threads_for

ctypedef fused number:      # an element of a sum; in two's complement, signed and unsigned sums have the same bits
    word
    real

cdef struct Spot:           # the position of a row of the grid, and its offsets
    Py_ssize_t position[MAX_NDIM]
    Py_ssize_t x
    Py_ssize_t y
    Py_ssize_t index[MAX_NDIM]

cdef enum Way:
    TAKE, PUT, ADD          # y = x[places]      x[places] = y      x[places] += y


# ---- checks of indices -----------------------------------------------------------------------------------------------

cdef bint bad_index(const Array* index, Py_ssize_t size, int64_t* bad) noexcept nogil:
    """Whether some index is outside -size .. size - 1. `bad` receives the first one."""
    cdef int64_t strip[STRIP]
    cdef const int64_t* values = <const int64_t*>index.data
    cdef Py_ssize_t n = index.layout.size, start = 0, count, i
    cdef int64_t signs
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        if index.layout.dense: values = <const int64_t*>index.data + start
        else:
            gather(<char*>strip, index, start, count)
            values = strip
        signs = 0
        for i in range(count): signs |= sign(values[i], size)
        for i in range(count if signs < 0 else 0):
            if values[i] < -size or values[i] >= size:
                bad[0] = values[i]
                return True
        start += count
    return False


cdef Py_ssize_t count_true(const Array* mask) noexcept nogil:
    """The number of true elements of a bool array."""
    cdef uint8_t strip[STRIP]
    cdef const uint8_t* values
    cdef Py_ssize_t n = mask.layout.size, start = 0, count, i, total = 0
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        values = <const uint8_t*>mask.data + start
        if not mask.layout.dense:
            gather(<char*>strip, mask, start, count)
            values = strip
        for i in range(count): total += values[i] != 0
        start += count
    return total


# ---- corresponding elements ------------------------------------------------------------------------------------------

cdef void begin(Places* p, const Array* x, const Array* y, const Layout* grid) noexcept nogil:
    p.ndim, p.n, p.masked, p.dtype = grid.ndim, 0, 0, x.dtype
    p.x, p.y, p.mask = x.data, y.data, NULL
    for d in range(grid.ndim): p.shape[d] = grid.shape[d]


cdef void finish(Places* p, int first) noexcept nogil:
    """Merge trailing dimensions, from `first` on, into the row if they are contiguous in x and, in y, contiguous or one
    repeated element."""
    cdef int d
    p.row, p.count, p.y_row = 1, 1, 1
    while p.ndim > first:
        d = p.ndim - 1
        if p.shape[d] != 1:
            if p.row == 1: p.y_row = p.y_step[d] != 0
            if p.x_step[d] != p.row or p.y_step[d] != p.row * p.y_row: break
            p.row *= p.shape[d]
        p.ndim -= 1
    for d in range(p.ndim): p.count *= p.shape[d]
    if p.n: squeeze(p)


cdef void squeeze(Places* p) noexcept nogil:
    """Remove dimensions of size 1, so that runs are long."""
    cdef int d, k, to = 0
    for d in range(p.ndim):
        if p.shape[d] == 1: continue
        p.shape[to], p.x_step[to], p.y_step[to] = p.shape[d], p.x_step[d], p.y_step[d]
        for k in range(p.n): p.index_step[k][to] = p.index_step[k][d]
        to += 1
    p.ndim = to


cdef void aim(Places* p, const Array* x, const Array* y, int axis, int n, const Array* index) noexcept nogil:
    """y[a.., b.., c..] corresponds to x[a.., index_1[b..], .. index_n[b..], c..]. The first index array selects from
    dimension `axis`, and the index arrays broadcast. With n = 0, y[a..] corresponds to x[a..]."""
    cdef const Layout* l = y.layout
    cdef const Layout* li
    cdef int extra = l.ndim - x.layout.ndim + n     # dimensions of the broadcast index arrays
    cdef int d, k, i
    begin(p, x, y, l)
    p.n = n
    for d in range(l.ndim):
        p.y_step[d] = l.strides[d]
        if d < axis: p.x_step[d] = x.layout.strides[d]
        elif d < axis + extra: p.x_step[d] = 0
        else: p.x_step[d] = x.layout.strides[d - extra + n]
    for k in range(n):
        li = index[k].layout
        p.index[k] = <const int64_t*>index[k].data
        p.size[k], p.stride[k] = x.layout.shape[axis + k], x.layout.strides[axis + k]
        for d in range(l.ndim):
            i = d - axis - extra + li.ndim
            p.index_step[k][d] = li.strides[i] if 0 <= i < li.ndim and li.shape[i] != 1 else 0
    finish(p, axis + extra if n else 0)


cdef void aim_along(Places* p, const Array* x, const Array* y, int axis, const Array* index) noexcept nogil:
    """y[.. a ..] corresponds to x[.. index[.. a ..] ..], at `axis`. y has the shape of the index array. Trailing
    dimensions along which the indices are repeated may be a row."""
    cdef int d, first = axis + 1
    begin(p, x, y, index.layout)
    p.n = 1
    for d in range(p.ndim):
        p.y_step[d] = y.layout.strides[d]
        p.x_step[d] = x.layout.strides[d] if d != axis else 0
        p.index_step[0][d] = index.layout.strides[d] if p.shape[d] != 1 else 0
        if p.index_step[0][d] and d >= first: first = d + 1
    p.index[0] = <const int64_t*>index.data
    p.size[0], p.stride[0] = x.layout.shape[axis], x.layout.strides[axis]
    finish(p, first)


cdef void aim_mask(Places* p, const Array* x, const Array* y, const Array* mask) noexcept nogil:
    """y[j, c..] corresponds to x[place.., c..], where `place` is the position of the j-th true element of the mask."""
    cdef int d, m = mask.layout.ndim
    begin(p, x, y, x.layout)
    p.masked, p.mask, p.chosen, p.chosen_stride = m, mask.data, y.layout.shape[0], y.layout.strides[0]
    for d in range(p.ndim):
        p.x_step[d] = x.layout.strides[d]
        p.y_step[d] = 0 if d < m else y.layout.strides[d - m + 1]
        p.mask_step[d] = mask.layout.strides[d] if d < m else 0
    finish(p, m)


cdef void seek(const Places* p, Py_ssize_t start, Spot* spot) noexcept nogil:
    """Set `spot` to row `start` of the grid."""
    cdef Py_ssize_t rest = start
    spot.x = spot.y = 0
    for k in range(p.n): spot.index[k] = 0
    for d in range(p.ndim - 1, -1, -1):
        spot.position[d] = rest % p.shape[d]
        rest = rest // p.shape[d]
        spot.x += spot.position[d] * p.x_step[d]
        spot.y += spot.position[d] * p.y_step[d]
        for k in range(p.n): spot.index[k] += spot.position[d] * p.index_step[k][d]


cdef void next_run(const Places* p, Spot* spot) noexcept nogil:
    """Advance from the last row of a run to the next row, which must exist."""
    cdef int d = p.ndim - 1, k
    spot.x -= spot.position[d] * p.x_step[d]
    spot.y -= spot.position[d] * p.y_step[d]
    for k in range(p.n): spot.index[k] -= spot.position[d] * p.index_step[k][d]
    spot.position[d] = 0
    while True:
        d -= 1
        spot.position[d] += 1
        spot.x += p.x_step[d]
        spot.y += p.y_step[d]
        for k in range(p.n): spot.index[k] += p.index_step[k][d]
        if spot.position[d] < p.shape[d]: return
        spot.x -= p.shape[d] * p.x_step[d]
        spot.y -= p.shape[d] * p.y_step[d]
        for k in range(p.n): spot.index[k] -= p.shape[d] * p.index_step[k][d]
        spot.position[d] = 0


cdef inline int64_t sign(int64_t i, Py_ssize_t size) noexcept nogil:
    """Negative if i is outside -size .. size - 1, because one of the terms is then negative, even if the other
    overflows."""
    return (i + size) | (size - 1 - i)


cdef bint locate(const Places* p, Py_ssize_t start, Py_ssize_t count, Py_ssize_t* xs, Py_ssize_t* ys) noexcept nogil:
    """Compute the offsets of rows start to start + count - 1 of the grid. Returns whether all indices are in range."""
    cdef Spot spot
    cdef Py_ssize_t run, j, x_step, y_step, index_step
    cdef int64_t i, signs = 0
    cdef int k, last = p.ndim - 1
    seek(p, start, &spot)
    while True:
        run, x_step, y_step = 1, 0, 0
        if last >= 0:
            run, x_step, y_step = p.shape[last] - spot.position[last], p.x_step[last], p.y_step[last]
            if run > count: run = count
        for j in range(run):
            xs[j] = spot.x + j * x_step
            ys[j] = spot.y + j * y_step
        for k in range(p.n):
            index_step = p.index_step[k][last] if last >= 0 else 0
            for j in range(run):
                i = p.index[k][spot.index[k] + j * index_step]
                signs |= sign(i, p.size[k])
                if i < 0: i += p.size[k]
                xs[j] += i * p.stride[k]
        count -= run
        if count <= 0: return signs >= 0
        xs += run
        ys += run
        next_run(p, &spot)


# ---- moving rows -----------------------------------------------------------------------------------------------------

cdef void move_words(word* x, word* y, Py_ssize_t n, const Py_ssize_t* xs, const Py_ssize_t* ys,
                     Way way) noexcept nogil:
    """Move n single elements."""
    if way == TAKE:
        for j in range(n): y[ys[j]] = x[xs[j]]
    else:
        for j in range(n): x[xs[j]] = y[ys[j]]


cdef void spread_rows(const Places* p, word* x, const word* y, Py_ssize_t n, const Py_ssize_t* xs,
                      const Py_ssize_t* ys) noexcept nogil:
    """Fill each row of x with one element of y. Only for PUT, because results are not broadcast."""
    cdef Py_ssize_t i, j
    cdef word value
    for j in range(n):
        value = y[ys[j]]
        for i in range(p.row): x[xs[j] + i] = value


cdef void add_rows(const Places* p, number* x, const number* y, Py_ssize_t n, const Py_ssize_t* xs,
                   const Py_ssize_t* ys) noexcept nogil:
    cdef number* target
    cdef const number* source
    for j in range(n):
        target = x + xs[j]
        source = y + ys[j]
        if p.y_row:
            for i in range(p.row): target[i] += source[i]
        else:
            for i in range(p.row): target[i] += source[0]


cdef void move(const Places* p, Py_ssize_t n, const Py_ssize_t* xs, const Py_ssize_t* ys, Way way) noexcept nogil:
    """Move n rows between the offsets xs of x and ys of y."""
    cdef int size = itemsize(p.dtype)
    if way == ADD:
        call_words(p.dtype, add_rows[uint8_t], add_rows[uint16_t], add_rows[uint32_t], add_rows[uint64_t],
                   add_rows[float], add_rows[double], p, <void*>p.x, <void*>p.y, n, xs, ys)
    elif p.row != 1 and not p.y_row:
        if size == 1: spread_rows(p, <uint8_t*>p.x, <uint8_t*>p.y, n, xs, ys)
        elif size == 2: spread_rows(p, <uint16_t*>p.x, <uint16_t*>p.y, n, xs, ys)
        elif size == 4: spread_rows(p, <uint32_t*>p.x, <uint32_t*>p.y, n, xs, ys)
        else: spread_rows(p, <uint64_t*>p.x, <uint64_t*>p.y, n, xs, ys)
    elif p.row != 1:
        if way == TAKE:
            for j in range(n): memcpy(p.y + ys[j] * size, p.x + xs[j] * size, p.row * size)
        else:
            for j in range(n): memcpy(p.x + xs[j] * size, p.y + ys[j] * size, p.row * size)
    elif size == 1: move_words(<uint8_t*>p.x, <uint8_t*>p.y, n, xs, ys, way)
    elif size == 2: move_words(<uint16_t*>p.x, <uint16_t*>p.y, n, xs, ys, way)
    elif size == 4: move_words(<uint32_t*>p.x, <uint32_t*>p.y, n, xs, ys, way)
    else: move_words(<uint64_t*>p.x, <uint64_t*>p.y, n, xs, ys, way)


# ---- single elements by one index array, without stored offsets ------------------------------------------------------

cdef void run_words(const Places* p, word* x, word* y, const int64_t* index, Py_ssize_t n, Way way) noexcept nogil:
    """Move n elements of a run, four at a time: loop counting would otherwise take a third of the time."""
    cdef Py_ssize_t stride = p.stride[0], x_step = p.x_step[p.ndim - 1], y_step = p.y_step[p.ndim - 1], j, l
    if way == PUT:
        for j in range(n): x[j * x_step + index[j] * stride] = y[j * y_step]
    elif y_step == 1 and x_step == 0 and stride == 1:
        for j in range(0, n - n % 4, 4):
            for l in range(j, j + 4): y[l] = x[index[l]]
        for j in range(n - n % 4, n): y[j] = x[index[j]]
    else:
        for j in range(n): y[j * y_step] = x[j * x_step + index[j] * stride]


cdef void run_sums(const Places* p, number* x, const number* y, const int64_t* index, Py_ssize_t n) noexcept nogil:
    """Add n elements of a run, in order."""
    cdef Py_ssize_t stride = p.stride[0], x_step = p.x_step[p.ndim - 1], y_step = p.y_step[p.ndim - 1], j
    if y_step == 1 and x_step == 0 and stride == 1:
        for j in range(n): x[index[j]] += y[j]
    else:
        for j in range(n): x[j * x_step + index[j] * stride] += y[j * y_step]


cdef bint runs(const Places* p, Py_ssize_t start, Py_ssize_t stop, Way way) noexcept nogil:
    """Move elements start to stop - 1 of a grid with ndim > 0, on one thread, up to an index out of range. Returns
    whether there is none. Each strip of indices is copied and checked first."""
    cdef int64_t strip[STRIP]
    cdef Spot spot
    cdef const int64_t* index
    cdef int64_t i, signs
    cdef Py_ssize_t n, j, step = p.index_step[0][p.ndim - 1]
    cdef int size = itemsize(p.dtype), last = p.ndim - 1
    cdef char* x
    cdef char* y
    seek(p, start, &spot)
    while True:
        n = min(min(p.shape[last] - spot.position[last], stop - start), <Py_ssize_t>STRIP)
        index = p.index[0] + spot.index[0]
        signs = 0
        if step == 1:                               # (a loop of its own, of vectors)
            for j in range(n):
                i = index[j]
                signs |= sign(i, p.size[0])
                strip[j] = i + p.size[0] if i < 0 else i
        else:
            for j in range(n):
                i = index[j * step]
                signs |= sign(i, p.size[0])
                strip[j] = i + p.size[0] if i < 0 else i
        if signs < 0: return False
        x, y = p.x + spot.x * size, p.y + spot.y * size
        if way == ADD:
            call_words(p.dtype, run_sums[uint8_t], run_sums[uint16_t], run_sums[uint32_t], run_sums[uint64_t],
                       run_sums[float], run_sums[double], p, <void*>x, <void*>y, &strip[0], n)
        elif size == 1: run_words(p, <uint8_t*>x, <uint8_t*>y, strip, n, way)
        elif size == 2: run_words(p, <uint16_t*>x, <uint16_t*>y, strip, n, way)
        elif size == 4: run_words(p, <uint32_t*>x, <uint32_t*>y, strip, n, way)
        else: run_words(p, <uint64_t*>x, <uint64_t*>y, strip, n, way)
        start += n
        if start == stop: return True
        if spot.position[last] + n == p.shape[last]: next_run(p, &spot)
        else:
            spot.position[last] += n
            spot.x += n * p.x_step[last]
            spot.y += n * p.y_step[last]
            spot.index[0] += n * step


# ---- the walk --------------------------------------------------------------------------------------------------------

cdef bint span(const Places* p, Py_ssize_t start, Py_ssize_t stop, Way way) noexcept nogil:
    """Move rows start to stop - 1 on one thread, up to an index out of range. Returns whether there is none."""
    cdef Py_ssize_t xs[STRIP]
    cdef Py_ssize_t ys[STRIP]
    cdef Py_ssize_t count
    if p.n == 1 and p.row == 1 and p.ndim > 0: return runs(p, start, stop, way) if start < stop else True
    while start < stop:
        count = stop - start if stop - start < STRIP else STRIP
        if not locate(p, start, count, xs, ys): return False
        move(p, count, xs, ys, way)
        start += count
    return True


cdef bint span_mask(const Places* p, Way way) noexcept nogil:
    """Move all rows for which the mask is true. The outer loop is over dimensions between the mask and the row. Returns
    whether the mask had as many true elements as y has rows, each time that it was read."""
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t x = 0, y = 0, times = 1, _i
    cdef bint fits = True
    cdef int d
    for d in range(p.masked, p.ndim): times *= p.shape[d]
    for d in range(p.ndim): index[d] = 0
    for _i in range(times if p.count else 0):
        fits &= span_places(p, x, y, way)
        d = p.ndim
        while d > p.masked:
            d -= 1
            index[d] += 1
            x += p.x_step[d]
            y += p.y_step[d]
            if index[d] < p.shape[d]: break
            x -= p.shape[d] * p.x_step[d]
            y -= p.shape[d] * p.y_step[d]
            index[d] = 0
    return fits


cdef bint span_places(const Places* p, Py_ssize_t x, Py_ssize_t y, Way way) noexcept nogil:
    """Move one row for each true element of the mask, from the offsets `x` and `y` on, but not more than y has. Returns
    whether there were as many. An offset is written for every element of the mask but counted only if it is true: a
    branch would be mispredicted half of the time."""
    cdef Py_ssize_t xs[STRIP]
    cdef Py_ssize_t ys[STRIP]
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t m = 0, n = 0, moved = 0, run, count, start, j, x_step, mask_step
    cdef int d, last = p.masked - 1
    for d in range(p.masked): index[d] = 0
    run, x_step, mask_step = p.shape[last], p.x_step[last], p.mask_step[last]
    while True:
        start = 0
        while start < run:
            count = run - start if run - start < STRIP else STRIP
            if n + count > STRIP:
                if moved + n > p.chosen: break
                for j in range(n): ys[j] = y + (moved + j) * p.chosen_stride
                move(p, n, xs, ys, way)
                moved += n
                n = 0
            for j in range(start, start + count):
                xs[n] = x + j * x_step
                n += p.mask[m + j * mask_step] != 0
            start += count
        if start < run: break                       # (there are more than y has)
        d = last - 1
        while d >= 0:                               # carry into the next run
            index[d] += 1
            x += p.x_step[d]
            m += p.mask_step[d]
            if index[d] < p.shape[d]: break
            x -= p.shape[d] * p.x_step[d]
            m -= p.shape[d] * p.mask_step[d]
            index[d] = 0
            d -= 1
        if d < 0: break
    count = min(n, p.chosen - moved)
    for j in range(count): ys[j] = y + (moved + j) * p.chosen_stride
    move(p, count, xs, ys, way)
    return moved + n == p.chosen


cdef bint take(Places* p) noexcept nogil:
    """y = the corresponding elements of x. Returns whether all indices are in range, or for a mask whether it had as
    many true elements as y has rows; if not, y is incomplete. For an empty grid of indices the answer is no."""
    cdef int t
    if p.masked: return span_mask(p, TAKE)
    p.in_range = p.count * p.row > 0
    if p.row:
        t = threads_for(p.count * p.row)
        parallel_for(take_range, <void*>p, p.count, (p.count + t - 1) // t, t)
    return p.in_range


cdef void take_range(void* places, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    if not span(<const Places*>places, start, stop, TAKE): (<Places*>places).in_range = False


cdef bint put(const Places* p) noexcept nogil:
    """The corresponding elements of x = y. For repeated indices, the last element of y remains. Returns what take()
    returns."""
    if p.masked: return span_mask(p, PUT)
    return p.count * p.row > 0 and span(p, 0, p.count, PUT)


cdef bint add(const Places* p) noexcept nogil:
    """The corresponding elements of x += y, repeated indices included. Returns what take() returns."""
    return p.count * p.row > 0 and span(p, 0, p.count, ADD)


cdef void copy(const Array* x, const Array* y) noexcept nogil:
    """y = x, with the same shape and dtype and any strides."""
    cdef Places p
    aim(&p, x, y, 0, 0, NULL)
    take(&p)


# ---- triangles -------------------------------------------------------------------------------------------------------

cdef void wipe(const Array* x, Py_ssize_t k, bint upper) noexcept nogil:
    """Set the dense matrices x (..., m, n) to 0 above diagonal k (upper) or below it."""
    cdef const Layout* l = x.layout
    cdef Py_ssize_t m = l.shape[l.ndim - 2], n = l.shape[l.ndim - 1], i, first, last
    cdef int size = itemsize(x.dtype)
    if l.size == 0: return
    for i in range(l.size // n):
        first, last = 0, i % m + k                  # columns first .. last - 1 become 0
        if upper: first, last = last + 1, n
        if first < 0: first = 0
        if last > n: last = n
        if first < last: memset(x.data + (i * n + first) * size, 0, (last - first) * size)
