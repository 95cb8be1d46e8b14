cdef struct Factors:        # of C (m, n) = alpha A B + beta D, where B is (k, n); with beta = 0, D is not read
    int dtype
    Py_ssize_t n
    Py_ssize_t k
    const char* a           # A(i, t) is element i * a_row + t * a_term
    Py_ssize_t a_row
    Py_ssize_t a_term
    const char* b           # B(t, j) is element t * b_term + j * b_column; one of the two is 1
    Py_ssize_t b_term
    Py_ssize_t b_column
    const char* packed      # B after pack(), or NULL: each panel is packed as it is needed
    char* c
    Py_ssize_t ldc
    double beta
    double alpha
    const char* d           # NULL: D is C. multiply_shared() also takes others, of which beta must be 1:
    Py_ssize_t ldd          # with 0, all rows of D are one

cdef struct Batch:          # of products, each with its places in A, B and C
    Factors p               # the first
    Py_ssize_t m
    int ndim                # dimensions of the batch
    const Py_ssize_t* shape
    const Py_ssize_t* steps[3]      # elements of A, B and C from a matrix to the next

cdef Py_ssize_t packed_bytes(int dtype, Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef void pack(Factors* p, char* to) noexcept nogil
cdef void multiply_rows(const Factors* p, Py_ssize_t m) noexcept nogil
cdef void multiply_shared(const Factors* p, Py_ssize_t m) noexcept nogil
cdef Factors factors_of(int dtype, bint ta, bint tb, Py_ssize_t n, Py_ssize_t k, double alpha, const char* a,
                        Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                        Py_ssize_t ldc) noexcept nogil
cdef void multiply_alone(const Factors* p, Py_ssize_t m) noexcept nogil
cdef void multiply_batch(const Batch* b, Py_ssize_t count) noexcept nogil
