"""Matrix products of any strides by the blocks of kernels/linalg/microproduct.pyx.

B is packed in panels of a few vectors by at most TERMS rows, which stay in the L1 cache while all rows of A meet them.
Panels are packed on the stack, or all of B in advance for products that repeat; OpenBLAS packs B again in each call.
An element of C is summed in the same order for any number of rows."""

from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, element
from cygrad.kernels.linalg.microproduct cimport CG_VECTOR, Step, multiply
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    TERMS = 128                     # rows of a panel, at most: with AVX-512 24 KB of the 32 or 48 of an L1 cache
    COLUMNS = 3                     # vectors in a row of a panel, at most: CG_COLUMNS
    PIECE = TERMS * COLUMNS * 64    # bytes of a panel, of the largest vectors
    ROWS = 512                      # most rows of a part: their terms of A for a panel stay in an L2 cache
    EDGE = 16                       # rows that are stored at a time if C does not end with a whole vector

cdef struct Cut:                    # how B is cut into panels
    Py_ssize_t lanes
    Py_ssize_t panels               # side by side
    Py_ssize_t width                # elements in a row of a panel
    Py_ssize_t terms


cdef inline Py_ssize_t up(Py_ssize_t n, Py_ssize_t by) noexcept nogil: return (n + by - 1) // by


cdef inline Cut cut(int dtype, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """For n and k of at least 1."""
    cdef Cut t
    t.lanes = CG_VECTOR // itemsize(dtype)
    t.panels = up(up(n, t.lanes), COLUMNS)
    t.width = up(up(n, t.lanes), t.panels) * t.lanes
    t.terms = up(k, up(k, TERMS))
    return t


cdef Py_ssize_t packed_bytes(int dtype, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Bytes that pack() needs."""
    if n == 0 or k == 0: return 0
    cdef Cut t = cut(dtype, n, k)
    return up(k * t.panels * t.width * itemsize(dtype), 64) * 64


cdef void pack(Factors* p, char* to) noexcept nogil:
    """Pack all panels of B and let the product use them. `to` should be aligned to 64 bytes."""
    cdef Py_ssize_t i, j, n, first, size = itemsize(p.dtype)
    cdef Cut t
    p.packed = to
    if p.n == 0 or p.k == 0: return
    t = cut(p.dtype, p.n, p.k)
    for i in range(up(p.k, t.terms)):
        first = i * t.terms
        n = min(t.terms, p.k - first)
        for j in range(t.panels):
            pack_panel(p, &t, first, n, j, to)
            to += n * t.width * size


cdef void pack_panel(const Factors* p, const Cut* t, Py_ssize_t first, Py_ssize_t n, Py_ssize_t j,
                     char* to) noexcept nogil:
    """Terms first to first + n - 1 of panel j."""
    cdef Py_ssize_t column = j * t.width, columns = min(t.width, p.n - column)
    cdef const char* b = p.b + (first * p.b_term + column * p.b_column) * itemsize(p.dtype)
    call(p.dtype, copy_panel[float], copy_panel[double], <void*>b, p, n, columns, t.width, <void*>to)


cdef void copy_panel(const real* b, const Factors* p, Py_ssize_t n, Py_ssize_t columns, Py_ssize_t width,
                     real* to) noexcept nogil:
    """`columns` elements of each of n rows, and zeros up to `width`."""
    cdef Py_ssize_t i, j
    if columns < width: memset(to, 0, n * width * sizeof(real))
    if p.b_column == 1:
        for i in range(n): memcpy(to + i * width, b + i * p.b_term, columns * sizeof(real))
    else:
        for j in range(columns):
            for i in range(n): to[i * width + j] = b[i * p.b_term + j * p.b_column]


cdef void multiply_rows(const Factors* p, Py_ssize_t m) noexcept nogil:
    """The first m rows of C, on one thread. Exactly n columns are read and written."""
    cdef Step steps[TERMS]
    cdef char space[PIECE + 64]
    cdef char* piece = <char*>(<size_t>(space + 63) // 64 * 64)
    cdef Py_ssize_t i, j, n, columns, first, size = itemsize(p.dtype)
    cdef const char* packed = p.packed
    cdef const char* b = piece
    cdef const char* a
    cdef char* c
    cdef bint adds
    cdef Cut t
    if m == 0 or p.n == 0: return
    if p.k == 0:
        for i in range(0 if p.adds else m): memset(p.c + i * p.ldc * size, 0, p.n * size)
        return
    t = cut(p.dtype, p.n, p.k)
    for i in range(t.terms): steps[i] = Step(<int>(i * p.a_term), <int>(i * t.width))
    for i in range(up(p.k, t.terms)):
        first = i * t.terms
        n, a, adds = min(t.terms, p.k - first), p.a + first * p.a_term * size, p.adds or first > 0
        for j in range(t.panels):
            if packed == NULL: pack_panel(p, &t, first, n, j, piece)
            else:
                b = packed
                packed += n * t.width * size
            columns, c = min(t.width, p.n - j * t.width), p.c + j * t.width * size
            if columns % t.lanes == 0: multiply(p.dtype, m, columns, n, a, p.a_row, steps, b, c, p.ldc, adds)
            else: multiply_edge(p, &t, m, columns, n, a, steps, b, c, adds)


cdef void multiply_edge(const Factors* p, const Cut* t, Py_ssize_t m, Py_ssize_t columns, Py_ssize_t k, const char* a,
                        const Step* steps, const char* packed, char* c, bint adds) noexcept nogil:
    """The last panel, if whole vectors would write beyond the columns of C."""
    cdef char rows[EDGE * COLUMNS * 64]
    cdef Py_ssize_t i, n, first, size = itemsize(p.dtype)
    for i in range(up(m, EDGE)):
        first = i * EDGE
        n = min(<Py_ssize_t>EDGE, m - first)
        multiply(p.dtype, n, columns, k, a + first * p.a_row * size, p.a_row, steps, packed, rows, t.width, False)
        call(p.dtype, store[float], store[double], <void*>&rows[0], t.width, n, columns,
             element(p.dtype, c, first * p.ldc), p.ldc, adds)


cdef void store(const real* rows, Py_ssize_t width, Py_ssize_t m, Py_ssize_t n, real* c, Py_ssize_t ldc,
                bint adds) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(m):
        if adds:
            for j in range(n): c[i * ldc + j] += rows[i * width + j]
        else: memcpy(c + i * ldc, rows + i * width, n * sizeof(real))


cdef void some_rows(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Factors p = (<const Factors*>job)[0]
    p.a += start * p.a_row * itemsize(p.dtype)
    p.c += start * p.ldc * itemsize(p.dtype)
    multiply_rows(&p, stop - start)


cdef void multiply_shared(const Factors* p, Py_ssize_t m) noexcept nogil:
    """m rows of C, shared among threads. Each part packs all of B again."""
    cdef int t = threads_for(m * p.n * p.k // 32)
    cdef Py_ssize_t part = min(<Py_ssize_t>ROWS, up(up(m, t), 8) * 8)       # blocks have 8 rows
    if m: parallel_for(some_rows, <void*>p, m, part, t)
