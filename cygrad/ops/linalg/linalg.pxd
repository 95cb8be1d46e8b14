from cygrad.core.graph.operator cimport BackwardCall
from cygrad.kernels.array cimport Array

cdef size_t capacity(const Array* a) noexcept nogil
cdef int products(const Array* x, bint tx, const Array* y, bint ty, const Array* z, double alpha, double beta,
                  char* workspace) except -1 nogil
cdef int times_derivative(BackwardCall* b, int kind) except -1 nogil
