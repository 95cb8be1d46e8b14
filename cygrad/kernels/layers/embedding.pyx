"""Kernels of embeddings: the gradient of a table of rows, and bags, which are sums, means or maxima of rows.

A gradient of the table is divided among threads by rows of the table: each thread reads all indices and adds what
belongs to its rows, in the order of the indices. So the sums have the same bits for any number of threads, and nothing
needs workspace or locks.

narrow_places() checks the indices as it copies them. Another thread may write the offsets while a kernel reads them, so
each is brought into the range of the indices where it is used."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from cygrad.kernels.array cimport UINT16, UINT32, UINT8, Array, itemsize, real
from cygrad.kernels.by_dtype cimport call_place
from cygrad.kernels.driver cimport STRIP, gather
from cygrad.kernels.threads cimport parallel_for, threads_for

ctypedef fused place:
    uint8_t
    uint16_t
    uint32_t
    int64_t


cdef bint narrow_places(const Array* index, Py_ssize_t rows, int dtype, char* places, int64_t* bad) noexcept nogil:
    """places = index, an int64 array of any strides, with -1 as rows - 1, cast to a dtype that can hold it. Returns
    whether all are in the range -rows .. rows - 1; if not, `bad` receives one that is not."""
    cdef int64_t strip[STRIP]
    cdef Py_ssize_t n = index.layout.size, start = 0, count
    cdef bint fits = True
    while start < n and fits:
        count = min(n - start, <Py_ssize_t>STRIP)
        gather(<char*>strip, index, start, count)   # a copy: another thread may write the indices meanwhile
        if dtype == UINT8: fits = narrow_strip(strip, count, rows, <uint8_t*>places + start, bad)
        elif dtype == UINT16: fits = narrow_strip(strip, count, rows, <uint16_t*>places + start, bad)
        elif dtype == UINT32: fits = narrow_strip(strip, count, rows, <uint32_t*>places + start, bad)
        else: fits = narrow_strip(strip, count, rows, <int64_t*>places + start, bad)
        start += count
    return fits


cdef bint narrow_strip(const int64_t* strip, Py_ssize_t count, Py_ssize_t rows, place* places,
                       int64_t* bad) noexcept nogil:
    cdef int64_t i, signs = 0
    for k in range(count):
        i = strip[k]
        signs |= (i + rows) | (rows - 1 - i)        # negative if i is out of range
        places[k] = <place>(i + rows if i < 0 else i)
    for k in range(count if signs < 0 else 0):
        if strip[k] < -rows or strip[k] >= rows:
            bad[0] = strip[k]
            return False
    return True


# ---- a row for each index --------------------------------------------------------------------------------------------

cdef inline int threads_of(const Bags* s, Py_ssize_t work) noexcept nogil:
    """The threads for a gradient of the table: it is cleared, and `work` elements are added."""
    return threads_for(work if s.adds else work + s.rows * s.row)


cdef void scatter_rows(const Bags* s) noexcept nogil:
    """y[places[j] - first] += factor g[j], except at the padding and in other rows than y has; y = 0 first unless it
    `adds`."""
    cdef int t = threads_of(s, s.n * s.row)
    parallel_for(scatter_rows_range, <void*>s, s.rows, (s.rows + t - 1) // t, t)


cdef void scatter_rows_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Bags* s = <Bags*>job
    clear_rows(s, start, stop)
    call_place(s.dtype, s.place_dtype, scatter_[uint8_t, float], scatter_[uint16_t, float], scatter_[uint32_t, float],
               scatter_[int64_t, float], scatter_[uint8_t, double], scatter_[uint16_t, double],
               scatter_[uint32_t, double], scatter_[int64_t, double], s, <void*>s.places, <void*>s.g, <void*>s.y,
               start, stop)


cdef void clear_rows(const Bags* s, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t size = s.row * itemsize(s.dtype)
    if not s.adds: memset(s.y + start * size, 0, (stop - start) * size)


cdef void scatter_(const Bags* s, const place* places, const real* g, real* y, Py_ssize_t start,
                   Py_ssize_t stop) noexcept nogil:
    cdef real factor = <real>s.factor
    cdef const real* x
    cdef real* to
    cdef Py_ssize_t i, j
    cdef int64_t at
    for j in range(s.n):
        at = <int64_t>places[j] - s.first
        if at < start or at >= stop or at + s.first == s.padding: continue
        x, to = g + j * s.row, y + at * s.row
        for i in range(s.row): to[i] += factor * x[i]


# ---- bags ------------------------------------------------------------------------------------------------------------

cdef enum:
    SUMS = 64                   # columns of a bag that are added at a time

cdef inline Py_ssize_t first_of(const Bags* s, Py_ssize_t b) noexcept nogil:
    """The position of the first index of bag b; of bag `bags`, the number of indices."""
    cdef int64_t first
    if s.width >= 0: return b * s.width
    if b == s.bags: return s.n
    first = s.offsets[b]
    return 0 if first < 0 else s.n if first > s.n else first


cdef inline Py_ssize_t present(const Bags* s, const place* places, Py_ssize_t b) noexcept nogil:
    """The number of indices of bag b that are not padding."""
    cdef Py_ssize_t j, count = 0
    for j in range(first_of(s, b), first_of(s, b + 1)): count += <int64_t>places[j] != s.padding
    return count


cdef void fold_bags(Bags* s) noexcept nogil:
    """y[b] = the sum, the mean or the maxima of the rows of bag b; 0 if it is empty."""
    cdef int t = threads_for(s.n * s.row)
    parallel_for(fold_range, s, s.bags, (s.bags + t - 1) // t, t)


cdef void fold_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Bags* s = <Bags*>job
    call_place(s.dtype, s.place_dtype, fold_[uint8_t, float], fold_[uint16_t, float], fold_[uint32_t, float],
               fold_[int64_t, float], fold_[uint8_t, double], fold_[uint16_t, double], fold_[uint32_t, double],
               fold_[int64_t, double], s, <void*>s.places, <void*>s.y, start, stop)


cdef void fold_(const Bags* s, const place* places, real* y, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const real* x
    cdef real* out
    cdef const real* scale = <const real*>s.scale
    cdef real[SUMS] total
    cdef real factor
    cdef Py_ssize_t b, i, j, l, n, count, first, end
    for b in range(start, stop):
        out = y + b * s.row
        if s.mode == MAX:
            largest(s, places, b, out, <place*>s.order + b * s.row if s.order != NULL else NULL)
            continue
        first, end, i = first_of(s, b), first_of(s, b + 1), 0
        while i < s.row:                        # sums of SUMS columns stay in registers
            n = min(SUMS, s.row - i)
            for l in range(SUMS): total[l] = 0
            x = <const real*>s.weight + i
            if n == SUMS and scale == NULL and s.padding < 0:
                for j in range(first, end):
                    for l in range(SUMS): total[l] += x[places[j] * s.row + l]
            else:
                for j in range(first, end):
                    if <int64_t>places[j] == s.padding: continue
                    factor = scale[j] if scale != NULL else 1
                    for l in range(n): total[l] += factor * x[places[j] * s.row + l]
            for l in range(n): out[i + l] = total[l]
            i += n
        if s.mode == MEAN:
            count = present(s, places, b)
            if count > 1:
                for i in range(s.row): out[i] /= <real>count


cdef void largest(const Bags* s, const place* places, Py_ssize_t b, real* y, place* order) noexcept nogil:
    """The largest element of each column of a bag, and the row that it comes from: the first of equal ones. A NaN is
    the largest."""
    cdef const real* x
    cdef bint empty = True
    for j in range(first_of(s, b), first_of(s, b + 1)):
        if <int64_t>places[j] == s.padding: continue
        x = <const real*>s.weight + places[j] * s.row
        for i in range(s.row):
            if not (empty or x[i] > y[i] or (x[i] != x[i] and y[i] == y[i])): continue
            y[i] = x[i]
            if order != NULL: order[i] = places[j]
        empty = False
    for i in range(s.row if empty else 0):
        y[i] = 0
        if order != NULL: order[i] = <place>s.rows


# ---- gradients of bags -----------------------------------------------------------------------------------------------

cdef void scatter_bags(Bags* s) noexcept nogil:
    """y[places[j]] += g[b] for each index j of bag b, multiplied by its scale or divided by the size of the bag."""
    cdef int t = threads_of(s, s.n * s.row)
    parallel_for(scatter_bags_range, s, s.rows, (s.rows + t - 1) // t, t)


cdef void scatter_bags_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Bags* s = <Bags*>job
    clear_rows(s, start, stop)
    call_place(s.dtype, s.place_dtype, spread_[uint8_t, float], spread_[uint16_t, float], spread_[uint32_t, float],
               spread_[int64_t, float], spread_[uint8_t, double], spread_[uint16_t, double],
               spread_[uint32_t, double], spread_[int64_t, double], s, <void*>s.places, <void*>s.g, <void*>s.y, start,
               stop)


cdef void spread_(const Bags* s, const place* places, const real* g, real* y, Py_ssize_t start,
                  Py_ssize_t stop) noexcept nogil:
    cdef const real* x
    cdef real* out
    cdef const real* scale = <const real*>s.scale
    cdef real f
    cdef int64_t at
    cdef Py_ssize_t b, i, j
    for b in range(s.bags):
        x, f = g + b * s.row, 1
        if s.mode == MEAN: f = 1 / <real>max(present(s, places, b), <Py_ssize_t>1)
        for j in range(first_of(s, b), first_of(s, b + 1)):
            at = places[j]
            if at < start or at >= stop or at == s.padding: continue
            if scale != NULL: f = scale[j]
            out = y + at * s.row
            for i in range(s.row): out[i] += f * x[i]


cdef void scatter_order(Bags* s) noexcept nogil:
    """y[order[b, i], i] += g[b, i]"""
    cdef int t = threads_of(s, s.bags * s.row)
    parallel_for(scatter_order_range, s, s.rows, (s.rows + t - 1) // t, t)


cdef void scatter_order_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Bags* s = <Bags*>job
    clear_rows(s, start, stop)
    call_place(s.dtype, s.place_dtype, order_[uint8_t, float], order_[uint16_t, float], order_[uint32_t, float],
               order_[int64_t, float], order_[uint8_t, double], order_[uint16_t, double], order_[uint32_t, double],
               order_[int64_t, double], s, <void*>s.order, <void*>s.g, <void*>s.y, start, stop)


cdef void order_(const Bags* s, const place* order, const real* g, real* y, Py_ssize_t start,
                 Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t b, i
    cdef int64_t at
    for b in range(s.bags):
        for i in range(s.row):
            at = order[b * s.row + i]
            if start <= at < stop: y[at * s.row + i] += g[b * s.row + i]


cdef void scale_grad(Bags* s) noexcept nogil:
    """y[j] = g[b] . weight[places[j]] for each index j of bag b; 0 for the padding."""
    cdef int t = threads_for(s.n * s.row)
    memset(s.y, 0, s.n * itemsize(s.dtype))         # (in case another thread writes the offsets)
    parallel_for(scale_range, s, s.bags, (s.bags + t - 1) // t, t)


cdef void scale_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Bags* s = <Bags*>job
    call_place(s.dtype, s.place_dtype, scale_[uint8_t, float], scale_[uint16_t, float], scale_[uint32_t, float],
               scale_[int64_t, float], scale_[uint8_t, double], scale_[uint16_t, double], scale_[uint32_t, double],
               scale_[int64_t, double], s, <void*>s.places, <void*>s.g, <void*>s.y, start, stop)


cdef void scale_(const Bags* s, const place* places, const real* g, real* y, Py_ssize_t start,
                 Py_ssize_t stop) noexcept nogil:
    cdef const real* x
    cdef const real* w
    cdef double total
    cdef Py_ssize_t b, i, j
    cdef int64_t at
    for b in range(start, stop):
        x = g + b * s.row
        for j in range(first_of(s, b), first_of(s, b + 1)):
            at = places[j]
            if at < 0 or at >= s.rows or at == s.padding: continue
            w = <const real*>s.weight + at * s.row
            total = 0
            for i in range(s.row): total += <double>x[i] * w[i]
            y[j] = <real>total
