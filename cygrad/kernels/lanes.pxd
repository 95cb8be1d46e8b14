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


cdef inline double sum_of(const real* x, Py_ssize_t n) noexcept nogil:
    cdef real lane[WIDE]
    cdef real few[LANES]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= 2 * WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            for l in range(WIDE): lane[l] += x[i + l]
            i += WIDE
        gathered(lane, few)
        result += total(few)
    for l in range(LANES): few[l] = 0
    while i + LANES <= n:
        for l in range(LANES): few[l] += x[i + l]
        i += LANES
    for l in range(n - i): few[l] += x[i + l]
    return result + total(few)


cdef inline double dot_of(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    """sum of x y"""
    cdef real lane[WIDE]
    cdef real few[LANES]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= 2 * WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            for l in range(WIDE): lane[l] += x[i + l] * y[i + l]
            i += WIDE
        gathered(lane, few)
        result += total(few)
    for l in range(LANES): few[l] = 0
    while i + LANES <= n:
        for l in range(LANES): few[l] += x[i + l] * y[i + l]
        i += LANES
    for l in range(n - i): few[l] += x[i + l] * y[i + l]
    return result + total(few)


cdef inline double squares_of(const real* x, real centre, Py_ssize_t n) noexcept nogil:
    """sum of (x - centre)^2"""
    cdef real lane[WIDE]
    cdef real few[LANES]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= 2 * WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            for l in range(WIDE): lane[l] += (x[i + l] - centre) * (x[i + l] - centre)
            i += WIDE
        gathered(lane, few)
        result += total(few)
    for l in range(LANES): few[l] = 0
    while i + LANES <= n:
        for l in range(LANES): few[l] += (x[i + l] - centre) * (x[i + l] - centre)
        i += LANES
    for l in range(n - i): few[l] += (x[i + l] - centre) * (x[i + l] - centre)
    return result + total(few)


cdef inline double exps_of(const real* x, real most, Py_ssize_t n) noexcept nogil:
    """sum of e^(x - most)"""
    cdef real lane[WIDE]
    cdef double result = 0
    cdef Py_ssize_t i = 0, stop, l
    while n - i >= WIDE:
        stop = min(i + BLOCK, n)
        for l in range(WIDE): lane[l] = 0
        while i + WIDE <= stop:
            for l in range(WIDE): lane[l] += exp(x[i + l] - most)
            i += WIDE
        result += sum_of(<const real*>lane, WIDE)
    for l in range(n - i): lane[l] = exp(x[i + l] - most)
    return result + sum_of(<const real*>lane, n - i)
