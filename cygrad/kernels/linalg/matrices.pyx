"""Decompositions of row-major matrices, one matrix of a batch at a time: Cholesky, linear systems, inverses,
determinants, QR, by the routines of kernels/linalg/factors and reflectors. The LU factors are those of the transpose,
whose columns are contiguous. kernels/linalg/spectra has what needs LAPACK.

The matrices of a batch are divided among the threads of cygrad, and each is computed on one thread. So the bits of a
result do not depend on the number of threads."""

from cpython.ref cimport Py_DECREF
from libc.math cimport fabs, frexp, ldexp, log
from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, number, put_number
from cygrad.kernels.driver cimport gather, strip_of
from cygrad.kernels.linalg.blas cimport begin, end
from cygrad.kernels.linalg.factors cimport (
    Triangle, exchange, factor_cholesky, factor_lu, inverse_bytes, invert, multiply_triangle,
)
from cygrad.kernels.linalg.lapack cimport INT, aligned, at_once, by_numpy, refuse_size
from cygrad.kernels.linalg.reflectors cimport factor_qr
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    void cg_lock(long* lock)
    void cg_unlock(long* lock)

cdef enum:
    LARGEST = 0x7fffffff // 32      # rows or columns: LAPACK counts a block of 32 of them in 32 bits

cdef long lock = 0              # guards Task.failed


# ---- batches ---------------------------------------------------------------------------------------------------------

cdef int begin_task(Task* t, int dtype, Py_ssize_t m, Py_ssize_t n, bint by_lapack=False) except -1 nogil:
    """Fill in a Task for (m, n) matrices. Raises ValueError for sizes that do not fit into 32 bits."""
    memset(t, 0, sizeof(Task))
    t.dtype, t.failed, t.by_lapack = dtype, -1, by_lapack
    if m > LARGEST or n > LARGEST: refuse_size(m, n)
    t.m, t.n = <int>m, <int>n


cdef int threads_over(Py_ssize_t count, Py_ssize_t work, bint by_lapack=False) noexcept nogil:
    """The number of threads for `count` matrices of so much work each: one if numpy.linalg does it, for the GIL."""
    if by_lapack and by_numpy: return 1
    return <int>min(<Py_ssize_t>threads_for(count * work), count)


cdef int each_matrix(range_t f, Task* t, Py_ssize_t count, Py_ssize_t work, size_t nbytes) except -1 nogil:
    """f for each of `count` matrices, on as many threads as the workspace of `nbytes` has room for. Raises what
    numpy.linalg raised, if that is no LinAlgError."""
    cdef int threads = threads_over(count, work, t.by_lapack)
    if count == 0: return 0
    if t.room: threads = min(threads, <int>(nbytes // t.room))
    t.part = (count + threads - 1) // threads
    if t.by_lapack: t.at_once = at_once(count, <Py_ssize_t>t.m * t.n)
    if t.by_lapack: begin()
    parallel_for(f, t, count, t.part, threads)
    if t.by_lapack: end()
    if t.error != NULL: raise_error(t)


cdef int raise_error(Task* t) except -1 with gil:
    error = <object>t.error
    Py_DECREF(error)
    raise error


cdef void fail(Task* t, Py_ssize_t i, int info) noexcept nogil:
    """Note that matrix `i` failed. The first one is reported."""
    cg_lock(&lock)
    if t.failed < 0 or i < t.failed: t.failed, t.info = i, info
    cg_unlock(&lock)


# ---- Cholesky --------------------------------------------------------------------------------------------------------

cdef void clear_triangle(int dtype, bint upper, Py_ssize_t m, Py_ssize_t n, char* a) noexcept nogil:
    """Set the elements of a row-major matrix above (or below) its diagonal to zero."""
    cdef Py_ssize_t size = itemsize(dtype), i
    for i in range(m):
        if upper and i + 1 < n: memset(a + (i * n + i + 1) * size, 0, (n - i - 1) * size)
        elif not upper: memset(a + i * n * size, 0, min(i, n) * size)


cdef void cholesky(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, which is a copy of x. The upper factor is L', so L has its strides exchanged."""
    cdef Task* t = <Task*>job
    cdef Py_ssize_t n = t.n
    cdef int info
    for i in range(start, stop):
        info = factor_cholesky(t.dtype, n, result(t, 0, i), 1 if t.upper else n, n if t.upper else 1)
        if info:
            fail(t, i, info)
            return
        clear_triangle(t.dtype, not t.upper, t.n, t.n, result(t, 0, i))


cdef void mirror(real* p, Py_ssize_t n, bint upper) noexcept nogil:
    """Half of the lower (upper) triangle plus half of its transpose, the diagonal counted once."""
    cdef Py_ssize_t i, j
    for i in range(n):
        p[i * n + i] /= 2
        for j in range(i):
            p[i * n + j] = p[j * n + i] = (p[j * n + i] if upper else p[i * n + j]) / 2


cdef void cholesky_grad(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """dx = L^-T s L^-1 with s = half of (p + p') and p = the lower triangle of L' g, its diagonal halved; over a
    copy of g. a has the factors."""
    cdef Task* t = <Task*>job
    cdef Py_ssize_t n = t.n, row = n if t.upper else 1, column = 1 if t.upper else n, i
    cdef Triangle transpose = Triangle(t.dtype, NULL, row, column, False, False, False)     # L'
    cdef char* dx
    for i in range(start, stop):
        transpose.t, transpose.inverse = strip_of(t.a, i * n * n, n * n, scratch(t, start)), False
        dx = result(t, 0, i)
        clear_triangle(t.dtype, not t.upper, n, n, dx)
        multiply_triangle(&transpose, n, dx, column, row, n)
        call(t.dtype, mirror[float], mirror[double], <void*>dx, n, t.upper)
        transpose.inverse = True
        multiply_triangle(&transpose, n, dx, n, 1, n)
        multiply_triangle(&transpose, n, dx, 1, n, n)


# ---- linear systems --------------------------------------------------------------------------------------------------

cdef void solve_triangular(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, a copy of b: op(a) x = b, or x op(a) = b, which is op(a)' x' = b'."""
    cdef Task* t = <Task*>job
    cdef Py_ssize_t n = t.n, i, j
    cdef bint turned = t.transposed == t.left
    cdef Triangle a = Triangle(t.dtype, NULL, 1 if turned else n, n if turned else 1, t.upper == turned, t.unit, True)
    for i in range(start, stop):
        if a.t == NULL or not t.shared: a.t = strip_of(t.a, 0 if t.shared else i * n * n, n * n, scratch(t, start))
        for j in range(0 if t.unit else n):
            if number(t.dtype, a.t, j * n + j) == 0:
                fail(t, i, <int>j + 1)
                return
        multiply_triangle(&a, n, result(t, 0, i), t.k if t.left else 1, 1 if t.left else n, t.k)


cdef size_t factor_room(int dtype, Py_ssize_t n) noexcept nogil:
    """Bytes for the LU factors of a matrix and its pivots."""
    return aligned(n * n * itemsize(dtype)) + aligned(n * INT)


cdef int factor(Task* t, Py_ssize_t i, char* lu, int* pivots) noexcept nogil:
    """The LU factors of matrix i, transposed. Returns the number of the first pivot that is zero, or 0."""
    if t.n == 0: return 0
    gather(lu, t.a, 0 if t.shared else i * t.n * t.n, <Py_ssize_t>t.n * t.n)
    return factor_lu(t.dtype, t.n, t.n, lu, t.n, pivots)


cdef void solve(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, a copy of b: a x = b, or a' x = b. With a' = P L U, x = P L^-T U^-T b, or x = U^-1 L^-1 P' b."""
    cdef Task* t = <Task*>job
    cdef Py_ssize_t n = t.n, row = 1 if t.transposed else n, column = n if t.transposed else 1, i
    cdef char* lu = scratch(t, start)
    cdef int* pivots = <int*>(lu + aligned(n * n * itemsize(t.dtype)))
    cdef Triangle lower = Triangle(t.dtype, lu, row, column, t.transposed, True, True)      # L, or L'
    cdef Triangle upper = Triangle(t.dtype, lu, row, column, not t.transposed, False, True)
    cdef int info
    cdef char* x
    for i in range(start, stop):
        if i == start or not t.shared:
            info = factor(t, i, lu, pivots)
            if info:
                fail(t, i, info)
                return
        x = result(t, 0, i)
        if t.transposed:
            exchange(t.dtype, n, t.k, x, t.k, 1, pivots, True)
            multiply_triangle(&lower, n, x, t.k, 1, t.k)
            multiply_triangle(&upper, n, x, t.k, 1, t.k)
        else:
            multiply_triangle(&upper, n, x, t.k, 1, t.k)
            multiply_triangle(&lower, n, x, t.k, 1, t.k)
            exchange(t.dtype, n, t.k, x, t.k, 1, pivots, False)


cdef size_t inverse_room(int dtype, Py_ssize_t n) noexcept nogil:
    return aligned(n * INT) + aligned(inverse_bytes(dtype, n))


cdef void inverse(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, a copy of x: the inverse of the transpose is the transpose of the inverse."""
    cdef Task* t = <Task*>job
    cdef int* pivots = <int*>scratch(t, start)
    cdef char* work = <char*>pivots + aligned(<size_t>t.n * INT)
    cdef int info
    for i in range(start, stop):
        info = factor_lu(t.dtype, t.n, t.n, result(t, 0, i), t.n, pivots)
        if info:
            fail(t, i, info)
            return
        invert(t.dtype, t.n, result(t, 0, i), pivots, work)


cdef void determinant(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """One result: the determinant. Two: its sign and the logarithm of its size."""
    cdef Task* t = <Task*>job
    cdef char* lu = scratch(t, start)
    cdef int* pivots = <int*>(lu + aligned(<size_t>t.n * t.n * itemsize(t.dtype)))
    cdef double value, size, v
    cdef int j, e
    cdef long long exponent
    for i in range(start, stop):
        factor(t, i, lu, pivots)
        value, size, exponent = 1, 0, 0
        for j in range(t.n):
            v = number(t.dtype, lu, <Py_ssize_t>j * t.n + j)
            if pivots[j] != j + 1: value = -value
            if t.y[1] != NULL:
                size += log(fabs(v))
                value *= (v > 0) - (v < 0) if v == v else v
            else:
                value = frexp(value * v, &e)        # mantissa and exponent apart: no product overflows
                exponent += e
        if t.y[1] != NULL: put_number(t.dtype, result(t, 1, i), 0, size)
        else: value = ldexp(value, <int>max(-100000, min(100000, exponent)))
        put_number(t.dtype, result(t, 0, i), 0, value)


# ---- QR --------------------------------------------------------------------------------------------------------------

cdef void qr(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """x = q r, with q (m, k) in y[0] and r (k, n) in y[1]. x is copied where it fits: to q if k = n, else to r."""
    cdef Task* t = <Task*>job
    cdef Py_ssize_t m = t.m, n = t.n, k = m if t.full else min(m, n), i
    cdef char* q
    cdef char* r
    cdef char* a
    for i in range(start, stop):
        q, r = result(t, 0, i), result(t, 1, i)
        a = q if k == n else r
        if m == 0 or n == 0:
            identity(t.dtype, k, q)
            continue
        gather(a, t.a, i * m * n, m * n)
        factor_qr(t.dtype, m, n, k, a, q, r, scratch(t, start))
        clear_triangle(t.dtype, False, k, n, r)


cdef void identity(int dtype, Py_ssize_t n, char* a) noexcept nogil:
    cdef Py_ssize_t i
    memset(a, 0, n * n * itemsize(dtype))
    for i in range(n): put_number(dtype, a, i * n + i, 1)
