"""Folds, which reductions apply to elements, and strip kernels of their gradients.

A fold is a pair of loops over contiguous memory. `along` folds each row of x into one number. `across` folds rows into
one another, element by element, four rows at a time, because memory is read faster in four streams. `by` is a second
operand with one value for each result: a mean, a maximum or a power. The kernels take pointers, because a memoryview
takes as long to pass as 100 elements to add. `along` adds in many lanes, so that sums are
vectorized and their error grows only with the length of a lane; reduce.pyx keeps rows short."""

from libc cimport math

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real
from cygrad.kernels.lanes cimport (
    BLOCK, LANES, WIDE, differences_of, exps_of, minmax_of, minmax, reduce_lanes, squares_of, sum_of, total,
)
from cygrad.kernels.mathematics cimport exp, fabs, pow

cdef extern from "cygrad/platform.h" nogil:
    void cg_prefetch(const char* p, size_t nbytes)

cdef extern from "cygrad/lanes.h" nogil:
    void cg_short_sums(const float* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, double* y, Py_ssize_t step)


cdef inline real square(real x) noexcept nogil: return x * x


# ---- sum: y += x -----------------------------------------------------------------------------------------------------

cdef void sum_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                    const real* by, double* y, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t r
    if real is float:
        if n < 2 * WIDE:
            cg_short_sums(x, row, rows, n, y, step)
            return
    for r in range(rows): y[r * step] += sum_of[real](x + r * row, n)

cdef void sum_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                     const real* by, real* y) noexcept nogil:
    cdef Py_ssize_t r, i, whole = rows - rows % 4
    for r in range(0, whole, 4):
        for i in range(n):
            y[i] += (x[r * row + i] + x[(r + 1) * row + i]) + (x[(r + 2) * row + i] + x[(r + 3) * row + i])
    for r in range(whole, rows):
        for i in range(n):
            y[i] += x[r * row + i]


# ---- product: y *= x -------------------------------------------------------------------------------------------------

cdef void prod_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                     const real* by, double* y, Py_ssize_t step) noexcept nogil:
    cdef double lane[4 * LANES]
    cdef Py_ssize_t r, i
    cdef int l
    for r in range(rows):
        for l in range(4 * LANES): lane[l] = 1
        i = 0
        while i + 4 * LANES <= n:           # four vectors of lanes, because a product waits for the one before
            cg_prefetch(<const char*>(x + r * row + i + BLOCK), 4 * LANES * sizeof(real))
            for l in range(4 * LANES): lane[l] *= x[r * row + i + l]
            i += 4 * LANES
        for l in range(2 * LANES): lane[l] *= lane[l + 2 * LANES]
        for l in range(LANES): lane[l] *= lane[l + LANES]
        while i + LANES <= n:
            for l in range(LANES): lane[l] *= x[r * row + i + l]
            i += LANES
        while i < n:
            lane[0] *= x[r * row + i]
            i += 1
        y[r * step] *= ((lane[0] * lane[1]) * (lane[2] * lane[3])) * ((lane[4] * lane[5]) * (lane[6] * lane[7]))

cdef void prod_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                      const real* by, real* y) noexcept nogil:
    cdef Py_ssize_t r, i, whole = rows - rows % 4
    for r in range(0, whole, 4):
        for i in range(n):
            y[i] *= (x[r * row + i] * x[(r + 1) * row + i]) * (x[(r + 2) * row + i] * x[(r + 3) * row + i])
    for r in range(whole, rows):
        for i in range(n):
            y[i] *= x[r * row + i]


# ---- minima and maxima, which propagate NaN --------------------------------------------------------------------------

cdef inline void minmax_along(bint is_min, bint absolute, const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                              double* y, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(rows):
        y[r * step] = minmax(is_min, False, minmax_of[real](is_min, absolute, x + r * row, n), <real>y[r * step])

cdef inline void minmax_across(bint is_min, bint absolute, const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                               real* y) noexcept nogil:
    cdef Py_ssize_t r, i, whole = rows - rows % 4
    for r in range(0, whole, 4):
        for i in range(n):
            y[i] = minmax(is_min, absolute, x[r * row + i], minmax(is_min, absolute, x[(r + 1) * row + i], minmax(
                is_min, absolute, x[(r + 2) * row + i], minmax(is_min, absolute, x[(r + 3) * row + i], y[i]))))
    for r in range(whole, rows):
        for i in range(n):
            y[i] = minmax(is_min, absolute, x[r * row + i], y[i])

cdef void max_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                    const real* by, double* y, Py_ssize_t step) noexcept nogil:
    minmax_along[real](False, False, x, row, rows, n, y, step)

cdef void max_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                     const real* by, real* y) noexcept nogil:
    minmax_across[real](False, False, x, row, rows, n, y)

cdef void min_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                    const real* by, double* y, Py_ssize_t step) noexcept nogil:
    minmax_along[real](True, False, x, row, rows, n, y, step)

cdef void min_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                     const real* by, real* y) noexcept nogil:
    minmax_across[real](True, False, x, row, rows, n, y)

cdef void size_max_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                         const real* by, double* y, Py_ssize_t step) noexcept nogil:
    minmax_along[real](False, True, x, row, rows, n, y, step)

cdef void size_max_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                          const real* by, real* y) noexcept nogil:
    minmax_across[real](False, True, x, row, rows, n, y)

cdef void size_min_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                         const real* by, double* y, Py_ssize_t step) noexcept nogil:
    minmax_along[real](True, True, x, row, rows, n, y, step)

cdef void size_min_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                          const real* by, real* y) noexcept nogil:
    minmax_across[real](True, True, x, row, rows, n, y)


# ---- differences: y += x - by ----------------------------------------------------------------------------------------

cdef void differences_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                            const real* by, double* y, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(rows): y[r * step] += differences_of[real](x + r * row, by[r], n)

cdef void differences_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                             const real* by, real* y) noexcept nogil:
    cdef Py_ssize_t r, i, whole = rows - rows % 4
    for r in range(0, whole, 4):
        for i in range(n):
            y[i] += ((x[r * row + i] - by[i]) + (x[(r + 1) * row + i] - by[i])) \
                + ((x[(r + 2) * row + i] - by[i]) + (x[(r + 3) * row + i] - by[i]))
    for r in range(whole, rows):
        for i in range(n):
            y[i] += x[r * row + i] - by[i]


# ---- squares about a centre: y += (x - by)^2 -------------------------------------------------------------------------

cdef void squares_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                        const real* by, double* y, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(rows): y[r * step] += squares_of[real](x + r * row, by[r], n)

cdef void squares_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                         const real* by, real* y) noexcept nogil:
    cdef Py_ssize_t r, i, whole = rows - rows % 4
    for r in range(0, whole, 4):
        for i in range(n):
            y[i] += (square(x[r * row + i] - by[i]) + square(x[(r + 1) * row + i] - by[i])) \
                + (square(x[(r + 2) * row + i] - by[i]) + square(x[(r + 3) * row + i] - by[i]))
    for r in range(whole, rows):
        for i in range(n):
            y[i] += square(x[r * row + i] - by[i])


# ---- exponentials: y += e^(x - by), where by is the maximum ----------------------------------------------------------

cdef void exps_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                     const real* by, double* y, Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(rows): y[r * step] += exps_of[real](x + r * row, by[r], n)

cdef void exps_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                      const real* by, real* y) noexcept nogil:
    cdef Py_ssize_t r, i
    for r in range(rows):
        for i in range(n):
            y[i] += exp(x[r * row + i] - by[i])


# ---- powers: y += |x|^by, where 0^0 is 0; all elements of by are equal -----------------------------------------------

cdef inline real power(real x, real p) noexcept nogil:
    if p == 1: return fabs(x)
    if p == 2: return x * x
    if p == 0: return x != 0
    return pow(fabs(x), p)

cdef void powers_along(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                       const real* by, double* y, Py_ssize_t step) noexcept nogil:
    cdef double lane[WIDE]
    cdef double partial[LANES]
    cdef Py_ssize_t r, i, l
    cdef real p = by[0]
    for r in range(rows):
        i = 0
        for l in range(LANES): partial[l] = 0
        if p == 2:
            if n >= 2 * WIDE:
                for l in range(WIDE): lane[l] = 0
                while i + WIDE <= n:
                    for l in range(WIDE): lane[l] += <double>x[r * row + i + l] * x[r * row + i + l]
                    i += WIDE
                reduce_lanes(lane, partial)
            while i < n:
                partial[i % LANES] += <double>x[r * row + i] * x[r * row + i]
                i += 1
        while i < n:
            partial[i % LANES] += power(x[r * row + i], p)
            i += 1
        y[r * step] += total(partial)

cdef void powers_across(const real* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n,
                        const real* by, real* y) noexcept nogil:
    cdef Py_ssize_t r, i, whole = rows - rows % 4 if by[0] == 2 else 0
    cdef real p = by[0]
    for r in range(0, whole, 4):
        for i in range(n):
            y[i] += (square(x[r * row + i]) + square(x[(r + 1) * row + i])) \
                + (square(x[(r + 2) * row + i]) + square(x[(r + 3) * row + i]))
    for r in range(whole, rows):
        for i in range(n):
            y[i] += power(x[r * row + i], p)


cdef Fold SUM = Fold(0, True, 1, sum_along[float], sum_along[double],
                     sum_across[float], sum_across[double], sum_across[double])
cdef Fold PROD = Fold(1, False, 1, prod_along[float], prod_along[double],
                      prod_across[float], prod_across[double], prod_across[double])
cdef Fold MAX = Fold(-math.INFINITY, False, 1, max_along[float], max_along[double],
                     max_across[float], max_across[double], max_across[double])
cdef Fold MIN = Fold(math.INFINITY, False, 1, min_along[float], min_along[double],
                     min_across[float], min_across[double], min_across[double])
cdef Fold SIZE_MAX = Fold(0, False, 1, size_max_along[float], size_max_along[double],
                          size_max_across[float], size_max_across[double], max_across[double])
cdef Fold SIZE_MIN = Fold(math.INFINITY, False, 1, size_min_along[float], size_min_along[double],
                          size_min_across[float], size_min_across[double], min_across[double])
cdef Fold DIFFERENCES = Fold(0, True, 1, differences_along[float], differences_along[double],
                             differences_across[float], differences_across[double], sum_across[double])
cdef Fold SQUARES = Fold(0, True, 1, squares_along[float], squares_along[double],
                         squares_across[float], squares_across[double], sum_across[double])
cdef Fold EXPS = Fold(0, True, 8, exps_along[float], exps_along[double],
                      exps_across[float], exps_across[double], sum_across[double])
cdef Fold POWERS = Fold(0, True, 1, powers_along[float], powers_along[double],
                        powers_across[float], powers_across[double], sum_across[double])


# ---- gradients -------------------------------------------------------------------------------------------------------

cdef void exp_derivative(real[::1] g, real[::1] x, real[::1] y, real[::1] dx) noexcept nogil:
    """dx = g e^(x - y)"""
    for i in range(dx.shape[0]):
        dx[i] = g[i] * exp(x[i] - y[i])

cdef void centred_derivative(real[::1] g, real[::1] x, real[::1] centre, real[::1] dx) noexcept nogil:
    """dx = g (x - centre)"""
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (x[i] - centre[i])

cdef void sign_derivative(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    """dx = g sign(x)"""
    for i in range(dx.shape[0]):
        dx[i] = g[i] * ((x[i] > 0) - (x[i] < 0)) if x[i] == x[i] else x[i]

cdef void ratio(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    """z = x / y, but 0 where y is 0"""
    for i in range(z.shape[0]):
        z[i] = 0 if y[i] == 0 else x[i] / y[i]

cdef void finite(real[::1] x, real[::1] y) noexcept nogil:
    """y = x, but 0 where x is infinite or NaN"""
    for i in range(y.shape[0]):
        y[i] = x[i] if x[i] - x[i] == 0 else 0


cdef int table() except -1:
    driver.register("exp_derivative", <void*>exp_derivative[float], <void*>exp_derivative[double], 4, 1, 6)
    driver.register("centred_derivative", <void*>centred_derivative[float], <void*>centred_derivative[double], 4)
    driver.register("sign_derivative", <void*>sign_derivative[float], <void*>sign_derivative[double], 3)
    driver.register("ratio", <void*>ratio[float], <void*>ratio[double], 3)
    driver.register("finite", <void*>finite[float], <void*>finite[double], 2)

table()
