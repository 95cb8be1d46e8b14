"""Matrix products of any strides by the blocks of kernels/linalg/microproduct.pyx.

B is divided into panels of a few vectors by at most TERMS rows, which stay in the caches while all rows of A meet them.
If its rows are contiguous, a panel is read where it is. If not, or if it does not end with a whole vector, it is packed
on the stack. If there are many rows, and those of a matrix are far apart, both operands are copied to the stack. For
products that repeat, all of B is packed in advance. An element of C is computed by the same operations for any number
of rows and columns beside it, and any number of threads.

Products of which a size is 1 are in kernels/linalg/vectors.pyx."""

from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport MAX_NDIM, itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.linalg.microproduct cimport (
    CG_VECTOR, CG_WIDE, Lines, Step, multiply, multiply_lines, multiply_onto, transpose,
)
from cygrad.kernels.linalg.vectors cimport Thin, multiply_outer, multiply_thin
from cygrad.kernels.threads cimport n_threads, parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    size_t cg_stack_left()

cdef extern from "cygrad/microproduct.h" nogil:
    void* cg_on_stack(size_t nbytes)

cdef enum:
    TERMS = 128                     # rows of a panel, at most: with AVX-512 24 KB of the 32 or 48 of an L1 cache
    COLUMNS = 3                     # vectors in a row of a panel, at most: CG_COLUMNS
    PIECE = TERMS * COLUMNS * 64    # bytes of a panel, of the largest vectors
    SPACE = 320 * 1024              # bytes of the stack for copies of B, or of rows of A
    STACK = 1024 * 1024             # bytes of the stack that are left, so that copies take so much
    GAP = 16                        # elements between copied rows, so that they begin in different sets of a cache
    MANY = 64                       # rows for which copies pay,
    APART = 1024                    # if rows of a matrix begin so many bytes apart
    GROUP = 32                      # rows at a time that meet all of B
    ROWS = 512                      # most rows of a part: their terms of A for a panel stay in an L2 cache. (Blocks
                                    # have 8 rows.)
    FEW = 48                        # rows,
    LONG = 24                       # if sums have so many terms for each: the sum of a vector takes time, too
    LINES = 64                      # columns at a time
    TURNED = 4                      # columns that are computed as rows
    NARROW = 32 * 1024              # bytes of the stack for the columns of B as rows
    WORK = 32                       # multiplications that take as long as an element of cost 1
    EDGE = 16                       # rows that are stored at a time if C does not end with a whole vector

cdef struct Shared:
    const Factors* p
    Py_ssize_t m

cdef struct Cut:                    # how B is cut into panels
    Py_ssize_t lanes
    Py_ssize_t panels               # side by side
    Py_ssize_t width                # elements in a row of a panel
    Py_ssize_t terms

cdef struct Table:                  # where the terms of a panel are
    bint reads                      # whether panels that end with whole vectors are read where they are
    Step steps[TERMS]               # in packed panels,
    Step in_place[TERMS]            # in those that are not


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
    """Terms first to first + n - 1 of panel j, with zeros behind column n - 1."""
    cdef Py_ssize_t column = j * t.width, columns = min(t.width, p.n - column)
    cdef const char* b = p.b + (first * p.b_term + column * p.b_column) * itemsize(p.dtype)
    cdef Py_ssize_t size = itemsize(p.dtype), row = t.width * size
    if columns < t.width: memset(to, 0, n * row)
    if p.b_column == 1: copy_rows(b, p.b_term * size, n, columns * size, to, row)
    else: transpose(p.dtype, n, columns, b, p.b_column, to, t.width)


cdef void multiply_rows(const Factors* p, Py_ssize_t m) noexcept nogil:
    """The first m rows of C, on one thread. Exactly n columns are read and written."""
    cdef Py_ssize_t i, size = itemsize(p.dtype)
    cdef Cut t
    if m == 0 or p.n == 0: return
    if p.k == 0:
        for i in range(0 if p.beta else m): memset(p.c + i * p.ldc * size, 0, p.n * size)
        return
    t = cut(p.dtype, p.n, p.k)
    if p.n <= TURNED and p.a_row == 1 and m >= t.lanes and p.packed == NULL: multiply_turned(p, m)
    elif copies(p, m): multiply_many(p, &t, m)
    else: multiply_table(p, &t, m, NULL)


cdef void multiply_turned(const Factors* p, Py_ssize_t m) noexcept nogil:
    """A few columns, which would fill a small part of each vector, of an A whose columns are contiguous: C' = B' A',
    which adds the same products in the same order."""
    cdef double rows[TURNED * GROUP]
    cdef Py_ssize_t first = 0, n, size = itemsize(p.dtype)
    cdef Factors q = p[0]
    cdef Cut t
    cdef const char* d = p.d
    cdef Py_ssize_t ldd = p.ldd
    if d == NULL: d, ldd = p.c, p.ldc
    q.a, q.a_row, q.a_term, q.b_term, q.b_column = p.b, p.b_column, p.b_term, p.a_term, 1
    q.c, q.d = <char*>rows, NULL
    while first < m:
        n = min(<Py_ssize_t>GROUP, m - first)
        q.n, q.ldc, q.b = n, n, p.a + first * size
        t = cut(p.dtype, n, p.k)
        if p.beta: turn(p.dtype, n, p.n, d + first * ldd * size, ldd, 1, <char*>rows, 1, n)
        multiply_table(&q, &t, p.n, NULL)
        turn(p.dtype, n, p.n, <char*>rows, 1, n, p.c + first * p.ldc * size, p.ldc, 1)
        first += n


cdef void turn(int dtype, Py_ssize_t m, Py_ssize_t n, const char* x, Py_ssize_t x_row, Py_ssize_t x_column, char* y,
               Py_ssize_t y_row, Py_ssize_t y_column) noexcept nogil:
    call(dtype, copy_matrix[float], copy_matrix[double], m, n, <void*>x, x_row, x_column, <void*>y, y_row, y_column)


cdef void copy_matrix(Py_ssize_t m, Py_ssize_t n, const real* x, Py_ssize_t x_row, Py_ssize_t x_column, real* y,
                      Py_ssize_t y_row, Py_ssize_t y_column) noexcept nogil:
    cdef Py_ssize_t i, j
    for j in range(n):
        for i in range(m): y[i * y_row + j * y_column] = x[i * x_row + j * x_column]


cdef inline Py_ssize_t apart_a(const Factors* p) noexcept nogil: return max(p.a_row, p.a_term)


cdef inline bint copies(const Factors* p, Py_ssize_t m) noexcept nogil:
    """Whether operands are copied beside each other: their rows are so far apart that they share few sets of a cache,
    and there are so many that copies pay."""
    return m >= MANY and p.packed == NULL and max(apart_a(p), max(p.b_term, p.b_column)) * itemsize(p.dtype) >= APART


cdef void multiply_many(const Factors* p, const Cut* t, Py_ssize_t m) noexcept nogil:
    """With copies. If all of B fits into the space, it is packed once, and A is read from end to end. Rows of A that
    meet several panels are copied beside each other."""
    cdef Py_ssize_t size = itemsize(p.dtype), row = (t.terms + GAP) * size, first = 0, tall, n
    cdef Py_ssize_t space = SPACE if cg_stack_left() > STACK else SPACE // 8
    cdef char* block = <char*>(<size_t>(<char*>cg_on_stack(space + GROUP * row + 64) + 63) // 64 * 64)
    cdef Factors q = p[0]
    if packed_bytes(p.dtype, p.n, p.k) <= space and p.a_term < 1 << 23:
        pack(&q, block)
        block += space
        tall = GROUP if p.a_term == 1 or t.panels > 2 else m
    else: tall = up(up(m, up(m, space // row)), 8) * 8
    if t.panels <= 2 or apart_a(p) * size < APART: block = NULL
    while first < m:
        n = min(tall, m - first)
        q.a, q.c = p.a + first * p.a_row * size, p.c + first * p.ldc * size
        if p.d != NULL: q.d = p.d + first * p.ldd * size
        multiply_table(&q, t, n, block)
        first += n


cdef void multiply_table(const Factors* p, const Cut* cuts, Py_ssize_t m, char* block) noexcept nogil:
    """m rows, whose terms of A for each panel are copied to `block` unless it is NULL."""
    cdef Table table
    cdef Cut t = cuts[0]
    cdef Factors q = p[0]
    fill_table(&q, &t, m, block, &table)
    multiply_group(&q, &t, &table, m, block)


cdef void fill_table(Factors* p, Cut* t, Py_ssize_t m, const char* block, Table* table) noexcept nogil:
    """(Distances have 32 bits, so there may have to be fewer terms.)"""
    cdef Py_ssize_t i, size = itemsize(p.dtype), a_term = p.a_term if block == NULL else 1
    table.reads = (p.packed == NULL and p.b_column == 1 and p.b_term < 1 << 23
                   and not (m >= MANY and p.b_term * size >= APART))
    if p.packed == NULL and p.a_term > 1 << 23: t.terms = max(<Py_ssize_t>1, min(t.terms, (1 << 30) // p.a_term))
    for i in range(t.terms):
        table.steps[i] = Step(<int>(i * a_term), <int>(i * t.width))
        table.in_place[i] = Step(<int>(i * a_term), <int>(i * p.b_term) if table.reads else 0)


cdef void multiply_group(const Factors* p, const Cut* t, const Table* table, Py_ssize_t m, char* block) noexcept nogil:
    cdef char space[PIECE + 64]
    cdef char* piece = <char*>(<size_t>(space + 63) // 64 * 64)
    cdef Py_ssize_t i, j, n, columns, first, size = itemsize(p.dtype)
    cdef Py_ssize_t a_row = p.a_row if block == NULL else t.terms + GAP
    cdef const char* packed = p.packed
    cdef const char* b = piece
    cdef const char* a
    cdef const char* d
    cdef char* c
    cdef Py_ssize_t ldd
    cdef double beta
    for i in range(up(p.k, t.terms)):
        first = i * t.terms
        n, a, beta = min(t.terms, p.k - first), p.a + first * p.a_term * size, p.beta if first == 0 else 1
        if block != NULL:
            if p.a_term == 1: copy_rows(a, p.a_row * size, m, n * size, block, a_row * size)
            else: transpose(p.dtype, m, n, a, p.a_term, block, a_row)
            a = block
        for j in range(t.panels):
            columns, c = min(t.width, p.n - j * t.width), p.c + j * t.width * size
            d, ldd = c, p.ldc
            if p.d != NULL and first == 0: d, ldd = p.d + j * t.width * size, p.ldd
            if table.reads and columns % t.lanes == 0:
                b = p.b + (first * p.b_term + j * t.width) * size
                multiply_onto(p.dtype, m, columns, n, a, a_row, table.in_place, b, c, p.ldc, p.alpha, beta, d, ldd)
                continue
            if packed == NULL:
                b = piece
                pack_panel(p, t, first, n, j, piece)
            else:
                b = packed
                packed += n * t.width * size
            if columns % t.lanes: multiply_edge(p, t, m, columns, n, a, a_row, table.steps, b, c, beta, d, ldd)
            else: multiply_onto(p.dtype, m, columns, n, a, a_row, table.steps, b, c, p.ldc, p.alpha, beta, d, ldd)


cdef void multiply_edge(const Factors* p, const Cut* t, Py_ssize_t m, Py_ssize_t columns, Py_ssize_t k, const char* a,
                        Py_ssize_t a_row, const Step* steps, const char* packed, char* c, double beta, const char* d,
                        Py_ssize_t ldd) noexcept nogil:
    """The last panel, if whole vectors would write beyond the columns of C."""
    cdef char rows[EDGE * COLUMNS * 64]
    cdef Py_ssize_t i, n, first, size = itemsize(p.dtype)
    for i in range(up(m, EDGE)):
        first = i * EDGE
        n = min(<Py_ssize_t>EDGE, m - first)
        if beta: copy_rows(d + first * ldd * size, ldd * size, n, columns * size, rows, t.width * size)
        multiply(p.dtype, n, columns, k, a + first * a_row * size, a_row, steps, packed, rows, t.width, p.alpha,
                 beta)
        copy_rows(rows, t.width * size, n, columns * size, c + first * p.ldc * size, p.ldc * size)


cdef void copy_rows(const char* x, Py_ssize_t x_step, Py_ssize_t m, Py_ssize_t nbytes, char* y,
                    Py_ssize_t y_step) noexcept nogil:
    cdef Py_ssize_t i
    if nbytes == sizeof(float):                     # (the compiler knows the size, so it makes no call)
        for i in range(m): memcpy(y + i * y_step, x + i * x_step, sizeof(float))
    elif nbytes == sizeof(double):
        for i in range(m): memcpy(y + i * y_step, x + i * x_step, sizeof(double))
    else:
        for i in range(m): memcpy(y + i * y_step, x + i * x_step, nbytes)


cdef void some_rows(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Factors p = (<const Factors*>job)[0]
    p.a += start * p.a_row * itemsize(p.dtype)
    p.c += start * p.ldc * itemsize(p.dtype)
    p.d += start * p.ldd * itemsize(p.dtype)
    multiply_rows(&p, stop - start)


cdef void some_columns(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Shared* s = <Shared*>job
    cdef Factors p = s.p[0]
    p.b += start * p.b_column * itemsize(p.dtype)
    p.c += start * itemsize(p.dtype)
    p.d += start * itemsize(p.dtype)
    p.n = stop - start
    multiply_rows(&p, s.m)


cdef void multiply_shared(const Factors* p, Py_ssize_t m) noexcept nogil:
    """m rows of C. Threads share the rows, and each part packs all of B again; or the columns, if there are more."""
    multiply_within(p, m, n_threads)


cdef void multiply_within(const Factors* p, Py_ssize_t m, int limit) noexcept nogil:
    """The same on at most `limit` threads, with the same bits."""
    cdef int t = min(limit, threads_for(m * p.n * p.k // WORK))
    cdef Py_ssize_t lanes = CG_VECTOR // itemsize(p.dtype), part = min(<Py_ssize_t>ROWS, up(up(m, t), 8) * 8)
    cdef Factors q = p[0]
    cdef Shared s = Shared(&q, m)
    if m == 0 or p.n == 0: return
    if q.d == NULL: q.d, q.ldd = q.c, q.ldc
    if q.d != q.c and (p.k == 0 or is_thin(p, m)):
        call(p.dtype, start_rows[float], start_rows[double], <void*>q.d, &q, m)
    if is_thin(p, m):
        multiply_vector(p, m, min(limit, threads_for(m * p.n * p.k)))
    elif is_short(p, m):
        parallel_for(some_lines, &s, p.n, up(up(p.n, t), CG_WIDE) * CG_WIDE, t)
    elif is_narrow(p):
        multiply_narrow(&q, m, t)
    elif t > 1 and p.n > m and p.packed == NULL:
        parallel_for(some_columns, &s, p.n, up(up(p.n, t), COLUMNS * lanes) * COLUMNS * lanes, t)
    else:
        parallel_for(some_rows, &q, m, part, t)


cdef void start_rows(const real* d, const Factors* p, Py_ssize_t m) noexcept nogil:
    """C = D, for a product with a vector, or of no terms."""
    cdef real* c = <real*>p.c
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(p.n): c[i * p.ldc + j] = d[i * p.ldd + j]


cdef inline bint is_thin(const Factors* p, Py_ssize_t m) noexcept nogil:
    """Whether a size is 1 and none is 0, and B is not packed."""
    return (m == 1 or p.n == 1 or p.k == 1) and m and p.n and p.k and p.packed == NULL


cdef void multiply_vector(const Factors* p, Py_ssize_t m, int t) noexcept nogil:
    """A product of which a size is 1, on t threads. (BLAS copies operands on some CPUs, to memory from malloc that
    nothing counts, and takes up to ten times as long.)"""
    cdef Thin q
    if p.k == 1 and p.n == 1 and p.ldc == 1:        # a column is a row of the transposed product
        multiply_outer(p.dtype, 1, m, p.alpha, p.b, 1, p.a, p.a_row, p.beta, p.c, m, t)
        return
    if p.k == 1:
        multiply_outer(p.dtype, m, p.n, p.alpha, p.a, p.a_row, p.b, p.b_column, p.beta, p.c, p.ldc, t)
        return
    if p.n == 1: q = Thin(p.dtype, m, p.k, p.a, p.a_row, p.a_term, p.b, p.b_term, p.c, p.ldc, p.alpha, p.beta)
    else: q = Thin(p.dtype, p.n, p.k, p.b, p.b_column, p.b_term, p.a, p.a_term, p.c, 1, p.alpha, p.beta)
    multiply_thin(&q, t)


cdef void multiply_batch(const Batch* b, Py_ssize_t count) noexcept nogil:
    """`count` products. Threads share a product if it is large and there are few."""
    cdef Py_ssize_t work = b.m * b.p.n * b.p.k // WORK
    cdef int t = threads_for(count * work)
    if count == 0 or b.m == 0 or b.p.n == 0: return
    if count < 4 * t and threads_for(work) == t: some_products(b, 0, count, n_threads, NULL, NULL)
    else: parallel_for(some_alone, <void*>b, count, up(count, 4 * t) if t > 1 else count, t)


cdef void some_alone(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Products start to stop - 1, on this thread. Small ones share a table."""
    cdef const Batch* b = <const Batch*>job
    cdef Factors p = b.p
    cdef Table table
    cdef Cut t
    if p.k == 0 or is_thin(&p, b.m) or is_short(&p, b.m) or is_narrow(&p) or copies(&p, b.m):
        some_products(b, start, stop, 1, NULL, NULL)
        return
    t = cut(p.dtype, p.n, p.k)
    fill_table(&p, &t, b.m, NULL, &table)
    some_products(b, start, stop, 1, &t, &table)


cdef void some_products(const Batch* b, Py_ssize_t start, Py_ssize_t stop, int limit, const Cut* t,
                        const Table* table) noexcept nogil:
    """Products start to stop - 1, each on up to `limit` threads, or with a table."""
    cdef Factors p = b.p
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t at[3]
    cdef Py_ssize_t i, rest = start, size = itemsize(p.dtype)
    cdef int d
    at[0] = at[1] = at[2] = 0
    for d in range(b.ndim - 1, -1, -1):
        index[d] = rest % b.shape[d]
        rest //= b.shape[d]
        for i in range(3): at[i] += index[d] * b.steps[i][d]
    for _ in range(start, stop):
        p.a, p.b, p.c = b.p.a + at[0] * size, b.p.b + at[1] * size, b.p.c + at[2] * size
        if table == NULL: multiply_within(&p, b.m, limit)
        else: multiply_group(&p, t, table, b.m, NULL)
        advance(b, index, at)


cdef inline void advance(const Batch* b, Py_ssize_t* index, Py_ssize_t* at) noexcept nogil:
    """The place of the next product."""
    cdef int d = b.ndim - 1, i
    while d >= 0:
        index[d] += 1
        for i in range(3): at[i] += b.steps[i][d]
        if index[d] < b.shape[d]: return
        for i in range(3): at[i] -= b.shape[d] * b.steps[i][d]
        index[d] = 0
        d -= 1


cdef Factors factors_of(int dtype, bint ta, bint tb, Py_ssize_t n, Py_ssize_t k, double alpha, const char* a,
                        Py_ssize_t lda, const char* b, Py_ssize_t ldb, double beta, char* c,
                        Py_ssize_t ldc) noexcept nogil:
    return Factors(dtype, n, k, a, 1 if ta else lda, lda if ta else 1, b, 1 if tb else ldb, ldb if tb else 1, NULL, c,
                   ldc, beta, alpha, NULL, 0)


cdef void multiply_alone(const Factors* p, Py_ssize_t m) noexcept nogil:
    """m rows of C on one thread. Rows have the same bits for any number of them beside the first."""
    if is_thin(p, m): multiply_vector(p, m, 1)
    else: multiply_rows(p, m)


# ---- few rows, or few columns ----------------------------------------------------------------------------------------

cdef inline bint are_lines(const Factors* p) noexcept nogil:
    """Whether the terms of each element lie side by side in A, in whole vectors, and the rest is as dots want it."""
    return (p.a_term == 1 and p.k % (CG_VECTOR // itemsize(p.dtype)) == 0 and p.k and p.packed == NULL and p.alpha == 1
            and (p.beta == 0 or p.beta == 1))


cdef inline bint is_short(const Factors* p, Py_ssize_t m) noexcept nogil:
    """Few rows, and sums so long that those of vectors do not count. The terms lie side by side in B, too, so dots need
    no packing."""
    return m <= FEW and p.k >= LONG * m and are_lines(p) and p.b_term == 1 and 1 < p.b_column < 1 << 23


cdef inline bint is_narrow(const Factors* p) noexcept nogil:
    """Columns that fill a vector so badly that dots are faster. A dot of k terms takes as long as k / lanes + 4
    multiplications of vectors, of which twice as many are assumed."""
    cdef Py_ssize_t lanes = CG_VECTOR // itemsize(p.dtype), n = up(p.n, CG_WIDE) * CG_WIDE
    return (p.k * (lanes - n) >= 8 * n * lanes and are_lines(p)
            and (1 < p.b_column < 1 << 23 or p.b_column == 1 and p.n * p.k * itemsize(p.dtype) <= NARROW))


cdef void multiply_narrow(const Factors* p, Py_ssize_t m, int t) noexcept nogil:
    """Dots of the rows of A and of the columns of B, which are copied if their terms do not lie side by side."""
    cdef char space[NARROW + 64]
    cdef Factors q = p[0]
    if p.b_column == 1:
        q.b, q.b_column = <char*>(<size_t>(space + 63) // 64 * 64), p.k
        transpose(p.dtype, p.n, p.k, p.b, p.b_term, <char*>q.b, p.k)
    parallel_for(some_narrow, &q, m, up(m, t), t)


cdef void some_narrow(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows start to stop - 1."""
    cdef const Factors* p = <const Factors*>job
    cdef int places[LINES]
    cdef int zero = 0
    cdef Lines lines = Lines(1, p.k, 0, &zero)
    cdef Py_ssize_t j, size = itemsize(p.dtype)
    cdef const char* d = NULL
    if p.beta: d = p.d + start * p.ldd * size
    for j in range(p.n): places[j] = <int>(j * p.b_column)
    multiply_lines(p.dtype, stop - start, p.n, &lines, p.a + start * p.a_row * size, p.a_row, p.b, places,
                   p.c + start * p.ldc * size, p.ldc, d, p.ldd)


cdef void some_lines(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Columns start to stop - 1."""
    cdef Shared* s = <Shared*>job
    cdef const Factors* p = s.p
    cdef int places[LINES]
    cdef int zero = 0
    cdef Lines lines = Lines(1, p.k, 0, &zero)
    cdef const char* d = NULL
    cdef Py_ssize_t j, size = itemsize(p.dtype)
    for j in range(LINES): places[j] = <int>(j * p.b_column)
    j = start
    while j < stop:
        if p.beta: d = p.d + j * size
        multiply_lines(p.dtype, s.m, min(<Py_ssize_t>LINES, stop - j), &lines, p.a, p.a_row,
                       p.b + j * p.b_column * size, places, p.c + j * size, p.ldc, d, p.ldd)
        j += LINES
