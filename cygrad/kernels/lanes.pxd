"""Sums and extremes of a run of elements, in lanes that become vectors; short ones of extremes as integers.

A sum goes in 64 lanes of its own precision, and blocks of it in double precision: its error does not grow with its
length."""

from libc cimport math
from libc.stdint cimport INT64_MAX, int32_t, int64_t

from cygrad.kernels.array cimport real
from cygrad.kernels.mathematics cimport exp, exp_up, fabs

cdef extern from "cygrad/platform.h" nogil:
    void cg_prefetch(const char* p, size_t nbytes)

cdef enum:
    LANES = 8
    WIDE = 64               # lanes of long runs: a loop that is not unrolled, so that it becomes vectors
    BLOCK = 4096            # elements that are summed in single precision, 64 in each lane; and so far ahead memory is
                            # asked for: the processor asks no further than to the end of a page (41 GB/s, then 47)


cdef inline double total(const real* lane) noexcept nogil:
    return <double>(((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])))


cdef inline void gathered(real* lane, real* partial) noexcept nogil:
    """The sums of many lanes in few: by halves, as these are vectors."""
    cdef int l
    for l in range(32): lane[l] += lane[l + 32]
    for l in range(16): lane[l] += lane[l + 16]
    for l in range(LANES): partial[l] = lane[l] + lane[l + 8]


cdef inline real most_of(const real* x, Py_ssize_t n) noexcept nogil:
    """The largest; a NaN counts as nothing."""
    cdef real lane[WIDE]
    cdef real most = <real>-math.INFINITY
    cdef Py_ssize_t i = 0, l
    if n < 2 * WIDE and n >= LANES:
        for l in range(LANES): lane[l] = most
        while i + LANES <= n:
            for l in range(LANES): lane[l] = x[i + l] if x[i + l] > lane[l] else lane[l]
            i += LANES
        for l in range(4): lane[l] = lane[l + 4] if lane[l + 4] > lane[l] else lane[l]
        for l in range(4): most = lane[l] if lane[l] > most else most
    elif n >= LANES:
        for l in range(WIDE): lane[l] = most
        while i + WIDE <= n:
            cg_prefetch(<const char*>(x + i + BLOCK), WIDE * sizeof(real))
            for l in range(WIDE): lane[l] = x[i + l] if x[i + l] > lane[l] else lane[l]
            i += WIDE
        for l in range(32): lane[l] = lane[l + 32] if lane[l + 32] > lane[l] else lane[l]
        for l in range(16): lane[l] = lane[l + 16] if lane[l + 16] > lane[l] else lane[l]
        for l in range(8): lane[l] = lane[l + 8] if lane[l + 8] > lane[l] else lane[l]
        for l in range(4): lane[l] = lane[l + 4] if lane[l + 4] > lane[l] else lane[l]
        for l in range(4): most = lane[l] if lane[l] > most else most
    while i < n:
        most = x[i] if x[i] > most else most
        i += 1
    return most


# ---- extremes: a NaN that came stays, one that comes takes over
cdef inline real larger(real x, real y) noexcept nogil:
    cdef real z = x if x > y else y                # one instruction, which gives y if either is NaN
    return x if x != x else z

cdef inline real smaller(real x, real y) noexcept nogil:
    cdef real z = x if x < y else y                # one instruction, which gives y if either is NaN
    return x if x != x else z

cdef inline real further(bint least, bint sizes, real x, real y) noexcept nogil:
    """The extreme of x, or of its size, and y: least or largest, known where a loop is compiled."""
    cdef real v = fabs(x) if sizes else x
    return smaller(v, y) if least else larger(v, y)

ctypedef fused whole:       # a floating number's bits
    int32_t
    int64_t

cdef inline whole largest(whole bits) noexcept nogil: return <whole>0x7fffffff if whole is int32_t else INT64_MAX

cdef inline whole ordered(whole bits) noexcept nogil:
    """Bits as an integer that is ordered as the number is, but for NaN; and back again."""
    return bits ^ (bits >> (8 * sizeof(whole) - 1) & largest(bits))

cdef inline whole extreme_bits(bint least, bint sizes, const whole* x, Py_ssize_t n, whole infinity) noexcept nogil:
    """The bits of the least or the largest, or of its size, or of a NaN if there is one."""
    cdef whole most = largest(infinity) if least else -largest(infinity), size = 0, v, z
    cdef Py_ssize_t i
    for i in range(n):
        z = x[i] & largest(infinity)
        v = z if sizes else ordered(x[i])
        size = z if z > size else size
        if least: most = v if v < most else most
        else:     most = v if v > most else most
    if size > infinity: return size                 # what is beyond is NaN
    return most if sizes else ordered(most)

cdef inline real short_extreme(bint least, bint sizes, const real* x, Py_ssize_t n) noexcept nogil:
    """By integers: comparisons that look for NaN are no vectors in a row. Of 64 in float32 4 ns instead of 25."""
    cdef int32_t bits
    cdef int64_t many
    if real is float:
        bits = extreme_bits[int32_t](least, sizes, <const int32_t*>x, n, 0x7f800000)
        return (<float*>&bits)[0]
    else:
        many = extreme_bits[int64_t](least, sizes, <const int64_t*>x, n, <int64_t>0x7ff << 52)
        return (<double*>&many)[0]

cdef inline real extreme_of(bint least, bint sizes, const real* x, Py_ssize_t n) noexcept nogil:
    """The least or the largest, or its size, or NaN where there is one; long runs in lanes first."""
    cdef real lane[WIDE]
    cdef Py_ssize_t i = WIDE, l
    if n < 2 * WIDE: return short_extreme(least, sizes, x, n)
    for l in range(WIDE): lane[l] = fabs(x[l]) if sizes else x[l]
    while i < n:
        i = min(i, n - WIDE)                        # (the last ones may be some of those before once more)
        for l in range(WIDE): lane[l] = further(least, sizes, x[i + l], lane[l])
        i += WIDE
    return short_extreme(least, False, <const real*>lane, WIDE)


cdef enum Term:             # what is summed, known where a loop is compiled
    PLAIN                   # x
    NEAR                    # x, which is in the cache
    PRODUCT                 # x y
    DIFFERENCE              # x - c
    SQUARE                  # (x - c)^2
    EXPONENTIAL             # e^(x - c)
    EXPONENTIAL_UP          # the same as exp_up() has it, for x <= c


cdef inline real term(Term what, const real* x, const real* y, real c, Py_ssize_t i) noexcept nogil:
    if what == PLAIN or what == NEAR: return x[i]
    if what == PRODUCT: return x[i] * y[i]
    if what == DIFFERENCE: return x[i] - c
    if what == SQUARE: return (x[i] - c) * (x[i] - c)
    return exp_up(x[i] - c) if what == EXPONENTIAL_UP else exp(x[i] - c)


cdef inline double sum_terms(Term what, const real* x, const real* y, real c, Py_ssize_t n) noexcept nogil:
    """The sum of n terms; y (of products) and c may be anything where the terms have none."""
    cdef real lane[2 * WIDE]
    cdef real inline_[LANES]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= 2 * WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            if what != NEAR: cg_prefetch(<const char*>(x + i + BLOCK), WIDE * sizeof(real))
            for l in range(WIDE): lane[l] += term(what, x, y, c, i + l)
            i += WIDE
        if n - i < WIDE:
            for l in range(n - i): lane[l] += term(what, x, y, c, i + l)
            i = n
        gathered(lane, inline_)
        result += total(inline_)
    if i == n: return result
    for l in range(LANES): inline_[l] = 0
    if what == EXPONENTIAL or what == EXPONENTIAL_UP:       # the rest in one run, longer than a vector
        for l in range(n - i): lane[l] = term(what, x, y, c, i + l)
        return result + sum_terms(PLAIN, <const real*>lane, x, c, n - i)
    while i + LANES <= n:
        for l in range(LANES): inline_[l] += term(what, x, y, c, i + l)
        i += LANES
    for l in range(n - i): inline_[l] += term(what, x, y, c, i + l)
    return result + total(inline_)


cdef inline double sum_of(const real* x, Py_ssize_t n) noexcept nogil: return sum_terms(PLAIN, x, x, <real>0, n)

cdef inline double dot_of(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    return sum_terms(PRODUCT, x, y, <real>0, n)

cdef inline double differences_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    return sum_terms(DIFFERENCE, x, x, centre, n)

cdef inline double squares_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    return sum_terms(SQUARE, x, x, centre, n)

cdef inline double exps_of(const real* x, real most, Py_ssize_t n) noexcept nogil:
    return sum_terms(EXPONENTIAL, x, x, most, n)

cdef inline double exps_up_of(const real* x, real most, Py_ssize_t n) noexcept nogil:
    return sum_terms(EXPONENTIAL_UP, x, x, most, n)
