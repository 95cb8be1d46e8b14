cdef struct Channels:       # a normalization of x (n, channels, size) with a weight and a bias for each channel
    int dtype
    bint training           # batch_norm trains
    Py_ssize_t n
    Py_ssize_t channels
    Py_ssize_t size
    Py_ssize_t groups       # number of groups of group_norm
    double eps
    const char* x
    const char* w           # or NULL
    const char* b           # or NULL
    char* stats             # batch_norm: (2, channels), the means and the unbiased variances, or the rates if not
                            # training. group_norm: (n groups, 2), a mean and a rate; or NULL in forward
    char* y
    const char* g
    char* dx                # or NULL; it may be g or x
    char* dw                # batch_norm; or NULL
    char* db                # batch_norm; or NULL
    double* sums            # group_norm: (n, channels, 2), the sums of g z and of g; or NULL

cdef void batch_norm(Channels* c) noexcept nogil
cdef void batch_norm_grad(Channels* c) noexcept nogil
cdef void group_norm(Channels* c) noexcept nogil
cdef void group_norm_grad(Channels* c) noexcept nogil
cdef void running_stats(Channels* c, const char* mean, const char* var) noexcept nogil
