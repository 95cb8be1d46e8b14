"""Kernels that go along one axis in order: running sums, the place of the largest.

A dense array is seen as (outer, n, inner), n being the size of the axis. Where the axis is the last a row is a run;
otherwise the inner loop goes across, over `inner` neighbours that are all at the same place of the axis."""

from libc.stdint cimport int64_t

from cygrad.kernels.array cimport FLOAT32, real, view2d, view2f
from cygrad.kernels.lanes cimport WIDE, extreme_of


cdef void cumsum_(real[:, ::1] x, real[:, ::1] y, bint reverse) noexcept nogil:
    """y_kj = sum of x_ij, i up to k (reverse: from k on); the result may be the operand."""
    cdef Py_ssize_t n = x.shape[0], inner = x.shape[1], k, j, at, before
    cdef double total
    if inner == 1:
        total = 0
        for k in range(n):
            at = n - 1 - k if reverse else k
            total += x[at, 0]
            y[at, 0] = <real>total
        return
    for k in range(n):
        at = n - 1 - k if reverse else k
        if k == 0:
            for j in range(inner):
                y[at, j] = x[at, j]
        else:
            before = at + 1 if reverse else at - 1
            for j in range(inner):
                y[at, j] = y[before, j] + x[at, j]


cdef Py_ssize_t first_extreme(bint least, const real* x, Py_ssize_t n) noexcept nogil:
    """The first k where x_k is the largest (least: the smallest), or is the first NaN: which it is is found first. (A
    comparison at a time takes seven times as long for 1,000.)"""
    cdef real best = extreme_of[real](least, False, x, n)
    cdef Py_ssize_t i = 0, l
    cdef int hits = 0
    if best != best:
        while x[i] == x[i]: i += 1
        return i
    while i + WIDE <= n:
        for l in range(WIDE): hits |= x[i + l] == best
        if hits: break
        i += WIDE
    while x[i] != best: i += 1
    return i


cdef void arg_(real[:, ::1] x, int64_t* y, bint least) noexcept nogil:
    """y_j = the first k where x_kj is largest (least: smallest), or is the first NaN."""
    cdef Py_ssize_t n = x.shape[0], inner = x.shape[1], k, j
    cdef real best, v
    if inner == 1:
        y[0] = first_extreme[real](True, &x[0, 0], n) if least else first_extreme[real](False, &x[0, 0], n)
        return
    for j in range(inner): y[j] = 0
    for k in range(1, n):
        for j in range(inner):
            best, v = x[y[j], j], x[k, j]
            if ((v < best) if least else (v > best)) or (v != v and best == best): y[j] = k


cdef void cumsum(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, char* y,
                 bint reverse) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        if dtype == FLOAT32:
            cumsum_[float](view2f(<float*>x + i * step, n, inner), view2f(<float*>y + i * step, n, inner), reverse)
        else:
            cumsum_[double](view2d(<double*>x + i * step, n, inner), view2d(<double*>y + i * step, n, inner), reverse)


cdef void arg(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
              bint least) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        if dtype == FLOAT32: arg_[float](view2f(<float*>x + i * step, n, inner), y + i * inner, least)
        else:                arg_[double](view2d(<double*>x + i * step, n, inner), y + i * inner, least)
