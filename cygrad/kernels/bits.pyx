"""A bit for each element: bit i & 7 of byte i >> 3 belongs to element i. Of signs it is set where the element is not
<= 0 (so a NaN counts as positive, as in relu)."""

from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport FLOAT32, Array, itemsize, real, view1d, view1f
from cygrad.kernels.driver cimport STRIP, gather


cdef void pack_(real[::1] x, uint8_t* bits) noexcept nogil:
    cdef Py_ssize_t i, k, n = x.shape[0]
    cdef uint8_t byte
    for i in range((n + 7) // 8):
        byte = 0
        for k in range(min(8, n - 8 * i)):
            byte |= <uint8_t>(not x[8 * i + k] <= 0) << k
        bits[i] = byte


cdef void pack_equal_(real[::1] x, real[::1] y, uint8_t* bits) noexcept nogil:
    cdef Py_ssize_t i, k, n = x.shape[0]
    cdef uint8_t byte
    cdef real a, b
    for i in range((n + 7) // 8):
        byte = 0
        for k in range(min(8, n - 8 * i)):
            a, b = x[8 * i + k], y[8 * i + k]
            byte |= <uint8_t>((a == b) | ((a != a) & (b != b))) << k
        bits[i] = byte


cdef void unpack_(const uint8_t* bits, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = (bits[i >> 3] >> (i & 7)) & 1


cdef void mask_(const uint8_t* bits, real[::1] g, real[::1] dx) noexcept nogil:
    """dx = g where the bit is set, else 0"""
    cdef Py_ssize_t i
    for i in range(dx.shape[0]):
        dx[i] = g[i] if (bits[i >> 3] >> (i & 7)) & 1 else 0


cdef void pack_signs(const char* x, int dtype, Py_ssize_t n, uint8_t* bits) noexcept nogil:
    if dtype == FLOAT32: pack_[float](view1f(<float*>x, n), bits)
    else:                pack_[double](view1d(<double*>x, n), bits)


cdef void pack_equal(const Array* x, const Array* y, uint8_t* bits) noexcept nogil:
    """A bit for each element of x in row-major order: whether it is that of y, which has the shape of x. A NaN is equal
    to a NaN."""
    cdef char scratch[2][STRIP * 8]
    cdef Py_ssize_t start = 0, n = x.layout.size, count
    cdef int size = itemsize(x.dtype)
    cdef const char* p
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        p = x.data + start * size
        if not x.layout.dense:
            gather(&scratch[0][0], x, start, count)
            p = &scratch[0][0]
        gather(&scratch[1][0], y, start, count)
        if x.dtype == FLOAT32:
            pack_equal_[float](view1f(<float*>p, count), view1f(<float*>&scratch[1][0], count), bits + start // 8)
        else:
            pack_equal_[double](view1d(<double*>p, count), view1d(<double*>&scratch[1][0], count), bits + start // 8)
        start += count


cdef void unpack_bits(const uint8_t* bits, int dtype, Py_ssize_t n, char* y) noexcept nogil:
    if dtype == FLOAT32: unpack_[float](bits, view1f(<float*>y, n))
    else:                unpack_[double](bits, view1d(<double*>y, n))


cdef void mask(const uint8_t* bits, int dtype, Py_ssize_t n, const char* g, char* dx) noexcept nogil:
    """The result may be g."""
    if dtype == FLOAT32: mask_[float](bits, view1f(<float*>g, n), view1f(<float*>dx, n))
    else:                mask_[double](bits, view1d(<double*>g, n), view1d(<double*>dx, n))
