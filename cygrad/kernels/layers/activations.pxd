cdef void glu(int dtype, Py_ssize_t outer, Py_ssize_t half, const char* x, char* y) noexcept nogil
cdef void glu_grad(int dtype, Py_ssize_t outer, Py_ssize_t half, const char* g, const char* x, char* dx) noexcept nogil
