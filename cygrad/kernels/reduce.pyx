"""Reductions along any axes of arrays of any strides: the walk that brings elements to a fold.

The result is seen in the shape of the operand, with strides of 0 along what is reduced: y[...] += x[...] over all
indices is then the sum, and one walk serves every axis. Neighbouring dimensions that continue each other are merged
first, so most reductions are one or two loops: rows that are folded along, or across a tile of results that stays in
the first-level cache. Blocks of rows are gathered in double precision, so the error of a float32 sum does not grow with
its length.

Threads share the results, and what goes into few results is cut into parts that are folded into one another at the
end. How it is cut follows from the shapes alone: the same bits come with any number of threads."""

from libc.stdlib cimport llabs

from cygrad.kernels cimport folds
from cygrad.kernels.array cimport (
    FLOAT32, MAX_NDIM, Array, Layout, real, steps1d, steps2d, steps2f, view1d, view1f, view2d,
)
from cygrad.kernels.folds cimport Fold
from cygrad.kernels.lanes cimport BLOCK
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    F32_ROWS = 32                # rows that are summed across in single precision
    TILE = 2048             # results that are folded across at once: they and their sums stay in the first-level cache
    SHORT = 32              # elements of a row at most of which several are folded across as one
    PART = 32768            # elements of a part at least, where few results are made of many elements,
    PARTS = 64              # how many parts there are at most,
    PARTIAL = 8192          # and how many results all parts have at most
    PACKED = 512            # elements of a strided row that are packed at once
    BLOCKS = 16             # blocks of a long row that a kernel is called for: a call costs a fifth of a block's time
    LINE = 64               # bytes of a line of the cache

cdef struct Dimension:
    Py_ssize_t n            # elements,
    Py_ssize_t x            # and their steps
    Py_ssize_t by
    Py_ssize_t y

cdef struct Walk:
    const Fold* fold
    const char* x
    const char* by
    char* y
    bint is_f32             # float32, not float64
    bint along              # the inner dimension is reduced, and the results are its rows; if not, it is the results
    Dimension inner
    Dimension rows          # the next one of the other kind
    int kept                # how many others there are, of results
    int reduced             # and reduced
    Dimension results[MAX_NDIM]
    Dimension others[MAX_NDIM]
    Py_ssize_t tile         # results in a task
    Py_ssize_t tiles        # tasks in the inner dimension or the rows
    bint outer              # parts are cut from the first of the others; if not, from the inner dimension or the rows

cdef struct Parts:          # of one tile
    const Walk* walk
    Py_ssize_t tile
    Py_ssize_t width        # its results
    int parts
    double* results         # of all parts


# ---- a tile of results -----------------------------------------------------------------------------------------------

cdef inline const real* packed(const real* x, Py_ssize_t step, Py_ssize_t n, real* scratch) noexcept nogil:
    """n elements side by side: where they are, or copied."""
    cdef Py_ssize_t i
    if step == 1: return x
    for i in range(n): scratch[i] = x[i * step]
    return scratch


cdef inline char* aligned(char* p) noexcept nogil:
    """The next line of the cache: vectors that are read and written again and again must not lie across two."""
    return <char*>((<size_t>p + LINE - 1) & ~<size_t>(LINE - 1))


cdef inline void call_along(const Fold* fold, const real* x, const real* by, double* y, Py_ssize_t step,
                            Py_ssize_t rows, Py_ssize_t n, Py_ssize_t row) noexcept nogil:
    if real is float:
        fold.along_single(steps2f(<float*>x, rows, n, row), view1f(<float*>by, rows), steps1d(y, rows, step))
    else:
        fold.along_double(steps2d(<double*>x, rows, n, row), view1d(<double*>by, rows), steps1d(y, rows, step))


cdef inline void call_across(const Fold* fold, const real* x, const real* by, real* y, Py_ssize_t rows, Py_ssize_t n,
                             Py_ssize_t row) noexcept nogil:
    if real is float:
        fold.across_single(steps2f(<float*>x, rows, n, row), view1f(<float*>by, n), view1f(y, n))
    else:
        fold.across_double(steps2d(<double*>x, rows, n, row), view1d(<double*>by, n), view1d(y, n))


cdef void fold_along(const Walk* w, const real* x, const real* by, double* y, Py_ssize_t rows,
                     Py_ssize_t n) noexcept nogil:
    """n elements each of some rows, each row into one result; long ones in blocks."""
    cdef real px[PACKED]
    cdef real same[BLOCKS]
    cdef Py_ssize_t step = w.inner.x, r, i, k
    if step == 1 and n <= BLOCK:
        call_along(w.fold, x, by, y, 1, rows, n, w.rows.x)
        return
    for r in range(rows):
        i = 0
        for k in range(BLOCKS): same[k] = by[r]
        while step == 1 and n - i >= BLOCK:         # as rows into one result
            k = min((n - i) // BLOCK, <Py_ssize_t>BLOCKS)
            call_along(w.fold, x + r * w.rows.x + i, <const real*>same, y + r, 0, k, BLOCK, BLOCK)
            i += k * BLOCK
        while i < n:
            k = min(n - i, BLOCK if step == 1 else PACKED)
            call_along(w.fold, packed(x + r * w.rows.x + i * step, step, k, px), by + r, y + r, 1, 1, k, 0)
            i += k


cdef void fold_across(const Walk* w, const real* x, const real* by, real* y, double* sums, Py_ssize_t* folded,
                      Py_ssize_t rows, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    """`rows` times n elements, `row` steps apart, into n results. What is added goes to `sums` whenever FEW rows have
    come; `folded` counts them."""
    cdef real px[TILE]
    cdef Py_ssize_t k = 0, count, i
    cdef bint blocks = w.fold.adds and real is float
    while k < rows:
        count = min(F32_ROWS - folded[0], rows - k) if blocks else rows - k
        if w.inner.x == 1:
            call_across(w.fold, x + k * row, by, y, count, n, row)
        else:                                       # a strided tile is a quarter as wide
            count = min(count, 4)
            for i in range(count): packed(x + (k + i) * row, w.inner.x, n, px + i * n)
            call_across[real](w.fold, px, by, y, count, n, n)
        k += count
        if not blocks: continue
        folded[0] += count
        if folded[0] < F32_ROWS: continue
        for i in range(n):
            sums[i] += y[i]
            y[i] = 0
        folded[0] = 0


cdef inline Py_ssize_t locate(const Walk* w, Py_ssize_t tile, Dimension* at) noexcept nogil:
    """How many results a tile has, and (`at`) where it begins in x, by and y."""
    cdef const Dimension* results = &w.rows if w.along else &w.inner
    cdef Py_ssize_t first = tile % w.tiles * w.tile, rest = tile // w.tiles, place
    cdef int d
    at.x, at.by, at.y = first * results.x, first * results.by, first * results.y
    for d in range(w.kept - 1, -1, -1):
        place = rest % w.results[d].n
        rest = rest // w.results[d].n
        at.x += place * w.results[d].x
        at.by += place * w.results[d].by
        at.y += place * w.results[d].y
    return min(w.tile, results.n - first)


cdef void fold_tile(const Walk* w, const real* x, const real* by, real* y, Py_ssize_t tile, int part, int parts,
                    double* out) noexcept nogil:
    """What goes into the results of a tile: to y, or (`out`) of one part of it, to there. Short rows that lie one after
    the other are folded across as fewer and longer ones, and what came of those into each other."""
    cdef real pby[TILE]
    cdef real room_y[TILE + LINE]
    cdef double room_sums[TILE + LINE]
    cdef real* py = <real*>aligned(<char*>room_y)
    cdef double* sums = <double*>aligned(<char*>room_sums)
    cdef Dimension begin
    cdef Py_ssize_t at[MAX_NDIM]
    cdef Py_ssize_t m = locate(w, tile, &begin), wide = m, count = w.inner.n if w.along else w.rows.n, folded = 0
    cdef Py_ssize_t outer = w.others[0].n if w.reduced else 1, start, many, i
    cdef Py_ssize_t step_y = w.rows.y if w.along else w.inner.y, step_by = w.rows.by if w.along else w.inner.by
    cdef bint blocks = w.fold.adds and real is float
    cdef int d
    x += begin.x
    y += begin.y
    if w.by == NULL: by = &pby[0]
    else: by = packed(by + begin.by, step_by, m, pby)
    if parts > 1 and w.outer:
        start = outer * part // parts
        outer = outer * (part + 1) // parts - start
        x += start * w.others[0].x
    elif parts > 1:
        start = count * part // parts
        count = count * (part + 1) // parts - start
        x += start * (w.inner.x if w.along else w.rows.x)
    if not w.along and m <= SHORT and w.rows.x == m and w.inner.x == 1 and count * m >= 4 * SHORT:
        wide = 4 * SHORT // m * m
        for i in range(wide if w.by != NULL else 0): pby[i] = by[i % m]
        by = &pby[0]
    many = count * m // wide
    if w.along or blocks:
        for i in range(wide): sums[i] = w.fold.start
    if not w.along:
        for i in range(wide): py[i] = <real>w.fold.start
    for d in range(w.reduced): at[d] = 0
    while True:
        if w.along:
            fold_along(w, x, by, sums, m, count)
        else:
            fold_across(w, x, by, py, sums, &folded, many, w.rows.x * (wide // m), wide)
            if many * wide < count * m:
                fold_across(w, x + many * wide, by, py, sums, &folded, count - many * (wide // m), m, m)
        d = w.reduced - 1
        while d >= 0:                               # carry into the next row
            at[d] += 1
            x += w.others[d].x
            i = outer if d == 0 else w.others[d].n
            if at[d] < i: break
            x -= i * w.others[d].x
            at[d] = 0
            d -= 1
        if d < 0: break
    if not w.along:
        if blocks:
            for i in range(wide): sums[i] += py[i]
        else:
            for i in range(wide): sums[i] = py[i]
        if wide > m: w.fold.join(view2d(sums + m, wide // m - 1, m), view1d(sums, m), view1d(sums, m))
    if out == NULL:
        for i in range(m): y[i * step_y] = <real>sums[i]
    else:
        for i in range(m): out[i] = sums[i]


# ---- all tiles -------------------------------------------------------------------------------------------------------

cdef void some_tiles(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Walk* w = <const Walk*>job
    cdef Py_ssize_t i
    for i in range(start, stop):
        if w.is_f32: fold_tile[float](w, <float*>w.x, <float*>w.by, <float*>w.y, i, 0, 1, NULL)
        else:        fold_tile[double](w, <double*>w.x, <double*>w.by, <double*>w.y, i, 0, 1, NULL)


cdef void some_parts(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Parts* p = <const Parts*>job
    cdef const Walk* w = p.walk
    cdef Py_ssize_t i
    for i in range(start, stop):
        if w.is_f32:
            fold_tile[float](w, <float*>w.x, <float*>w.by, <float*>w.y, p.tile, <int>i, p.parts,
                             p.results + i * p.width)
        else:
            fold_tile[double](w, <double*>w.x, <double*>w.by, <double*>w.y, p.tile, <int>i, p.parts,
                              p.results + i * p.width)


cdef void fold_parts(const Walk* w, Py_ssize_t tile, int parts, int threads) noexcept nogil:
    """A tile in parts, which are then folded into each other in order."""
    cdef double results[PARTIAL]
    cdef Dimension at
    cdef Py_ssize_t m = locate(w, tile, &at), step = w.rows.y if w.along else w.inner.y, i
    cdef Parts job = Parts(w, tile, m, parts, &results[0])
    parallel_for(some_parts, &job, parts, 1, threads)
    w.fold.join(view2d(results + m, parts - 1, m), view1d(results, m), view1d(results, m))
    for i in range(m):
        if w.is_f32: (<float*>w.y)[at.y + i * step] = <float>results[i]
        else:        (<double*>w.y)[at.y + i * step] = results[i]


cdef void walk(Walk* w, Py_ssize_t size) noexcept nogil:
    """y[index] = fold of x[index] by by[index], over all indices, `size` of them. A tile of results is a task; where
    there are few tasks of much work each goes in parts."""
    cdef Py_ssize_t results = w.rows.n if w.along else w.inner.n, near = w.inner.n if w.along else w.rows.n
    cdef Py_ssize_t depth = near, tasks, parts = 1, i
    cdef int d, t = threads_for(size * w.fold.cost // 4)
    for d in range(w.reduced): depth *= w.others[d].n
    w.tile = max(1, min(TILE, PART // depth)) if w.along else TILE if w.inner.x == 1 else TILE // 4
    w.tiles = tasks = (results + w.tile - 1) // w.tile
    for d in range(w.kept): tasks *= w.results[d].n
    if tasks < PARTS // 4 and size >= 2 * tasks * PART:
        w.tile = (results + w.tiles - 1) // w.tiles
        w.outer = w.reduced and (w.others[0].n >= PARTS or w.others[0].n > near)
        parts = min(min(PARTIAL // w.tile, <Py_ssize_t>PARTS), size // tasks // PART)
        parts = min(parts, w.others[0].n if w.outer else near)
    if parts > 1:
        for i in range(tasks): fold_parts(w, i, <int>parts, t)
    else:
        parallel_for(some_tiles, w, tasks, tasks if t == 1 else (tasks + 4 * t - 1) // (4 * t), t)


cdef void fill(const Array* y, Py_ssize_t n, double value) noexcept nogil:
    """The first n elements of memory, all `value`."""
    cdef Py_ssize_t i
    if y.dtype == FLOAT32:
        for i in range(n): (<float*>y.data)[i] = <float>value
    else:
        for i in range(n): (<double*>y.data)[i] = value


cdef inline bint further(Py_ssize_t step, Py_ssize_t than) noexcept nogil:
    """Whether elements lie further apart; those that repeat one element lie furthest."""
    return than != 0 and (step == 0 or llabs(step) > llabs(than))


cdef int fold_into(const Fold* fold, const Array* x, const Array* by, const Array* y) except -1 nogil:
    """y = the fold of x, y dense in memory of its own but described in the shape of x, with strides of 0 along what is
    reduced. `by` (NULL for folds that do not look at it) is described in the shape of x too, and constant along what is
    reduced."""
    cdef Walk w
    cdef Dimension order[MAX_NDIM]
    cdef Dimension one
    cdef Py_ssize_t kept = 1
    cdef const Layout* lx = x.layout
    cdef const Layout* ly = y.layout
    cdef int d, k, n = 0, second
    if lx.size == 0:
        for d in range(lx.ndim):
            if ly.strides[d] != 0: kept *= lx.shape[d]
        fill(y, kept, fold.start)
        return 0
    for d in range(lx.ndim):                        # dimensions go from those whose elements lie furthest apart in x
        if lx.shape[d] == 1: continue               # to the one where they lie closest together
        k = n
        while k > 0 and further(lx.strides[d], order[k - 1].x):
            order[k] = order[k - 1]
            k -= 1
        order[k] = Dimension(lx.shape[d], lx.strides[d], by.layout.strides[d] if by != NULL else 0, ly.strides[d])
        n += 1
    if n == 0:
        order[0] = Dimension(1, 1, 0, 0)
        n = 1
    k = 0
    for d in range(1, n):                           # one that continues the one before is one with it
        one = order[d]
        if order[k].x == one.n * one.x and order[k].by == one.n * one.by and order[k].y == one.n * one.y:
            one.n *= order[k].n
        else:
            k += 1
        order[k] = one
    w.fold, w.x, w.by, w.y, w.is_f32 = fold, x.data, by.data if by != NULL else NULL, y.data, x.dtype == FLOAT32
    w.inner, w.rows, w.along = order[k], Dimension(1, 0, 0, 0), order[k].y == 0
    w.kept = w.reduced = w.outer = 0
    second = k - 1
    while second >= 0 and (order[second].y == 0) == w.along: second -= 1
    if second >= 0: w.rows = order[second]
    for d in range(k):
        if d == second: continue
        if order[d].y != 0:
            w.results[w.kept] = order[d]
            w.kept += 1
        else:
            w.others[w.reduced] = order[d]
            w.reduced += 1
            if order[d].n > w.others[0].n:          # the longest comes first: parts are cut from it
                w.others[w.reduced - 1] = w.others[0]
                w.others[0] = order[d]
    walk(&w, lx.size)
    return 0


cdef int sum_into(const Array* x, const Array* y) except -1 nogil:
    """y = the sum of x, described as fold_into() wants it."""
    return fold_into(&folds.SUM, x, NULL, y)


cdef int sum_to(const Array* x, const Array* y) except -1 nogil:
    """y = x summed over what broadcasting had repeated; y is dense, its shape broadcasts to that of x."""
    cdef Layout seen = x.layout[0]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Array z = y[0]
    cdef int d, i
    if y.layout.size == 0: return 0                 # (nothing to write, and the strides of nothing may be anything)
    for d in range(seen.ndim):
        i = d - seen.ndim + y.layout.ndim
        strides[d] = y.layout.strides[i] if i >= 0 and y.layout.shape[i] != 1 else 0
    seen.strides = strides
    z.layout = &seen
    return sum_into(x, &z)
