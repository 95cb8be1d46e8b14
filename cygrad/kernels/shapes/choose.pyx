"""Kernels for elements of any dtype, treated as bits: selection by a mask, finding nonzero elements, one-hot rows."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, is_floating, itemsize
from cygrad.kernels.driver cimport STRIP, gather, scatter, strip_of
from cygrad.kernels.elements cimport word


cdef inline void choose_(const uint8_t* c, const word* x, Py_ssize_t x_step, const word* y, Py_ssize_t y_step, word* z,
                         Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n): z[i] = x[i * x_step] if c[i] else y[i * y_step]


cdef void choose(const Array* a) noexcept nogil:
    """z = x where c, else y, for a = (c, x, y, z). Each has the shape of z or one element; z may be x or y."""
    cdef char scratch[4][STRIP * 8]
    cdef const char* p[3]
    cdef bint one[3]                                # whether the operand is one element
    cdef int k, size = itemsize(a[3].dtype)
    cdef Py_ssize_t n = a[3].layout.size, start = 0, count
    cdef char* z
    for k in range(3):
        one[k] = a[k].layout.size == 1
        p[k] = a[k].data
    if one[0]: memset(&scratch[0][0], a[0].data[0], STRIP)
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        for k in range(3):
            if not one[k]: p[k] = strip_of(&a[k], start, count, &scratch[k][0])
            elif k == 0: p[0] = &scratch[0][0]
        z = a[3].data + start * size if a[3].layout.dense else &scratch[3][0]
        if size == 1:
            choose_[uint8_t](<uint8_t*>p[0], <uint8_t*>p[1], not one[1], <uint8_t*>p[2], not one[2], <uint8_t*>z, count)
        elif size == 2:
            choose_[uint16_t](<uint8_t*>p[0], <uint16_t*>p[1], not one[1], <uint16_t*>p[2], not one[2], <uint16_t*>z,
                              count)
        elif size == 4:
            choose_[uint32_t](<uint8_t*>p[0], <uint32_t*>p[1], not one[1], <uint32_t*>p[2], not one[2], <uint32_t*>z,
                              count)
        else:
            choose_[uint64_t](<uint8_t*>p[0], <uint64_t*>p[1], not one[1], <uint64_t*>p[2], not one[2], <uint64_t*>z,
                              count)
        if not a[3].layout.dense: scatter(z, &a[3], start, count)
        start += count


cdef inline void nonzero_(const word* x, word bits, uint8_t* y, Py_ssize_t n) noexcept nogil:
    for i in range(n): y[i] = (x[i] & bits) != 0


cdef void nonzero(const Array* x, Py_ssize_t start, Py_ssize_t count, uint8_t* y) noexcept nogil:
    """y = (x != 0) for elements start to start + count - 1 of x. -0.0 is 0; a NaN is not."""
    cdef char scratch[STRIP * 8]
    cdef const char* p = strip_of(x, start, count, scratch)
    cdef int size = itemsize(x.dtype)
    cdef uint64_t bits = (~<uint64_t>0 >> (64 - 8 * size)) >> is_floating(x.dtype)    # all but the sign of a float
    if size == 1:   nonzero_[uint8_t](<uint8_t*>p, <uint8_t>bits, y, count)
    elif size == 2: nonzero_[uint16_t](<uint16_t*>p, <uint16_t>bits, y, count)
    elif size == 4: nonzero_[uint32_t](<uint32_t*>p, <uint32_t>bits, y, count)
    else:           nonzero_[uint64_t](<uint64_t*>p, bits, y, count)


cdef Py_ssize_t count_nonzero(const Array* x) noexcept nogil:
    """The number of nonzero elements."""
    cdef uint8_t strip[STRIP]
    cdef Py_ssize_t n = x.layout.size, start = 0, count, i, total = 0
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        nonzero(x, start, count, strip)
        for i in range(count): total += strip[i]
        start += count
    return total


cdef Py_ssize_t argwhere(const Array* x, int64_t* y, Py_ssize_t rows) noexcept nogil:
    """y = a row of ndim indices for each nonzero element, in row-major order, up to `rows` of them. Returns the number
    of nonzero elements, which another thread may have changed since they were counted."""
    cdef uint8_t strip[STRIP]
    cdef int64_t index[MAX_NDIM]
    cdef const Layout* l = x.layout
    cdef Py_ssize_t n = l.size, start = 0, count, i, found = 0
    cdef int d
    if l.ndim == 0: return rows
    for d in range(l.ndim): index[d] = 0
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        nonzero(x, start, count, strip)
        for i in range(count):
            if strip[i]:
                if found < rows:
                    for d in range(l.ndim): y[d] = index[d]
                    y += l.ndim
                found += 1
            d = l.ndim - 1
            index[d] += 1
            while d > 0 and index[d] == l.shape[d]:  # carry into the next row
                index[d] = 0
                d -= 1
                index[d] += 1
        start += count
    return found


cdef bint one_hot(const Array* labels, Py_ssize_t classes, char* y, int size, const char* one,
                  int64_t* bad) noexcept nogil:
    """y = 0, but `one` (an element of `size` bytes) at the label of each row. Returns whether all labels are valid; if
    not, `bad` receives the first invalid one."""
    cdef int64_t strip[STRIP]
    cdef int64_t label
    cdef Py_ssize_t n = labels.layout.size, start = 0, count, i
    memset(y, 0, n * classes * size)
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        gather(<char*>strip, labels, start, count)  # a copy: another thread may write the labels meanwhile
        for i in range(count):
            label = strip[i]
            if label < 0 or label >= classes:
                bad[0] = label
                return False
            memcpy(y + ((start + i) * classes + label) * size, one, size)
        start += count
    return True
