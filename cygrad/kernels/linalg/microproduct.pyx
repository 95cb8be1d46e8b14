"""Matrix products on one thread by blocks in registers (include/cygrad/microproduct.h), without BLAS.

A table has the place of each term of the sum in A and in B, so B may be a packed matrix, rows of a larger one, or the
padded images of a convolution, whose patches are the same memory at shifted places. With AVX-512, float32 products of
such tiles reach 230 GFLOP/s on an EPYC of 2024, where the same tiles reach 70 to 90 in OpenBLAS 0.3.31 of SciPy. With
AVX2 they reach 117."""

from cygrad.kernels.array cimport itemsize
from cygrad.kernels.by_dtype cimport call

cdef extern from "cygrad/microproduct.h" nogil:
    void cg_multiply_f(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const float* a, Py_ssize_t ai, const Step* steps,
                       const float* b, float* c, Py_ssize_t ldc, float alpha, float beta, const float* d,
                       Py_ssize_t ldd)
    void cg_multiply_d(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const double* a, Py_ssize_t ai, const Step* steps,
                       const double* b, double* c, Py_ssize_t ldc, double alpha, double beta, const double* d,
                       Py_ssize_t ldd)
    void cg_transpose_f(Py_ssize_t n, Py_ssize_t columns, const float* b, Py_ssize_t step, float* to, Py_ssize_t width)
    void cg_transpose_d(Py_ssize_t n, Py_ssize_t columns, const double* b, Py_ssize_t step, double* to,
                        Py_ssize_t width)
    void cg_multiply_lines_f(Py_ssize_t m, Py_ssize_t n, const Lines* lines, const float* a, Py_ssize_t ai,
                             const float* b, const int* places, float* c, Py_ssize_t ldc, const float* d,
                             Py_ssize_t ldd)
    void cg_multiply_lines_d(Py_ssize_t m, Py_ssize_t n, const Lines* lines, const double* a, Py_ssize_t ai,
                             const double* b, const int* places, double* c, Py_ssize_t ldc, const double* d,
                             Py_ssize_t ldd)


cdef void multiply(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t ai,
                   const Step* steps, const char* b, char* c, Py_ssize_t ldc, double alpha, double beta) noexcept nogil:
    """C (m, n) = alpha A B + beta C, as multiply_onto()."""
    multiply_onto(dtype, m, n, k, a, ai, steps, b, c, ldc, alpha, beta, c, ldc)


cdef void multiply_onto(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t ai,
                        const Step* steps, const char* b, char* c, Py_ssize_t ldc, double alpha, double beta,
                        const char* d, Py_ssize_t ldd) noexcept nogil:
    """C (m, n) = alpha A B + beta D; with beta = 0, D is not read. Element (i, k) of A is a[i * ai + steps[k].a], and
    (k, j) of B is b[steps[k].b + j]. Rows of B, C and D are read and written in whole vectors: up to one vector beyond
    column n - 1 must be memory of theirs, and is undefined in C afterwards."""
    call(dtype, cg_multiply_f, cg_multiply_d, m, n, k, <void*>a, ai, steps, <void*>b, <void*>c, ldc, alpha, beta,
         <void*>d, ldd)


cdef void transpose(int dtype, Py_ssize_t n, Py_ssize_t columns, const char* b, Py_ssize_t step, char* to,
                    Py_ssize_t width) noexcept nogil:
    """Element (t, j) of `to`, whose rows are `width` long, = element j * step + t of b, for t < n and j < columns. The
    rest of the last vector of columns may be written."""
    call(dtype, cg_transpose_f, cg_transpose_d, n, columns, <void*>b, step, <void*>to, width)


cdef void multiply_lines(int dtype, Py_ssize_t m, Py_ssize_t n, const Lines* lines, const char* a, Py_ssize_t ai,
                         const char* b, const int* places, char* c, Py_ssize_t ldc, const char* d,
                         Py_ssize_t ldd) noexcept nogil:
    """C (m, n) = the dots of the lines of A, which begin at a[i * ai], and those of B, which begin at b[places[j]], + D
    unless it is NULL. For long sums and few columns, which would fill the vectors of multiply() badly. Up to one vector
    beyond a row of B must be readable; its values are not used."""
    call(dtype, cg_multiply_lines_f, cg_multiply_lines_d, m, n, lines, <void*>a, ai, <void*>b, places, <void*>c, ldc,
         <void*>d, ldd)


cdef void multiply_packed(const Product* p) noexcept nogil:
    """C = A B, where p.pack() packs B piece by piece."""
    cdef Py_ssize_t first = 0, last, size = itemsize(p.dtype)
    while True:
        last = min(p.units, first + p.block)
        if p.pack != NULL: p.pack(p.context, first, last, p.b)
        multiply(p.dtype, p.m, p.n, (last - first) * p.terms, p.a + first * p.a_unit * size, p.ai, p.steps, p.b, p.c,
                 p.ldc, 1, first > 0)
        first = last
        if first >= p.units: return
