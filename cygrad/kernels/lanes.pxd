"""Sums and extremes of a run of elements, in lanes that become vectors.

A sum goes in 64 lanes of its own precision, and blocks of it in double precision: its error does not grow with its
length."""

from libc cimport math

from cygrad.kernels.array cimport real
from cygrad.kernels.mathematics cimport exp

cdef enum:
    LANES = 8
    WIDE = 64               # lanes of long runs: a loop that is not unrolled, so that it becomes vectors
    BLOCK = 4096            # elements that are summed in single precision: 64 in each lane


cdef inline double total(const real* lane) noexcept nogil:
    return <double>(((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])))


cdef inline void gathered(const real* lane, real* few) noexcept nogil:
    """The sums of many lanes in few."""
    cdef int l
    for l in range(LANES):
        few[l] = (((lane[l] + lane[l + 8]) + (lane[l + 16] + lane[l + 24]))
                  + ((lane[l + 32] + lane[l + 40]) + (lane[l + 48] + lane[l + 56])))


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


cdef enum Term:             # what is summed, known where a loop is compiled
    PLAIN                   # x
    PRODUCT                 # x y
    DIFFERENCE              # x - c
    SQUARE                  # (x - c)^2
    EXPONENTIAL             # e^(x - c)


cdef inline real term(Term what, const real* x, const real* y, real c, Py_ssize_t i) noexcept nogil:
    if what == PLAIN: return x[i]
    if what == PRODUCT: return x[i] * y[i]
    if what == DIFFERENCE: return x[i] - c
    if what == SQUARE: return (x[i] - c) * (x[i] - c)
    return exp(x[i] - c)


cdef inline double sum_terms(Term what, const real* x, const real* y, real c, Py_ssize_t n) noexcept nogil:
    """The sum of n terms; y (of products) and c may be anything where the terms have none."""
    cdef real lane[2 * WIDE]
    cdef real few[LANES]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= 2 * WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            for l in range(WIDE): lane[l] += term(what, x, y, c, i + l)
            i += WIDE
        gathered(lane, few)
        result += total(few)
    if i == n: return result
    for l in range(LANES): few[l] = 0
    if what == EXPONENTIAL:                         # the rest in one run, longer than a vector
        for l in range(n - i): lane[l] = exp(x[i + l] - c)
        return result + sum_terms(PLAIN, <const real*>lane, x, c, n - i)
    while i + LANES <= n:
        for l in range(LANES): few[l] += term(what, x, y, c, i + l)
        i += LANES
    for l in range(n - i): few[l] += term(what, x, y, c, i + l)
    return result + total(few)


cdef inline double sum_of(const real* x, Py_ssize_t n) noexcept nogil: return sum_terms(PLAIN, x, x, <real>0, n)

cdef inline double dot_of(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    return sum_terms(PRODUCT, x, y, <real>0, n)

cdef inline double differences_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    return sum_terms(DIFFERENCE, x, x, centre, n)

cdef inline double squares_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    return sum_terms(SQUARE, x, x, centre, n)

cdef inline double exps_of(const real* x, real most, Py_ssize_t n) noexcept nogil:
    return sum_terms(EXPONENTIAL, x, x, most, n)
