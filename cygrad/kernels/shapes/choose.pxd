from libc.stdint cimport int64_t

from cygrad.kernels.array cimport Array

cdef void choose(const Array* a) noexcept nogil
cdef Py_ssize_t count_nonzero(const Array* x) noexcept nogil
cdef Py_ssize_t argwhere(const Array* x, int64_t* y, Py_ssize_t rows) noexcept nogil
cdef bint one_hot(const Array* labels, Py_ssize_t classes, char* y, int size, const char* one,
                  int64_t* bad) noexcept nogil
