from libc.stdint cimport int64_t

from cygrad.kernels.array cimport Array

cdef void search(int dtype, const char* a, Py_ssize_t n, const Array* v, bint right, int64_t* y) noexcept nogil
