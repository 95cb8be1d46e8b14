from libc.stdint cimport int64_t

cdef struct RowLoop:        # one kernel in both precisions
    void* f32
    void* f64
    void* across_single     # the same where the axis is not the last: down the columns of a tile
    void* across_double
    int operands
    bint narrow             # the result has one element for each row or column

cdef enum:
    FEWEST = 16             # columns that are a vector: fewer are turned into rows by whoever calls

cdef RowLoop LOG_SOFTMAX, LOG_SOFTMAX_GRAD, SOFTMAX, SOFTMAX_GRAD, LOGSUMEXP, OTHERS

cdef void each_row(const RowLoop* loop, int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x,
                   const char* y, char* z) noexcept nogil
cdef void dots(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y, char* z) noexcept nogil
cdef Py_ssize_t bad_label(Py_ssize_t rows, Py_ssize_t columns, const int64_t* labels) noexcept nogil
cdef void cross_entropy(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const int64_t* labels,
                        char* loss, char* logs) noexcept nogil
cdef void cross_entropy_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                             double scale, const char* x, const int64_t* labels, const char* logs,
                             char* dx) noexcept nogil
cdef void logsumexp_grad(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* g, Py_ssize_t g_step,
                         const char* x, const char* y, char* dx) noexcept nogil
