"""Decompositions of row-major matrices through SciPy's cython_lapack, one matrix of a batch at a time.

LAPACK is column-major: it reads a row-major matrix as its transpose. No matrix is transposed by a copy for that. The
factors are chosen instead so that those of the transpose are the wanted ones: LQ for QR, the upper triangle for the
lower one, U and V exchanged.

The matrices of a batch are divided among the threads of cygrad, and each call of LAPACK uses one thread. So the bits of
a result do not depend on the number of threads. The function pointers are loaded at first use, as in
kernels/linalg/blas."""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport fabs, frexp, ldexp, log
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport itemsize, loop_of, real
from cygrad.kernels.linalg.blas cimport begin, end
from cygrad.kernels.by_dtype cimport call, number, put_number
from cygrad.kernels.driver cimport gather, strip_of
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    BLOCK = 32              # columns that getri, gelqf and orglq process at a time, if they fit into their workspace

cdef extern from "cygrad/platform.h" nogil:
    void cg_lock(long* lock)
    void cg_unlock(long* lock)

cdef long lock = 0              # guards Task.failed
cdef bint loaded = False


cdef void* pointer(module, str name) except NULL:
    import importlib
    capsule = importlib.import_module("scipy.linalg." + module).__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef int load() except -1:
    """Load the function pointers."""
    global loaded
    for i, letter in enumerate("sd"):
        potrf_[i] = <potrf_t>pointer("cython_lapack", letter + "potrf")
        getrf_[i] = <getrf_t>pointer("cython_lapack", letter + "getrf")
        getri_[i] = <getri_t>pointer("cython_lapack", letter + "getri")
        gelqf_[i] = <gelqf_t>pointer("cython_lapack", letter + "gelqf")
        orglq_[i] = <orglq_t>pointer("cython_lapack", letter + "orglq")
        gesdd_[i] = <gesdd_t>pointer("cython_lapack", letter + "gesdd")
        syevd_[i] = <syevd_t>pointer("cython_lapack", letter + "syevd")
        trsm_[i] = <trsm_t>pointer("cython_blas", letter + "trsm")
        trmm_[i] = <trsm_t>pointer("cython_blas", letter + "trmm")
        gemm_[i] = <gemm_t>pointer("cython_blas", letter + "gemm")
    loaded = True


cdef int need() except -1 nogil:
    """Load the function pointers at first use."""
    if not loaded:
        with gil: load()


# ---- batches ---------------------------------------------------------------------------------------------------------

cdef int refuse_size(Py_ssize_t m, Py_ssize_t n) except -1 with gil:
    raise ValueError(f"a matrix of shape ({m}, {n}) is larger than the 32-bit sizes of LAPACK allow")


cdef int begin_task(Task* t, int dtype, Py_ssize_t m, Py_ssize_t n) except -1 nogil:
    """Fill in a Task for (m, n) matrices. Raises ValueError for sizes that do not fit into 32 bits."""
    memset(t, 0, sizeof(Task))
    t.dtype, t.failed = dtype, -1
    if m > 0x7fffffff // BLOCK or n > 0x7fffffff // BLOCK: refuse_size(m, n)
    t.m, t.n = <int>m, <int>n


cdef int threads_over(Py_ssize_t count, Py_ssize_t work) noexcept nogil:
    """The number of threads for `count` matrices of so much work each."""
    return <int>min(<Py_ssize_t>threads_for(count * work), count)


cdef int each_matrix(range_t f, Task* t, Py_ssize_t count, Py_ssize_t work, size_t nbytes) except -1 nogil:
    """f for each of `count` matrices, on as many threads as the workspace of `nbytes` has room for."""
    cdef int threads = threads_over(count, work)
    if count == 0: return 0
    need()
    if t.room: threads = min(threads, <int>(nbytes // t.room))
    t.part = (count + threads - 1) // threads
    begin()
    parallel_for(f, t, count, t.part, threads)
    end()


cdef void fail(Task* t, Py_ssize_t i, int info) noexcept nogil:
    """Note that matrix `i` failed. The first one is reported."""
    cg_lock(&lock)
    if t.failed < 0 or i < t.failed: t.failed, t.info = i, info
    cg_unlock(&lock)


# ---- BLAS, column-major ----------------------------------------------------------------------------------------------

cdef void triangular(trsm_t f, int dtype, char side, char uplo, char trans, char diagonal, int m, int n, const char* a,
                     int lda, char* b) noexcept nogil:
    """trsm: b = op(a)^-1 b or b op(a)^-1; trmm: b = op(a) b or b op(a). b is (m, n), column-major and dense."""
    cdef double one                                 # a number of the dtype
    put_number(dtype, &one, 0, 1)
    f(&side, &uplo, &trans, &diagonal, &m, &n, &one, <void*>a, &lda, b, &m)


cdef void product(int dtype, bint ta, bint tb, int m, int n, int k, const char* a, int lda, const char* b, int ldb,
                  char* c) noexcept nogil:
    """c = op(a) op(b), row-major, on this thread: op(a) is (m, k), op(b) is (k, n), c is (m, n) and dense."""
    cdef double one, zero = 0                       # numbers of the dtype; the bits of 0 are the same
    cdef char t = b'T', no = b'N'
    put_number(dtype, &one, 0, 1)
    gemm_[loop_of(dtype)](&t if tb else &no, &t if ta else &no, &n, &m, &k, &one, <void*>b, &ldb, <void*>a, &lda, &zero,
                          c, &n)


# ---- Cholesky --------------------------------------------------------------------------------------------------------

cdef void clear_triangle(int dtype, bint upper, Py_ssize_t m, Py_ssize_t n, char* a) noexcept nogil:
    """Set the elements of a row-major matrix above (or below) its diagonal to zero."""
    cdef Py_ssize_t size = itemsize(dtype), i
    for i in range(m):
        if upper and i + 1 < n: memset(a + (i * n + i + 1) * size, 0, (n - i - 1) * size)
        elif not upper: memset(a + i * n * size, 0, min(i, n) * size)


cdef void cholesky(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, which is a copy of x. Column-major, our lower triangle is the upper one."""
    cdef Task* t = <Task*>job
    cdef char uplo = b'L' if t.upper else b'U'
    cdef int info
    for i in range(start, stop):
        potrf_[kind(t)](&uplo, &t.n, result(t, 0, i), &t.n, &info)
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
    cdef char uplo = b'L' if t.upper else b'U'
    cdef Py_ssize_t i
    cdef const char* y
    cdef char* dx
    for i in range(start, stop):
        y = strip_of(t.a, i * t.n * t.n, t.n * t.n, scratch(t, start))
        dx = result(t, 0, i)
        clear_triangle(t.dtype, not t.upper, t.n, t.n, dx)
        triangular(trmm_[kind(t)], t.dtype, b'L' if t.upper else b'R', uplo, b'T', b'N', t.n, t.n, y, t.n, dx)
        call(t.dtype, mirror[float], mirror[double], <void*>dx, t.n, t.upper)
        triangular(trsm_[kind(t)], t.dtype, b'L', uplo, b'T' if t.upper else b'N', b'N', t.n, t.n, y, t.n, dx)
        triangular(trsm_[kind(t)], t.dtype, b'R', uplo, b'N' if t.upper else b'T', b'N', t.n, t.n, y, t.n, dx)


# ---- linear systems --------------------------------------------------------------------------------------------------

cdef void solve_triangular(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, a copy of b. Column-major, op(a) x = b is x' op(a)' = b'."""
    cdef Task* t = <Task*>job
    cdef char side = b'R' if t.left else b'L', uplo = b'L' if t.upper else b'U'
    cdef char trans = b'T' if t.transposed else b'N', diagonal = b'U' if t.unit else b'N'
    cdef Py_ssize_t square = <Py_ssize_t>t.n * t.n, i, j
    cdef int rows = t.k if t.left else t.n, columns = t.n if t.left else t.k
    cdef const char* a = NULL
    for i in range(start, stop):
        if a == NULL or not t.shared: a = strip_of(t.a, 0 if t.shared else i * square, square, scratch(t, start))
        for j in range(0 if t.unit else t.n):
            if number(t.dtype, a, j * t.n + j) == 0:
                fail(t, i, <int>j + 1)
                return
        if t.k: triangular(trsm_[kind(t)], t.dtype, side, uplo, trans, diagonal, rows, columns, a, t.n, result(t, 0, i))


cdef size_t factor_room(int dtype, Py_ssize_t n) noexcept nogil:
    """Bytes for the LU factors of a matrix and its pivots."""
    return aligned(n * n * itemsize(dtype)) + aligned(n * INT)


cdef int factor(Task* t, Py_ssize_t i, char* lu, int* pivots) noexcept nogil:
    """The LU factors of matrix i, transposed. Returns the number of the first pivot that is zero, or 0."""
    cdef int info
    if t.n == 0: return 0
    gather(lu, t.a, 0 if t.shared else i * t.n * t.n, <Py_ssize_t>t.n * t.n)
    getrf_[kind(t)](&t.n, &t.n, lu, &t.n, pivots, &info)
    return info


cdef void exchange(real* x, Py_ssize_t k, const int* pivots, int n, bint forward) noexcept nogil:
    """Exchange rows of x, of k elements each, as the pivots say; or in reverse order."""
    cdef Py_ssize_t s, i, j, p
    cdef real v
    for s in range(n):
        i = s if forward else n - 1 - s
        p = pivots[i] - 1
        if p == i: continue
        for j in range(k):
            v = x[i * k + j]
            x[i * k + j] = x[p * k + j]
            x[p * k + j] = v


cdef void swap_rows(const Task* t, char* x, const int* pivots, bint forward) noexcept nogil:
    call(t.dtype, exchange[float], exchange[double], <void*>x, t.k, pivots, t.n, forward)


cdef void solve(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, a copy of b: a x = b, or a' x = b. With a' = P L U, x' = b' U^-1 L^-1 P', or x' = b' P L^-T U^-T."""
    cdef Task* t = <Task*>job
    cdef char* lu = scratch(t, start)
    cdef int* pivots = <int*>(lu + aligned(<size_t>t.n * t.n * itemsize(t.dtype)))
    cdef trsm_t f = trsm_[kind(t)]
    cdef int info
    cdef char* x
    for i in range(start, stop):
        if i == start or not t.shared:
            info = factor(t, i, lu, pivots)
            if info:
                fail(t, i, info)
                return
        if t.k == 0: continue
        x = result(t, 0, i)
        if t.transposed:
            swap_rows(t, x, pivots, True)
            triangular(f, t.dtype, b'R', b'L', b'T', b'U', t.k, t.n, lu, t.n, x)
            triangular(f, t.dtype, b'R', b'U', b'T', b'N', t.k, t.n, lu, t.n, x)
        else:
            triangular(f, t.dtype, b'R', b'U', b'N', b'N', t.k, t.n, lu, t.n, x)
            triangular(f, t.dtype, b'R', b'L', b'N', b'U', t.k, t.n, lu, t.n, x)
            swap_rows(t, x, pivots, False)


cdef size_t inverse_room(int dtype, Py_ssize_t n) noexcept nogil:
    return aligned(n * INT) + aligned(n * BLOCK * itemsize(dtype))


cdef void inverse(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Over y, a copy of x: the inverse of the transpose is the transpose of the inverse."""
    cdef Task* t = <Task*>job
    cdef int* pivots = <int*>scratch(t, start)
    cdef char* work = <char*>pivots + aligned(<size_t>t.n * INT)
    cdef int size = t.n * BLOCK, info
    for i in range(start, stop):
        getrf_[kind(t)](&t.n, &t.n, result(t, 0, i), &t.n, pivots, &info)
        if info == 0: getri_[kind(t)](&t.n, result(t, 0, i), &t.n, pivots, work, &size, &info)
        if info:
            fail(t, i, info)
            return


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

cdef size_t qr_room(int dtype, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Bytes for the scales of k reflectors and for the work of gelqf and orglq."""
    return aligned(k * itemsize(dtype)) + aligned(max(n, k, 1) * BLOCK * itemsize(dtype))


cdef void qr(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """x = q r, with q (m, k) in y[0] and r (k, n) in y[1]. Column-major, x' = r' q' is an LQ decomposition. It is made
    where its reflectors fit: in q if k = n, else in r; without q and r of more memory."""
    cdef Task* t = <Task*>job
    cdef int least = min(t.m, t.n), k = t.m if t.full else least, info, size = max(t.n, k, 1) * BLOCK
    cdef char* scales = scratch(t, start)
    cdef char* work = scales + aligned(<size_t>least * itemsize(t.dtype))
    cdef Py_ssize_t i, j, n = t.n, item = itemsize(t.dtype)
    cdef bint in_q = k == t.n
    cdef int ld = max(t.n, 1)
    cdef char* q
    cdef char* r
    cdef char* a
    for i in range(start, stop):
        q, r = result(t, 0, i), result(t, 1, i)
        a = q if in_q else r
        gather(a, t.a, i * t.m * n, t.m * n)
        if least: gelqf_[kind(t)](&t.n, &t.m, a, &ld, scales, work, &size, &info)
        if in_q: memcpy(r, q, least * n * item)
        else:
            for j in range(t.m): memcpy(q + j * k * item, r + j * n * item, min(n, k) * item)
        clear_triangle(t.dtype, False, k, n, r)
        if k: orglq_[kind(t)](&k, &t.m, &least, q, &k, scales, work, &size, &info)
