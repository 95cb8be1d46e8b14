"""Sorting: the k largest or smallest elements of each row without sorting it (topk), and argsort (order).

Indices are sorted, not elements. Long rows are sorted by digits of 11 bits, from the lowest to the highest (LSD radix
sort), and short rows by merging. If only the first elements are wanted, one digit chooses those that are sorted. All
compare keys of unsigned bits, which work for integers and floating-point numbers alike: 0 and -0 have the same key, and
NaN has the largest. Both sorts are stable, so the result is unique. The workspace has the size of the indices;
contiguous elements are not copied. So another thread may write them meanwhile: the order is then any, but it has each
index at most once. Merging gives that for any keys; the others find out that the digits they counted have changed, and
leave the row to merging."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, UINT16, UINT8, Array, Layout, integer, itemsize, real
from cygrad.kernels.by_dtype cimport call, call_numeric
from cygrad.kernels.elements cimport word

cdef enum:
    RUN = 16                # elements of a run that is sorted by insertion
    LONG = 128              # elements per digit from which on radix sort is used: there both sorts take the same time
    DIGIT = 11              # bits of a digit
    MAX_DIGITS = 6          # digits of 64 bits
    VALUES = 1 << DIGIT     # values of a digit
    MANY = 512              # elements of a row from which on a part of them is chosen before it is sorted,
    CHOSEN = 4              # if it is at most a fourth, so that it fits into the workspace
    BLOCK = 32              # rows and columns that are transposed at a time

ctypedef fused element:
    integer
    real

ctypedef fused place:
    int32_t
    int64_t


# ---- rows ------------------------------------------------------------------------------------------------------------

cdef inline void next_row(const Layout* x, const Layout* y, int axis, Py_ssize_t* index, Py_ssize_t* from_x,
                          Py_ssize_t* to_y) noexcept nogil:
    """Advance to the next rows along `axis` of two arrays whose other dimensions have the same sizes. `index` is the
    position in those dimensions; it starts with zeros."""
    for d in range(x.ndim - 1, -1, -1):
        if d == axis: continue
        index[d] += 1
        from_x[0] += x.strides[d]
        to_y[0] += y.strides[d]
        if index[d] < x.shape[d]: return
        from_x[0] -= x.shape[d] * x.strides[d]
        to_y[0] -= x.shape[d] * y.strides[d]
        index[d] = 0


# ---- the first k -----------------------------------------------------------------------------------------------------

cdef inline bint before(real a, real b, bint largest) noexcept nogil:
    """Whether a comes before b. NaN is the largest number."""
    if largest: return a > b or (a != a and b == b)
    return a < b or (b != b and a == a)


cdef void topk_row(const real* x, Py_ssize_t n, Py_ssize_t step, int64_t* y, Py_ssize_t k, Py_ssize_t y_step,
                   bint largest) noexcept nogil:
    """The indices of the first k elements of a row. Keeps a sorted list of the best; most elements do not enter it."""
    cdef real best[SHORT]
    cdef int64_t place[SHORT]
    cdef Py_ssize_t i, j, count = 0
    cdef real v
    for i in range(n):
        v = x[i * step]
        if count < k: count += 1
        elif not before(v, best[k - 1], largest): continue
        j = count - 1
        while j > 0 and before(v, best[j - 1], largest):
            best[j], place[j] = best[j - 1], place[j - 1]
            j -= 1
        best[j], place[j] = v, i
    for j in range(k): y[j * y_step] = place[j]


cdef void topk(const Array* x, int axis, bint largest, const Array* y) noexcept nogil:
    """y (int64) = the indices of the first y.shape[axis] <= SHORT elements of x (floating-point) along `axis`."""
    cdef const Layout* l = x.layout
    cdef const Layout* m = y.layout
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t from_x = 0, to_y = 0, n = l.shape[axis], k = m.shape[axis], _i
    if m.size == 0: return
    for d in range(l.ndim): index[d] = 0
    for _i in range(m.size // k):
        call(x.dtype, topk_row[float], topk_row[double], <void*>(x.data + from_x * itemsize(x.dtype)), n,
             l.strides[axis], <int64_t*>y.data + to_y, k, m.strides[axis], largest)
        next_row(l, m, axis, index, &from_x, &to_y)


# ---- keys ------------------------------------------------------------------------------------------------------------

cdef inline uint64_t key(element v, uint64_t flip) noexcept nogil:
    """An unsigned number with the order of the elements. With all bits of `flip` set, the order is reversed."""
    cdef uint32_t bits32
    cdef uint64_t bits64
    if element is float:
        if v != v: return <uint64_t>0xFFFFFFFF ^ flip
        if v == 0: return <uint64_t>0x80000000 ^ flip
        memcpy(&bits32, &v, 4)
        return (<uint32_t>~bits32 if bits32 >> 31 else bits32 | <uint32_t>0x80000000) ^ flip
    elif element is double:
        if v != v: return ~<uint64_t>0 ^ flip
        if v == 0: return (<uint64_t>1 << 63) ^ flip
        memcpy(&bits64, &v, 8)
        return (~bits64 if bits64 >> 63 else bits64 | <uint64_t>1 << 63) ^ flip
    elif element is int8_t:  return (<uint8_t>v ^ <uint64_t>0x80) ^ flip
    elif element is int16_t: return (<uint16_t>v ^ <uint64_t>0x8000) ^ flip
    elif element is int32_t: return (<uint32_t>v ^ <uint64_t>0x80000000) ^ flip
    elif element is int64_t: return (<uint64_t>v ^ <uint64_t>1 << 63) ^ flip
    else: return <uint64_t>v ^ flip


# ---- sorted indices --------------------------------------------------------------------------------------------------

cdef int in_order(const element* x, Py_ssize_t n, uint64_t flip) noexcept nogil:
    """1 if the elements are in order, -1 if they are strictly in reverse order, else 0."""
    cdef uint64_t before = key(x[0], flip), now
    cdef bint rises = True, falls = True
    for i in range(1, n):
        now = key(x[i], flip)
        if now < before: rises = False
        else: falls = False
        if not rises and not falls: return 0
        before = now
    return 1 if rises else -1


cdef bint by_digits(const element* x, Py_ssize_t n, place* a, place* b, uint64_t flip) noexcept nogil:
    """Radix sort. a = the sorted indices of x; b is scratch of the same size. Returns whether the elements stayed the
    same; if not, `a` has no indices."""
    cdef place counts[MAX_DIGITS][VALUES]
    cdef place ends[VALUES]
    cdef place* source = a
    cdef place* target = b
    cdef place* swap
    cdef int bits = 8 * sizeof(element), digits = (bits + DIGIT - 1) // DIGIT, d
    cdef int values = VALUES if bits > DIGIT else 256
    cdef uint64_t k
    cdef place total, count, to, size = <place>n
    cdef place* next_
    cdef bint first = True
    memset(counts, 0, digits * VALUES * sizeof(place))
    for i in range(n):
        k = key(x[i], flip)
        for d in range(digits): counts[d][(k >> (DIGIT * d)) & (VALUES - 1)] += 1
    for d in range(digits):
        k = (key(x[0], flip) >> (DIGIT * d)) & (VALUES - 1)
        if counts[d][k] == n: continue              # all have the same digit
        total, next_ = 0, counts[d]
        for i in range(values):                     # counts become starting positions
            count = counts[d][i]
            counts[d][i] = total
            total += count
            ends[i] = total
        if first:
            for i in range(n):
                k = (key(x[i], flip) >> (DIGIT * d)) & (VALUES - 1)
                to = next_[k]
                if to >= size: return False
                next_[k] = to + 1
                target[to] = <place>i
        else:
            for i in range(n):
                k = (key(x[source[i]], flip) >> (DIGIT * d)) & (VALUES - 1)
                to = next_[k]
                if to >= size: return False
                next_[k] = to + 1
                target[to] = source[i]
        for i in range(values):
            if next_[i] != ends[i]: return False
        first = False
        swap = source
        source = target
        target = swap
    if first:                                       # all are equal
        for i in range(n): a[i] = <place>i
    elif source != a: memcpy(a, source, n * sizeof(place))
    return True


cdef void by_merging(const element* x, Py_ssize_t n, place* a, place* b, uint64_t flip) noexcept nogil:
    """Merge sort, with the same arguments and result."""
    cdef uint64_t keys[RUN]
    cdef place* source = a
    cdef place* target = b
    cdef place* swap
    cdef Py_ssize_t start, stop, middle, i, j, k, width = RUN
    cdef uint64_t left = 0, right = 0
    for i in range(n):                              # insertion sort within runs
        start = i - i % RUN
        right, j = key(x[i], flip), i - start
        while j > 0 and right < keys[j - 1]:
            keys[j], a[start + j] = keys[j - 1], a[start + j - 1]
            j -= 1
        keys[j], a[start + j] = right, <place>i
    while width < n:
        start = 0
        while start < n:
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j, k = start, middle, start
            if j < stop: left, right = key(x[source[i]], flip), key(x[source[j]], flip)
            while i < middle and j < stop:
                if right < left:
                    target[k] = source[j]
                    j += 1
                    if j < stop: right = key(x[source[j]], flip)
                else:
                    target[k] = source[i]
                    i += 1
                    if i < middle: left = key(x[source[i]], flip)
                k += 1
            memcpy(target + k, source + i, (middle - i) * sizeof(place))
            memcpy(target + k + (middle - i), source + j, (stop - j) * sizeof(place))
            start = stop
        swap = source
        source = target
        target = swap
        width *= 2
    if source != a: memcpy(a, source, n * sizeof(place))


cdef inline void order_all(const element* x, Py_ssize_t n, place* a, place* b, uint64_t flip) noexcept nogil:
    cdef Py_ssize_t i
    cdef int way
    if n < LONG * ((8 * <int>sizeof(element) + DIGIT - 1) // DIGIT):
        by_merging(x, n, a, b, flip)
        return
    way = in_order(x, n, flip)
    if way == 0:
        if not by_digits(x, n, a, b, flip): by_merging(x, n, a, b, flip)
    elif way > 0:
        for i in range(n): a[i] = <place>i
    else:
        for i in range(n): a[i] = <place>(n - 1 - i)


cdef Py_ssize_t choose(const element* x, Py_ssize_t n, Py_ssize_t count, place* b, uint64_t flip) noexcept nogil:
    """Copy to b, aligned to 8 bytes, the elements whose highest different digit is not larger than that of the last of
    the first `count` in order, and their indices to the last but one part of b. Returns their number, which is the size
    of the last two parts; 0 if they are too many or have changed."""
    cdef place counts[VALUES]
    cdef uint64_t bits = 0, digit, last = 0, first = key(x[0], flip)
    cdef Py_ssize_t i, total = 0, m = 0
    cdef int shift = 0
    cdef element* chosen = <element*>(<size_t>(<char*>b + 7) & ~<size_t>7)
    cdef place* places
    for i in range(n): bits |= key(x[i], flip) ^ first      # (not of elements: 0 and -0 have one key, and so have NaN)
    while bits >> shift >= VALUES: shift += 1
    memset(counts, 0, sizeof(counts))
    for i in range(n): counts[key(x[i], flip) >> shift & (VALUES - 1)] += 1         # (higher bits are all equal)
    for digit in range(<uint64_t>VALUES):
        total, last = total + counts[digit], digit
        if total >= count: break
    if total < count or total > n // CHOSEN - 4: return 0
    places = b + (n - 2 * total)
    for i in range(n):
        if key(x[i], flip) >> shift & (VALUES - 1) > last: continue
        if m == total: return 0
        chosen[m], places[m] = x[i], <place>i
        m += 1
    return total if m == total else 0


cdef inline void order_(const element* x, Py_ssize_t n, Py_ssize_t count, place* a, place* b,
                        uint64_t flip) noexcept nogil:
    cdef Py_ssize_t m = choose(x, n, count, b, flip) if n >= MANY and count <= n // CHOSEN else 0, i
    cdef place* places = b + (n - 2 * m)
    if m: x, n, b = <const element*>(<size_t>(<char*>b + 7) & ~<size_t>7), m, places + m
    order_all(x, n, a, b, flip)
    for i in range(count if m else 0): a[i] = places[a[i]]


cdef void order_row(const char* x, int dtype, Py_ssize_t n, Py_ssize_t count, place* a, place* b,
                    bint descending) noexcept nogil:
    """a = the first `count` of the sorted indices of the n elements at x; the rest of `a` may be anything. b is scratch
    of the same size. Bools must be 0 or 1."""
    cdef uint64_t flip = (~<uint64_t>0 >> (64 - 8 * itemsize(dtype))) if descending else 0
    call_numeric(dtype, order_[int8_t, place], order_[int16_t, place], order_[int32_t, place], order_[int64_t, place],
                 order_[uint8_t, place], order_[uint16_t, place], order_[uint32_t, place], order_[uint64_t, place],
                 order_[float, place], order_[double, place], <void*>x, n, count, a, b, flip)


cdef void collect(const char* x, Py_ssize_t step, int dtype, Py_ssize_t n, char* row) noexcept nogil:
    """row = a contiguous copy of x; bools become 0 or 1."""
    cdef Py_ssize_t i
    cdef int size = itemsize(dtype)
    if dtype == BOOL:
        for i in range(n): row[i] = x[i * step] != 0
    elif size == 1:
        for i in range(n): row[i] = x[i * step]
    elif size == 2:
        for i in range(n): (<uint16_t*>row)[i] = (<const uint16_t*>x)[i * step]
    elif size == 4:
        for i in range(n): (<uint32_t*>row)[i] = (<const uint32_t*>x)[i * step]
    else:
        for i in range(n): (<uint64_t*>row)[i] = (<const uint64_t*>x)[i * step]


cdef void write_places(const place* a, Py_ssize_t count, const Array* y, Py_ssize_t first,
                       Py_ssize_t step) noexcept nogil:
    """Write `count` indices to y, from its element `first` on. y is INT64 or an unsigned dtype that can hold them. If y
    is INT64, a may be the first half of the same memory. memcpy is used because the compiler would otherwise assume
    that pointers of two types do not alias."""
    cdef Py_ssize_t i
    cdef int64_t v
    if y.dtype == INT64:
        for i in range(count - 1, -1, -1):
            v = a[i]
            memcpy(y.data + (first + i * step) * 8, &v, 8)
    elif y.dtype == UINT8:
        for i in range(count): (<uint8_t*>y.data)[first + i * step] = <uint8_t>a[i]
    elif y.dtype == UINT16:
        for i in range(count): (<uint16_t*>y.data)[first + i * step] = <uint16_t>a[i]
    else:
        for i in range(count): (<uint32_t*>y.data)[first + i * step] = <uint32_t>a[i]


cdef void write_elements(const char* x, Py_ssize_t step, const place* a, Py_ssize_t n, int size, char* y,
                         Py_ssize_t y_step) noexcept nogil:
    """y_i = x[a_i]"""
    cdef Py_ssize_t i
    if size == 4:
        for i in range(n): (<uint32_t*>y)[i * y_step] = (<const uint32_t*>x)[a[i] * step]
    elif size == 8:
        for i in range(n): (<uint64_t*>y)[i * y_step] = (<const uint64_t*>x)[a[i] * step]
    elif size == 2:
        for i in range(n): (<uint16_t*>y)[i * y_step] = (<const uint16_t*>x)[a[i] * step]
    else:
        for i in range(n): y[i * y_step] = x[a[i] * step]


cdef size_t order_room(const Array* x, int axis, bint in_place) noexcept nogil:
    """Bytes of workspace that order() needs. in_place: y is int64 with contiguous rows, so its memory can be used."""
    cdef const Layout* l = x.layout
    cdef Py_ssize_t n = l.shape[axis]
    cdef size_t each = 8 if n >> 31 else 4, nbytes = 0
    if l.size == 0: return 0
    if l.strides[axis] != 1 or x.dtype == BOOL: nbytes += (n * itemsize(x.dtype) + 7) // 8 * 8
    if not in_place: nbytes += 2 * n * each
    elif each == 8: nbytes += n * each
    return nbytes


cdef void order(const Array* x, int axis, bint descending, const Array* values, const Array* y, bint in_place,
                char* workspace) noexcept nogil:
    """y = the indices that sort x along `axis`, or the first of them if y is shorter there. If `values` is not NULL, it
    receives the sorted elements."""
    cdef const Layout* l = x.layout
    cdef const Layout* m = y.layout
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t from_x = 0, to_y = 0, n = l.shape[axis], count = m.shape[axis], _i
    cdef int d, size = itemsize(x.dtype)
    cdef bint packs = l.strides[axis] != 1 or x.dtype == BOOL, large = n >> 31 != 0
    cdef char* row = workspace
    cdef char* indices = workspace
    cdef const char* p
    cdef char* a
    cdef char* b
    if m.size == 0: return
    if packs: indices += (n * size + 7) // 8 * 8
    for d in range(l.ndim): index[d] = 0
    for _i in range(m.size // count):
        p = x.data + from_x * size
        if packs:
            collect(p, l.strides[axis], x.dtype, n, row)
            p = row
        a = y.data + to_y * 8 if in_place else indices  # an int64 has space for two 32-bit indices
        b = indices if in_place and large else a + n * (8 if large else 4)
        if large:
            order_row(p, x.dtype, n, count, <int64_t*>a, <int64_t*>b, descending)
            write_places(<const int64_t*>a, count, y, to_y, m.strides[axis])
            if values != NULL:
                write_elements(x.data + from_x * size, l.strides[axis], <const int64_t*>a, n, size,
                               values.data + to_y * size, m.strides[axis])
        else:
            order_row(p, x.dtype, n, count, <int32_t*>a, <int32_t*>b, descending)
            if values != NULL:
                write_elements(x.data + from_x * size, l.strides[axis], <const int32_t*>a, n, size,
                               values.data + to_y * size, m.strides[axis])
            write_places(<const int32_t*>a, count, y, to_y, m.strides[axis])
        next_row(l, m, axis, index, &from_x, &to_y)


# ---- sorted values: helpers for NumPy's sort of rows -----------------------------------------------------------------

cdef inline void reverse_(word* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef word v
    for i in range(n // 2):
        v = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = v


cdef void reverse(char* x, int size, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """Reverse each row of n elements."""
    cdef Py_ssize_t r
    for r in range(rows):
        if size == 1:   reverse_(<uint8_t*>x + r * n, n)
        elif size == 2: reverse_(<uint16_t*>x + r * n, n)
        elif size == 4: reverse_(<uint32_t*>x + r * n, n)
        else:           reverse_(<uint64_t*>x + r * n, n)


cdef inline void turn_(const word* x, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t x_step, word* y,
                       Py_ssize_t y_step) noexcept nogil:
    cdef Py_ssize_t r = 0, c, i, j
    while r < rows:
        c = 0
        while c < columns:
            for i in range(r, min(r + BLOCK, rows)):
                for j in range(c, min(c + BLOCK, columns)): y[j * y_step + i] = x[i * x_step + j]
            c += BLOCK
        r += BLOCK


cdef void turn(const char* x, int size, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t x_step, char* y,
               Py_ssize_t y_step) noexcept nogil:
    """y_ji = x_ij. The steps are between rows, in elements."""
    if size == 1:   turn_(<const uint8_t*>x, rows, columns, x_step, <uint8_t*>y, y_step)
    elif size == 2: turn_(<const uint16_t*>x, rows, columns, x_step, <uint16_t*>y, y_step)
    elif size == 4: turn_(<const uint32_t*>x, rows, columns, x_step, <uint32_t*>y, y_step)
    else:           turn_(<const uint64_t*>x, rows, columns, x_step, <uint64_t*>y, y_step)
