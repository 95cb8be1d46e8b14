cdef struct Thin:           # of y = alpha M x + beta y
    int dtype
    Py_ssize_t n, k         # results, and terms of each
    const char* m           # the matrix,
    Py_ssize_t across       # with so many elements from a result to the next,
    Py_ssize_t along        # and from a term to the next; one of the two is 1
    const char* x           # the vector
    Py_ssize_t x_step
    char* y                 # the results
    Py_ssize_t y_step
    double alpha, beta

cdef void multiply_thin(const Thin* p, int t) noexcept nogil
cdef void multiply_outer(int dtype, Py_ssize_t m, Py_ssize_t n, double alpha, const char* a, Py_ssize_t a_step,
                         const char* b, Py_ssize_t b_step, double beta, char* c, Py_ssize_t ldc, int t) noexcept nogil
