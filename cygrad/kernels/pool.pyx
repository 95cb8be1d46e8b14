"""Kernels of pooling: the maximum or the mean of windows of images. Each thread computes whole planes."""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from cygrad.kernels.array cimport FLOAT32, itemsize, real
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    TABLE = 256             # places in a window of so many elements are decoded by a table

cdef struct Span:           # one dimension of a window: the elements at + k step of X for first <= k < last
    Py_ssize_t at
    Py_ssize_t step
    Py_ssize_t first
    Py_ssize_t last


cdef inline Span span(const Pool* p, int d, Py_ssize_t i) noexcept nogil:
    """Dimension d of window i, without what lies outside of X."""
    cdef Span s
    s.first = 0
    if p.adaptive:
        s.at, s.step = i * p.size[d] // p.out[d], 1
        s.last = ((i + 1) * p.size[d] + p.out[d] - 1) // p.out[d] - s.at
        return s
    s.at, s.step = i * p.stride[d] - p.low[d], p.dilation[d]
    if s.step == 1: s.first, s.last = max(<Py_ssize_t>0, -s.at), min(p.kernel[d], p.size[d] - s.at)
    else:
        if s.at < 0: s.first = (s.step - 1 - s.at) // s.step
        s.last = min(p.kernel[d], (p.size[d] - s.at + s.step - 1) // s.step)
    return s


cdef inline Py_ssize_t read_place(const Pool* p, Py_ssize_t i) noexcept nogil:
    if p.width == 1: return (<const uint8_t*>p.places)[i]
    return (<const uint16_t*>p.places)[i] if p.width == 2 else (<const uint32_t*>p.places)[i]


cdef inline void write_place(const Pool* p, Py_ssize_t i, Py_ssize_t place) noexcept nogil:
    if p.width == 1: (<uint8_t*>p.places)[i] = <uint8_t>place
    elif p.width == 2: (<uint16_t*>p.places)[i] = <uint16_t>place
    else: (<uint32_t*>p.places)[i] = <uint32_t>place


# ---- maxima ----------------------------------------------------------------------------------------------------------

cdef void maxima(const Pool* p, const real* x, real* y, Py_ssize_t at) noexcept nogil:
    """y = the largest x of each window, the last NaN if there is one. The place of the first largest goes to
    p.places[at:]."""
    cdef Span sz, sy, sx
    cdef Py_ssize_t i, j, k, a, b, c, best, n = 0
    cdef const real* row
    cdef real most, v
    for i in range(p.out[0]):
        sz = span(p, 0, i)
        for j in range(p.out[1]):
            sy = span(p, 1, j)
            for k in range(p.out[2]):
                sx = span(p, 2, k)
                most = <real>-INFINITY
                best = (sz.first * p.kernel[1] + sy.first) * p.kernel[2] + sx.first
                for a in range(sz.first, sz.last):
                    for b in range(sy.first, sy.last):
                        row = x + (sz.at + a * sz.step) * p.x.at[0] + (sy.at + b * sy.step) * p.x.at[1]
                        for c in range(sx.first, sx.last):
                            v = row[(sx.at + c * sx.step) * p.x.at[2]]
                            if v > most or v != v: most, best = v, (a * p.kernel[1] + b) * p.kernel[2] + c
                y[n] = most
                if p.places != NULL: write_place(p, at + n, best)
                n += 1


cdef bint halves(const Pool* p) noexcept nogil:
    """Whether the windows are the squares of 2 x 2 elements side by side, within X."""
    return (not p.adaptive and p.out[0] == 1 and p.kernel[0] == 1 and p.size[0] == 1 and p.low[0] == 0
            and p.kernel[1] == 2 and p.kernel[2] == 2 and p.stride[1] == 2 and p.stride[2] == 2
            and p.low[1] == 0 and p.low[2] == 0 and p.dilation[1] == 1 and p.dilation[2] == 1
            and 2 * p.out[1] <= p.size[1] and 2 * p.out[2] <= p.size[2] and p.x.at[2] == 1)


cdef inline void take_larger(real v, int place, real* m, int* best) noexcept nogil:
    """m = v if v is larger or NaN. With | because `or` would become a branch, which is mispredicted: 12 ns for a window
    instead of 2."""
    cdef bint larger = (v > m[0]) | (v != v)
    best[0] = place if larger else best[0]
    m[0] = v if larger else m[0]


cdef void maxima_of_squares(const Pool* p, const real* x, real* y, uint8_t* places) noexcept nogil:
    """The same for windows of 2 x 2 elements side by side, without branches."""
    cdef Py_ssize_t j, k, w = p.out[2]
    cdef const real* up
    cdef const real* down
    cdef real m
    cdef int best
    for j in range(p.out[1]):
        up, down = x + 2 * j * p.x.at[1], x + (2 * j + 1) * p.x.at[1]
        for k in range(w):
            m, best = up[2 * k], 0
            take_larger(up[2 * k + 1], 1, &m, &best)
            take_larger(down[2 * k], 2, &m, &best)
            take_larger(down[2 * k + 1], 3, &m, &best)
            y[k] = m
            if places != NULL: places[k] = <uint8_t>best
        y += w
        if places != NULL: places += w


cdef void fill_table(const Pool* p, const Py_ssize_t* at, Py_ssize_t* table) noexcept nogil:
    """The offset of each place from the start of its window."""
    cdef Py_ssize_t k, taps = p.kernel[0] * p.kernel[1] * p.kernel[2]
    for k in range(min(taps, <Py_ssize_t>TABLE)): table[k] = offset_of(p, at, k)


cdef inline Py_ssize_t offset_of(const Pool* p, const Py_ssize_t* at, Py_ssize_t k) noexcept nogil:
    return (k % p.kernel[2] * p.dilation[2] * at[2] + k // p.kernel[2] % p.kernel[1] * p.dilation[1] * at[1]
            + k // (p.kernel[2] * p.kernel[1]) * p.dilation[0] * at[0])


cdef inline bint lies_inside(const Pool* p, Py_ssize_t k, const Span* z, const Span* y, const Span* x) noexcept nogil:
    """Whether place k of a window is an element of X."""
    cdef Py_ssize_t a = k // (p.kernel[2] * p.kernel[1]), b = k // p.kernel[2] % p.kernel[1], c = k % p.kernel[2]
    return z.first <= a < z.last and y.first <= b < y.last and x.first <= c < x.last


cdef void places_of(const Pool* p, real* x, real* y, Py_ssize_t start, bint put) noexcept nogil:
    """y = x at the places of a plane; with `put`, x = 0, then x += y at the places. A place outside of its window
    or of X counts as none."""
    cdef Py_ssize_t table[TABLE]
    cdef Py_ssize_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2]
    cdef bint whole, whole_row
    cdef Py_ssize_t i, j, k, n = start, place, offset
    cdef real* g
    cdef Span sz, sy, sx
    fill_table(p, p.x.at, table)
    if put: memset(x, 0, p.size[0] * p.size[1] * p.size[2] * sizeof(real))
    for i in range(p.out[0]):
        sz = span(p, 0, i)
        for j in range(p.out[1]):
            sy = span(p, 1, j)
            g = y + i * p.y.at[0] + j * p.y.at[1]
            whole_row = sz.first == 0 and sz.last == p.kernel[0] and sy.first == 0 and sy.last == p.kernel[1]
            for k in range(p.out[2]):
                sx = span(p, 2, k)
                place = read_place(p, n)
                n += 1
                whole = whole_row and sx.first == 0 and sx.last == p.kernel[2]
                if place >= taps or not whole and not lies_inside(p, place, &sz, &sy, &sx):
                    if not put: g[k * p.y.at[2]] = 0
                    continue
                offset = table[place] if place < TABLE else offset_of(p, p.x.at, place)
                offset += sz.at * p.x.at[0] + sy.at * p.x.at[1] + sx.at * p.x.at[2]
                if put: x[offset] += g[k * p.y.at[2]]
                else: g[k * p.y.at[2]] = x[offset]


# ---- means -----------------------------------------------------------------------------------------------------------

cdef inline double elements(const Pool* p, const Span* s, const Py_ssize_t* i) noexcept nogil:
    """What the sum of a window is divided by."""
    cdef Py_ssize_t n = 1
    cdef int d
    if p.divisor: return p.divisor
    for d in range(3):
        if p.padding_counts: n *= min(s[d].at + p.kernel[d], p.size[d] + p.low[d]) - s[d].at
        else: n *= max(<Py_ssize_t>0, s[d].last - s[d].first)
    return n


cdef void means(const Pool* p, real* x, real* y, bint back) noexcept nogil:
    """y = the mean of x in each window; with `back`, x = 0, then x += y / the number of elements."""
    cdef Span s[3]
    cdef Py_ssize_t i[3]
    cdef Py_ssize_t a, b, c, step = p.x.at[2]
    cdef real* row
    cdef real* place
    cdef real total, share
    if back: memset(x, 0, p.size[0] * p.size[1] * p.size[2] * sizeof(real))
    for i[0] in range(p.out[0]):
        s[0] = span(p, 0, i[0])
        for i[1] in range(p.out[1]):
            s[1] = span(p, 1, i[1])
            for i[2] in range(p.out[2]):
                s[2] = span(p, 2, i[2])
                place = y + i[0] * p.y.at[0] + i[1] * p.y.at[1] + i[2] * p.y.at[2]
                total = 0
                share = <real>(place[0] / elements(p, s, i)) if back else 0
                for a in range(s[0].first, s[0].last):
                    for b in range(s[1].first, s[1].last):
                        row = x + (s[0].at + a) * p.x.at[0] + (s[1].at + b) * p.x.at[1] + s[2].at * step
                        if back:
                            for c in range(s[2].first, s[2].last): row[c * step] += share
                        else:
                            for c in range(s[2].first, s[2].last): total += row[c * step]
                if not back: place[0] = <real>(total / elements(p, s, i))


# ---- entry points ----------------------------------------------------------------------------------------------------

cdef enum:
    MAXIMA, TAKE, PUT, MEANS, SPREAD

cdef struct Job:
    const Pool* p
    int what


cdef void plane(const Pool* p, int what, real* x, real* y, Py_ssize_t at) noexcept nogil:
    """One plane; its places are p.places[at:]."""
    if what == MAXIMA:
        if p.width == 1 and halves(p):
            maxima_of_squares[real](p, x, y, <uint8_t*>p.places + at if p.places != NULL else NULL)
        else: maxima[real](p, x, y, at)
    elif what <= PUT: places_of[real](p, x, y, at, what == PUT)
    else: means[real](p, x, y, what == SPREAD)


cdef void planes_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = (<const Job*>job).p
    cdef Py_ssize_t i, x, y, size = itemsize(p.dtype), each = p.out[0] * p.out[1] * p.out[2]
    for i in range(start, stop):
        x = (i // p.channels * p.x.image + i % p.channels * p.x.channel) * size
        y = (i // p.channels * p.y.image + i % p.channels * p.y.channel) * size
        if p.dtype == FLOAT32:
            plane[float](p, (<const Job*>job).what, <float*>(p.x.data + x), <float*>(p.y.data + y), i * each)
        else:
            plane[double](p, (<const Job*>job).what, <double*>(p.x.data + x), <double*>(p.y.data + y), i * each)


cdef void each_plane(const Pool* p, int what) noexcept nogil:
    cdef Job job = Job(p, what)
    cdef Py_ssize_t n = p.n * p.channels, work = n * p.out[0] * p.out[1] * p.out[2]
    cdef int t = threads_for(work * (4 if what == TAKE or what == PUT else p.kernel[0] * p.kernel[1] * p.kernel[2]))
    parallel_for(planes_range, &job, n, n if t == 1 else (n + 4 * t - 1) // (4 * t), t)


cdef void max_pool(Pool* p) noexcept nogil:
    """Y = the largest elements of windows of X, and their places if p.places is not NULL."""
    each_plane(p, MAXIMA)


cdef void take_places(Pool* p) noexcept nogil:
    """Y = X at the places."""
    each_plane(p, TAKE)


cdef void put_places(Pool* p) noexcept nogil:
    """X = the sums of Y at the places."""
    each_plane(p, PUT)


cdef void mean_pool(Pool* p) noexcept nogil:
    """Y = the means of windows of X."""
    each_plane(p, MEANS)


cdef void spread_means(Pool* p) noexcept nogil:
    """X = the sums of what windows with mean Y give to each element."""
    each_plane(p, SPREAD)
