cdef struct Factors:        # factors of C (m, n) = A B, where B is (k, n)
    int dtype
    Py_ssize_t n
    Py_ssize_t k
    const char* a           # A(i, t) is element i * a_row + t * a_term
    Py_ssize_t a_row
    Py_ssize_t a_term
    const char* b           # B(t, j) is element t * b_term + j * b_column
    Py_ssize_t b_term
    Py_ssize_t b_column
    const char* packed      # B after pack(), or NULL: each panel is packed as it is needed
    char* c
    Py_ssize_t ldc
    bint adds               # C += A B

cdef Py_ssize_t packed_bytes(int dtype, Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef void pack(Factors* p, char* to) noexcept nogil
cdef void multiply_rows(const Factors* p, Py_ssize_t m) noexcept nogil
cdef void multiply_shared(const Factors* p, Py_ssize_t m) noexcept nogil
