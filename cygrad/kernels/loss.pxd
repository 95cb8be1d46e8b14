from libc.stdint cimport int64_t

from cygrad.kernels.array cimport Array
from cygrad.kernels.driver cimport Loop

cdef double total_of(const Loop* loop, const Array* x, const Array* y) noexcept nogil
cdef void pick(const Array* x, const int64_t* labels, char* y) noexcept nogil
cdef void place(int dtype, Py_ssize_t n, Py_ssize_t classes, const char* g, Py_ssize_t g_step, double factor,
                const int64_t* labels, char* dx) noexcept nogil
