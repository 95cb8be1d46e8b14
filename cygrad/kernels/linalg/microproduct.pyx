"""Matrix products on one thread by blocks in registers (include/cygrad/microproduct.h), without BLAS.

A table has the place of each term of the sum in A and in B, so B may be a packed matrix, rows of a larger one, or the
padded images of a convolution, whose patches are the same memory at shifted places. With AVX-512, float32 products of
such tiles reach 230 GFLOP/s on an EPYC of 2024, where the same tiles reach 70 to 90 in OpenBLAS 0.3.31 of SciPy. With
AVX2 they reach 117."""

from cygrad.kernels.array cimport itemsize
from cygrad.kernels.by_dtype cimport call

cdef extern from "cygrad/microproduct.h" nogil:
    void cg_multiply_f(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float* a, Py_ssize_t ai, const Step* steps,
                       const float* b, float* c, Py_ssize_t ldc, int adds)
    void cg_multiply_d(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const double* a, Py_ssize_t ai, const Step* steps,
                       const double* b, double* c, Py_ssize_t ldc, int adds)
    void cg_multiply_lines_f(Py_ssize_t m, Py_ssize_t n, const Lines* lines, const float* a, Py_ssize_t ai,
                             const float* b, const int* places, float* c, Py_ssize_t ldc, int adds)
    void cg_multiply_lines_d(Py_ssize_t m, Py_ssize_t n, const Lines* lines, const double* a, Py_ssize_t ai,
                             const double* b, const int* places, double* c, Py_ssize_t ldc, int adds)


cdef void multiply(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t ai,
                   const Step* steps, const char* b, char* c, Py_ssize_t ldc, bint adds) noexcept nogil:
    """C (m, n) = A B, + C if `adds`. Element (i, k) of A is a[i * ai + steps[k].a], element (k, j) of B is
    b[steps[k].b + j]. Rows of B and C are read and written in whole vectors: up to one vector beyond column n - 1 must
    be memory of theirs, and is undefined in C afterwards."""
    call(dtype, cg_multiply_f, cg_multiply_d, m, n, k, <void*>a, ai, steps, <void*>b, <void*>c, ldc, adds)


cdef void multiply_lines(int dtype, Py_ssize_t m, Py_ssize_t n, const Lines* lines, const char* a, Py_ssize_t ai,
                         const char* b, const int* places, char* c, Py_ssize_t ldc, bint adds) noexcept nogil:
    """C (m, n) = the dots of the lines of A, which begin at a[i * ai], and those of B, which begin at b[places[j]], + C
    if `adds`. For long sums and few columns, which would fill the vectors of multiply() badly. Up to one vector beyond
    a row of B must be readable; its values are not used."""
    call(dtype, cg_multiply_lines_f, cg_multiply_lines_d, m, n, lines, <void*>a, ai, <void*>b, places, <void*>c, ldc,
         adds)


cdef void multiply_packed(const Product* p) noexcept nogil:
    """C = A B, where p.pack() packs B piece by piece."""
    cdef Py_ssize_t first = 0, last, size = itemsize(p.dtype)
    while True:
        last = min(p.units, first + p.block)
        if p.pack != NULL: p.pack(p.context, first, last, p.b)
        multiply(p.dtype, p.m, p.n, (last - first) * p.terms, p.a + first * p.a_unit * size, p.ai, p.steps, p.b, p.c,
                 p.ldc, first > 0)
        first = last
        if first >= p.units: return
