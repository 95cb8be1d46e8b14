from libc.stdint cimport int64_t

from cygrad.kernels.rows cimport RowLoop

cdef RowLoop LOG_SOFTMAX, LOG_SOFTMAX_GRAD, SOFTMAX, SOFTMAX_GRAD, LOGSUMEXP

cdef Py_ssize_t bad_label(Py_ssize_t rows, Py_ssize_t columns, const int64_t* labels) noexcept nogil
cdef void cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const int64_t* labels,
                        char* loss, char* logs) noexcept nogil
cdef void cross_entropy_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                             double scale, const char* x, const int64_t* labels, const char* logs,
                             char* dx) noexcept nogil
cdef void logsumexp_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                         const char* x, const char* y, char* dx) noexcept nogil
