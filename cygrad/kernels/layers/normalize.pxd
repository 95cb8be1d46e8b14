cdef void row_norm(int dtype, bint centred, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* w,
                   const char* b, double eps, char* rate, char* y) noexcept nogil
cdef void row_norm_grad(int dtype, bint centred, Py_ssize_t rows, Py_ssize_t columns, const char* g, const char* x,
                        const char* w, const char* rate, char* dx, int parts, char* workspace) noexcept nogil
