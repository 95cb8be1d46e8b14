"""Kernels that go along one axis in order: running sums, the place of the largest.

A dense array is seen as (outer, n, inner), n being the size of the axis. Where the axis is the last a row is a run;
otherwise the inner loop goes across, over `inner` neighbours that are all at the same place of the axis."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport (
    BOOL, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, integer, real, view2d, view2f,
)
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


cdef inline integer seen(integer v, bint truth) noexcept nogil:
    """An integer, or of a bool, which may be any byte, 0 or 1."""
    return <integer>(v != 0) if truth else v


cdef void arg_integers(const integer* x, Py_ssize_t n, Py_ssize_t inner, int64_t* y, bint truth,
                       bint least) noexcept nogil:
    """y_j = the first k where x_kj is largest (least: smallest)."""
    cdef Py_ssize_t k, j
    cdef integer best, v
    if inner == 1:
        best = seen(x[0], truth)
        for k in range(n):
            v = seen(x[k], truth)
            if (v < best) if least else (v > best): best = v
        k = 0
        while seen(x[k], truth) != best: k += 1
        y[0] = k
        return
    for j in range(inner): y[j] = 0
    for k in range(1, n):
        for j in range(inner):
            best, v = seen(x[y[j] * inner + j], truth), seen(x[k * inner + j], truth)
            if (v < best) if least else (v > best): y[j] = k


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
        if dtype == FLOAT32:   arg_[float](view2f(<float*>x + i * step, n, inner), y + i * inner, least)
        elif dtype == FLOAT64: arg_[double](view2d(<double*>x + i * step, n, inner), y + i * inner, least)
        elif dtype == BOOL:    arg_integers(<const uint8_t*>x + i * step, n, inner, y + i * inner, True, least)
        elif dtype == INT8:    arg_integers(<const int8_t*>x + i * step, n, inner, y + i * inner, False, least)
        elif dtype == INT16:   arg_integers(<const int16_t*>x + i * step, n, inner, y + i * inner, False, least)
        elif dtype == INT32:   arg_integers(<const int32_t*>x + i * step, n, inner, y + i * inner, False, least)
        elif dtype == INT64:   arg_integers(<const int64_t*>x + i * step, n, inner, y + i * inner, False, least)
        elif dtype == UINT8:   arg_integers(<const uint8_t*>x + i * step, n, inner, y + i * inner, False, least)
        elif dtype == UINT16:  arg_integers(<const uint16_t*>x + i * step, n, inner, y + i * inner, False, least)
        elif dtype == UINT32:  arg_integers(<const uint32_t*>x + i * step, n, inner, y + i * inner, False, least)
        else:                  arg_integers(<const uint64_t*>x + i * step, n, inner, y + i * inner, False, least)
