"""Pooling with vectors: tiles of many windows, whose elements are packed by phases.

With stride s, the elements q s + f of X are phase f. In a tile packed by phases, the elements that windows side by side
have at the same place are side by side too, and so is the whole tile, with the elements around it: one loop over the
tile takes one element of each window. Between the rows of a result are results of no window, which are not stored.

Elements outside of X are packed as minus infinity or 0, so windows at the borders need no code of their own. Gradients
are added in the order of the windows, as in pool.pyx."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from cygrad.kernels.array cimport real
from cygrad.kernels.images.planes cimport copied_t, copy, up
from cygrad.kernels.images.windows cimport Pool, Span, count_of, span, windows_on
from cygrad.kernels.lanes cimport larger

cdef enum:
    WHOLE = 16              # the loops compute so many elements, or a multiple: a whole number of vectors
    FEW = 4                 # windows of a plane, below which a loop over their elements is faster

ctypedef fused mark_t:      # an integer as wide as the numbers, so that both are compared in vectors of equal length
    int32_t
    int64_t

cdef struct Patch:          # rows y + r dy of a plane of X or Y, and in them elements x + k dx
    Py_ssize_t y
    Py_ssize_t dy
    Py_ssize_t x
    Py_ssize_t dx
    Py_ssize_t size[2]      # of the plane
    Py_ssize_t at[2]        # elements of memory from a row, or an element, to the next
    Py_ssize_t rows
    Py_ssize_t columns


cdef void set_phases(const Pool* p, Phases* t) noexcept nogil:
    """The tiles for p. They do not fit to windows of different sizes, of many elements, or far from each other."""
    cdef Py_ssize_t gap, room, k
    cdef int d
    t.fit = False
    t.tile[0] = -1
    if p.width > 1 or p.out[1] * p.out[2] < FEW: return
    for d in range(2):
        if p.adaptive:
            if p.size[1 + d] % p.out[1 + d]: return
            t.wide[d] = t.step[d] = p.size[1 + d] // p.out[1 + d]
            t.low[d], gap = 0, 1
        else: t.wide[d], t.step[d], t.low[d], gap = p.kernel[1 + d], p.stride[1 + d], p.low[1 + d], p.dilation[1 + d]
        if t.wide[d] > TAPS or t.step[d] > PACK or gap > PACK: return
        t.span[d] = (t.wide[d] - 1) * gap // t.step[d]
        for k in range(t.wide[d]): t.f[d][k], t.q[d][k] = <int>(k * gap % t.step[d]), <int>(k * gap // t.step[d])
    room = PACK // (t.step[0] * t.step[1]) - WHOLE          # elements of a phase
    t.part[1] = min(max(p.out[2], up(p.size[2] + t.low[1], t.step[1])), 128 if p.out[1] > 1 else PACK)
    while t.part[1] and (1 + t.span[0]) * (t.part[1] + t.span[1]) > room: t.part[1] //= 2
    if t.part[1] == 0: return
    t.part[0] = room // (t.part[1] + t.span[1]) - t.span[0]
    t.fit = True


cdef inline Py_ssize_t whole(Py_ssize_t n) noexcept nogil: return up(n, WHOLE) * WHOLE


cdef inline void bounds(Py_ssize_t at, Py_ssize_t step, Py_ssize_t size, Py_ssize_t n, Py_ssize_t* low,
                        Py_ssize_t* high) noexcept nogil:
    """The k from low to high - 1 are those below n for which 0 <= at + k step < size."""
    low[0] = min(n, 0 if at >= 0 else up(-at, step))
    high[0] = max(low[0], min(n, 0 if at >= size else up(size - at, step)))


cdef void pack(const Patch* w, const copied_t* x, copied_t outside, copied_t* to) noexcept nogil:
    """Copy a patch, with `outside` for what lies outside of the plane."""
    cdef Py_ssize_t top, bottom, low, high, k, _, columns = w.columns, step = w.dx * w.at[1]
    bounds(w.y, w.dy, w.size[0], w.rows, &top, &bottom)
    bounds(w.x, w.dx, w.size[1], columns, &low, &high)
    for k in range(top * columns): to[k] = outside
    for k in range(bottom * columns, w.rows * columns): to[k] = outside
    x += (w.y + top * w.dy) * w.at[0] + (w.x + low * w.dx) * w.at[1]
    to += top * columns
    if low == 0 and high == columns and w.dy * w.at[0] == columns * step:   # one row
        copy(x, step, to, (bottom - top) * columns)
        return
    for _ in range(top, bottom):
        for k in range(low): to[k] = outside
        copy(x, step, to + low, high - low)
        for k in range(high, columns): to[k] = outside
        x += w.dy * w.at[0]
        to += columns


cdef void pack_phases(const Pool* p, const Phases* t, const real* x, Py_ssize_t j, Py_ssize_t k, Py_ssize_t rows,
                      Py_ssize_t columns, real outside, real* to) noexcept nogil:
    """Pack the elements of the windows from (j, k) on."""
    cdef Patch w
    cdef Py_ssize_t a, b
    w.dy, w.dx, w.size[0], w.size[1] = t.step[0], t.step[1], p.size[1], p.size[2]
    w.at[0], w.at[1] = p.x.at[1], p.x.at[2]
    w.rows, w.columns = rows + t.span[0], columns + t.span[1]
    for a in range(t.step[0]):
        for b in range(t.step[1]):
            w.y, w.x = j * t.step[0] + a - t.low[0], k * t.step[1] + b - t.low[1]
            pack(&w, x, outside, to)
            to += w.rows * w.columns


cdef inline Py_ssize_t place_in(const Phases* t, Py_ssize_t b, Py_ssize_t c, Py_ssize_t rows,
                                Py_ssize_t columns) noexcept nogil:
    """Where element (b, c) of the first window lies in what pack_phases() packed, of phases of rows times columns."""
    return ((t.f[0][b] * t.step[1] + t.f[1][c]) * rows + t.q[0][b]) * columns + t.q[1][c]


# ---- maxima ----------------------------------------------------------------------------------------------------------

cdef inline void take_larger(const real* x, mark_t place, real* most, mark_t* best, Py_ssize_t n) noexcept nogil:
    """most = x where x is larger or NaN. With | because `or` would become a branch."""
    cdef Py_ssize_t i
    cdef bint more
    for i in range(n):
        more = (x[i] > most[i]) | (x[i] != x[i])
        best[i] = place if more else best[i]
        most[i] = x[i] if more else most[i]


cdef void first_places(const Pool* p, Py_ssize_t i, Py_ssize_t j, Py_ssize_t k, Py_ssize_t columns, Py_ssize_t pitch,
                       mark_t* best, Py_ssize_t n) noexcept nogil:
    """The place of the first element of each window that has no element above minus infinity."""
    cdef Span sz = span(p, 0, i), sy, sx
    cdef Py_ssize_t m
    for m in range(n):
        if best[m] >= 0 or m % pitch >= columns: continue
        sy, sx = span(p, 1, j + m // pitch), span(p, 2, k + m % pitch)
        best[m] = <mark_t>((sz.first * p.kernel[1] + sy.first) * p.kernel[2] + sx.first)


cdef void max_tiles(const Pool* p, const Phases* t, const real* x, real* y, uint8_t* places,
                    mark_t outside) noexcept nogil:
    cdef real packed[PACK + WHOLE]
    cdef real most[PACK]
    cdef mark_t best[PACK]
    cdef mark_t missing
    cdef const real* from_
    cdef Span s
    cdef Py_ssize_t i, j, k, a, b, c, m, n, r, u, v, rows, columns, pitch, to
    for i in range(p.out[0]):
        s = span(p, 0, i)
        for u in range(up(p.out[1], t.part[0])):
            j = u * t.part[0]
            rows = min(t.part[0], p.out[1] - j)
            for v in range(up(p.out[2], t.part[1])):
                k = v * t.part[1]
                columns = min(t.part[1], p.out[2] - k)
                pitch = columns + t.span[1]
                n = whole((rows - 1) * pitch + columns)
                for m in range(n): most[m] = <real>-INFINITY
                if places != NULL:
                    for m in range(n): best[m] = outside
                for a in range(s.first, s.last):
                    pack_phases(p, t, x + (s.at + a * s.step) * p.x.at[0], j, k, rows, columns, <real>-INFINITY, packed)
                    for b in range(t.wide[0]):
                        for c in range(t.wide[1]):
                            from_ = packed + place_in(t, b, c, rows + t.span[0], pitch)
                            if places == NULL:
                                for m in range(n): most[m] = larger(from_[m], most[m])
                            else:
                                take_larger(from_, <mark_t>((a * p.kernel[1] + b) * p.kernel[2] + c), most, best, n)
                for r in range(rows):
                    to = (i * p.out[1] + j + r) * p.out[2] + k
                    copy(<const real*>most + r * pitch, 1, y + to, columns)
                if places == NULL: continue
                n, missing = (rows - 1) * pitch + columns, 0
                for m in range(n): missing |= best[m]
                if missing < 0: first_places(p, i, j, k, columns, pitch, best, n)
                for r in range(rows):
                    to = (i * p.out[1] + j + r) * p.out[2] + k
                    for m in range(columns): places[to + m] = <uint8_t>best[r * pitch + m]


cdef void phases_max(const Pool* p, const Phases* t, const real* x, real* y, Py_ssize_t at) noexcept nogil:
    """y = the largest x of each window, the last NaN if there is one. The place of the first largest goes to
    p.places[at:]."""
    cdef uint8_t* places = <uint8_t*>p.places + at if p.places != NULL else NULL
    if real is float: max_tiles[float, int32_t](p, t, x, y, places, -1)
    else: max_tiles[double, int64_t](p, t, x, y, places, -1)


# ---- means -----------------------------------------------------------------------------------------------------------

cdef void set_counts(const Pool* p, Phases* t, Py_ssize_t i, Py_ssize_t j, Py_ssize_t k, Py_ssize_t rows,
                     Py_ssize_t columns, Py_ssize_t pitch) noexcept nogil:
    """t.count = what the sums of the windows from (i, j, k) on are divided by, in rows of `pitch`; 1 where there is no
    window. Planes of one tile share it."""
    cdef double row[PACK]
    cdef double each
    cdef Span z = span(p, 0, i), s
    cdef Py_ssize_t r, m
    if t.tile[0] == i and t.tile[1] == j and t.tile[2] == k: return
    t.tile[0], t.tile[1], t.tile[2] = i, j, k
    for m in range(whole(rows * pitch)): t.count[m] = 1
    for m in range(columns):
        s = span(p, 2, k + m)
        row[m] = <double>p.divisor if p.divisor else count_of(p, 2, &s)
    for r in range(max(<Py_ssize_t>0, -j), min(rows, p.out[1] - j)):
        s = span(p, 1, j + r)
        each = 1 if p.divisor else count_of(p, 0, &z) * count_of(p, 1, &s)
        for m in range(max(<Py_ssize_t>0, -k), min(columns, p.out[2] - k)): t.count[r * pitch + m] = each * row[m]


cdef void phases_mean(const Pool* p, Phases* t, const real* x, real* y) noexcept nogil:
    """y = the mean of x in each window, added in float64."""
    cdef real packed[PACK + WHOLE]
    cdef double total[PACK]
    cdef real mean[PACK]
    cdef const real* from_
    cdef real* to
    cdef Span s
    cdef Py_ssize_t i, j, k, a, b, c, m, n, r, u, v, rows, columns, pitch
    for i in range(p.out[0]):
        s = span(p, 0, i)
        for u in range(up(p.out[1], t.part[0])):
            j = u * t.part[0]
            rows = min(t.part[0], p.out[1] - j)
            for v in range(up(p.out[2], t.part[1])):
                k = v * t.part[1]
                columns = min(t.part[1], p.out[2] - k)
                pitch = columns + t.span[1]
                n = whole((rows - 1) * pitch + columns)
                for m in range(n): total[m] = 0
                for a in range(s.first, s.last):
                    pack_phases(p, t, x + (s.at + a * s.step) * p.x.at[0], j, k, rows, columns, <real>0, packed)
                    for b in range(t.wide[0]):
                        for c in range(t.wide[1]):
                            from_ = packed + place_in(t, b, c, rows + t.span[0], pitch)
                            for m in range(n): total[m] += from_[m]
                set_counts(p, t, i, j, k, rows, columns, pitch)
                for m in range(n): mean[m] = <real>(total[m] / t.count[m])
                for r in range(rows):
                    to = y + i * p.y.at[0] + (j + r) * p.y.at[1] + k * p.y.at[2]
                    if p.y.at[2] == 1: copy(<const real*>mean + r * pitch, 1, to, columns)
                    else:
                        for m in range(columns): to[m * p.y.at[2]] = mean[r * pitch + m]


# ---- gradients of means ----------------------------------------------------------------------------------------------

cdef void store_row(const Pool* p, const Phases* t, const real* phases, Py_ssize_t plane, Py_ssize_t at,
                    Py_ssize_t columns, real* x) noexcept nogil:
    """x[at + k s + f] = phases[f plane + k], where x has such an element: a row of X from its phases."""
    cdef Py_ssize_t f, k, low, high, first = 0, last = 0, step = t.step[1]
    cdef const real* odd = phases + plane
    if step == 2 and p.x.at[2] == 1:                # a pair of elements at a time
        first = 0 if at >= 0 else (1 - at) // 2
        last = max(first, min(columns, (p.size[2] - at) // 2))
        for k in range(first, last): x[at + 2 * k], x[at + 2 * k + 1] = phases[k], odd[k]
    for f in range(step):
        bounds(at + f, step, p.size[2], columns, &low, &high)
        if step == 1 and p.x.at[2] == 1:
            copy(phases + low, 1, x + at + low, high - low)
            continue
        for k in range(low, min(first, high)): x[(at + f + k * step) * p.x.at[2]] = phases[k]
        for k in range(max(low, last), high): x[(at + f + k * step) * p.x.at[2]] = phases[k]
        phases += plane


cdef void phases_spread(const Pool* p, Phases* t, real* x, const real* y) noexcept nogil:
    """x = the sum of y / the elements of the window, over the windows that x is in."""
    cdef real packed[PACK + WHOLE]
    cdef real sums[PACK]
    cdef real* to
    cdef Patch w
    cdef Span s
    cdef Py_ssize_t at, i, j, k, b, c, f, m, n, r, u, v, rows, columns, pitch, from_, plane
    cdef Py_ssize_t high = up(p.size[1] + t.low[0], t.step[0]), wide = up(p.size[2] + t.low[1], t.step[1])
    w.dy, w.dx, w.size[0], w.size[1], w.at[0], w.at[1] = 1, 1, p.out[1], p.out[2], p.y.at[1], p.y.at[2]
    for at in range(p.size[0]):
        s = windows_on(p, 0, at)
        for u in range(up(high, t.part[0])):
            j = u * t.part[0]
            rows = min(t.part[0], high - j)
            for v in range(up(wide, t.part[1])):
                k = v * t.part[1]
                columns = min(t.part[1], wide - k)
                pitch = columns + t.span[1]
                plane = whole(rows * pitch)
                n = whole((rows - 1) * pitch + columns)
                memset(sums, 0, t.step[0] * t.step[1] * plane * sizeof(real))
                w.y, w.x, w.rows, w.columns = j - t.span[0], k - t.span[1], rows + t.span[0], pitch
                for i in range(s.first, s.last):
                    pack(&w, y + i * p.y.at[0], <real>0, packed)
                    set_counts(p, t, i, w.y, w.x, w.rows, pitch, pitch)
                    for m in range(whole(w.rows * pitch)): packed[m] = <real>(packed[m] / t.count[m])
                    for b in range(t.wide[0] - 1, -1, -1):
                        for c in range(t.wide[1] - 1, -1, -1):
                            from_ = (t.span[0] - t.q[0][b]) * pitch + t.span[1] - t.q[1][c]
                            to = sums + (t.f[0][b] * t.step[1] + t.f[1][c]) * plane
                            for m in range(n): to[m] += packed[from_ + m]
                for f in range(t.step[0]):
                    for r in range(rows):
                        m = (j + r) * t.step[0] + f - t.low[0]
                        if 0 <= m < p.size[1]:
                            store_row(p, t, <const real*>sums + f * t.step[1] * plane + r * pitch, plane,
                                      k * t.step[1] - t.low[1], columns, x + at * p.x.at[0] + m * p.x.at[1])
