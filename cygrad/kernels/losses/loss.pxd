from cygrad.kernels.array cimport Array
from cygrad.kernels.driver cimport Loop

cdef double total_of(const Loop* loop, const Array* x, const Array* y) noexcept nogil
