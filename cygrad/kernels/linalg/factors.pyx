"""Triangular matrices times others, LU and Cholesky factors, and inverses, of one matrix on one thread.

Each routine divides the matrix into two parts of equal size, calls itself for both, and multiplies the rest by the
blocks of kernels/linalg/panels, which do nearly all of the work (S. Toledo, Locality of reference in LU decomposition
with partial pivoting, 1997). Small matrices are computed by loops. Matrices are given with two strides, of which one is
1, so transposes and both sides need no code of their own. No memory is taken but the stack."""

from libc.math cimport sqrt

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.linalg.panels cimport Factors, multiply_alone

cdef enum:
    SMALL = 16              # rows of a triangle that loops compute
    STRIP = 64              # columns at a time, which are copied to the stack
    PANEL = 8               # columns of which loops compute the LU factors
    TILE = 64               # rows of the tiles of which a symmetric product computes both halves
    BLOCK = 32              # columns of an inverse at a time


cdef inline Py_ssize_t half(Py_ssize_t n, Py_ssize_t block) noexcept nogil:
    """About n / 2, in whole blocks, for n > block."""
    return (n // 2 + block - 1) // block * block


cdef void add_product(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, double alpha, const char* a,
                      Py_ssize_t a_row, Py_ssize_t a_term, const char* b, Py_ssize_t b_term, Py_ssize_t b_column,
                      char* c, Py_ssize_t c_row, Py_ssize_t c_column) noexcept nogil:
    """C (m, n) += alpha A B; one stride of each is 1. If it is that of the rows of C, C' += alpha B' A'."""
    cdef Factors p
    if c_column == 1:
        p = Factors(dtype, n, k, a, a_row, a_term, b, b_term, b_column, NULL, c, c_row, 1, alpha, NULL, 0)
        multiply_alone(&p, m)
    else: add_product(dtype, n, m, k, alpha, b, b_column, b_term, a, a_term, a_row, c, c_column, c_row)


# ---- triangles -------------------------------------------------------------------------------------------------------

cdef void multiply_triangle(const Triangle* t, Py_ssize_t n, char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                            Py_ssize_t k) noexcept nogil:
    """X = T X, or T^-1 X, for X (n, k)."""
    cdef Triangle second = t[0]
    cdef Py_ssize_t h
    cdef const char* corner
    cdef char* y
    if n <= SMALL:
        call(t.dtype, multiply_small[float], multiply_small[double], <void*>t.t, t, n, <void*>x, x_row, x_column, k)
        return
    h = half(n, SMALL)
    second.t = at(t.dtype, t.t, h * (t.row + t.column))
    corner, y = at(t.dtype, t.t, h * (t.row if t.lower else t.column)), at(t.dtype, x, h * x_row)
    if t.lower == t.inverse: multiply_triangle(t, h, x, x_row, x_column, k)
    else: multiply_triangle(&second, n - h, y, x_row, x_column, k)
    if t.lower: add_product(t.dtype, n - h, k, h, -1 if t.inverse else 1, corner, t.row, t.column, x, x_row, x_column,
                            y, x_row, x_column)
    else: add_product(t.dtype, h, k, n - h, -1 if t.inverse else 1, corner, t.row, t.column, y, x_row, x_column, x,
                      x_row, x_column)
    if t.lower == t.inverse: multiply_triangle(&second, n - h, y, x_row, x_column, k)
    else: multiply_triangle(t, h, x, x_row, x_column, k)


cdef void multiply_small(const real* p, const Triangle* t, Py_ssize_t n, real* x, Py_ssize_t x_row,
                         Py_ssize_t x_column, Py_ssize_t k) noexcept nogil:
    """Row by row: x[i] = the sum of T(i, j) x[j], or x[i] = (x[i] - the sum of T(i, j) x[j] for j != i) / T(i, i)."""
    cdef real piece[SMALL * STRIP]
    cdef real v
    cdef real* q
    cdef real* y
    cdef Py_ssize_t first = 0, m, s, i, j, l, begin, end
    if k == 1:                                      # the dots take half the time of the strips
        for s in range(n):
            i = s if t.lower == t.inverse else n - 1 - s
            begin, end, v = 0 if t.lower else i + 1, i if t.lower else n, x[i * x_row]
            if not t.inverse and not t.unit: v *= p[i * (t.row + t.column)]
            for j in range(begin, end):
                if t.inverse: v -= p[i * t.row + j * t.column] * x[j * x_row]
                else: v += p[i * t.row + j * t.column] * x[j * x_row]
            if t.inverse and not t.unit: v /= p[i * (t.row + t.column)]
            x[i * x_row] = v
        return
    while first < k:
        m = min(<Py_ssize_t>STRIP, k - first)
        for i in range(n):
            for l in range(m): piece[i * STRIP + l] = x[i * x_row + (first + l) * x_column]
        for s in range(n):
            i = s if t.lower == t.inverse else n - 1 - s
            begin, end, y = 0 if t.lower else i + 1, i if t.lower else n, piece + i * STRIP
            if not t.inverse and not t.unit:
                v = p[i * (t.row + t.column)]
                for l in range(m): y[l] *= v
            for j in range(begin, end):
                v, q = p[i * t.row + j * t.column], piece + j * STRIP
                if t.inverse: v = -v
                for l in range(m): y[l] += v * q[l]
            if t.inverse and not t.unit:
                v = p[i * (t.row + t.column)]
                for l in range(m): y[l] /= v
        for i in range(n):
            for l in range(m): x[i * x_row + (first + l) * x_column] = piece[i * STRIP + l]
        first += m


# ---- Cholesky --------------------------------------------------------------------------------------------------------

cdef int factor_cholesky(int dtype, Py_ssize_t n, char* a, Py_ssize_t row, Py_ssize_t column) noexcept nogil:
    """L with A = L L', over the lower triangle of A; the other triangle is undefined afterwards. Returns the order of
    the first leading minor that is not positive, or 0."""
    cdef Triangle t = Triangle(dtype, a, row, column, True, False, True)
    cdef Py_ssize_t h
    cdef char* b
    cdef char* c
    cdef int info
    if n <= SMALL:
        call(dtype, cholesky_small[float], cholesky_small[double], <void*>a, n, row, column, &info)
        return info
    h = half(n, SMALL)
    b, c = at(dtype, a, h * row), at(dtype, a, h * (row + column))
    info = factor_cholesky(dtype, h, a, row, column)
    if info: return info
    multiply_triangle(&t, h, b, column, row, n - h)             # B L^-T, as its transpose
    subtract_square(dtype, n - h, h, b, c, row, column)
    info = factor_cholesky(dtype, n - h, c, row, column)
    return info + <int>h if info else 0


cdef void cholesky_small(real* a, Py_ssize_t n, Py_ssize_t row, Py_ssize_t column, int* info) noexcept nogil:
    cdef Py_ssize_t i, j, l
    cdef real s
    info[0] = 0
    for j in range(n):
        for i in range(j, n):
            s = a[i * row + j * column]
            for l in range(j): s -= a[i * row + l * column] * a[j * row + l * column]
            if i > j: a[i * row + j * column] = s / a[j * row + j * column]
            elif s > 0: a[j * row + j * column] = sqrt(s)
            else:
                info[0] = <int>j + 1
                return


cdef void subtract_square(int dtype, Py_ssize_t n, Py_ssize_t k, const char* b, char* c, Py_ssize_t row,
                          Py_ssize_t column) noexcept nogil:
    """The lower triangle of C (n, n) -= B B', for B (n, k) with the strides of C."""
    cdef Py_ssize_t h
    if n <= TILE:
        add_product(dtype, n, n, k, -1, b, row, column, b, column, row, c, row, column)
        return
    h = half(n, TILE)
    subtract_square(dtype, h, k, b, c, row, column)
    add_product(dtype, n - h, h, k, -1, at(dtype, b, h * row), row, column, b, column, row, at(dtype, c, h * row), row,
                column)
    subtract_square(dtype, n - h, k, at(dtype, b, h * row), at(dtype, c, h * (row + column)), row, column)


# ---- LU --------------------------------------------------------------------------------------------------------------

cdef int factor_lu(int dtype, Py_ssize_t m, Py_ssize_t n, char* a, Py_ssize_t ld, int* pivots) noexcept nogil:
    """L U = P A over A (m, n), m >= n, column by column with `ld` elements from a column to the next. L has ones on its
    diagonal; row i was exchanged with row pivots[i] - 1 >= i. Returns the number of the first pivot that is zero, or
    0."""
    cdef Triangle t = Triangle(dtype, a, 1, ld, True, True, True)
    cdef Py_ssize_t h, i
    cdef char* b
    cdef char* c
    cdef int first, second
    if n <= PANEL:
        call(dtype, lu_small[float], lu_small[double], <void*>a, m, n, ld, pivots, &first)
        return first
    h = half(n, PANEL)
    b, c = at(dtype, a, h * ld), at(dtype, a, h * ld + h)
    first = factor_lu(dtype, m, h, a, ld, pivots)
    exchange(dtype, h, n - h, b, 1, ld, pivots, True)
    multiply_triangle(&t, h, b, 1, ld, n - h)
    add_product(dtype, m - h, n - h, h, -1, at(dtype, a, h), 1, ld, b, 1, ld, c, 1, ld)
    second = factor_lu(dtype, m - h, n - h, c, ld, pivots + h)
    exchange(dtype, n - h, h, at(dtype, a, h), 1, ld, pivots + h, True)
    for i in range(h, n): pivots[i] += <int>h
    return first if first else second + <int>h if second else 0


cdef void lu_small(real* a, Py_ssize_t m, Py_ssize_t n, Py_ssize_t ld, int* pivots, int* info) noexcept nogil:
    """Column by column: the largest element becomes the pivot, and the rest is divided by it and subtracted. A NaN is
    the largest, so a column of zeros and NaN has a pivot."""
    cdef Py_ssize_t i, j, l, p
    cdef real* x
    cdef real* y
    cdef real v, largest
    info[0] = 0
    for j in range(n):
        x, p = a + j * ld, j
        largest = abs(x[j])
        for i in range(j + 1, m):
            if abs(x[i]) > largest or x[i] != x[i] and largest == largest: largest, p = abs(x[i]), i
        pivots[j] = <int>p + 1
        if x[p] == 0:
            if info[0] == 0: info[0] = <int>j + 1
            continue
        if p != j:
            for l in range(n): a[l * ld + j], a[l * ld + p] = a[l * ld + p], a[l * ld + j]
        v = x[j]
        for i in range(j + 1, m): x[i] /= v
        for l in range(j + 1, n):
            y = a + l * ld
            v = y[j]
            for i in range(j + 1, m): y[i] -= x[i] * v


cdef void exchange(int dtype, Py_ssize_t n, Py_ssize_t k, char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                   const int* pivots, bint forward) noexcept nogil:
    """Exchange each of n rows of X (..., k) with row pivots[i] - 1, from the first to the last, or in reverse order."""
    call(dtype, exchange_rows[float], exchange_rows[double], <void*>x, n, k, x_row, x_column, pivots, forward)


cdef void exchange_rows(real* x, Py_ssize_t n, Py_ssize_t k, Py_ssize_t x_row, Py_ssize_t x_column, const int* pivots,
                        bint forward) noexcept nogil:
    """If the columns are contiguous, column by column."""
    cdef Py_ssize_t part = 1 if x_row == 1 else k, first = 0, s, i, j, p
    cdef real v
    while first < k:
        for s in range(n):
            i = s if forward else n - 1 - s
            p = pivots[i] - 1
            if p == i: continue
            for j in range(first, first + part):
                v = x[i * x_row + j * x_column]
                x[i * x_row + j * x_column] = x[p * x_row + j * x_column]
                x[p * x_row + j * x_column] = v
        first += part


# ---- inverses --------------------------------------------------------------------------------------------------------

cdef size_t inverse_bytes(int dtype, Py_ssize_t n) noexcept nogil:
    """Bytes of work that invert() needs."""
    return n * min(n, <Py_ssize_t>BLOCK) * itemsize(dtype)


cdef void invert_upper(int dtype, Py_ssize_t n, char* a, Py_ssize_t ld) noexcept nogil:
    """U^-1 over U, column by column: U12 becomes -U11^-1 U12 U22^-1."""
    cdef Triangle t = Triangle(dtype, a, 1, ld, False, False, True)
    cdef Py_ssize_t h
    cdef char* b
    cdef char* c
    if n <= SMALL:
        call(dtype, invert_small[float], invert_small[double], <void*>a, n, ld)
        return
    h = half(n, SMALL)
    b, c = at(dtype, a, h * ld), at(dtype, a, h * ld + h)
    call(dtype, negate[float], negate[double], <void*>b, h, n - h, ld)
    multiply_triangle(&t, h, b, 1, ld, n - h)
    t = Triangle(dtype, c, ld, 1, True, False, True)            # U22', for U12' of which the rows are columns
    multiply_triangle(&t, n - h, b, ld, 1, h)
    invert_upper(dtype, h, a, ld)
    invert_upper(dtype, n - h, c, ld)


cdef void negate(real* a, Py_ssize_t m, Py_ssize_t n, Py_ssize_t ld) noexcept nogil:
    cdef Py_ssize_t i, j
    for j in range(n):
        for i in range(m): a[j * ld + i] = -a[j * ld + i]


cdef void invert_small(real* a, Py_ssize_t n, Py_ssize_t ld) noexcept nogil:
    cdef Py_ssize_t i, j, l
    cdef real d, s
    for j in range(n):
        d = 1 / a[j * ld + j]
        for i in range(j):
            s = 0
            for l in range(i, j): s += a[l * ld + i] * a[j * ld + l]
            a[j * ld + i] = -s * d
        a[j * ld + j] = d


cdef void invert(int dtype, Py_ssize_t n, char* a, const int* pivots, char* work) noexcept nogil:
    """A^-1 over the LU factors of A, column by column: X L = U^-1, from the last columns to the first, whose part of L
    is moved to `work`."""
    cdef Triangle t = Triangle(dtype, NULL, n, 1, False, True, True)
    cdef Py_ssize_t first = (n - 1) // BLOCK * BLOCK, columns, end
    cdef char* x
    invert_upper(dtype, n, a, n)
    while first >= 0:
        columns = min(<Py_ssize_t>BLOCK, n - first)
        end, x = first + columns, at(dtype, a, first * n)
        call(dtype, move_lower[float], move_lower[double], <void*>x, n, first, columns, <void*>work)
        if end < n: add_product(dtype, n, columns, n - end, -1, at(dtype, a, end * n), 1, n, at(dtype, work, end), 1, n,
                                x, 1, n)
        t.t = at(dtype, work, first)
        multiply_triangle(&t, columns, x, n, 1, n)              # as its transpose, with L'
        first -= BLOCK
    exchange(dtype, n, n, a, n, 1, pivots, False)


cdef void move_lower(real* a, Py_ssize_t n, Py_ssize_t first, Py_ssize_t columns, real* to) noexcept nogil:
    """Move the elements below the diagonal, of columns that begin with number `first`."""
    cdef Py_ssize_t i, j
    for j in range(columns):
        for i in range(first + j + 1, n):
            to[j * n + i] = a[j * n + i]
            a[j * n + i] = 0
