from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport Array

cdef void pack_signs(const char* x, int dtype, Py_ssize_t n, uint8_t* bits) noexcept nogil
cdef void unpack_bits(const uint8_t* bits, int dtype, Py_ssize_t n, char* y) noexcept nogil
cdef void mask(const uint8_t* bits, int dtype, Py_ssize_t n, const char* g, char* dx) noexcept nogil
cdef void pack_equal(const Array* x, const Array* y, uint8_t* bits) noexcept nogil
cdef void where_code_is(const uint8_t* packed, Py_ssize_t n, int bits, int code, uint8_t* y) noexcept nogil
cdef bint zeros_and_ones(const Array* x) noexcept nogil
cdef void pack_ones(const Array* x, uint8_t* bits) noexcept nogil
cdef Py_ssize_t pack_mask(const Array* mask, uint8_t* bits) noexcept nogil
cdef Py_ssize_t places_of(const Array* mask, int dtype, Py_ssize_t max_places, char* places) noexcept nogil
cdef void mask_from(const char* places, int dtype, Py_ssize_t k, Py_ssize_t n, uint8_t* mask) noexcept nogil
