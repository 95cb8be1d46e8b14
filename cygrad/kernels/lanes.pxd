"""Sums, minima and maxima of contiguous elements, in lanes that the compiler turns into vectors. Minima and maxima of
short runs are computed with integers.

A block of a sum is added in 64 lanes in the precision of its elements, and blocks are added in float64, so the error
does not grow with the length."""

from libc cimport math
from libc.stdint cimport INT64_MAX, int32_t, int64_t

from cygrad.kernels.array cimport real
from cygrad.kernels.mathematics cimport exp, exp_up, fabs

cdef extern from "cygrad/platform.h" nogil:
    void cg_prefetch(const char* p, size_t nbytes)

cdef enum:
    LANES = 8
    HALF = 32               # lanes of each of two sums
    WIDE = 64               # lanes of long runs: the loop over them is not unrolled, so that it is vectorized
    BLOCK = 4096            # elements of a block, 64 in each lane. Also the prefetch distance: the CPU's own prefetcher
                            # stops at the end of a page (41 GB/s without prefetching, 47 with).


cdef inline double total(const real* lane) noexcept nogil:
    return <double>(((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])))


cdef inline void reduce_lanes(real* lane, real* partial) noexcept nogil:
    """Add 64 lanes up to 8, by halves, because halves are vectors."""
    cdef int l
    for l in range(32): lane[l] += lane[l + 32]
    for l in range(16): lane[l] += lane[l + 16]
    for l in range(LANES): partial[l] = lane[l] + lane[l + 8]


cdef inline real max_of(const real* x, Py_ssize_t n) noexcept nogil:
    """The maximum; NaN is ignored."""
    cdef real lane[WIDE]
    cdef real best = <real>-math.INFINITY
    cdef Py_ssize_t i = 0, l
    if n < 2 * WIDE and n >= LANES:
        for l in range(LANES): lane[l] = best
        while i + LANES <= n:
            for l in range(LANES): lane[l] = x[i + l] if x[i + l] > lane[l] else lane[l]
            i += LANES
        for l in range(4): lane[l] = lane[l + 4] if lane[l + 4] > lane[l] else lane[l]
        for l in range(4): best = lane[l] if lane[l] > best else best
    elif n >= LANES:
        for l in range(WIDE): lane[l] = best
        while i + WIDE <= n:
            cg_prefetch(<const char*>(x + i + BLOCK), WIDE * sizeof(real))
            for l in range(WIDE): lane[l] = x[i + l] if x[i + l] > lane[l] else lane[l]
            i += WIDE
        for l in range(32): lane[l] = lane[l + 32] if lane[l + 32] > lane[l] else lane[l]
        for l in range(16): lane[l] = lane[l + 16] if lane[l + 16] > lane[l] else lane[l]
        for l in range(8): lane[l] = lane[l + 8] if lane[l + 8] > lane[l] else lane[l]
        for l in range(4): lane[l] = lane[l + 4] if lane[l + 4] > lane[l] else lane[l]
        for l in range(4): best = lane[l] if lane[l] > best else best
    while i < n:
        best = x[i] if x[i] > best else best
        i += 1
    return best


# ---- minima and maxima, which propagate NaN
cdef inline real larger(real x, real y) noexcept nogil:
    cdef real z = x if x > y else y                # one instruction; y if either is NaN
    return x if x != x else z

cdef inline real smaller(real x, real y) noexcept nogil:
    cdef real z = x if x < y else y                # one instruction; y if either is NaN
    return x if x != x else z

cdef inline real minmax(bint is_min, bint absolute, real x, real y) noexcept nogil:
    """The minimum (is_min) or maximum of y and x, or |x| (absolute). The flags are compile-time constants."""
    cdef real v = fabs(x) if absolute else x
    return smaller(v, y) if is_min else larger(v, y)

ctypedef fused bits_t:      # the bits of a floating-point number
    int32_t
    int64_t

cdef inline bits_t max_bits(bits_t bits) noexcept nogil: return <bits_t>0x7fffffff if bits_t is int32_t else INT64_MAX

cdef inline bits_t ordered(bits_t bits) noexcept nogil:
    """Map bits to integers in the order of the numbers, except NaN. The function is its own inverse."""
    return bits ^ (bits >> (8 * sizeof(bits_t) - 1) & max_bits(bits))

cdef inline bits_t minmax_bits(bint is_min, bint absolute, const bits_t* x, Py_ssize_t n,
                               bits_t infinity) noexcept nogil:
    """The bits of the minimum or maximum of x or |x|, or of a NaN if there is one."""
    cdef bits_t best = max_bits(infinity) if is_min else -max_bits(infinity), max_size = 0, v, size
    cdef Py_ssize_t i
    for i in range(n):
        size = x[i] & max_bits(infinity)
        v = size if absolute else ordered(x[i])
        max_size = size if size > max_size else max_size
        if is_min: best = v if v < best else best
        else:      best = v if v > best else best
    if max_size > infinity: return max_size         # larger than infinity: a NaN
    return best if absolute else ordered(best)

cdef inline real short_minmax(bint is_min, bint absolute, const real* x, Py_ssize_t n) noexcept nogil:
    """With integers, because NaN-aware comparisons of a row are not vectorized: 4 ns for 64 float32, not 25."""
    cdef int32_t bits32
    cdef int64_t bits64
    if real is float:
        bits32 = minmax_bits[int32_t](is_min, absolute, <const int32_t*>x, n, 0x7f800000)
        return (<float*>&bits32)[0]
    else:
        bits64 = minmax_bits[int64_t](is_min, absolute, <const int64_t*>x, n, <int64_t>0x7ff << 52)
        return (<double*>&bits64)[0]

cdef inline real minmax_of(bint is_min, bint absolute, const real* x, Py_ssize_t n) noexcept nogil:
    """The minimum or maximum of x or |x|, or NaN if there is one. Long runs are reduced to 64 lanes first."""
    cdef real lane[WIDE]
    cdef Py_ssize_t i = WIDE, l
    if n < 2 * WIDE: return short_minmax(is_min, absolute, x, n)
    for l in range(WIDE): lane[l] = fabs(x[l]) if absolute else x[l]
    while i < n:
        i = min(i, n - WIDE)                        # the last lanes may repeat elements
        for l in range(WIDE): lane[l] = minmax(is_min, absolute, x[i + l], lane[l])
        i += WIDE
    return short_minmax(is_min, False, <const real*>lane, WIDE)


cdef enum Term:             # what is summed, a compile-time constant
    PLAIN                   # x
    NEAR                    # x, which is in the cache
    PRODUCT                 # x y
    DIFFERENCE              # x - c
    SQUARE                  # (x - c)^2
    EXPONENTIAL             # e^(x - c)
    EXPONENTIAL_UP          # the same scaled as in exp_up(), for x <= c


cdef inline real term(Term what, const real* x, const real* y, real c, Py_ssize_t i) noexcept nogil:
    if what == PLAIN or what == NEAR: return x[i]
    if what == PRODUCT: return x[i] * y[i]
    if what == DIFFERENCE: return x[i] - c
    if what == SQUARE: return (x[i] - c) * (x[i] - c)
    return exp_up(x[i] - c) if what == EXPONENTIAL_UP else exp(x[i] - c)


cdef inline double sum_terms(Term what, const real* x, const real* y, real c, Py_ssize_t n) noexcept nogil:
    """The sum of n terms. y and c are ignored by terms that do not use them."""
    cdef real lane[2 * WIDE]
    cdef real partial[LANES]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            if what != NEAR: cg_prefetch(<const char*>(x + i + BLOCK), WIDE * sizeof(real))
            if what == PRODUCT: cg_prefetch(<const char*>(y + i + BLOCK), WIDE * sizeof(real))
            for l in range(WIDE): lane[l] += term(what, x, y, c, i + l)
            i += WIDE
        if n - i < WIDE:
            for l in range(n - i): lane[l] += term(what, x, y, c, i + l)
            i = n
        reduce_lanes(lane, partial)
        result += total(partial)
    if i == n: return result
    for l in range(LANES): partial[l] = 0
    if what == EXPONENTIAL or what == EXPONENTIAL_UP:       # the rest in one vectorized loop
        for l in range(n - i): lane[l] = term(what, x, y, c, i + l)
        return result + sum_terms(PLAIN, <const real*>lane, x, c, n - i)
    while i + LANES <= n:
        for l in range(LANES): partial[l] += term(what, x, y, c, i + l)
        i += LANES
    for l in range(n - i): partial[l] += term(what, x, y, c, i + l)
    return result + total(partial)


cdef inline double sum_of(const real* x, Py_ssize_t n) noexcept nogil: return sum_terms(PLAIN, x, x, <real>0, n)

cdef inline double dot_of(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    return sum_terms(PRODUCT, x, y, <real>0, n)

cdef inline double differences_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    return sum_terms(DIFFERENCE, x, x, centre, n)

cdef inline double squares_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    return sum_terms(SQUARE, x, x, centre, n)

cdef inline double exps_of(const real* x, real maximum, Py_ssize_t n) noexcept nogil:
    return sum_terms(EXPONENTIAL, x, x, maximum, n)

cdef inline double exps_up_of(const real* x, real maximum, Py_ssize_t n) noexcept nogil:
    return sum_terms(EXPONENTIAL_UP, x, x, maximum, n)


cdef inline real mean_of(const real* x, Py_ssize_t n) noexcept nogil:
    """x[0] + mean(x - x[0]), which is exact if all elements are equal. The rounding error of a plain sum would be
    multiplied by 1 / sqrt(eps)."""
    return <real>(x[0] + differences_of[real](x, x[0], n) / n)


cdef inline void two_sums(const real* g, const real* x, real mean, Py_ssize_t n, double* a, double* b) noexcept nogil:
    """Add the sum of g to a, and that of g (x - mean) to b."""
    cdef real lane[HALF]
    cdef real other[HALF]
    cdef Py_ssize_t i = 0, l, stop
    cdef real v
    while n - i >= HALF:
        stop = min(i + BLOCK, n)
        for l in range(HALF): lane[l] = other[l] = 0
        while i + HALF <= stop:
            for l in range(HALF):
                v = g[i + l]
                lane[l] += v
                other[l] += v * (x[i + l] - mean)
            i += HALF
        for l in range(HALF // 2):
            lane[l] += lane[l + HALF // 2]
            other[l] += other[l + HALF // 2]
        for l in range(LANES):
            lane[l] += lane[l + LANES]
            other[l] += other[l + LANES]
        a[0] += total(<const real*>lane)
        b[0] += total(<const real*>other)
    while i < n:
        a[0] += g[i]
        b[0] += g[i] * (x[i] - mean)
        i += 1
