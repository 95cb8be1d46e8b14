"""Reductions over any axes of arrays with any strides: walks an array and applies a fold (folds.pyx).

The result is described in the shape of the operand, with stride 0 in the reduced dimensions. The sum is then y[...] +=
x[...] over all indices, for every axis. Adjacent dimensions that are contiguous are merged first, so most reductions
are one or two loops: each row is folded along, or rows are folded across into a tile of results that stays in the
first-level cache. Blocks of rows are added up in float64, so the error of a float32 sum does not grow with its length.

Narrow operands are widened, since a kernel call costs as much as 50 elements. A tile covers several indices of a second
kept dimension. Short rows (of 2 x 2 windows, say) are folded across together with their neighbours, and the elements of
each row are folded into one another at the end.

Threads divide the results among themselves. If there are few results, the operand is divided into parts, and their
results are folded into one another at the end. The division depends only on the shapes, so the bits do not depend on
the number of threads."""

from libc.stdlib cimport llabs
from libc.string cimport memmove

from cygrad.kernels.reductions cimport folds
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, real
from cygrad.kernels.by_dtype cimport call, put_number
from cygrad.kernels.reductions.folds cimport Fold
from cygrad.kernels.lanes cimport BLOCK
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    F32_ROWS = 32           # rows that are added across in float32 before their sum is added in float64
    TILE = 2048             # results of a tile: they and their float64 sums stay in the first-level cache
    SHORT = 32              # elements: up to this length, contiguous rows are folded across several at a time
    PART = 32768            # the least number of elements of a part
    PARTS = 64              # the largest number of parts
    PARTIAL = 8192          # the largest number of results of all parts
    FEW = 7                 # elements: up to this length, rows are folded along at the end only
    PACKED = 512            # elements of a strided row that are packed at a time
    BLOCKS = 16             # blocks of a long row in one kernel call, which costs a fifth of the time of a block
    LINE = 64               # bytes of a cache line

cdef struct Dimension:
    Py_ssize_t n            # size
    Py_ssize_t x            # its stride in x, in by and in y, in elements
    Py_ssize_t by
    Py_ssize_t y

cdef struct Walk:
    const Fold* fold
    const char* x
    const char* by
    char* y
    int dtype
    bint along              # the inner dimension is reduced and `line` has the results; if not, the reverse
    Dimension inner         # the innermost dimension
    Dimension rows          # the next dimension of the other kind
    Dimension line          # the results that a tile covers: those of `inner` or `rows`
    Dimension batch         # another kept dimension, of which a tile covers `positions` indices
    Py_ssize_t short        # elements of `inner` for each result: the size of a reduced dimension inside it, or 1
    Py_ssize_t repeat       # rows that are folded across side by side
    int kept                # number of other dimensions that are kept,
    int reduced             # and that are reduced
    Dimension results[MAX_NDIM]     # the kept ones
    Dimension others[MAX_NDIM]      # the reduced ones
    Py_ssize_t tile         # results of a tile at each position
    Py_ssize_t tiles        # tiles of the line
    Py_ssize_t positions
    Py_ssize_t batches      # tiles of the batch dimension
    bint outer              # parts are divided along others[0]; if not, along the inner dimension or the rows

cdef struct Place:          # the first element of a tile in x, by and y, and its size
    Py_ssize_t x
    Py_ssize_t by
    Py_ssize_t y
    Py_ssize_t m
    Py_ssize_t positions

cdef struct Parts:          # the parts of one tile
    const Walk* walk
    Py_ssize_t tile
    Py_ssize_t width        # results of the tile
    int parts
    double* results         # `width` results for each part


# ---- a tile of results -----------------------------------------------------------------------------------------------

cdef inline const real* packed(const real* x, Py_ssize_t step, Py_ssize_t n, real* scratch) noexcept nogil:
    """A pointer to n contiguous elements: x itself, or a copy in `scratch` if they are strided."""
    cdef Py_ssize_t i
    if step == 1: return x
    for i in range(n): scratch[i] = x[i * step]
    return scratch


cdef inline char* aligned(char* p) noexcept nogil:
    """The next cache line at or after p. Vectors that cross two lines are slow to read and write."""
    return <char*>((<size_t>p + LINE - 1) & ~<size_t>(LINE - 1))


cdef inline void call_along(const Fold* fold, const real* x, const real* by, double* y, Py_ssize_t step,
                            Py_ssize_t rows, Py_ssize_t n, Py_ssize_t row) noexcept nogil:
    if real is float: fold.along_f32(x, row, rows, n, by, y, step)
    else:             fold.along_f64(x, row, rows, n, by, y, step)


cdef inline void call_across(const Fold* fold, const real* x, const real* by, real* y, Py_ssize_t rows, Py_ssize_t n,
                             Py_ssize_t row) noexcept nogil:
    if real is float: fold.across_f32(x, row, rows, n, by, y)
    else:             fold.across_f64(x, row, rows, n, by, y)


cdef void fold_along(const Walk* w, const real* x, const real* by, double* y, Py_ssize_t rows,
                     Py_ssize_t n) noexcept nogil:
    """Fold each of `rows` rows of n elements into one result; long rows in blocks."""
    cdef real px[PACKED]
    cdef real by_block[BLOCKS]
    cdef Py_ssize_t step = w.inner.x, r, i, k
    if step == 1 and n <= BLOCK:
        call_along(w.fold, x, by, y, 1, rows, n, w.rows.x)
        return
    for r in range(rows):
        i = 0
        for k in range(BLOCKS): by_block[k] = by[r]
        while step == 1 and n - i >= BLOCK:         # blocks are rows with one result
            k = min((n - i) // BLOCK, <Py_ssize_t>BLOCKS)
            call_along(w.fold, x + r * w.rows.x + i, <const real*>by_block, y + r, 0, k, BLOCK, BLOCK)
            i += k * BLOCK
        while i < n:
            k = min(n - i, BLOCK if step == 1 else PACKED)
            call_along(w.fold, packed(x + r * w.rows.x + i * step, step, k, px), by + r, y + r, 1, 1, k, 0)
            i += k


cdef void fold_across(const Walk* w, const real* x, const real* by, real* y, double* sums, Py_ssize_t* folded,
                      Py_ssize_t rows, Py_ssize_t row, Py_ssize_t n) noexcept nogil:
    """Fold `rows` rows of n elements, with stride `row`, into n results. If the fold adds in float32, y is added to
    `sums` and cleared after every F32_ROWS rows, which `folded` counts."""
    cdef real px[TILE]
    cdef Py_ssize_t k = 0, count, i
    cdef bint blocks = w.fold.adds and real is float
    while k < rows:
        count = min(F32_ROWS - folded[0], rows - k) if blocks else rows - k
        if w.inner.x == 1:
            call_across(w.fold, x + k * row, by, y, count, n, row)
        else:                                       # strided: four rows of a quarter tile fit into px
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


cdef inline void locate(const Walk* w, Py_ssize_t tile, Place* at) noexcept nogil:
    """Set `at` to the place of a tile."""
    cdef Py_ssize_t first = tile % w.tiles * w.tile, rest = tile // w.tiles, start, index
    start = rest % w.batches * w.positions
    rest = rest // w.batches
    at.m, at.positions = min(w.tile, w.line.n - first), min(w.positions, w.batch.n - start)
    at.x = first * w.line.x + start * w.batch.x
    at.by = first * w.line.by + start * w.batch.by
    at.y = first * w.line.y + start * w.batch.y
    for d in range(w.kept - 1, -1, -1):
        index = rest % w.results[d].n
        rest = rest // w.results[d].n
        at.x += index * w.results[d].x
        at.by += index * w.results[d].by
        at.y += index * w.results[d].y


cdef void fold_position(const Walk* w, const real* x, const real* by, real* y, double* sums, Py_ssize_t m, int part,
                        int parts) noexcept nogil:
    """Fold the elements of m results: along rows into `sums`, or across rows into y and `sums`. Contiguous short rows
    are folded across as fewer, longer rows."""
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t count = w.inner.n if w.along else w.rows.n, folded = 0
    cdef Py_ssize_t outer = w.others[0].n if w.reduced else 1, start, n_rows, i
    cdef int d
    if parts > 1 and w.outer:
        start = outer * part // parts
        outer = outer * (part + 1) // parts - start
        x += start * w.others[0].x
    elif parts > 1:
        start = count * part // parts
        count = count * (part + 1) // parts - start
        x += start * (w.inner.x if w.along else w.rows.x)
    n_rows = count // w.repeat
    m *= w.short
    for d in range(w.reduced): index[d] = 0
    while True:
        if w.along: fold_along(w, x, by, sums, m, count)
        else:
            fold_across(w, x, by, y, sums, &folded, n_rows, w.rows.x * w.repeat, m * w.repeat)
            if n_rows * w.repeat < count:
                fold_across(w, x + n_rows * w.repeat * m, by, y, sums, &folded, count - n_rows * w.repeat, m, m)
        d = w.reduced - 1
        while d >= 0:                               # carry into the next row
            index[d] += 1
            x += w.others[d].x
            i = outer if d == 0 else w.others[d].n
            if index[d] < i: break
            x -= i * w.others[d].x
            index[d] = 0
            d -= 1
        if d < 0: break


cdef void fold_tile(const Walk* w, const real* x, const real* by, real* y, Py_ssize_t tile, int part, int parts,
                    double* out) noexcept nogil:
    """Fold all elements of a tile into its results in y or, for one part, into `out`."""
    cdef real pby[TILE]
    cdef real buffer_y[TILE + LINE]
    cdef double buffer_sums[TILE + LINE]
    cdef double columns[TILE]
    cdef real* py = <real*>aligned(<char*>buffer_y)
    cdef double* sums = <double*>aligned(<char*>buffer_sums)
    cdef Place at
    cdef Py_ssize_t width, n, i, k, _
    cdef bint blocks = w.fold.adds and real is float
    cdef double start = w.fold.start
    locate(w, tile, &at)
    width = at.m * w.short * w.repeat               # elements that are folded across at each position
    n = width * at.positions
    if w.by == NULL: by = &pby[0]
    elif n == at.m: by = packed(by + at.by, w.line.by, n, pby)
    else:
        spread(w, by + at.by, &at, pby)
        by = &pby[0]
    if w.along or blocks: fill(sums, n, start)
    if not w.along: fill(py, n, <real>start)
    for i in range(at.positions):
        k = i * width
        fold_position(w, x + at.x + i * w.batch.x, by + k, py + k, sums + k, at.m, part, parts)
    if not w.along:
        if blocks:
            for i in range(n): sums[i] += py[i]
        else:
            for i in range(n): sums[i] = py[i]
        if w.repeat > 1:
            for i in range(at.positions):           # rows side by side into the first
                k = width // w.repeat
                join(w, sums + i * width, w.repeat, k, sums + i * k)
        if w.short > 1:                             # the elements of each row, as the rows of a transposed matrix
            n = at.m * at.positions
            transpose(sums, n, w.short, columns)
            join(w, columns, w.short, n, sums)
    if out == NULL:
        y += at.y
        for _ in range(at.positions):
            put(sums, at.m, y, w.line.y)
            y += w.batch.y
            sums += at.m
    else: put(sums, at.m, out, 1)


# These loops are functions of their own, because gcc does not vectorize loops that read fields of `w`.

cdef inline void fill(real* y, Py_ssize_t n, real value) noexcept nogil:
    for i in range(n): y[i] = value


cdef inline void transpose(const double* x, Py_ssize_t rows, Py_ssize_t n, double* y) noexcept nogil:
    cdef Py_ssize_t i, k
    if n == 2:
        for i in range(rows): y[i], y[rows + i] = x[2 * i], x[2 * i + 1]
        return
    for k in range(n):
        for i in range(rows): y[k * rows + i] = x[i * n + k]


cdef inline void put(const double* x, Py_ssize_t n, real* y, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t i
    if step == 1:
        for i in range(n): y[i] = <real>x[i]
    else:
        for i in range(n): y[i * step] = <real>x[i]


cdef void spread(const Walk* w, const real* by, const Place* at, real* y) noexcept nogil:
    """y = the second operand of each element that is folded across."""
    cdef Py_ssize_t position, _row, i, _k, n = 0
    for position in range(at.positions):
        for _row in range(w.repeat):
            for i in range(at.m):
                for _k in range(w.short):
                    y[n] = by[position * w.batch.by + i * w.line.by]
                    n += 1


cdef inline void join(const Walk* w, double* x, Py_ssize_t rows, Py_ssize_t n, double* y) noexcept nogil:
    """Fold the results in `rows` rows of n into those of the first row, and move them to y."""
    w.fold.join(x + n, n, rows - 1, n, x, x)
    if y != x: memmove(y, x, n * sizeof(double))


# ---- all tiles -------------------------------------------------------------------------------------------------------

cdef void tiles_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Walk* w = <const Walk*>job
    for i in range(start, stop):
        call(w.dtype, fold_tile[float], fold_tile[double], w, <void*>w.x, <void*>w.by, <void*>w.y, i, 0, 1, NULL)


cdef void parts_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Parts* p = <const Parts*>job
    cdef const Walk* w = p.walk
    cdef Py_ssize_t i
    for i in range(start, stop):
        call(w.dtype, fold_tile[float], fold_tile[double], w, <void*>w.x, <void*>w.by, <void*>w.y, p.tile, <int>i,
             p.parts, p.results + i * p.width)


cdef void fold_parts(const Walk* w, Py_ssize_t tile, int parts, int threads) noexcept nogil:
    """Fold a tile in parts, and then the results of the parts into one another, in order."""
    cdef double results[PARTIAL]
    cdef Place at
    cdef Py_ssize_t i
    cdef Parts job
    locate(w, tile, &at)
    job = Parts(w, tile, at.m, parts, &results[0])
    parallel_for(parts_range, &job, parts, 1, threads)
    join(w, results, parts, at.m, results)
    for i in range(at.m): put_number(w.dtype, w.y, at.y + i * w.line.y, results[i])


cdef void walk(Walk* w, Py_ssize_t size) noexcept nogil:
    """Fold x[index] with by[index] into y[index] for all indices; `size` is their number. A task is one tile of
    results. If there are few tasks with much work, each is divided into parts."""
    cdef Py_ssize_t results = w.line.n, length = w.inner.n if w.along else w.rows.n
    cdef Py_ssize_t depth = length * w.short, tasks, parts = 1, i, width
    cdef int d, t = threads_for(size * w.fold.cost // 4)
    for d in range(w.reduced): depth *= w.others[d].n
    w.tile = max(1, min(TILE, PART // depth)) if w.along else TILE // (w.short if w.inner.x == 1 else 4)
    w.tiles = tasks = (results + w.tile - 1) // w.tile
    w.batches, w.positions, w.repeat = w.batch.n, 1, 1
    for d in range(w.kept): tasks *= w.results[d].n
    if tasks * w.batches < PARTS // 4 and size >= 2 * tasks * w.batches * PART:
        tasks *= w.batches
        w.tile = (results + w.tiles - 1) // w.tiles
        w.outer = w.reduced and (w.others[0].n >= PARTS or w.others[0].n > length)
        parts = min(min(PARTIAL // w.tile, <Py_ssize_t>PARTS), size // tasks // PART)
        parts = min(parts, w.others[0].n if w.outer else length)
    if not w.along:
        width = min(w.tile, results) * w.short
        if width <= SHORT and w.rows.x == width and w.inner.x == 1 and length * width >= 4 * SHORT:
            w.repeat = 4 * SHORT // width
        if parts == 1:
            i = min(TILE // (width * w.repeat), PART // (width // w.short * depth))
            w.positions = max(1, min(i, w.batch.n))
            w.batches = (w.batch.n + w.positions - 1) // w.positions
    if parts > 1:
        for i in range(tasks): fold_parts(w, i, <int>parts, t)
    else:
        tasks *= w.batches
        parallel_for(tiles_range, w, tasks, tasks if t == 1 else (tasks + 4 * t - 1) // (4 * t), t)


cdef inline bint farther(Py_ssize_t step, Py_ssize_t than) noexcept nogil:
    """Whether `step` is larger than `than` in absolute value; 0, which repeats one element, is the largest."""
    return than != 0 and (step == 0 or llabs(step) > llabs(than))


cdef inline int other(const Dimension* order, int k, int but, bint kept) noexcept nogil:
    """The innermost of the first k dimensions that is kept (or reduced) and is not `but`; -1 if there is none."""
    cdef int d = k - 1
    while d >= 0 and (d == but or (order[d].y != 0) != kept): d -= 1
    return d


cdef void choose_batch(Walk* w) noexcept nogil:
    """Move the innermost of the other kept dimensions, or the largest if that one is small, to w.batch."""
    cdef int d, best = w.kept - 1
    w.batch = Dimension(1, 0, 0, 0)
    if w.kept == 0: return
    if w.results[best].n < FEW:
        for d in range(w.kept):
            if w.results[d].n > w.results[best].n: best = d
    w.batch = w.results[best]
    w.kept -= 1
    for d in range(best, w.kept): w.results[d] = w.results[d + 1]


cdef int fold_into(const Fold* fold, const Array* x, const Array* by, const Array* y) except -1 nogil:
    """y = the fold of x with `by`. The memory of y is dense, but its layout has the shape of x, with stride 0 in the
    reduced dimensions. `by` has the shape of x too and is constant along the reduced dimensions; it is NULL for folds
    without a second operand."""
    cdef Walk w
    cdef Dimension order[MAX_NDIM]
    cdef Dimension dim
    cdef Py_ssize_t kept = 1
    cdef const Layout* lx = x.layout
    cdef const Layout* ly = y.layout
    cdef int d, k, n = 0, second, third
    if lx.size == 0:
        for d in range(lx.ndim):
            if ly.strides[d] != 0: kept *= lx.shape[d]
        call(y.dtype, fill[float], fill[double], <void*>y.data, kept, fold.start)
        return 0
    for d in range(lx.ndim):                        # sort the dimensions by their strides in x,
        if lx.shape[d] == 1: continue               # the largest first
        k = n
        while k > 0 and farther(lx.strides[d], order[k - 1].x):
            order[k] = order[k - 1]
            k -= 1
        order[k] = Dimension(lx.shape[d], lx.strides[d], by.layout.strides[d] if by != NULL else 0, ly.strides[d])
        n += 1
    if n == 0:
        order[0] = Dimension(1, 1, 0, 0)
        n = 1
    k = 0
    for d in range(1, n):                           # merge dimensions that are contiguous
        dim = order[d]
        if order[k].x == dim.n * dim.x and order[k].by == dim.n * dim.by and order[k].y == dim.n * dim.y:
            dim.n *= order[k].n
        else:
            k += 1
        order[k] = dim
    w.fold, w.x, w.by, w.y, w.dtype = fold, x.data, by.data if by != NULL else NULL, y.data, x.dtype
    w.inner, w.rows, w.along = order[k], Dimension(1, 0, 0, 0), order[k].y == 0
    w.kept = w.reduced = w.outer = 0
    w.short = 1
    second = other(order, k, k, w.along)
    if second >= 0: w.rows = order[second]
    w.line = w.rows if w.along else w.inner
    third = second
    if w.along and w.inner.n <= FEW and w.inner.x == 1 and w.rows.x == w.inner.n:
        w.along, w.short, w.inner.n, w.rows = False, w.inner.n, w.inner.n * w.rows.n, Dimension(1, 0, 0, 0)
        third = other(order, k, second, False)
        if third >= 0: w.rows = order[third]
    for d in range(k):
        if d == second or d == third: continue
        if order[d].y != 0:
            w.results[w.kept] = order[d]
            w.kept += 1
        else:
            w.others[w.reduced] = order[d]
            w.reduced += 1
            if order[d].n > w.others[0].n:          # the longest first: it is divided into parts
                w.others[w.reduced - 1] = w.others[0]
                w.others[0] = order[d]
    choose_batch(&w)
    walk(&w, lx.size)


cdef int sum_into(const Array* x, const Array* y) except -1 nogil:
    """y = the sum of x. See fold_into() for the layout of y."""
    return fold_into(&folds.SUM, x, NULL, y)


cdef int sum_to(const Array* x, const Array* y) except -1 nogil:
    """y = x summed over broadcast dimensions. y is dense, and its shape broadcasts to that of x."""
    cdef Layout expanded = x.layout[0]
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Array z = y[0]
    cdef int d, i
    if y.layout.size == 0: return 0                 # nothing to write; the strides may be anything
    for d in range(expanded.ndim):
        i = d - expanded.ndim + y.layout.ndim
        strides[d] = y.layout.strides[i] if i >= 0 and y.layout.shape[i] != 1 else 0
    expanded.strides = strides
    z.layout = &expanded
    return sum_into(x, &z)
