"""QR decompositions of row-major matrices by Householder reflectors, of one matrix on one thread.

A block of b reflectors is I - V T V', where V has ones on its diagonal and zeros above it, and T is upper triangular
(R. Schreiber and C. Van Loan, A storage-efficient WY representation for products of Householder transformations,
1989). V and T of half of the columns are made, applied to the other half, and joined with those of it (E. Elmroth and
F. Gustavson, Applying recursion to serial and parallel QR factorization, 2000). So products and triangles
(kernels/linalg/factors) do nearly all of the work. The signs are those of LAPACK: R(i, i) has the opposite sign of the
element that its reflector began with."""

from libc.math cimport fabs, sqrt
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, put_number
from cygrad.kernels.linalg.factors cimport Triangle, add_product, at, multiply_triangle

cdef enum:
    BLOCK = 32              # reflectors of a block, at most
    SMALL = 4               # of which loops make a block
    STRIP = 128             # columns to which a block is applied at a time: a cache of the second level has them


cdef size_t qr_bytes(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Bytes of work: T of each block, and b rows of a strip."""
    return (min(m, n) + min(max(n, k), <Py_ssize_t>STRIP)) * BLOCK * itemsize(dtype)


cdef void factor_qr(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, char* a, char* q, char* r,
                    char* work) noexcept nogil:
    """A = Q R, with Q (m, k) and R (k, n), whose lower triangle is undefined. A is at q if k = n, else at r, where its
    reflectors are made. Sizes are at least 1."""
    cdef Py_ssize_t least = min(m, n), item = itemsize(dtype), first = 0, i, b
    cdef char* w = work + least * BLOCK * item
    cdef char* p
    while first < least:
        b, p = min(<Py_ssize_t>BLOCK, least - first), at(dtype, a, first * (n + 1))
        make_block(dtype, m - first, b, p, n, at(dtype, work, first * BLOCK), w)
        apply_block(dtype, m - first, b, n - first - b, p, n, at(dtype, work, first * BLOCK), True, at(dtype, p, b), n,
                    w)
        first += b
    if a == q: memcpy(r, q, least * n * item)
    else:
        for i in range(m): memcpy(q + i * k * item, r + i * n * item, min(n, k) * item)
    for i in range(m if k > least else 0):                      # the columns of Q beyond those of A: of the identity
        memset(at(dtype, q, i * k + least), 0, (k - least) * item)
        if i >= least: put_number(dtype, q, i * k + i, 1)
    while first > 0:
        b = (first - 1) % BLOCK + 1
        first -= b
        p = at(dtype, q, first * (k + 1))
        apply_block(dtype, m - first, b, k - first - b, p, k, at(dtype, work, first * BLOCK), False, at(dtype, p, b), k,
                    w)
        expand_block(dtype, m - first, b, p, k, at(dtype, work, first * BLOCK), w)
        for i in range(first): memset(at(dtype, q, i * k + first), 0, b * item)


cdef void make_block(int dtype, Py_ssize_t m, Py_ssize_t b, char* a, Py_ssize_t ld, char* t, char* w) noexcept nogil:
    """V, below the diagonal, and R over A (m, b), b <= m; and T, whose rows are BLOCK apart."""
    cdef Py_ssize_t h = b // 2, rest = b - h
    cdef char* corner = at(dtype, t, h)                         # T12 = -T1 V1' V2 T2
    cdef char* v = at(dtype, a, h * ld)
    cdef Triangle u
    if b <= SMALL:
        call(dtype, make_small[float], make_small[double], <void*>a, m, b, ld, <void*>t)
        return
    make_block(dtype, m, h, a, ld, t, w)
    apply_block(dtype, m, h, rest, a, ld, t, True, at(dtype, a, h), ld, w)
    make_block(dtype, m - h, rest, at(dtype, v, h), ld, at(dtype, t, h * BLOCK + h), w)
    call(dtype, negate_transpose[float], negate_transpose[double], <void*>v, rest, h, ld, <void*>corner)
    u = Triangle(dtype, at(dtype, v, h), 1, ld, False, True, False)
    multiply_triangle(&u, rest, corner, 1, BLOCK, h)
    v = at(dtype, a, b * ld)
    add_product(dtype, h, rest, m - b, -1, v, 1, ld, at(dtype, v, h), ld, 1, corner, BLOCK, 1)
    u = Triangle(dtype, t, BLOCK, 1, False, False, False)
    multiply_triangle(&u, h, corner, BLOCK, 1, rest)
    u = Triangle(dtype, at(dtype, t, h * BLOCK + h), 1, BLOCK, True, False, False)
    multiply_triangle(&u, rest, corner, 1, BLOCK, h)


cdef void make_small(real* a, Py_ssize_t m, Py_ssize_t b, Py_ssize_t ld, real* t) noexcept nogil:
    """Column by column: v = x / (x[0] - r), tau = (r - x[0]) / r, and r = the length of x with the sign of -x[0]."""
    cdef Py_ssize_t i, j, l
    cdef double alpha, r, tau, s, length
    cdef double dots[SMALL]
    for j in range(b):
        length = length_of[real](a + (j + 1) * ld + j, m - j - 1, ld)
        alpha, tau = a[j * ld + j], 0
        if length != 0:
            r = alpha if fabs(alpha) > length else length       # the larger one
            r = fabs(r) * sqrt((alpha / r) * (alpha / r) + (length / r) * (length / r))
            if alpha > 0: r = -r
            tau = (r - alpha) / r
            a[j * ld + j] = <real>r
            for i in range(j + 1, m): a[i * ld + j] = <real>(a[i * ld + j] / (alpha - r))
            for l in range(j + 1, b):
                s = a[j * ld + l]
                for i in range(j + 1, m): s += <double>a[i * ld + j] * a[i * ld + l]
                s *= tau
                a[j * ld + l] = <real>(a[j * ld + l] - s)
                for i in range(j + 1, m): a[i * ld + l] = <real>(a[i * ld + l] - s * a[i * ld + j])
        for l in range(j):
            dots[l] = a[j * ld + l]
            for i in range(j + 1, m): dots[l] += <double>a[i * ld + l] * a[i * ld + j]
        for l in range(j):
            s = 0
            for i in range(l, j): s += t[l * BLOCK + i] * dots[i]
            t[l * BLOCK + j] = <real>(-tau * s)
        t[j * BLOCK + j] = <real>tau


cdef double length_of(const real* x, Py_ssize_t n, Py_ssize_t step) noexcept nogil:
    """The square root of the sum of squares, also if that overflows or vanishes."""
    cdef double s = 0, largest = 0, v
    cdef Py_ssize_t i
    for i in range(n): s += <double>x[i * step] * x[i * step]
    if 1e-280 < s < 1e300 or n == 0: return sqrt(s)
    if s != s: return s
    for i in range(n):
        v = fabs(<double>x[i * step])
        if not v <= largest: largest = v
    if not 0 < largest < 1e309: return largest
    s = 0
    for i in range(n): s += (x[i * step] / largest) * (x[i * step] / largest)
    return largest * sqrt(s)


cdef void negate_transpose(const real* x, Py_ssize_t m, Py_ssize_t n, Py_ssize_t ld, real* y) noexcept nogil:
    """y (n, m) = -x', where the rows of y are BLOCK apart."""
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(n): y[j * BLOCK + i] = -x[i * ld + j]


cdef void apply_block(int dtype, Py_ssize_t m, Py_ssize_t b, Py_ssize_t n, const char* v, Py_ssize_t ld, const char* t,
                      bint transposed, char* c, Py_ssize_t c_row, char* w) noexcept nogil:
    """C (m, n) -= V T V' C, or V T' V' C."""
    cdef Py_ssize_t item = itemsize(dtype), first = 0, columns
    while first < n:
        columns = min(<Py_ssize_t>STRIP, n - first)
        apply_to_strip(dtype, m, b, columns, v, ld, t, transposed, c + first * item, c_row, w)
        first += columns


cdef void apply_to_strip(int dtype, Py_ssize_t m, Py_ssize_t b, Py_ssize_t n, const char* v, Py_ssize_t ld,
                         const char* t, bint transposed, char* c, Py_ssize_t c_row, char* w) noexcept nogil:
    cdef Py_ssize_t item = itemsize(dtype), i
    cdef Triangle u = Triangle(dtype, v, 1, ld, False, True, False)
    for i in range(b): memcpy(w + i * n * item, c + i * c_row * item, n * item)
    multiply_triangle(&u, b, w, n, 1, n)
    add_product(dtype, b, n, m - b, 1, at(dtype, v, b * ld), 1, ld, at(dtype, c, b * c_row), c_row, 1, w, n, 1)
    u = Triangle(dtype, t, 1 if transposed else BLOCK, BLOCK if transposed else 1, transposed, False, False)
    multiply_triangle(&u, b, w, n, 1, n)
    add_product(dtype, m - b, n, b, -1, at(dtype, v, b * ld), ld, 1, w, n, 1, at(dtype, c, b * c_row), c_row, 1)
    u = Triangle(dtype, v, ld, 1, True, True, False)
    multiply_triangle(&u, b, w, n, 1, n)
    call(dtype, subtract[float], subtract[double], <void*>w, b, n, <void*>c, c_row)


cdef void subtract(const real* x, Py_ssize_t m, Py_ssize_t n, real* y, Py_ssize_t ld) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(n): y[i * ld + j] -= x[i * n + j]


cdef void expand_block(int dtype, Py_ssize_t m, Py_ssize_t b, char* v, Py_ssize_t ld, const char* t,
                       char* w) noexcept nogil:
    """The first b columns of I - V T V', over V: -V M and the identity, with M = T V1'."""
    cdef Triangle u = Triangle(dtype, v, ld, 1, True, True, False)
    call(dtype, negate_upper[float], negate_upper[double], <void*>t, b, <void*>w)
    multiply_triangle(&u, b, w, 1, b, b)                        # M' = V1 T'
    u = Triangle(dtype, w, 1, b, True, False, False)
    multiply_triangle(&u, b, at(dtype, v, b * ld), 1, ld, m - b)
    u = Triangle(dtype, v, ld, 1, True, True, False)
    multiply_triangle(&u, b, w, b, 1, b)
    call(dtype, add_identity[float], add_identity[double], <void*>w, b, <void*>v, ld)


cdef void negate_upper(const real* t, Py_ssize_t b, real* w) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(b):
        for j in range(b): w[i * b + j] = -t[i * BLOCK + j] if j >= i else 0


cdef void add_identity(const real* w, Py_ssize_t b, real* y, Py_ssize_t ld) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(b):
        for j in range(b): y[i * ld + j] = w[i * b + j] + (i == j)
