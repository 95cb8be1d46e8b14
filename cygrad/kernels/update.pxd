from cygrad.kernels.grouping cimport Groups

cdef void sgd(int dtype, Py_ssize_t n, char* w, const char* g, double lr) noexcept nogil
cdef void adam(int dtype, Py_ssize_t n, char* w, const char* g, char* m, char* v, double rate, double beta1,
               double beta2, double eps) noexcept nogil
cdef void sgd_rows(int dtype, const Groups* groups, Py_ssize_t row, char* w, const char* g, double lr) noexcept nogil
