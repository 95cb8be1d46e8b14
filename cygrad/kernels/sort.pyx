"""Order. The few largest or smallest of every row, without sorting it; the places of all its elements in order.

Places are sorted, not elements: by counting digits of 11 bits from the lowest to the highest (LSD radix sort), where
rows are long, by merging where they are short. What decides is a key of unsigned bits, for which floating numbers and
integers are one: both zeros have the same, and all NaN the largest. Both ways are stable, so the result is unique.
Beside the places this takes as much memory again, and none for copies of elements."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport (
    BOOL, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, MAX_NDIM, UINT8, UINT16, UINT32, Array, Layout, integer,
    itemsize, real,
)

cdef enum:
    RUN = 16                # elements that are inserted, one after the other
    LONG = 128              # from so many elements for each digit on digits are counted: there both ways take as long
    DIGIT = 11              # bits; of those, six digits make 64 bits
    MOST = 6
    VALUES = 1 << DIGIT
    BLOCK = 32              # rows and columns that are turned at a time

ctypedef fused element:
    integer
    real

ctypedef fused place:
    int32_t
    int64_t

ctypedef fused word:        # elements by their size alone
    uint8_t
    uint16_t
    uint32_t
    uint64_t


# ---- rows ------------------------------------------------------------------------------------------------------------

cdef inline void next_row(const Layout* x, const Layout* y, int axis, Py_ssize_t* at, Py_ssize_t* from_x,
                          Py_ssize_t* to_y) noexcept nogil:
    """The beginnings of the next rows along `axis` of two arrays that are as long in all other dimensions. `at` counts
    there, from zeros."""
    cdef int d
    for d in range(x.ndim - 1, -1, -1):
        if d == axis: continue
        at[d] += 1
        from_x[0] += x.strides[d]
        to_y[0] += y.strides[d]
        if at[d] < x.shape[d]: return
        from_x[0] -= x.shape[d] * x.strides[d]
        to_y[0] -= x.shape[d] * y.strides[d]
        at[d] = 0


# ---- the few first ---------------------------------------------------------------------------------------------------

cdef inline bint before(real a, real b, bint largest) noexcept nogil:
    """Whether `a` comes before `b`; nan is the largest of all."""
    if largest: return a > b or (a != a and b == b)
    return a < b or (b != b and a == a)


cdef void topk_row(const real* x, Py_ssize_t n, Py_ssize_t step, int64_t* y, Py_ssize_t k, Py_ssize_t y_step,
                   bint largest) noexcept nogil:
    """The places of the first k of a row. A list of the best so far stays in order; most elements do not reach it."""
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
    """y = the places of the first y.shape[axis] (up to SHORT) elements of x along `axis`; floating x, int64 y."""
    cdef const Layout* l = x.layout
    cdef const Layout* m = y.layout
    cdef Py_ssize_t at[MAX_NDIM]
    cdef Py_ssize_t from_x = 0, to_y = 0, n = l.shape[axis], k = m.shape[axis], _i
    cdef int d
    if m.size == 0: return
    for d in range(l.ndim): at[d] = 0
    for _i in range(m.size // k):
        if x.dtype == FLOAT32:
            topk_row(<const float*>x.data + from_x, n, l.strides[axis], <int64_t*>y.data + to_y, k, m.strides[axis],
                     largest)
        else:
            topk_row(<const double*>x.data + from_x, n, l.strides[axis], <int64_t*>y.data + to_y, k, m.strides[axis],
                     largest)
        next_row(l, m, axis, at, &from_x, &to_y)


# ---- keys ------------------------------------------------------------------------------------------------------------

cdef inline uint64_t key(element v, uint64_t flip) noexcept nogil:
    """Bits whose order as an unsigned number is that of the elements; `flip`, all ones or none, turns it round."""
    cdef uint32_t single
    cdef uint64_t double_
    if element is float:
        if v != v: return <uint64_t>0xFFFFFFFF ^ flip
        if v == 0: return <uint64_t>0x80000000 ^ flip
        memcpy(&single, &v, 4)
        return (<uint32_t>~single if single >> 31 else single | <uint32_t>0x80000000) ^ flip
    elif element is double:
        if v != v: return ~<uint64_t>0 ^ flip
        if v == 0: return (<uint64_t>1 << 63) ^ flip
        memcpy(&double_, &v, 8)
        return (~double_ if double_ >> 63 else double_ | <uint64_t>1 << 63) ^ flip
    elif element is int8_t:  return (<uint8_t>v ^ <uint64_t>0x80) ^ flip
    elif element is int16_t: return (<uint16_t>v ^ <uint64_t>0x8000) ^ flip
    elif element is int32_t: return (<uint32_t>v ^ <uint64_t>0x80000000) ^ flip
    elif element is int64_t: return (<uint64_t>v ^ <uint64_t>1 << 63) ^ flip
    else: return <uint64_t>v ^ flip


# ---- places in order -------------------------------------------------------------------------------------------------

cdef int in_order(const element* x, Py_ssize_t n, uint64_t flip) noexcept nogil:
    """1: the elements are in order; -1: each is behind the next; 0: neither."""
    cdef Py_ssize_t i
    cdef uint64_t before = key(x[0], flip), now
    cdef bint rises = True, falls = True
    for i in range(1, n):
        now = key(x[i], flip)
        if now < before: rises = False
        else: falls = False
        if not rises and not falls: return 0
        before = now
    return 1 if rises else -1


cdef void by_digits(const element* x, Py_ssize_t n, place* a, place* b, uint64_t flip) noexcept nogil:
    """a = the places of x in order; b is as long."""
    cdef place counts[MOST][VALUES]
    cdef place* source = a
    cdef place* target = b
    cdef place* swap
    cdef int bits = 8 * sizeof(element), digits = (bits + DIGIT - 1) // DIGIT, d
    cdef int values = VALUES if bits > DIGIT else 256
    cdef Py_ssize_t i
    cdef uint64_t k
    cdef place total, count
    cdef bint first = True
    memset(counts, 0, digits * VALUES * sizeof(place))
    for i in range(n):
        k = key(x[i], flip)
        for d in range(digits): counts[d][(k >> (DIGIT * d)) & (VALUES - 1)] += 1
    for d in range(digits):
        k = (key(x[0], flip) >> (DIGIT * d)) & (VALUES - 1)
        if counts[d][k] == n: continue              # all have the same digit
        total = 0
        for i in range(values):                     # from how many there are to where they begin
            count = counts[d][i]
            counts[d][i] = total
            total += count
        if first:
            for i in range(n):
                k = (key(x[i], flip) >> (DIGIT * d)) & (VALUES - 1)
                target[counts[d][k]] = <place>i
                counts[d][k] += 1
        else:
            for i in range(n):
                k = (key(x[source[i]], flip) >> (DIGIT * d)) & (VALUES - 1)
                target[counts[d][k]] = source[i]
                counts[d][k] += 1
        first = False
        swap = source
        source = target
        target = swap
    if first:                                       # all are equal
        for i in range(n): a[i] = <place>i
    elif source != a: memcpy(a, source, n * sizeof(place))


cdef void by_merging(const element* x, Py_ssize_t n, place* a, place* b, uint64_t flip) noexcept nogil:
    """The same; of equal elements the first comes from the left."""
    cdef uint64_t keys[RUN]
    cdef place* source = a
    cdef place* target = b
    cdef place* swap
    cdef Py_ssize_t start, stop, middle, i, j, k, width = RUN
    cdef uint64_t left = 0, right = 0
    for i in range(n):                              # insert within runs
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


cdef inline void order_(const element* x, Py_ssize_t n, place* a, place* b, uint64_t flip) noexcept nogil:
    cdef Py_ssize_t i
    cdef int way
    if n < LONG * ((8 * <int>sizeof(element) + DIGIT - 1) // DIGIT):
        by_merging(x, n, a, b, flip)
        return
    way = in_order(x, n, flip)
    if way == 0: by_digits(x, n, a, b, flip)
    elif way > 0:
        for i in range(n): a[i] = <place>i
    else:
        for i in range(n): a[i] = <place>(n - 1 - i)


cdef void order_row(const char* x, int dtype, Py_ssize_t n, place* a, place* b, bint descending) noexcept nogil:
    """a = the places of the n elements at x in order, b is as long. (Bools are 0 and 1 here.)"""
    cdef uint64_t flip = (~<uint64_t>0 >> (64 - 8 * itemsize(dtype))) if descending else 0
    if dtype == FLOAT32:   order_(<const float*>x, n, a, b, flip)
    elif dtype == FLOAT64: order_(<const double*>x, n, a, b, flip)
    elif dtype == BOOL:    order_(<const uint8_t*>x, n, a, b, flip)
    elif dtype == INT8:    order_(<const int8_t*>x, n, a, b, flip)
    elif dtype == INT16:   order_(<const int16_t*>x, n, a, b, flip)
    elif dtype == INT32:   order_(<const int32_t*>x, n, a, b, flip)
    elif dtype == INT64:   order_(<const int64_t*>x, n, a, b, flip)
    elif dtype == UINT8:   order_(<const uint8_t*>x, n, a, b, flip)
    elif dtype == UINT16:  order_(<const uint16_t*>x, n, a, b, flip)
    elif dtype == UINT32:  order_(<const uint32_t*>x, n, a, b, flip)
    else:                  order_(<const uint64_t*>x, n, a, b, flip)


cdef void collect(const char* x, Py_ssize_t step, int dtype, Py_ssize_t n, char* row) noexcept nogil:
    """A row in one piece, its bools as 0 and 1."""
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


cdef void write_places(const place* a, Py_ssize_t count, const Array* y, Py_ssize_t at, Py_ssize_t step) noexcept nogil:
    """`count` places to y, of INT64 or of any unsigned dtype that has room for them, from its element `at` on. Where y
    is INT64 a may be the first half of where they go: to a compiler memory of two types is two memories; memcpy says
    that it is one."""
    cdef Py_ssize_t i
    cdef int64_t v
    if y.dtype == INT64:
        for i in range(count - 1, -1, -1):
            v = a[i]
            memcpy(y.data + (at + i * step) * 8, &v, 8)
    elif y.dtype == UINT8:
        for i in range(count): (<uint8_t*>y.data)[at + i * step] = <uint8_t>a[i]
    elif y.dtype == UINT16:
        for i in range(count): (<uint16_t*>y.data)[at + i * step] = <uint16_t>a[i]
    else:
        for i in range(count): (<uint32_t*>y.data)[at + i * step] = <uint32_t>a[i]


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


cdef size_t order_room(const Array* x, int axis, bint lends) noexcept nogil:
    """The bytes of workspace that order() wants; `lends`: places go to an int64 array whose rows lie in one piece."""
    cdef const Layout* l = x.layout
    cdef Py_ssize_t n = l.shape[axis]
    cdef size_t each = 8 if n >> 31 else 4, capacity = 0
    if l.size == 0: return 0
    if l.strides[axis] != 1 or x.dtype == BOOL: capacity += (n * itemsize(x.dtype) + 7) // 8 * 8
    if not lends: capacity += 2 * n * each
    elif each == 8: capacity += n * each
    return capacity


cdef void order(const Array* x, int axis, bint descending, const Array* values, const Array* y, bint lends,
                char* workspace) noexcept nogil:
    """y = the places of the elements of x in order along `axis`, or of the first of them where y is shorter there;
    values = those elements, if it is not NULL."""
    cdef const Layout* l = x.layout
    cdef const Layout* m = y.layout
    cdef Py_ssize_t at[MAX_NDIM]
    cdef Py_ssize_t from_x = 0, to_y = 0, n = l.shape[axis], count = m.shape[axis], _i
    cdef int d, size = itemsize(x.dtype)
    cdef bint packs = l.strides[axis] != 1 or x.dtype == BOOL, large = n >> 31 != 0
    cdef char* row = workspace
    cdef char* space = workspace
    cdef const char* p
    cdef char* a
    cdef char* b
    if m.size == 0: return
    if packs: space += (n * size + 7) // 8 * 8
    for d in range(l.ndim): at[d] = 0
    for _i in range(m.size // count):
        p = x.data + from_x * size
        if packs:
            collect(p, l.strides[axis], x.dtype, n, row)
            p = row
        a = y.data + to_y * 8 if lends else space   # (a row of y has room for two of 32 bits)
        b = space if lends and large else a + n * (8 if large else 4)
        if large:
            order_row(p, x.dtype, n, <int64_t*>a, <int64_t*>b, descending)
            write_places(<const int64_t*>a, count, y, to_y, m.strides[axis])
            if values != NULL:
                write_elements(x.data + from_x * size, l.strides[axis], <const int64_t*>a, n, size,
                               values.data + to_y * size, m.strides[axis])
        else:
            order_row(p, x.dtype, n, <int32_t*>a, <int32_t*>b, descending)
            if values != NULL:
                write_elements(x.data + from_x * size, l.strides[axis], <const int32_t*>a, n, size,
                               values.data + to_y * size, m.strides[axis])
            write_places(<const int32_t*>a, count, y, to_y, m.strides[axis])
        next_row(l, m, axis, at, &from_x, &to_y)


# ---- values in order: what is around NumPy's sort of rows ------------------------------------------------------------

cdef inline void reverse_(word* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef word v
    for i in range(n // 2):
        v = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = v


cdef void reverse(char* x, int size, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """Turn each of the rows of n elements round."""
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
    """y_ji = x_ij; the steps are from row to row, in elements."""
    if size == 1:   turn_(<const uint8_t*>x, rows, columns, x_step, <uint8_t*>y, y_step)
    elif size == 2: turn_(<const uint16_t*>x, rows, columns, x_step, <uint16_t*>y, y_step)
    elif size == 4: turn_(<const uint32_t*>x, rows, columns, x_step, <uint32_t*>y, y_step)
    else:           turn_(<const uint64_t*>x, rows, columns, x_step, <uint64_t*>y, y_step)
