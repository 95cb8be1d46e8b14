"""Singular values and eigenvalues of the matrices of a batch, and what is made of them: pseudo-inverses, solutions of
least squares, cofactors. kernels/linalg/matrices.pyx has the batches."""

from libc.math cimport fabs, frexp, ldexp
from libc.string cimport memcpy

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, number, put_number
from cygrad.kernels.driver cimport gather, strip_of
from cygrad.kernels.linalg.factors cimport factor_lu, invert
from cygrad.kernels.linalg.lapack cimport (
    INT, aligned, at_once, decompose_svd, decompose_symmetric, svd_bytes, symmetric_bytes, transpose,
)
from cygrad.kernels.linalg.matrices cimport Task, fail, identity, result, scratch
from cygrad.kernels.linalg.panels cimport factors_of, multiply_alone


cdef void product(int dtype, bint ta, bint tb, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* a, Py_ssize_t lda,
                  const char* b, Py_ssize_t ldb, char* c) noexcept nogil:
    """c = op(a) op(b), row-major, on this thread: op(a) is (m, k), op(b) is (k, n), c is (m, n) and dense."""
    p = factors_of(dtype, ta, tb, n, k, 1, a, lda, b, ldb, 0, c, n)
    multiply_alone(&p, m)


# ---- singular values -------------------------------------------------------------------------------------------------

cdef Py_ssize_t svd_room(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint vectors,
                         bint full) except -1 nogil:
    """Bytes for copies of those of `count` matrices that are decomposed at once, which are overwritten, and work. At
    least what the LU factors and the inverse of a square matrix need (by_inverse())."""
    cdef Py_ssize_t c = at_once(count, m * n)
    return (aligned(c * m * n * itemsize(dtype))
            + aligned(8 * min(m, n) * INT + svd_bytes(dtype, c, m, n, vectors, full)))


cdef int decompose(Task* t, Py_ssize_t i, Py_ssize_t count, char* u, char* s, char* vh, char* room,
                   size_t nbytes) noexcept nogil:
    """Singular values and vectors of `count` matrices from number i. `room` has `nbytes`, as svd_room() says."""
    cdef Py_ssize_t matrix = <Py_ssize_t>t.m * t.n
    cdef char* work = room + aligned(count * matrix * itemsize(t.dtype))
    gather(room, t.a, i * matrix, count * matrix)
    return decompose_svd(t.dtype, count, t.m, t.n, t.full, room, u, s, vh, work, nbytes - (work - room), &t.error)


cdef bint alone(Task* t, Py_ssize_t i, Py_ssize_t* count) noexcept nogil:
    """After a failure of `count` matrices from number i: let them be decomposed one by one, to find which fails.
    Returns False and notes the failure if it was one, or if it is an error of another kind."""
    if count[0] > 1 and t.error == NULL:
        count[0] = 1
        return True
    fail(t, i, 1)
    return False


cdef void svd(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Singular values in y[0] and, with vectors, u in y[1] and vh in y[2]."""
    cdef Task* t = <Task*>job
    cdef bint vectors = t.y[1] != NULL
    cdef Py_ssize_t i = start, count = t.at_once
    if t.m == 0 or t.n == 0:
        for i in range(start, stop if t.full else start):
            identity(t.dtype, t.m, result(t, 1, i))
            identity(t.dtype, t.n, result(t, 2, i))
        return
    while i < stop:
        count = min(count, stop - i)
        if decompose(t, i, count, result(t, 1, i) if vectors else NULL, result(t, 0, i),
                     result(t, 2, i) if vectors else NULL, scratch(t, start), t.room):
            if alone(t, i, &count): continue
            return
        i += count


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
            + svd_room(dtype, 1, m, n, True, False) + aligned(least * k * size) + aligned(m * k * size))


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
        info = decompose(t, i, 1, f.u, f.s, f.vh, f.room, nbytes)
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
        info = decompose(t, i, 1, f.u, f.s, f.vh, f.room, nbytes)
        if info:
            fail(t, i, info)
            return
        b = strip_of(t.b, i * right, right, packed)
        if t.k: product(t.dtype, True, False, k, t.k, t.m, f.u, k, b, t.k, f.more)
        (<long long*>result(t, 1, i))[0] = scale_rows(t, f.s, f.more, t.k)
        if t.k: product(t.dtype, True, False, t.n, t.k, k, f.vh, t.n, f.more, t.k, result(t, 0, i))
        memcpy(result(t, 2, i), f.s, k * size)


cdef bint by_inverse(Task* t, Py_ssize_t i, char* y, char* room) noexcept nogil:
    """y = det(x) x^-T, from the LU factors of x'. Returns False if x is singular or the pivots are too far apart. Near
    singular matrices the result is as good as elsewhere: it is that of the product of the factors, which is near x."""
    cdef Py_ssize_t n = t.n, j, exponent = 0
    cdef int* pivots = <int*>room
    cdef char* work = room + aligned(n * INT)
    cdef double det = 1, least = 1e300, largest = 0, v
    cdef int e
    gather(y, t.a, i * n * n, n * n)
    if factor_lu(t.dtype, n, n, y, n, pivots): return False
    for j in range(n):
        v = number(t.dtype, y, j * n + j)
        det = frexp(det * (-v if pivots[j] != j + 1 else v), &e)       # apart from the exponent, it cannot overflow
        exponent += e
        least, largest = min(least, fabs(v)), max(largest, fabs(v))
    if not (least > 1e-30 * largest and det == det): return False
    exponent = max(-100000, min(100000, exponent))
    invert(t.dtype, n, y, pivots, work)
    call(t.dtype, transpose[float], transpose[double], <void*>y, n)
    for j in range(n * n): put_number(t.dtype, y, j, ldexp(number(t.dtype, y, j) * det, <int>exponent))
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
        if by_inverse(t, i, result(t, 0, i), f.room): continue
        info = decompose(t, i, 1, f.u, f.s, f.vh, f.room, nbytes)
        if info:
            fail(t, i, info)
            return
        product(t.dtype, False, False, t.n, t.n, t.n, f.u, t.n, f.vh, t.n, f.room)      # its determinant: 1 or -1
        factor_lu(t.dtype, n, n, f.room, n, pivots)
        sign = 1
        for j in range(n):
            if (number(t.dtype, f.room, j * n + j) < 0) != (pivots[j] != j + 1): sign = -sign
        for j in range(n):
            q = sign
            for l in range(n): q *= number(t.dtype, f.s, l) if l != j else 1
            for l in range(n): put_number(t.dtype, f.vh, j * n + l, number(t.dtype, f.vh, j * n + l) * q)
        product(t.dtype, False, False, t.n, t.n, t.n, f.u, t.n, f.vh, t.n, result(t, 0, i))


# ---- eigenvalues -----------------------------------------------------------------------------------------------------

cdef Py_ssize_t eigh_room(int dtype, Py_ssize_t count, Py_ssize_t n, bint vectors) except -1 nogil:
    """Bytes for the work and, without vectors, for copies of those of `count` matrices that are decomposed at once."""
    cdef Py_ssize_t c = at_once(count, n * n)
    return aligned(symmetric_bytes(dtype, c, n, vectors)) + aligned(0 if vectors else c * n * n * itemsize(dtype))


cdef void eigh(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Eigenvalues in y[0] and, with vectors, these in y[1]."""
    cdef Task* t = <Task*>job
    cdef bint vectors = t.y[1] != NULL
    cdef Py_ssize_t i = start, n = t.n, count = t.at_once
    cdef char* packed = scratch(t, start)
    cdef char* work = packed + aligned(0 if vectors else count * n * n * itemsize(t.dtype))
    cdef char* a
    while i < stop:
        count = min(count, stop - i)
        a = result(t, 1, i) if vectors else packed
        gather(a, t.a, i * n * n, count * n * n)
        if decompose_symmetric(t.dtype, count, n, t.upper, vectors, a, result(t, 0, i), work, &t.error):
            if alone(t, i, &count): continue
            return
        i += count


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
