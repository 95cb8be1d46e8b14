"""Kernels along one axis: cumulative sums and argmax.

A dense array has the shape (outer, n, inner), where n is the size of the axis. If the axis is the last, each row is
contiguous. Otherwise the inner loop runs over the `inner` elements at one index of the axis."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport (
    BOOL, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, integer, real, view2d, view2f,
)
from cygrad.kernels.lanes cimport WIDE, minmax_of


cdef void cumsum_(real[:, ::1] x, real[:, ::1] y, bint reverse) noexcept nogil:
    """y_kj = sum of x_ij for i <= k (reverse: i >= k); y may be x."""
    cdef Py_ssize_t n = x.shape[0], inner = x.shape[1], k, j, i, before
    cdef double total
    if inner == 1:
        total = 0
        for k in range(n):
            i = n - 1 - k if reverse else k
            total += x[i, 0]
            y[i, 0] = <real>total
        return
    for k in range(n):
        i = n - 1 - k if reverse else k
        if k == 0:
            for j in range(inner):
                y[i, j] = x[i, j]
        else:
            before = i + 1 if reverse else i - 1
            for j in range(inner):
                y[i, j] = y[before, j] + x[i, j]


cdef Py_ssize_t first_minmax(bint is_min, const real* x, Py_ssize_t n) noexcept nogil:
    """The first k where x_k is NaN or, if there is no NaN, the maximum (is_min: minimum). Finds the value first, then
    its index: seven times as fast as one comparison at a time, for 1,000 elements."""
    cdef real best = minmax_of[real](is_min, False, x, n)
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


cdef void arg_(real[:, ::1] x, int64_t* y, bint is_min) noexcept nogil:
    """y_j = the first k where x_kj is NaN or, if there is no NaN, the maximum over k (is_min: minimum)."""
    cdef Py_ssize_t n = x.shape[0], inner = x.shape[1], k, j
    cdef real best, v
    if inner == 1:
        y[0] = first_minmax[real](True, &x[0, 0], n) if is_min else first_minmax[real](False, &x[0, 0], n)
        return
    for j in range(inner): y[j] = 0
    for k in range(1, n):
        for j in range(inner):
            best, v = x[y[j], j], x[k, j]
            if ((v < best) if is_min else (v > best)) or (v != v and best == best): y[j] = k


cdef inline integer normalized(integer v, bint is_bool) noexcept nogil:
    """v; a bool, which may be any byte, becomes 0 or 1."""
    return <integer>(v != 0) if is_bool else v


cdef void arg_integers(const integer* x, Py_ssize_t n, Py_ssize_t inner, int64_t* y, bint is_bool,
                       bint is_min) noexcept nogil:
    """y_j = the first k where x_kj is the maximum over k (is_min: minimum)."""
    cdef Py_ssize_t k, j
    cdef integer best, v
    if inner == 1:
        best = normalized(x[0], is_bool)
        for k in range(n):
            v = normalized(x[k], is_bool)
            if (v < best) if is_min else (v > best): best = v
        k = 0
        while normalized(x[k], is_bool) != best: k += 1
        y[0] = k
        return
    for j in range(inner): y[j] = 0
    for k in range(1, n):
        for j in range(inner):
            best, v = normalized(x[y[j] * inner + j], is_bool), normalized(x[k * inner + j], is_bool)
            if (v < best) if is_min else (v > best): y[j] = k


cdef void cumsum(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, char* y,
                 bint reverse) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        if dtype == FLOAT32:
            cumsum_[float](view2f(<float*>x + i * step, n, inner), view2f(<float*>y + i * step, n, inner), reverse)
        else:
            cumsum_[double](view2d(<double*>x + i * step, n, inner), view2d(<double*>y + i * step, n, inner), reverse)


cdef void arg(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
              bint is_min) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        if dtype == FLOAT32:   arg_[float](view2f(<float*>x + i * step, n, inner), y + i * inner, is_min)
        elif dtype == FLOAT64: arg_[double](view2d(<double*>x + i * step, n, inner), y + i * inner, is_min)
        elif dtype == BOOL:    arg_integers(<const uint8_t*>x + i * step, n, inner, y + i * inner, True, is_min)
        elif dtype == INT8:    arg_integers(<const int8_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        elif dtype == INT16:   arg_integers(<const int16_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        elif dtype == INT32:   arg_integers(<const int32_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        elif dtype == INT64:   arg_integers(<const int64_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        elif dtype == UINT8:   arg_integers(<const uint8_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        elif dtype == UINT16:  arg_integers(<const uint16_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        elif dtype == UINT32:  arg_integers(<const uint32_t*>x + i * step, n, inner, y + i * inner, False, is_min)
        else:                  arg_integers(<const uint64_t*>x + i * step, n, inner, y + i * inner, False, is_min)
