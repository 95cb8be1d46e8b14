from cygrad.kernels.array cimport Array

cdef const char* dense(const Array* x, char** workspace) noexcept nogil
cdef size_t capacity(const Array* x) noexcept nogil
cdef double read_eps(str name, eps) except? -1
