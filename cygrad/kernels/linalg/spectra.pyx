"""Singular values and eigenvalues of the matrices of a batch, and what is made of them: pseudo-inverses, solutions of
least squares, cofactors. kernels/linalg/lapack.pyx has the batches."""

from libc.math cimport fabs
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, number, put_number
from cygrad.kernels.driver cimport gather, strip_of
from cygrad.kernels.linalg.lapack cimport (
    INT, Task, aligned, begin_task, fail, gesdd_, getrf_, getri_, kind, need, product, refuse_size, result, scratch,
    syevd_,
)


# ---- singular values -------------------------------------------------------------------------------------------------

cdef Py_ssize_t svd_work(int dtype, Py_ssize_t m, Py_ssize_t n, bint vectors, bint full) except -1 nogil:
    """Elements of the work that gesdd wants."""
    cdef Task t
    cdef char job = b'N' if not vectors else b'A' if full else b'S'
    cdef int k = <int>min(m, n), ldu = <int>max(n, 1), ldvt = <int>max(m if full else k, 1), query = -1, info = 0
    cdef double room = 0                            # (float32 uses the lower half)
    begin_task(&t, dtype, m, n)
    if k == 0: return 0
    need()
    gesdd_[kind(&t)](&job, &t.n, &t.m, NULL, &ldu, NULL, NULL, &ldu, NULL, &ldvt, &room, &query, NULL, &info)
    if info or number(dtype, <char*>&room, 0) > 0x7fffffff: refuse_size(m, n)
    return <Py_ssize_t>number(dtype, <char*>&room, 0)


cdef Py_ssize_t svd_room(int dtype, Py_ssize_t m, Py_ssize_t n, bint vectors, bint full) except -1 nogil:
    """Bytes for a copy of the matrix, which gesdd overwrites, and its work."""
    cdef Py_ssize_t size = itemsize(dtype)
    return (aligned(m * n * size) + aligned(8 * min(m, n) * INT)
            + aligned(svd_work(dtype, m, n, vectors, full) * size))


cdef int decompose(const Task* t, Py_ssize_t i, char* u, char* s, char* vh, char* room, size_t nbytes) noexcept nogil:
    """Singular values and vectors of matrix i; u is (m, k) or (m, m), vh is (k, n) or (n, n). Column-major, the left
    vectors of x' are the right ones of x. `room` has `nbytes`, as svd_room() says. Returns LAPACK's info."""
    cdef Py_ssize_t size = itemsize(t.dtype), matrix = <Py_ssize_t>t.m * t.n
    cdef int k = min(t.m, t.n), ldvt = t.m if t.full else k, work, info, n = t.n, m = t.m
    cdef char job = b'N' if u == NULL else b'A' if t.full else b'S'
    cdef int* integers = <int*>(room + aligned(matrix * size))
    cdef char* rest = <char*>integers + aligned(8 * k * INT)
    gather(room, t.a, i * matrix, matrix)
    work = <int>min(<Py_ssize_t>0x7fffffff, (<Py_ssize_t>nbytes - (rest - room)) // size)
    gesdd_[kind(t)](&job, &n, &m, room, &n, s, vh, &n, u, &ldvt, rest, &work, integers, &info)
    return info


cdef void identity(int dtype, Py_ssize_t n, char* a) noexcept nogil:
    cdef Py_ssize_t i
    memset(a, 0, n * n * itemsize(dtype))
    for i in range(n): put_number(dtype, a, i * n + i, 1)


cdef void svd(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Singular values in y[0] and, with vectors, u in y[1] and vh in y[2]."""
    cdef Task* t = <Task*>job
    cdef bint vectors = t.y[1] != NULL
    cdef int info
    for i in range(start, stop):
        if t.m == 0 or t.n == 0:
            if t.full: identity(t.dtype, t.m, result(t, 1, i))
            if t.full: identity(t.dtype, t.n, result(t, 2, i))
            continue
        info = decompose(t, i, result(t, 1, i) if vectors else NULL, result(t, 0, i),
                         result(t, 2, i) if vectors else NULL, scratch(t, start), t.room)
        if info:
            fail(t, i, info)
            return


cdef struct Factors:        # u s vh in workspace
    char* u
    char* s
    char* vh
    char* room              # from svd_room(), free afterwards
    char* more              # the rest


cdef Factors factors(const Task* t, char* room, size_t nbytes) noexcept nogil:
    cdef Factors f
    cdef size_t size = itemsize(t.dtype), k = min(t.m, t.n)
    f.u = room
    f.vh = f.u + aligned(t.m * k * size)
    f.s = f.vh + aligned(k * t.n * size)
    f.room = f.s + aligned(k * size)
    f.more = f.room + nbytes
    return f


cdef Py_ssize_t pinv_room(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 nogil:
    """Bytes for u, s, vh, the work of gesdd, and `k` right sides with their products with u."""
    cdef Py_ssize_t size = itemsize(dtype), least = min(m, n)
    return (aligned(m * least * size) + aligned(least * n * size) + aligned(least * size)
            + svd_room(dtype, m, n, True, False) + aligned(least * k * size) + aligned(m * k * size))


cdef size_t room_of_svd(const Task* t) noexcept nogil:
    """svd_room() for a Task whose room is pinv_room()."""
    cdef size_t size = itemsize(t.dtype), k = min(t.m, t.n)
    return (t.room - aligned(t.m * k * size) - aligned(k * t.n * size) - aligned(k * size) - aligned(k * t.k * size)
            - aligned(t.m * t.k * size))


cdef int scale_rows(const Task* t, const char* s, char* x, Py_ssize_t columns) noexcept nogil:
    """Divide row i of x by singular value i, or set it to zero if the value counts as zero. Returns the rank."""
    cdef Py_ssize_t k = min(t.m, t.n), i, j
    cdef double least = t.rcond * number(t.dtype, s, 0), v
    cdef int rank = 0
    for i in range(k):
        v = number(t.dtype, s, i)
        rank += v > least
        v = 1 / v if v > least else 0
        for j in range(columns): put_number(t.dtype, x, i * columns + j, number(t.dtype, x, i * columns + j) * v)
    return rank


cdef void pinv(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """y = v (1 / s) u'"""
    cdef Task* t = <Task*>job
    cdef size_t nbytes = room_of_svd(t)
    cdef Factors f = factors(t, scratch(t, start), nbytes)
    cdef int k = min(t.m, t.n), info
    for i in range(start, stop):
        info = decompose(t, i, f.u, f.s, f.vh, f.room, nbytes)
        if info:
            fail(t, i, info)
            return
        scale_rows(t, f.s, f.vh, t.n)
        product(t.dtype, True, True, t.n, t.m, k, f.vh, t.n, f.u, k, result(t, 0, i))


cdef void lstsq(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """x = v (1 / s) u' b in y[0], the rank in y[1], s in y[2]"""
    cdef Task* t = <Task*>job
    cdef size_t nbytes = room_of_svd(t)
    cdef Factors f = factors(t, scratch(t, start), nbytes)
    cdef int k = min(t.m, t.n), info
    cdef size_t size = itemsize(t.dtype)
    cdef char* packed = f.more + aligned(k * t.k * size)
    cdef const char* b
    cdef Py_ssize_t i, right = <Py_ssize_t>t.m * t.k
    for i in range(start, stop):
        info = decompose(t, i, f.u, f.s, f.vh, f.room, nbytes)
        if info:
            fail(t, i, info)
            return
        b = strip_of(t.b, i * right, right, packed)
        if t.k: product(t.dtype, True, False, k, t.k, t.m, f.u, k, b, t.k, f.more)
        (<long long*>result(t, 1, i))[0] = scale_rows(t, f.s, f.more, t.k)
        if t.k: product(t.dtype, True, False, t.n, t.k, k, f.vh, t.n, f.more, t.k, result(t, 0, i))
        memcpy(result(t, 2, i), f.s, k * size)


cdef bint by_inverse(Task* t, Py_ssize_t i, char* y, char* room, size_t nbytes) noexcept nogil:
    """y = det(x) x^-T, from the LU factors of x'. Returns False if x is singular or the numbers are too far apart. Near
    singular matrices the result is as good as elsewhere: it is that of the product of the factors, which is near x."""
    cdef Py_ssize_t n = t.n, j
    cdef int* pivots = <int*>room
    cdef char* work = room + aligned(n * INT)
    cdef int size = <int>min(<Py_ssize_t>0x7fffffff, (<Py_ssize_t>nbytes - (work - room)) // itemsize(t.dtype)), info
    cdef double det = 1, least = 1e300, largest = 0, v
    gather(y, t.a, i * n * n, n * n)
    getrf_[kind(t)](&t.n, &t.n, y, &t.n, pivots, &info)
    if info: return False
    for j in range(n):
        v = number(t.dtype, y, j * n + j)
        det *= -v if pivots[j] != j + 1 else v
        least, largest = min(least, fabs(v)), max(largest, fabs(v))
    if not (least > 1e-30 * largest and 1e-250 < fabs(det) < 1e250): return False
    getri_[kind(t)](&t.n, y, &t.n, pivots, work, &size, &info)
    call(t.dtype, transpose[float], transpose[double], <void*>y, n)
    for j in range(n * n): put_number(t.dtype, y, j, number(t.dtype, y, j) * det)
    return True


cdef void cofactors(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """y = det(x) x^-T. If x is singular, y = det(u) det(v) u q vh, where q has for each singular value the product of
    the others."""
    cdef Task* t = <Task*>job
    cdef size_t nbytes = room_of_svd(t)
    cdef Factors f = factors(t, scratch(t, start), nbytes)
    cdef int* pivots = <int*>(f.room + aligned(<size_t>t.n * t.n * itemsize(t.dtype)))
    cdef Py_ssize_t i, j, l, n = t.n
    cdef double sign, q
    cdef int info
    for i in range(start, stop):
        if by_inverse(t, i, result(t, 0, i), f.room, nbytes): continue
        info = decompose(t, i, f.u, f.s, f.vh, f.room, nbytes)
        if info:
            fail(t, i, info)
            return
        product(t.dtype, False, False, t.n, t.n, t.n, f.u, t.n, f.vh, t.n, f.room)      # its determinant: 1 or -1
        getrf_[kind(t)](&t.n, &t.n, f.room, &t.n, pivots, &info)
        sign = 1
        for j in range(n):
            if (number(t.dtype, f.room, j * n + j) < 0) != (pivots[j] != j + 1): sign = -sign
        for j in range(n):
            q = sign
            for l in range(n): q *= number(t.dtype, f.s, l) if l != j else 1
            for l in range(n): put_number(t.dtype, f.vh, j * n + l, number(t.dtype, f.vh, j * n + l) * q)
        product(t.dtype, False, False, t.n, t.n, t.n, f.u, t.n, f.vh, t.n, result(t, 0, i))


# ---- eigenvalues -----------------------------------------------------------------------------------------------------

cdef Py_ssize_t eigh_room(int dtype, Py_ssize_t n, bint vectors) except -1 nogil:
    """Bytes for the work of syevd and, without vectors, for a copy of the matrix."""
    cdef Py_ssize_t size = itemsize(dtype), work = 1 + 6 * n + 2 * n * n if vectors else 2 * n + 1
    if work > 0x7fffffff: refuse_size(n, n)
    return aligned(work * size) + aligned((3 + 5 * n if vectors else 1) * INT) + aligned(0 if vectors else n * n * size)


cdef void transpose(real* a, Py_ssize_t n) noexcept nogil:
    """Transpose in place, by blocks that fit into the cache."""
    cdef Py_ssize_t i, j, p, q
    cdef real v
    for p in range(0, n, 32):
        for q in range(0, p + 1, 32):
            for i in range(p, min(n, p + 32)):
                for j in range(q, min(i, q + 32)):
                    v = a[i * n + j]
                    a[i * n + j] = a[j * n + i]
                    a[j * n + i] = v


cdef void eigh(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Eigenvalues in y[0] and, with vectors, these in y[1]."""
    cdef Task* t = <Task*>job
    cdef bint vectors = t.y[1] != NULL
    cdef char what = b'V' if vectors else b'N', uplo = b'L' if t.upper else b'U'
    cdef Py_ssize_t i, n = t.n, size = itemsize(t.dtype)
    cdef int n_work = 1 + 6 * t.n + 2 * t.n * t.n if vectors else 2 * t.n + 1, info
    cdef int n_integers = 3 + 5 * t.n if vectors else 1
    cdef char* work = scratch(t, start)
    cdef int* integers = <int*>(work + aligned(n_work * size))
    cdef char* packed = <char*>integers + aligned(n_integers * INT)
    cdef char* a
    for i in range(start, stop):
        a = result(t, 1, i) if vectors else packed
        gather(a, t.a, i * n * n, n * n)
        syevd_[kind(t)](&what, &uplo, &t.n, a, &t.n, result(t, 0, i), work, &n_work, integers, &n_integers, &info)
        if info:
            fail(t, i, info)
            return
        if not vectors: continue
        call(t.dtype, transpose[float], transpose[double], <void*>a, n)


cdef bint gaps(const real* w, Py_ssize_t n, bint squared, bint zero, real* y) noexcept nogil:
    """y[i, j] = 1 / (w[j] - w[i]), or of their squares; 0 on the diagonal. Returns False if two are equal to rounding
    error, or if one is zero and `zero` is False. (A larger bound would refuse random matrices: in float32 and with 256
    rows, neighbours are often as near as 1e-5 of the largest.)"""
    cdef Py_ssize_t i, j
    cdef real largest = 0, least, d
    for i in range(n): largest = max(largest, abs(w[i]))
    least = 2 * largest * (<real>1.1920929e-07 if real is float else <real>2.220446049250313e-16)
    for i in range(n):
        if not zero and w[i] <= least: return False
        for j in range(n):
            d = w[j] - w[i]
            if i != j and abs(d) <= least: return False
            y[i * n + j] = 0 if i == j else 1 / (d * (w[j] + w[i]) if squared else d)
    return True
