from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport Array

cdef void pack_signs(const char* x, int dtype, Py_ssize_t n, uint8_t* bits) noexcept nogil
cdef void unpack_bits(const uint8_t* bits, int dtype, Py_ssize_t n, char* y) noexcept nogil
cdef void mask(const uint8_t* bits, int dtype, Py_ssize_t n, const char* g, char* dx) noexcept nogil
cdef void pack_equal(const Array* x, const Array* y, uint8_t* bits) noexcept nogil
