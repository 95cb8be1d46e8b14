cdef extern from "cygrad/microproduct.h" nogil:
    enum:
        CG_VECTOR           # bytes
        CG_WIDE             # lines of B in a block of dots
    ctypedef struct Step "cg_step":     # where a term k of the sum is
        int a               # A(i, k) is at a[i * ai + steps[k].a]
        int b               # B(k, j) is at b[steps[k].b + j]
    ctypedef struct Lines "cg_lines":   # rows of numbers of which dots are computed
        Py_ssize_t rows
        Py_ssize_t n        # in a row
        Py_ssize_t pitch    # distance of rows of A: n, rounded up to whole vectors, with zeros at the end
        const int* starts   # where the rows of B start

# Packs the terms of units first to last - 1 of a product into `to`, as the steps of the product describe.
ctypedef void (*pack_t)(const void* context, Py_ssize_t first, Py_ssize_t last, char* to) noexcept nogil

cdef struct Product:        # C (m, n) = A B, where B is packed in pieces
    int dtype
    Py_ssize_t m
    Py_ssize_t n
    Py_ssize_t units        # number of units of the sum, such as channels
    Py_ssize_t terms        # number of terms of a unit
    Py_ssize_t block        # units of a piece
    pack_t pack             # NULL if `b` has all of B
    const void* context     # argument of pack()
    char* b                 # a piece
    const Step* steps       # steps between the terms of a piece
    const char* a
    Py_ssize_t ai           # elements from a row of A to the next
    Py_ssize_t a_unit       # ... and from a unit to the next
    char* c
    Py_ssize_t ldc

cdef void multiply(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t ai,
                   const Step* steps, const char* b, char* c, Py_ssize_t ldc, double alpha, double beta) noexcept nogil
cdef void multiply_onto(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t ai,
                        const Step* steps, const char* b, char* c, Py_ssize_t ldc, double alpha, double beta,
                        const char* d, Py_ssize_t ldd) noexcept nogil
cdef void transpose(int dtype, Py_ssize_t n, Py_ssize_t columns, const char* b, Py_ssize_t step, char* to,
                    Py_ssize_t width) noexcept nogil
cdef void multiply_lines(int dtype, Py_ssize_t m, Py_ssize_t n, const Lines* lines, const char* a, Py_ssize_t ai,
                         const char* b, const int* places, char* c, Py_ssize_t ldc, const char* d,
                         Py_ssize_t ldd) noexcept nogil
cdef void multiply_packed(const Product* p) noexcept nogil

cdef inline Py_ssize_t whole_vectors(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """n elements of `size` bytes, rounded up to whole vectors."""
    cdef Py_ssize_t lanes = CG_VECTOR // size
    return (n + lanes - 1) // lanes * lanes
