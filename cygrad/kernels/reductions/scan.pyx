"""Kernels along one axis: cumulative sums, products and maxima, linear recurrences, and argmax.

A dense array has the shape (outer, n, inner), where n is the size of the axis. If the axis is the last, each row is
contiguous. Otherwise the inner loop runs over the `inner` elements at one index of the axis."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport BOOL, integer, real
from cygrad.kernels.by_dtype cimport call, call_numeric, element, matrix
from cygrad.kernels.elements cimport number
from cygrad.kernels.lanes cimport WIDE, minmax_of

cdef enum:
    COLUMNS = 64            # columns that are multiplied together, in float64


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


# ---- products and recurrences: n rows of `inner` columns -------------------------------------------------------------

cdef void cumprod_(const real* x, Py_ssize_t n, Py_ssize_t inner, real* y) noexcept nogil:
    """y_kj = product of x_ij for i <= k; y may be x."""
    cdef double p[COLUMNS]
    cdef double total = 1
    cdef Py_ssize_t first, m, k, j
    if inner == 1:
        for k in range(n):
            total *= x[k]
            y[k] = <real>total
        return
    for first in range(0, inner, 64):               # COLUMNS
        m = min(inner - first, <Py_ssize_t>COLUMNS)
        for j in range(m): p[j] = 1
        for k in range(n):
            for j in range(m):
                p[j] *= x[k * inner + first + j]
                y[k * inner + first + j] = <real>p[j]


cdef void cumprod_grad_(const real* g, const real* x, Py_ssize_t n, Py_ssize_t inner, real* dx,
                        double* s) noexcept nogil:
    """dx_kj = (product of x_ij for i < k) s_kj with s_kj = g_kj + x_k+1,j s_k+1,j; dx may be g. `s` has room for n rows
    of COLUMNS numbers: in float64, one factor may be far larger than a float32, and the other far smaller."""
    cdef double p[COLUMNS]
    cdef double total = 0
    cdef Py_ssize_t first, m, k, j, i
    if inner == 1:
        for k in range(n - 1, -1, -1):
            total = g[k] + total
            s[k] = total
            total *= x[k]
        total = 1
        for k in range(n):
            dx[k] = <real>(total * s[k])
            total *= x[k]
        return
    for first in range(0, inner, 64):               # COLUMNS
        m = min(inner - first, <Py_ssize_t>COLUMNS)
        for k in range(n - 1, -1, -1):
            i = k * inner + first
            if k == n - 1:
                for j in range(m): s[k * m + j] = g[i + j]
            else:
                for j in range(m): s[k * m + j] = g[i + j] + x[i + inner + j] * s[(k + 1) * m + j]
        for j in range(m): p[j] = 1
        for k in range(n):
            i = k * inner + first
            for j in range(m):
                dx[i + j] = <real>(p[j] * s[k * m + j])
                p[j] *= x[i + j]


cdef void recurrence_(const real* x, const real* a, Py_ssize_t n, Py_ssize_t inner, real* y,
                      bint reverse) noexcept nogil:
    """y_kj = x_kj + a_kj y_k-1,j, or in reverse y_kj = x_kj + a_k+1,j y_k+1,j; y may be x."""
    cdef double s[COLUMNS]
    cdef Py_ssize_t first, m, k, j, i, at
    for first in range(0, inner, 64):               # COLUMNS
        m = min(inner - first, <Py_ssize_t>COLUMNS)
        for j in range(m): s[j] = 0
        for k in range(n):
            i = ((n - 1 - k) if reverse else k) * inner + first
            if k == 0:
                for j in range(m): s[j] = x[i + j]
            else:
                at = i + inner if reverse else i
                for j in range(m): s[j] = x[i + j] + a[at + j] * s[j]
            for j in range(m): y[i + j] = <real>s[j]


cdef inline bint any_extreme(const number* x, number best, bint is_min) noexcept nogil:
    """Whether one of 64 elements is at least `best` (is_min: at most), or NaN."""
    cdef int hits = 0
    for j in range(WIDE): hits |= not (x[j] > best if is_min else x[j] < best)
    return hits


cdef void extreme_places_(const number* x, Py_ssize_t n, Py_ssize_t inner, int64_t* y, bint is_min) noexcept nogil:
    """y_kj = the last i <= k where x_ij is NaN or, if there is no NaN, the maximum up to k (is_min: minimum)."""
    cdef Py_ssize_t k, j
    cdef int64_t i
    cdef number best, v
    if inner == 1:
        i, best, k = 0, x[0], 0
        while k < n:
            if n - k >= WIDE and not any_extreme(x + k, best, is_min):
                for j in range(WIDE): y[k + j] = i
                k += WIDE
                continue
            for k in range(k, min(n, k + WIDE)):
                v = x[k]
                if (v <= best) if is_min else (v >= best): i, best = k, v
                if number is float or number is double:
                    if v != v: i, best = k, v
                y[k] = i
            k += 1
        return
    for j in range(inner): y[j] = 0
    for k in range(1, n):
        for j in range(inner):
            i = y[(k - 1) * inner + j]
            best, v = x[i * inner + j], x[k * inner + j]
            if (v <= best) if is_min else (v >= best): i = k
            if number is float or number is double:
                if v != v: i = k
            y[k * inner + j] = i


# ---- the place of a maximum ------------------------------------------------------------------------------------------

cdef Py_ssize_t first_minmax(bint is_min, const real* x, Py_ssize_t n) noexcept nogil:
    """The first k where x_k is NaN or, if there is no NaN, the maximum (is_min: minimum). Finds the value first, then
    its index: seven times as fast as one comparison at a time, for 1,000 elements. It is 0 if another thread has
    overwritten the value."""
    cdef real best = minmax_of[real](is_min, False, x, n)
    cdef Py_ssize_t i = 0, l
    cdef int hits = 0
    if best != best:
        while i < n and x[i] == x[i]: i += 1
        return i if i < n else 0
    while i + WIDE <= n:
        for l in range(WIDE): hits |= x[i + l] == best
        if hits: break
        i += WIDE
    while i < n and x[i] != best: i += 1
    return i if i < n else 0


cdef void arg_reals(const real* x, Py_ssize_t n, Py_ssize_t inner, int64_t* y, bint _is_bool,
                    bint is_min) noexcept nogil:
    """y_j = the first k where x_kj is NaN or, if there is no NaN, the maximum over k (is_min: minimum)."""
    cdef Py_ssize_t k, j
    cdef real best, v
    if inner == 1:
        y[0] = first_minmax[real](True, x, n) if is_min else first_minmax[real](False, x, n)
        return
    for j in range(inner): y[j] = 0
    for k in range(1, n):
        for j in range(inner):
            best, v = x[y[j] * inner + j], x[k * inner + j]
            if ((v < best) if is_min else (v > best)) or (v != v and best == best): y[j] = k


cdef inline integer normalized(integer v, bint is_bool) noexcept nogil:
    """v; a bool, which may be any byte, becomes 0 or 1."""
    return <integer>(v != 0) if is_bool else v


cdef void arg_integers(const integer* x, Py_ssize_t n, Py_ssize_t inner, int64_t* y, bint is_bool,
                       bint is_min) noexcept nogil:
    """y_j = the first k where x_kj is the maximum over k (is_min: minimum); 0 if another thread has overwritten it."""
    cdef Py_ssize_t k, j
    cdef integer best, v
    if inner == 1:
        best = normalized(x[0], is_bool)
        for k in range(n):
            v = normalized(x[k], is_bool)
            if (v < best) if is_min else (v > best): best = v
        k = 0
        while k < n and normalized(x[k], is_bool) != best: k += 1
        y[0] = k if k < n else 0
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
        call(dtype, cumsum_[float], cumsum_[double], matrix(dtype, element(dtype, x, i * step), n, inner),
             matrix(dtype, element(dtype, y, i * step), n, inner), reverse)


cdef void arg(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
              bint is_min) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        call_numeric(dtype, arg_integers[int8_t], arg_integers[int16_t], arg_integers[int32_t], arg_integers[int64_t],
                     arg_integers[uint8_t], arg_integers[uint16_t], arg_integers[uint32_t], arg_integers[uint64_t],
                     arg_reals[float], arg_reals[double], element(dtype, x, i * step), n, inner, y + i * inner,
                     dtype == BOOL, is_min)


cdef void cumprod(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, char* y) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        call(dtype, cumprod_[float], cumprod_[double], element(dtype, x, i * step), n, inner,
             element(dtype, y, i * step))


cdef Py_ssize_t cumprod_room(Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    """The bytes of `scratch` of cumprod_grad()."""
    return n * min(inner, <Py_ssize_t>COLUMNS) * sizeof(double)


cdef void cumprod_grad(int dtype, Py_ssize_t n, Py_ssize_t inner, const char* g, const char* x, char* dx,
                       char* scratch) noexcept nogil:
    call(dtype, cumprod_grad_[float], cumprod_grad_[double], <void*>g, <void*>x, n, inner, <void*>dx, <void*>scratch)


cdef void recurrence(int dtype, Py_ssize_t n, Py_ssize_t inner, const char* x, const char* a, char* y,
                     bint reverse) noexcept nogil:
    call(dtype, recurrence_[float], recurrence_[double], <void*>x, <void*>a, n, inner, <void*>y, reverse)


cdef void extreme_places(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
                         bint is_min) noexcept nogil:
    cdef Py_ssize_t i, step = n * inner
    for i in range(outer):
        call_numeric(dtype, extreme_places_[int8_t], extreme_places_[int16_t], extreme_places_[int32_t],
                     extreme_places_[int64_t], extreme_places_[uint8_t], extreme_places_[uint16_t],
                     extreme_places_[uint32_t], extreme_places_[uint64_t], extreme_places_[float],
                     extreme_places_[double], element(dtype, x, i * step), n, inner, y + i * step, is_min)
