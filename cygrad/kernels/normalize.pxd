cdef void layer_norm(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* w, const char* b,
                     double eps, char* rate, char* y) noexcept nogil
cdef void layer_norm_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, const char* x, const char* w,
                          const char* rate, char* dx, int parts, char* workspace) noexcept nogil
