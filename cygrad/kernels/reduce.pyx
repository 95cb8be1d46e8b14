"""Reductions along any axes of arrays of any strides: sums, products, extremes.

The result is seen in the shape of the operand, with strides of 0 along what is reduced: y[...] += x[...] over all
indices is then the sum, and one walk serves every axis. Neighbouring dimensions that continue each other are merged
first, so most reductions are one or two loops.

What is done with an element is a fold: a pair of loops over contiguous runs. `along` folds each row of x into one
number; `across` folds the rows into one another, element by element. Both see beside x what the fold measures it
against (`by`: a mean, a maximum, a power), which has a value for each result. Along goes in eight lanes and blocks, and
sums of many rows, in blocks of few, are gathered in double precision, so the error of a float32 sum does not grow with
its length."""

from libc cimport math

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport (
    FLOAT32, MAX_NDIM, Array, Layout, real, steps1d, steps2d, steps2f, view1d, view1f,
)
from cygrad.kernels.mathematics cimport exp, fabs, pow

cdef enum:
    BLOCK = 512
    LANES = 8
    WIDE = 32               # lanes of what has conditions: a loop that is not unrolled, so that it becomes vectors
    FEW = 32                # rows that are summed across in single precision


cdef inline double total(real* lane) noexcept nogil:
    return <double>(((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])))


# ---- sum: y += x -----------------------------------------------------------------------------------------------------

cdef void sum_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef real lane[LANES]
    cdef Py_ssize_t n = x.shape[1], r, i
    cdef int l
    for r in range(x.shape[0]):
        for l in range(LANES): lane[l] = 0
        i = 0
        while i + LANES <= n:
            for l in range(LANES): lane[l] += x[r, i + l]
            i += LANES
        while i < n:
            lane[0] += x[r, i]
            i += 1
        y[r] += total(lane)

cdef void sum_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] += x[r, i]


# ---- product: y *= x -------------------------------------------------------------------------------------------------

cdef void prod_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef Py_ssize_t r, i
    cdef double p
    for r in range(x.shape[0]):
        p = y[r]
        for i in range(x.shape[1]):
            p *= x[r, i]
        y[r] = p

cdef void prod_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] *= x[r, i]


# ---- extremes: a NaN that came stays, one that comes takes over ------------------------------------------------------

cdef inline real larger(real x, real y) noexcept nogil:
    return x if (x > y) | (x != x) else y

cdef inline real smaller(real x, real y) noexcept nogil:
    return x if (x < y) | (x != x) else y

cdef void max_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef real lane[WIDE]
    cdef real most
    cdef Py_ssize_t n = x.shape[1], r, i, l
    for r in range(x.shape[0]):
        most = <real>y[r]
        i = 0
        if n >= WIDE:
            for l in range(WIDE): lane[l] = most
            while i + WIDE <= n:
                for l in range(WIDE): lane[l] = larger(x[r, i + l], lane[l])
                i += WIDE
            for l in range(WIDE): most = larger(lane[l], most)
        while i < n:
            most = larger(x[r, i], most)
            i += 1
        y[r] = most

cdef void max_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] = larger(x[r, i], y[i])

cdef void min_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef real lane[WIDE]
    cdef real least
    cdef Py_ssize_t n = x.shape[1], r, i, l
    for r in range(x.shape[0]):
        least = <real>y[r]
        i = 0
        if n >= WIDE:
            for l in range(WIDE): lane[l] = least
            while i + WIDE <= n:
                for l in range(WIDE): lane[l] = smaller(x[r, i + l], lane[l])
                i += WIDE
            for l in range(WIDE): least = smaller(lane[l], least)
        while i < n:
            least = smaller(x[r, i], least)
            i += 1
        y[r] = least

cdef void min_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] = smaller(x[r, i], y[i])

cdef void size_max_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[r] = larger[double](fabs(x[r, i]), y[r])

cdef void size_max_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] = larger(fabs(x[r, i]), y[i])

cdef void size_min_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[r] = smaller[double](fabs(x[r, i]), y[r])

cdef void size_min_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] = smaller(fabs(x[r, i]), y[i])


# ---- differences: y += x - by ----------------------------------------------------------------------------------------

cdef void differences_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef real lane[LANES]
    cdef Py_ssize_t n = x.shape[1], r, i
    cdef int l
    for r in range(x.shape[0]):
        for l in range(LANES): lane[l] = 0
        i = 0
        while i + LANES <= n:
            for l in range(LANES): lane[l] += x[r, i + l] - by[r]
            i += LANES
        while i < n:
            lane[0] += x[r, i] - by[r]
            i += 1
        y[r] += total(lane)

cdef void differences_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] += x[r, i] - by[i]


# ---- squares about a centre: y += (x - by)^2 -------------------------------------------------------------------------

cdef void squares_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef real lane[LANES]
    cdef real d
    cdef Py_ssize_t n = x.shape[1], r, i
    cdef int l
    for r in range(x.shape[0]):
        for l in range(LANES): lane[l] = 0
        i = 0
        while i + LANES <= n:
            for l in range(LANES):
                d = x[r, i + l] - by[r]
                lane[l] += d * d
            i += LANES
        while i < n:
            d = x[r, i] - by[r]
            lane[0] += d * d
            i += 1
        y[r] += total(lane)

cdef void squares_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    cdef real d
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            d = x[r, i] - by[i]
            y[i] += d * d


# ---- exponentials of what is left of a maximum: y += e^(x - by) ------------------------------------------------------

cdef void exps_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef Py_ssize_t r, i
    cdef double s
    for r in range(x.shape[0]):
        s = 0
        for i in range(x.shape[1]):
            s += exp(x[r, i] - by[r])
        y[r] += s

cdef void exps_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] += exp(x[r, i] - by[i])


# ---- powers of sizes: y += |x|^by, where 0^0 is 0; by is one number, the run holds it everywhere ---------------------

cdef inline real power(real x, real p) noexcept nogil:
    if p == 1: return fabs(x)
    if p == 2: return x * x
    if p == 0: return x != 0
    return pow(fabs(x), p)

cdef void powers_along(real[:, ::1] x, real[::1] by, double[:] y) noexcept nogil:
    cdef double lane[LANES]
    cdef Py_ssize_t n = x.shape[1], r, i
    cdef int l
    for r in range(x.shape[0]):
        for l in range(LANES): lane[l] = 0
        i = 0
        if by[0] == 2:
            while i + LANES <= n:
                for l in range(LANES): lane[l] += <double>x[r, i + l] * x[r, i + l]
                i += LANES
        while i < n:
            lane[0] += <double>x[r, i] * x[r, i] if by[0] == 2 else power(x[r, i], by[0])
            i += 1
        y[r] += total(lane)

cdef void powers_across(real[:, ::1] x, real[::1] by, real[::1] y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(x.shape[0]):
        for i in range(y.shape[0]):
            y[i] += power(x[r, i], by[0])


cdef Fold SUM = Fold(0, True, sum_along[float], sum_along[double], sum_across[float], sum_across[double])
cdef Fold PROD = Fold(1, False, prod_along[float], prod_along[double], prod_across[float], prod_across[double])
cdef Fold MAX = Fold(-math.INFINITY, False, max_along[float], max_along[double], max_across[float], max_across[double])
cdef Fold MIN = Fold(math.INFINITY, False, min_along[float], min_along[double], min_across[float], min_across[double])
cdef Fold SIZE_MAX = Fold(0, False, size_max_along[float], size_max_along[double], size_max_across[float],
                          size_max_across[double])
cdef Fold SIZE_MIN = Fold(math.INFINITY, False, size_min_along[float], size_min_along[double], size_min_across[float],
                          size_min_across[double])
cdef Fold DIFFERENCES = Fold(0, True, differences_along[float], differences_along[double], differences_across[float],
                             differences_across[double])
cdef Fold SQUARES = Fold(0, True, squares_along[float], squares_along[double], squares_across[float],
                         squares_across[double])
cdef Fold EXPS = Fold(0, True, exps_along[float], exps_along[double], exps_across[float], exps_across[double])
cdef Fold POWERS = Fold(0, True, powers_along[float], powers_along[double], powers_across[float], powers_across[double])


# ---- the walk --------------------------------------------------------------------------------------------------------

cdef inline const real* packed(const real* x, Py_ssize_t step, Py_ssize_t n, real* scratch) noexcept nogil:
    """n elements side by side: where they are, or copied."""
    cdef Py_ssize_t i
    if step == 1: return x
    for i in range(n): scratch[i] = x[i * step]
    return scratch


cdef void rows_along(const Fold* fold, const real* x, const real* by, double* y, Py_ssize_t rows, Py_ssize_t n,
                     Py_ssize_t step, Py_ssize_t step_y) noexcept nogil:
    if real is float:
        fold.along_single(steps2f(<float*>x, rows, n, step), view1f(<float*>by, rows), steps1d(y, rows, step_y))
    else:
        fold.along_double(steps2d(<double*>x, rows, n, step), view1d(<double*>by, rows), steps1d(y, rows, step_y))


cdef void run_along(const Fold* fold, const real* x, const real* by, real* y, Py_ssize_t rows, Py_ssize_t n,
                    Py_ssize_t step, const Py_ssize_t* steps) noexcept nogil:
    """n elements each of some rows, each row into one result, or (steps[2] is 0) all into one. `step` is that of the
    elements, `steps` those of the rows in x, by and y."""
    cdef real px[BLOCK]
    cdef real pby[BLOCK]
    cdef double results[BLOCK]
    cdef const real* b
    cdef bint one = steps[2] == 0
    cdef Py_ssize_t most = BLOCK if step == 1 else BLOCK // n if n < BLOCK else 1
    cdef Py_ssize_t start = 0, m, i, k
    results[0] = y[0]
    while start < rows:
        m = rows - start if rows - start < most else most
        b = packed(by + start * steps[1], steps[1], m, pby) if by != NULL else <const real*>pby
        if not one:
            for i in range(m): results[i] = y[(start + i) * steps[2]]
        if n > BLOCK:                               # long rows come one by one, in blocks
            i = 0
            while i < n:
                k = n - i if n - i < BLOCK else BLOCK
                rows_along(fold, packed(x + i * step, step, k, px), b, results, 1, k, 0, 0)
                i += k
        elif step == 1:
            rows_along(fold, x + start * steps[0], b, results, m, n, steps[0], 0 if one else 1)
        else:
            for i in range(m):
                packed(x + (start + i) * steps[0], step, n, px + i * n)
            rows_along[real](fold, px, b, results, m, n, n, 0 if one else 1)
        if not one:
            for i in range(m): y[(start + i) * steps[2]] = <real>results[i]
        start += m
    if one: y[0] = <real>results[0]


cdef void run_across(const Fold* fold, const real* x, const real* by, real* y, Py_ssize_t rows, Py_ssize_t row,
                     Py_ssize_t n, Py_ssize_t step, Py_ssize_t step_by, Py_ssize_t step_y) noexcept nogil:
    """`rows` times n elements, `row` steps apart, into n results. Many rows that are added up go in blocks, whose sums
    are added in double precision."""
    cdef real px[BLOCK]
    cdef real pby[BLOCK]
    cdef real py[BLOCK]
    cdef double sums[BLOCK]
    cdef const real* a
    cdef const real* b
    cdef real* c
    cdef bint blocks = real is float and fold.adds and rows > FEW
    cdef bint apart = blocks or step_y != 1
    cdef Py_ssize_t most = 1 if step != 1 else FEW if blocks else rows
    cdef Py_ssize_t start = 0, m, i, k, count
    while start < n:
        m = n - start if n - start < BLOCK else BLOCK
        b = packed(by + start * step_by, step_by, m, pby) if by != NULL else <const real*>pby
        c = y + start
        if apart:
            c = &py[0]
            for i in range(m): py[i] = y[(start + i) * step_y]
        for i in range(m if blocks else 0): sums[i] = 0
        k = 0
        while k < rows:
            count = rows - k if rows - k < most else most
            a = packed(x + start * step + k * row, step, m, px)
            if real is float:
                fold.across_single(steps2f(<float*>a, count, m, row), view1f(<float*>b, m), view1f(c, m))
            else:
                fold.across_double(steps2d(<double*>a, count, m, row), view1d(<double*>b, m), view1d(c, m))
            k += count
            if blocks and (k % FEW == 0 or k == rows):
                for i in range(m):
                    sums[i] += c[i]
                    c[i] = 0
        for i in range(m if blocks else 0): py[i] = <real>sums[i]
        for i in range(m if apart else 0): y[(start + i) * step_y] = py[i]
        start += m


cdef void walk(const Fold* fold, const real* x, const real* by, real* y, int ndim, const Py_ssize_t* shape,
               const Py_ssize_t* sx, const Py_ssize_t* sby, const Py_ssize_t* sy) noexcept nogil:
    """y[index] = fold(x[index], by[index], y[index]) over all indices. The last dimension is the inner loop, and the
    one before it is done at once: where the inner goes along and is short, or where it goes across and that is
    reduced."""
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t n = shape[ndim - 1], step_x = sx[ndim - 1], step_by = sby[ndim - 1], step_y = sy[ndim - 1]
    cdef Py_ssize_t rows = 1
    cdef Py_ssize_t steps[3]
    cdef int outer = ndim - 2, d
    for d in range(ndim): index[d] = 0
    for d in range(3): steps[d] = 0
    if outer >= 0 and (sy[outer] == 0 if step_y != 0 else n <= BLOCK):
        rows, steps[0], steps[1], steps[2] = shape[outer], sx[outer], sby[outer], sy[outer]
        outer -= 1
    while True:
        if step_y == 0: run_along(fold, x, by, y, rows, n, step_x, steps)
        else:           run_across(fold, x, by, y, rows, steps[0], n, step_x, step_by, step_y)
        d = outer
        while d >= 0:
            index[d] += 1
            x += sx[d]
            by += sby[d]
            y += sy[d]
            if index[d] < shape[d]: break
            x -= shape[d] * sx[d]
            by -= shape[d] * sby[d]
            y -= shape[d] * sy[d]
            index[d] = 0
            d -= 1
        if d < 0: return


cdef void walk_any(const Fold* fold, const Array* x, const char* by, const Array* y, int ndim, const Py_ssize_t* shape,
                   const Py_ssize_t* sx, const Py_ssize_t* sby, const Py_ssize_t* sy) noexcept nogil:
    if x.dtype == FLOAT32:
        walk[float](fold, <const float*>x.data, <const float*>by, <float*>y.data, ndim, shape, sx, sby, sy)
    else:
        walk[double](fold, <const double*>x.data, <const double*>by, <double*>y.data, ndim, shape, sx, sby, sy)


cdef void exchange(int d, int e, Py_ssize_t* shape, Py_ssize_t* sx, Py_ssize_t* sby, Py_ssize_t* sy) noexcept nogil:
    """Dimensions d and e change places."""
    shape[d], shape[e] = shape[e], shape[d]
    sx[d], sx[e] = sx[e], sx[d]
    sby[d], sby[e] = sby[e], sby[d]
    sy[d], sy[e] = sy[e], sy[d]


cdef void fill(const Array* y, Py_ssize_t n, double value) noexcept nogil:
    """The first n elements of memory, all `value`."""
    cdef Py_ssize_t i
    if y.dtype == FLOAT32:
        for i in range(n): (<float*>y.data)[i] = <float>value
    else:
        for i in range(n): (<double*>y.data)[i] = value


cdef int fold_into(const Fold* fold, const Array* x, const Array* by, const Array* y) except -1:
    """y = the fold of x, y dense in memory of its own but described in the shape of x, with strides of 0 along what is
    reduced. `by` (NULL for folds that do not look at it) is described in the shape of x too, and constant along what is
    reduced."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Py_ssize_t sx[MAX_NDIM]
    cdef Py_ssize_t sby[MAX_NDIM]
    cdef Py_ssize_t sy[MAX_NDIM]
    cdef Py_ssize_t kept = 1, step
    cdef const Layout* lx = x.layout
    cdef const Layout* ly = y.layout
    cdef const char* given = NULL
    cdef int d, n = 0, swap
    if by != NULL: given = by.data
    for d in range(lx.ndim):
        if ly.strides[d] != 0: kept *= lx.shape[d]
    fill(y, kept, fold.start)
    if lx.size == 0: return 0
    for d in range(lx.ndim):
        if lx.shape[d] == 1: continue
        step = by.layout.strides[d] if by != NULL else 0
        if n and sx[n - 1] == lx.shape[d] * lx.strides[d] and sy[n - 1] == lx.shape[d] * ly.strides[d] \
                and sby[n - 1] == lx.shape[d] * step:
            shape[n - 1] *= lx.shape[d]             # it continues the dimension before
        else:
            shape[n] = lx.shape[d]
            n += 1
        sx[n - 1], sby[n - 1], sy[n - 1] = lx.strides[d], step, ly.strides[d]
    if n == 0:
        shape[0], sx[0], sby[0], sy[0], n = 1, 1, 0, 0, 1
    swap = n - 1                                    # the inner loop runs where x lies closest together
    for d in range(n):
        if sx[d] != 0 and (sx[swap] == 0 or abs(sx[d]) < abs(sx[swap])): swap = d
    exchange(swap, n - 1, shape, sx, sby, sy)
    if sy[n - 1] != 0:                              # and one that is reduced next to it
        for d in range(n - 1):
            if sy[d] == 0: swap = d
        if swap < n - 2 and sy[swap] == 0: exchange(swap, n - 2, shape, sx, sby, sy)
    if lx.size < 16384:
        walk_any(fold, x, given, y, n, shape, sx, sby, sy)
    else:
        with nogil: walk_any(fold, x, given, y, n, shape, sx, sby, sy)
    return 0


cdef int sum_into(const Array* x, const Array* y) except -1:
    """y = the sum of x, described as fold_into() wants it."""
    return fold_into(&SUM, x, NULL, y)


cdef int sum_to(const Array* x, const Array* y) except -1:
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


# ---- slopes: strip kernels of the gradients --------------------------------------------------------------------------

cdef void exp_slope(real[::1] g, real[::1] x, real[::1] y, real[::1] dx) noexcept nogil:
    """dx = g e^(x - y)"""
    cdef Py_ssize_t i
    for i in range(dx.shape[0]):
        dx[i] = g[i] * exp(x[i] - y[i])

cdef void centred_slope(real[::1] g, real[::1] x, real[::1] centre, real[::1] dx) noexcept nogil:
    """dx = g (x - centre)"""
    cdef Py_ssize_t i
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (x[i] - centre[i])

cdef void sign_slope(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    """dx = g sign(x)"""
    cdef Py_ssize_t i
    for i in range(dx.shape[0]):
        dx[i] = g[i] * ((x[i] > 0) - (x[i] < 0)) if x[i] == x[i] else x[i]

cdef void ratio(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    """z = x / y, or 0 where y is 0"""
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        z[i] = 0 if y[i] == 0 else x[i] / y[i]

cdef void finite(real[::1] x, real[::1] y) noexcept nogil:
    """y = x, or 0 where x is no finite number"""
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = x[i] if x[i] - x[i] == 0 else 0


cdef int table() except -1:
    driver.enter("exp_slope", <void*>exp_slope[float], <void*>exp_slope[double], 4)
    driver.enter("centred_slope", <void*>centred_slope[float], <void*>centred_slope[double], 4)
    driver.enter("sign_slope", <void*>sign_slope[float], <void*>sign_slope[double], 3)
    driver.enter("ratio", <void*>ratio[float], <void*>ratio[double], 3)
    driver.enter("finite", <void*>finite[float], <void*>finite[double], 2)
    return 0

table()
