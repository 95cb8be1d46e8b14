from cygrad.kernels.reductions.rows cimport RowLoop

cdef RowLoop LOG_SOFTMAX, LOG_SOFTMAX_GRAD, SOFTMAX, SOFTMAX_GRAD, LOGSUMEXP

cdef void logsumexp_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                         const char* x, const char* y, char* dx) noexcept nogil
