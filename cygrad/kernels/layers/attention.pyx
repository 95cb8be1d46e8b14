"""Attention, block by block: scaled dot products, softmax and the weighted sum of values, without the matrix of all
weights.

Dao, Fu, Ermon, Rudra and Re, "FlashAttention", NeurIPS 2022, and Milakov and Gimelshein, "Online normalizer
calculation for softmax", 2018. A block has up to QUERIES rows and KEYS columns; its scores lie in
workspace. The sum and the maximum of a row are updated from block to block. Backward computes the weights again, from
the scores and the log of the sum.

The bits do not depend on the number of threads: the blocks and the order in which they are added are fixed."""

from libc cimport math
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.linalg.blas cimport begin_products, end_products, product
from cygrad.kernels.by_dtype cimport call, call_double, element, put_number
from cygrad.kernels.lanes cimport dot_of, max_of, sum_of
from cygrad.kernels.mathematics cimport exp_near
from cygrad.kernels.random cimport LANES, make_words
from cygrad.kernels.threads cimport parallel_for, range_t, threads_for


# ---- parts of a block ------------------------------------------------------------------------------------------------

cdef inline real power(real x) noexcept nogil:
    """e^x for x <= 0, but 0 where it would be denormal. A weight is a quotient of such numbers and of a sum of at least
    1, so nothing is lost; sums of denormal numbers are slow."""
    cdef real low = <real>(-87 if real is float else -700), y = exp_near(x if x > low else low)
    return y if x > low else (0 if x == x else x)


cdef inline Py_ssize_t offset_of(const Matrices* m, Py_ssize_t i) noexcept nogil:
    """Elements before matrix i."""
    cdef Py_ssize_t at = 0
    cdef int d
    for d in range(m.nd - 1, -1, -1):
        at += i % m.shape[d] * m.strides[d]
        i //= m.shape[d]
    return at


cdef inline char* row_of(const Matrices* m, Py_ssize_t i, Py_ssize_t row, int size) noexcept nogil:
    return m.data + (offset_of(m, i) + row * m.down) * size


cdef void put_scores(const Attention* a, const char* mask, Py_ssize_t visible, Py_ssize_t n, real* s) noexcept nogil:
    """Products to scores of one row, of which the first `visible` may be seen."""
    cdef real scale = <real>a.scale
    cdef const uint8_t* seen = <const uint8_t*>mask
    cdef const real* added = <const real*>mask
    cdef Py_ssize_t j, step = a.mask.right
    if a.kind == NO_MASK:
        for j in range(visible): s[j] = s[j] * scale
    elif a.kind == BOOL_MASK:
        if step == 1:
            for j in range(visible): s[j] = s[j] * scale if seen[j] else <real>-math.INFINITY
        else:
            for j in range(visible): s[j] = s[j] * scale if seen[j * step] else <real>-math.INFINITY
    elif step == 1:
        for j in range(visible): s[j] = s[j] * scale + added[j]
    else:
        for j in range(visible): s[j] = s[j] * scale + added[j * step]
    for j in range(visible, n): s[j] = <real>-math.INFINITY


cdef inline const char* mask_row(const Attention* a, Py_ssize_t h, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Element (i, j) of the mask of head h, or NULL."""
    if a.kind == NO_MASK: return NULL
    return a.mask.data + (offset_of(&a.mask, h) + i * a.mask.down + j * a.mask.right) * (
        1 if a.kind == BOOL_MASK else itemsize(a.dtype))


cdef inline Py_ssize_t visible_of(const Attention* a, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n) noexcept nogil:
    """How many of keys j to j + n - 1 query i may see."""
    return min(n, max(<Py_ssize_t>0, i + 1 - j)) if a.causal else n


cdef void put_factors(const Attention* a, Py_ssize_t h, Py_ssize_t i, Py_ssize_t j, Py_ssize_t n,
                      real* f) noexcept nogil:
    """The factors of dropout for keys j to j + n - 1 of query i: 0 or 1 / (1 - p). The words of each row begin with a
    new block of random numbers."""
    cdef uint32_t words[4 * LANES]
    cdef uint64_t dropped = <uint64_t>(a.p * 4294967296.0)
    cdef uint64_t first = a.counter + (<uint64_t>h * a.queries + i) * ((a.keys + 3) // 4) + j // 4
    cdef real scale = <real>(1 / (1 - a.p) if a.p < 1 else 0)
    cdef Py_ssize_t done = 0, k, count
    while done < n:
        make_words(a.key, first, words)
        first += LANES
        count = min(n - done, <Py_ssize_t>(4 * LANES))
        for k in range(count): f[done + k] = scale if words[k] >= dropped else 0
        done += count


# ---- forward ---------------------------------------------------------------------------------------------------------

cdef void add_to_softmax(real* s, Py_ssize_t n, bint first, real* top, double* total, real* y,
                         Py_ssize_t width) noexcept nogil:
    """Scores to e^(score - maximum). If the maximum grows, the sum and the row of the result are scaled to the new
    one. A maximum of -inf subtracts 0."""
    cdef real best = max_of[real](s, n), base, c
    best = top[0] if top[0] > best else best
    base = 0 if best == <real>-math.INFINITY else best
    for j in range(n): s[j] = power(s[j] - base)
    if not first and best != top[0]:
        c = power(top[0] - base)
        total[0] *= c
        for j in range(width): y[j] *= c
    total[0] += sum_of[real](s, n)
    top[0] = best


cdef void attend(const Attention* a, Py_ssize_t h, Py_ssize_t at, real* s) noexcept nogil:
    """The result and the statistics of queries at to at + QUERIES - 1 of head h. `s` is workspace of slot_bytes()."""
    cdef Py_ssize_t m = min(<Py_ssize_t>QUERIES, a.queries - at), stop = a.keys, j = 0, n, i, k, w = a.value_width
    cdef Py_ssize_t down = a.y.down
    cdef int size = itemsize(a.dtype)
    cdef real* top = s + QUERIES * KEYS
    cdef real* f = top + QUERIES
    cdef double* total = <double*>(f + KEYS)
    cdef real* y = <real*>row_of(&a.y, h, at, size)
    cdef real* statistics = <real*>a.statistics + h * a.queries + at if a.statistics != NULL else NULL
    cdef real c
    if a.causal: stop = min(stop, at + m)
    for i in range(m): top[i], total[i] = <real>-math.INFINITY, 0
    while j < stop:
        n = min(<Py_ssize_t>KEYS, stop - j)
        product(a.dtype, False, True, m, n, a.width, row_of(&a.q, h, at, size), a.q.down,
                row_of(&a.k, h // a.group, j, size), a.k.down, 0, <char*>s, n)
        for i in range(m):
            put_scores(a, mask_row(a, h, at + i, j), visible_of(a, at + i, j, n), n, s + i * n)
            add_to_softmax(s + i * n, n, j == 0, top + i, total + i, y + i * down, w)
            if a.p:
                put_factors(a, h, at + i, j, n, f)
                for k in range(n): s[i * n + k] *= f[k]
        product(a.dtype, False, False, m, w, n, <char*>s, n, row_of(&a.v, h // a.group, j, size), a.v.down,
                1 if j else 0, <char*>y, down)
        j += n
    for i in range(m):
        if total[i] == 0:                           # nothing may be seen
            for k in range(w): y[i * down + k] = 0
        else:
            c = <real>(1 / total[i])
            for k in range(w): y[i * down + k] *= c
        if statistics != NULL:
            statistics[i] = <real>(top[i] + math.log(total[i]) if total[i] != 0 else math.INFINITY)


cdef size_t slot_bytes(int dtype, bint backward) noexcept nogil:
    """Bytes of workspace of one worker: the block of scores (backward: and of their gradients), two numbers for each
    row, and the factors of dropout for one row."""
    return ((2 if backward else 1) * QUERIES * KEYS + QUERIES + KEYS) * itemsize(dtype) + QUERIES * 8


cdef inline Py_ssize_t blocks_of(Py_ssize_t n, Py_ssize_t size) noexcept nogil: return (n + size - 1) // size


cdef inline Py_ssize_t share_of(Py_ssize_t worker, Py_ssize_t turn, Py_ssize_t workers) noexcept nogil:
    """The piece of work of a worker in a turn. The workers exchange places from turn to turn, because under a causal
    mask the last blocks of a head have more work than the first."""
    return turn * workers + (worker + turn) % workers


cdef void attend_some(void* job, Py_ssize_t worker, Py_ssize_t stop) noexcept nogil:
    cdef const Attention* a = <const Attention*>job
    cdef Py_ssize_t blocks = blocks_of(a.queries, QUERIES), turn, piece
    cdef char* slot = a.workspace + worker * slot_bytes(a.dtype, False)
    for turn in range(blocks_of(a.heads * blocks, a.workers)):
        piece = share_of(worker, turn, a.workers)
        if piece >= a.heads * blocks: continue
        call(a.dtype, attend[float], attend[double], a, piece // blocks, piece % blocks * QUERIES, <void*>slot)


cdef int on_workers(range_t f, Attention* a) except -1 nogil:
    begin_products()
    parallel_for(f, a, a.workers, 1, <int>a.workers)
    end_products()


cdef int attention(Attention* a) except -1 nogil:
    """y and statistics (or NULL) from q, k, v and mask."""
    return on_workers(attend_some, a)


# ---- backward --------------------------------------------------------------------------------------------------------

cdef void some_deltas(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Attention* a = <const Attention*>job
    cdef Py_ssize_t h, i, w = a.value_width
    cdef int size = itemsize(a.dtype)
    cdef char* g
    cdef char* y
    for h in range(start, stop):
        g, y = row_of(&a.g, h, 0, size), row_of(&a.y, h, 0, size)
        for i in range(a.queries):
            put_number(a.dtype, a.delta, h * a.queries + i, call_double(
                a.dtype, dot_of[float], dot_of[double], element(a.dtype, g, i * a.g.down),
                element(a.dtype, y, i * a.y.down), w))


cdef void deltas(Attention* a) noexcept nogil:
    """delta = the sum of g times y for each query: the sum of a row's weights times their gradients."""
    cdef int t = threads_for(a.heads * a.queries * a.value_width)
    parallel_for(some_deltas, a, a.heads, max(<Py_ssize_t>1, blocks_of(a.heads, t)), t)


cdef void block_gradient(const Attention* a, Py_ssize_t h, Py_ssize_t at, Py_ssize_t m, Py_ssize_t j, Py_ssize_t n,
                         double scale, bint derived, real* s, real* ds) noexcept nogil:
    """s = the weights after dropout of m queries and n keys; ds (if `derived`) = scale times the gradient of the
    scores."""
    cdef int size = itemsize(a.dtype)
    cdef real* f = s + 2 * QUERIES * KEYS
    cdef const real* statistics = <real*>a.statistics + h * a.queries + at
    cdef Py_ssize_t i, k
    cdef real* p
    cdef real* d
    cdef real c = <real>scale, lse, delta
    product(a.dtype, False, True, m, n, a.width, row_of(&a.q, h, at, size), a.q.down,
            row_of(&a.k, h // a.group, j, size), a.k.down, 0, <char*>s, n)
    if derived:
        product(a.dtype, False, True, m, n, a.value_width, row_of(&a.g, h, at, size), a.g.down,
                row_of(&a.v, h // a.group, j, size), a.v.down, 0, <char*>ds, n)
    for i in range(m):
        p, d, lse = s + i * n, ds + i * n, statistics[i]
        put_scores(a, mask_row(a, h, at + i, j), visible_of(a, at + i, j, n), n, p)
        for k in range(n): p[k] = power(p[k] - lse)
        if a.p:
            put_factors(a, h, at + i, j, n, f)
            if derived:
                for k in range(n): d[k] *= f[k]
        if derived:
            delta = (<real*>a.delta)[h * a.queries + at + i]
            for k in range(n): d[k] = p[k] * (d[k] - delta) * c
        if a.p:
            for k in range(n): p[k] *= f[k]


cdef void clear_rows(const Matrices* m, Py_ssize_t i, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t nbytes,
                     int size) noexcept nogil:
    """Set rows start to stop - 1 of matrix i to 0. A row has `nbytes`."""
    cdef Py_ssize_t row
    cdef char* first = row_of(m, i, start, size)
    if m.down * size == nbytes: memset(first, 0, (stop - start) * nbytes)
    else:
        for row in range(stop - start): memset(first + row * m.down * size, 0, nbytes)


cdef void add_gradients(const Attention* a, Py_ssize_t group, Py_ssize_t first, Py_ssize_t heads, Py_ssize_t i0,
                        Py_ssize_t i1, Py_ssize_t j0, Py_ssize_t j1, int wanted, real* s) noexcept nogil:
    """The gradients `wanted` of queries i0 to i1 - 1 and keys j0 to j1 - 1, for `heads` heads from head `first` of a
    group. Each is added up in the same order, whatever else is computed."""
    cdef int size = itemsize(a.dtype)
    cdef Py_ssize_t e = a.width, w = a.value_width, h, bi, bj, i, j, m, n
    cdef real* ds = s + QUERIES * KEYS
    if wanted & DK: clear_rows(&a.dk, group, j0, j1, e * size, size)
    if wanted & DV: clear_rows(&a.dv, group, j0, j1, w * size, size)
    for h in range(group * a.group + first, group * a.group + first + heads):
        if wanted & DQ: clear_rows(&a.dq, h, i0, i1, e * size, size)
        for bj in range(blocks_of(j1 - j0, KEYS)):
            for bi in range(blocks_of(i1 - i0, QUERIES)):
                i, j = i0 + bi * QUERIES, j0 + bj * KEYS
                m, n = min(<Py_ssize_t>QUERIES, i1 - i), min(<Py_ssize_t>KEYS, j1 - j)
                if a.causal: n = min(n, i + m - j)
                if n <= 0: continue
                block_gradient(a, h, i, m, j, n, a.scale, wanted & (DQ | DK), s, ds)
                if wanted & DV:
                    product(a.dtype, True, False, n, w, m, <char*>s, n, row_of(&a.g, h, i, size), a.g.down, 1,
                            row_of(&a.dv, group, j, size), a.dv.down)
                if wanted & DK:
                    product(a.dtype, True, False, n, e, m, <char*>ds, n, row_of(&a.q, h, i, size), a.q.down, 1,
                            row_of(&a.dk, group, j, size), a.dk.down)
                if wanted & DQ:
                    product(a.dtype, False, False, m, e, n, <char*>ds, n, row_of(&a.k, group, j, size), a.k.down,
                            1, row_of(&a.dq, h, i, size), a.dq.down)


cdef inline void add_part(const Attention* a, Py_ssize_t group, Py_ssize_t first, Py_ssize_t heads, Py_ssize_t i0,
                          Py_ssize_t i1, Py_ssize_t j0, Py_ssize_t j1, int wanted, Py_ssize_t worker) noexcept nogil:
    cdef char* slot = a.workspace + worker * slot_bytes(a.dtype, True)
    i1, j1 = min(i1, a.queries), min(j1, a.keys)
    call(a.dtype, add_gradients[float], add_gradients[double], a, group, first, heads, i0, i1, j0, j1, wanted,
         <void*>slot)


cdef void of_groups(void* job, Py_ssize_t worker, Py_ssize_t stop) noexcept nogil:
    """All gradients of a group at a time: five products for each block."""
    cdef const Attention* a = <const Attention*>job
    cdef Py_ssize_t group = worker
    while group < a.heads // a.group:
        add_part(a, group, 0, a.group, 0, a.queries, 0, a.keys, a.wanted, worker)
        group += a.workers


cdef void of_blocks(void* job, Py_ssize_t worker, Py_ssize_t stop) noexcept nogil:
    """dk and dv of blocks of keys, then dq of blocks of queries: seven products, for few groups."""
    cdef const Attention* a = <const Attention*>job
    cdef Py_ssize_t blocks = blocks_of(a.keys, KEYS), groups = a.heads // a.group, turn, piece
    if a.wanted & (DK | DV):
        for turn in range(blocks_of(groups * blocks, a.workers)):
            piece = share_of(worker, turn, a.workers)
            if piece >= groups * blocks: continue
            add_part(a, piece // blocks, 0, a.group, 0, a.queries, piece % blocks * KEYS, piece % blocks * KEYS + KEYS,
                     a.wanted & (DK | DV), worker)
    blocks = blocks_of(a.queries, QUERIES)
    if a.wanted & DQ:
        for turn in range(blocks_of(a.heads * blocks, a.workers)):
            piece = share_of(worker, turn, a.workers)
            if piece >= a.heads * blocks: continue
            add_part(a, piece // blocks // a.group, piece // blocks % a.group, 1, piece % blocks * QUERIES,
                     piece % blocks * QUERIES + QUERIES, 0, a.keys, DQ, worker)


cdef int gradients(Attention* a) except -1 nogil:
    """The gradients `wanted` of q, k and v."""
    cdef bint many = a.workers == 1 or a.heads // a.group >= 2 * a.workers
    return on_workers(of_groups if many else of_blocks, a)


# ---- the gradient of an added mask -----------------------------------------------------------------------------------

cdef void add_mask_gradient(const Attention* a, Py_ssize_t at, real* s) noexcept nogil:
    """Add the gradients of the scores of queries at to at + QUERIES - 1 to dmask, over all heads."""
    cdef Py_ssize_t m = min(<Py_ssize_t>QUERIES, a.queries - at), h, block, i, j, k, n, right = a.dmask.right
    cdef real* ds = s + QUERIES * KEYS
    cdef real* d
    for h in range(a.heads):
        for block in range(blocks_of(a.keys, KEYS)):
            j = block * KEYS
            n = min(<Py_ssize_t>KEYS, a.keys - j)
            if a.causal: n = min(n, at + m - j)
            if n <= 0: continue
            block_gradient(a, h, at, m, j, n, 1, True, s, ds)
            for i in range(m):
                d = <real*>a.dmask.data + offset_of(&a.dmask, h) + (at + i) * a.dmask.down + j * right
                for k in range(n): d[k * right] += ds[i * n + k]


cdef void of_mask(void* job, Py_ssize_t worker, Py_ssize_t stop) noexcept nogil:
    cdef const Attention* a = <const Attention*>job
    cdef char* slot = a.workspace + worker * slot_bytes(a.dtype, True)
    cdef Py_ssize_t blocks = blocks_of(a.queries, QUERIES), turn, piece
    for turn in range(blocks_of(blocks, a.workers)):
        piece = share_of(worker, turn, a.workers)
        if piece >= blocks: continue
        call(a.dtype, add_mask_gradient[float], add_mask_gradient[double], a, piece * QUERIES, <void*>slot)


cdef int mask_gradient(Attention* a) except -1 nogil:
    """dmask, which the caller has filled with zeros. One worker, if all queries have one row of the mask."""
    if a.dmask.down == 0: a.workers = 1
    return on_workers(of_mask, a)
