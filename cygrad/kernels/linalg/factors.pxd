from cygrad.kernels.by_dtype cimport element

cdef struct Triangle:       # a triangular matrix T (n, n), of which only the triangle is read
    int dtype
    const char* t           # T(i, j) is element i * row + j * column
    Py_ssize_t row, column  # one of the two is 1
    bint lower
    bint unit               # the diagonal counts as ones
    bint inverse            # T^-1 is meant

cdef inline char* at(int dtype, const void* p, Py_ssize_t i) noexcept nogil:
    """The memory of element i."""
    return <char*>element(dtype, p, i)

cdef void add_product(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha, const char* a,
                      Py_ssize_t a_row, Py_ssize_t a_term, const char* b, Py_ssize_t b_term, Py_ssize_t b_column,
                      char* c, Py_ssize_t c_row, Py_ssize_t c_column) noexcept nogil
cdef void multiply_triangle(const Triangle* t, Py_ssize_t n, char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                            Py_ssize_t k) noexcept nogil
cdef int factor_cholesky(int dtype, Py_ssize_t n, char* a, Py_ssize_t row, Py_ssize_t column) noexcept nogil
cdef int factor_lu(int dtype, Py_ssize_t m, Py_ssize_t n, char* a, Py_ssize_t ld, int* pivots) noexcept nogil
cdef void exchange(int dtype, Py_ssize_t n, Py_ssize_t k, char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                   const int* pivots, bint forward) noexcept nogil
cdef size_t inverse_bytes(int dtype, Py_ssize_t n) noexcept nogil
cdef void invert(int dtype, Py_ssize_t n, char* a, const int* pivots, char* work) noexcept nogil
