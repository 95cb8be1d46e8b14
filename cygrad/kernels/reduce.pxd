from cygrad.kernels.array cimport Array, Layout

cdef int sum_into(const Array* x, const Array* y) except -1
cdef int sum_to(const Array* x, const Array* y) except -1
