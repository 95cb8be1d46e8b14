"""Updates of parameters by solvers, in place and without temporaries: run() distributes the ranges of a parameter among
the threads, run_rows() the rows of a row-sparse gradient. The rules are serial loops, in rules.pyx and here.

Two rules have norms of whole parameters. Their first pass sums squares in float64 over blocks whose size depends on n
only, and the sums of the blocks are added in order, so the norms have the same bits for any number of threads."""

from libc.math cimport INFINITY
from libc.math cimport sqrt as root
from libc.string cimport strcmp

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport Kernels, call, call_double, element, kernel_of, reals
from cygrad.kernels.grouping cimport Groups
from cygrad.kernels.threads cimport parallel_for, threads_for
from cygrad.kernels.mathematics cimport fabs, sqrt


# ---- rules with norms ------------------------------------------------------------------------------------------------

cdef enum:
    TILE = 256              # elements on the stack
    LANES = 8               # partial sums of squares, so that the compiler can vectorize them in a fixed order

cdef inline double sum_of_lanes(const double* lane) noexcept nogil:
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))


cdef double squares(const real* x, Py_ssize_t n) noexcept nogil:
    """The sum of x^2 in float64."""
    cdef double lane[LANES]
    cdef Py_ssize_t i, k
    for k in range(LANES): lane[k] = 0
    for i in range(n // LANES):
        for k in range(LANES): lane[k] += <double>x[i * LANES + k] * <double>x[i * LANES + k]
    for i in range(n - n % LANES, n): lane[0] += <double>x[i] * <double>x[i]
    return sum_of_lanes(lane)


cdef void lars_sums(real* w, const real* g, real** s, const double* c, Py_ssize_t n, double* sums) noexcept nogil:
    """The squares of w and of g."""
    sums[0], sums[1] = squares(w, n), squares(g, n)


cdef double lars_rate(const double* c, const double* norms) noexcept nogil:
    """lr coefficient |w| / (|g| + decay |w|), or lr where |w| < eps"""
    cdef double lr = c[0], decay = c[2], coefficient = c[3], eps = c[4]
    cdef double x = norms[1] + decay * norms[0]
    if norms[0] < eps: return lr
    return lr * coefficient * norms[0] / (x + eps if x < eps else x)


cdef void lars(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = momentum v + local_rate (g + decay w); w -= v"""
    cdef real rate = <real>c[LOCAL], momentum = <real>c[1], decay = <real>c[2]
    cdef real* v = s[0]
    for i in range(n):
        v[i] = momentum * v[i] + rate * (g[i] + decay * w[i])
        w[i] -= v[i]


cdef inline real lamb_step(real m, real v, real w, real rate1, real rate2, real eps, real decay) noexcept nogil:
    """r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay w; the rates are the reciprocals."""
    return rate1 * m / (sqrt(rate2 * v) + eps) + decay * w


cdef void lamb_sums(real* w, const real* g, real** s, const double* c, Py_ssize_t n, double* sums) noexcept nogil:
    """m, v as in adam; the squares of w and of r"""
    cdef real beta1 = <real>c[1], rest1 = <real>c[2], beta2 = <real>c[3], rest2 = <real>c[4]
    cdef real eps = <real>c[5], rate1 = <real>c[6], rate2 = <real>c[7], decay = <real>c[8]
    cdef real r[TILE]
    cdef Py_ssize_t i, start = 0, count
    cdef real* m = s[0]
    cdef real* v = s[1]
    sums[0], sums[1] = squares(w, n), 0
    while start < n:
        count = min(n - start, <Py_ssize_t>TILE)
        for i in range(count):
            m[i] = beta1 * m[i] + rest1 * g[i]
            v[i] = beta2 * v[i] + rest2 * g[i] * g[i]
            r[i] = lamb_step(m[i], v[i], w[i], rate1, rate2, eps, decay)
        sums[1] += squares(<const real*>r, count)
        w, g, m, v = w + count, g + count, m + count, v + count
        start += count


cdef double lamb_rate(const double* c, const double* norms) noexcept nogil:
    """eta clip(|w|, gamma_l, gamma_u) / |r|, or eta where |r| <= eps"""
    cdef double low = c[9], high = c[10]
    return c[0] * min(max(norms[0], low), high) / norms[1] if norms[1] > c[5] else c[0]


cdef void lamb(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """w -= local_rate r"""
    cdef real rate = <real>c[LOCAL], eps = <real>c[5], rate1 = <real>c[6], rate2 = <real>c[7], decay = <real>c[8]
    cdef real* m = s[0]
    cdef real* v = s[1]
    for i in range(n): w[i] -= rate * lamb_step(m[i], v[i], w[i], rate1, rate2, eps, decay)


# ---- gradients: w is the gradient, g the parameter -------------------------------------------------------------------

cdef void scale(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    cdef real factor = <real>c[0]
    for i in range(n): w[i] *= factor


cdef void clip(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """Clip to [-bound, bound]. A NaN stays."""
    cdef real bound = <real>c[0]
    for i in range(n): w[i] = bounded(w[i], -bound, bound)


cdef void decay(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """gradient += rate parameter"""
    cdef real rate = <real>c[0]
    for i in range(n): w[i] += rate * g[i]


cdef void find_bad(const real* x, Py_ssize_t n, bint* inf, bint* nan) noexcept nogil:
    cdef int infs = 0, nans = 0
    for i in range(n):
        infs |= fabs(x[i]) == <real>INFINITY
        nans |= x[i] != x[i]
    if infs: inf[0] = True
    if nans: nan[0] = True


cdef void find_inf_nan(int dtype, const char* x, Py_ssize_t n, bint* inf, bint* nan) noexcept nogil:
    """Set `inf` if an element is infinite, and `nan` if one is NaN."""
    call(dtype, find_bad[float], find_bad[double], <void*>x, n, inf, nan)


# ---- entry points ----------------------------------------------------------------------------------------------------

cdef Kernel kernels[24]
cdef int n_kernels = 0

cdef int add_kernel(const char* name, void* f32, void* f64) except -1:
    """Make the loop of a rule known to kernel()."""
    global n_kernels
    cdef Kernel* k = &kernels[n_kernels]
    k.name, k.loops = name, reals(f32, f64)
    n_kernels += 1

cdef int add_linear(const char* name, int target, double sign, bint early, Kernels before, Kernels after) except -1:
    """Let kernel() know the parts of a rule that is linear in its gradient."""
    cdef int i
    for i in range(n_kernels):
        if strcmp(kernels[i].name, name): continue
        kernels[i].target, kernels[i].sign, kernels[i].early = target, sign, early
        kernels[i].before, kernels[i].after = before, after


cdef bint is_linear(const Kernel* k) noexcept nogil:
    return k.sign != 0


add_kernel("lamb", <void*>lamb[float], <void*>lamb[double])
kernels[n_kernels - 1].sums = reals(<void*>lamb_sums[float], <void*>lamb_sums[double])
kernels[n_kernels - 1].local_rate = lamb_rate
add_kernel("lars", <void*>lars[float], <void*>lars[double])
kernels[n_kernels - 1].sums = reals(<void*>lars_sums[float], <void*>lars_sums[double])
kernels[n_kernels - 1].local_rate = lars_rate
add_kernel("scale", <void*>scale[float], <void*>scale[double])
add_kernel("clip", <void*>clip[float], <void*>clip[double])
add_kernel("decay", <void*>decay[float], <void*>decay[double])


cdef const Kernel* kernel(str name) except NULL:
    """The kernel of this name. Raises ValueError for an unknown name."""
    cdef bytes wanted = name.encode()
    cdef int i
    for i in range(n_kernels):
        if strcmp(kernels[i].name, wanted) == 0: return &kernels[i]
    raise ValueError(f"there is no kernel named {name!r}")


cdef void run(Update* u) noexcept nogil:
    """Update a dense parameter in place. Sets u.c[LOCAL] for a rule with norms."""
    cdef double norms[2]
    if u.kernel.local_rate != NULL:
        sum_blocks(u, norms)
        u.c[LOCAL] = u.kernel.local_rate(u.c, norms)
    run_loops(u, &u.kernel.loops)


cdef void run_before(Update* u) noexcept nogil:
    """What a linear rule does before its gradient is added."""
    if u.kernel.target >= 0 or u.c[L2] != 0: run_loops(u, &u.kernel.before)


cdef void run_after(Update* u) noexcept nogil:
    """What a linear rule does after its gradient was added."""
    if u.kernel.target >= 0: run_loops(u, &u.kernel.after)


cdef void run_loops(Update* u, const Kernels* loops) noexcept nogil:
    cdef int t = threads_for(u.n)
    u.loops = loops
    if t == 1: update_range(u, 0, u.n)
    else: parallel_for(update_range, u, u.n, (u.n + t - 1) // t, t)


cdef void update_range(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Update* u = <Update*>job
    cdef int size = itemsize(u.dtype), k
    cdef void* s[MAX_STATES]
    for k in range(MAX_STATES): s[k] = u.s[k] + a * size
    (<loop_t>kernel_of(u.loops, u.dtype))(u.w + a * size, u.g + a * size, s, u.c, b - a)


# ---- norms -----------------------------------------------------------------------------------------------------------

cdef enum:
    MAX_BLOCKS = 512        # most blocks of an array; their sums are on the stack

cdef struct Blocks:         # the first pass of `update`, or, where that is NULL, the sum of squares of x
    Update* update
    const char* x
    Py_ssize_t n, block
    int dtype
    double sums[MAX_BLOCKS][2]


cdef void sum_range(void* job, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """The sums of the blocks from `first` to `last`."""
    cdef Blocks* j = <Blocks*>job
    cdef int size = itemsize(j.dtype), i
    cdef Py_ssize_t k, a, count
    cdef void* s[MAX_STATES]
    for k in range(first, last):
        a = k * j.block
        count = min(j.block, j.n - a)
        if j.update == NULL:
            j.sums[k][0] = call_double(j.dtype, squares[float], squares[double], element(j.dtype, j.x, a), count)
            continue
        for i in range(MAX_STATES): s[i] = j.update.s[i] + a * size
        (<sums_t>kernel_of(&j.update.kernel.sums, j.dtype))(
            j.update.w + a * size, j.update.g + a * size, s, j.update.c, count, &j.sums[k][0])


cdef void run_blocks(Blocks* j) noexcept nogil:
    """Compute the sums of all blocks, and add them in order: the first block then has the totals."""
    cdef int t = threads_for(j.n)
    cdef Py_ssize_t count, k
    j.block = max(<Py_ssize_t>4096, (j.n + MAX_BLOCKS - 1) // MAX_BLOCKS)
    count = (j.n + j.block - 1) // j.block
    j.sums[0][0] = j.sums[0][1] = 0
    parallel_for(sum_range, j, count, (count + t - 1) // t, t)
    for k in range(1, count):
        j.sums[0][0] += j.sums[k][0]
        j.sums[0][1] += j.sums[k][1]


cdef void sum_blocks(Update* u, double* norms) noexcept nogil:
    """The first pass of a rule with norms."""
    cdef Blocks j
    j.update, j.n, j.dtype = u, u.n, u.dtype
    run_blocks(&j)
    norms[0], norms[1] = root(j.sums[0][0]), root(j.sums[0][1])


cdef double norm(int dtype, const char* x, Py_ssize_t n) noexcept nogil:
    """The Euclidean norm of x. It is scaled where squares would overflow or vanish."""
    cdef Blocks j
    j.update, j.x, j.n, j.dtype = NULL, x, n, dtype
    run_blocks(&j)
    if itemsize(dtype) < 8 or 1e-280 < j.sums[0][0] < INFINITY or j.sums[0][0] != j.sums[0][0]:
        return root(j.sums[0][0])
    return scaled_norm(<const double*>x, n)


cdef double scaled_norm(const double* x, Py_ssize_t n) noexcept nogil:
    cdef double largest = 0, sum_ = 0
    for i in range(n): largest = max(largest, fabs(x[i]))
    if largest == 0 or largest == INFINITY: return largest
    for i in range(n): sum_ += (x[i] / largest) * (x[i] / largest)
    return largest * root(sum_)


# ---- rows ------------------------------------------------------------------------------------------------------------

cdef struct Rows:
    Update* update
    const Groups* groups
    Py_ssize_t row


cdef void run_rows(Update* u, const Groups* groups, Py_ssize_t row) noexcept nogil:
    """Update the rows of a row-sparse gradient, whose values are u.g and have `row` elements each. Rows of equal
    indices are summed first, and the rule is applied to each row once."""
    cdef Rows rows = Rows(u, groups, row)
    cdef int t = threads_for(groups.starts[groups.n] * row)
    parallel_for(rows_range, &rows, groups.n, (groups.n + t - 1) // t, t)


cdef void rows_range(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Rows* r = <Rows*>job
    call(r.update.dtype, update_rows[float], update_rows[double], r, <void*>r.update.g, a, b)


cdef void update_rows(const Rows* r, const real* g, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef real total[TILE]
    cdef void* s[MAX_STATES]
    cdef const Groups* groups = r.groups
    cdef Update* u = r.update
    cdef loop_t loop = <loop_t>kernel_of(&u.kernel.loops, u.dtype)
    cdef const real* x
    cdef Py_ssize_t k, j, i, start, count, first, at
    for k in range(a, b):
        first = groups.starts[k]
        at = groups.index[groups.order[first]]
        if at < 0 or at >= groups.rows: continue    # (overwritten meanwhile)
        at *= r.row
        start = 0
        while start < r.row:
            count = min(r.row - start, <Py_ssize_t>TILE)
            x = g + groups.order[first] * r.row + start
            if groups.starts[k + 1] > first + 1:
                for i in range(count): total[i] = x[i]
                for j in range(first + 1, groups.starts[k + 1]):
                    x = g + groups.order[j] * r.row + start
                    for i in range(count): total[i] += x[i]
                x = total
            for i in range(MAX_STATES): s[i] = <real*>u.s[i] + at + start
            loop(<real*>u.w + at + start, x, s, u.c, count)
            start += count
