"""Kernels of pooling: the maximum or the mean of windows of images. Each thread computes whole planes."""

from libc.math cimport INFINITY
from libc.stdint cimport INT64_MIN, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.images.phases cimport Phases, phases_max, phases_mean, phases_spread, set_phases
from cygrad.kernels.images.windows cimport Pool, Span, count_of, span, tap, windows_on
from cygrad.kernels.lanes cimport LANES, WIDE, sum_of
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef extern from "cygrad/lanes.h" nogil:
    void cg_short_sums(const float* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, double* y, Py_ssize_t step)

cdef enum:
    TABLE = 256             # places in a window of so many elements are decoded by a table
    MANY = 1024             # above so many windows for each element of X, gradients are added in float64


cdef struct Table:          # the places of windows with these rows
    Py_ssize_t offset[TABLE]    # from the start of the window, or INT64_MIN
    Py_ssize_t column[TABLE]
    Span z
    Span y


cdef struct Own:            # what the planes of one thread share
    Py_ssize_t whole        # elements of a plane that is one window, or 0
    double count            # what their sum is divided by
    Phases phases
    Table table


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


cdef void clear_table(Table* t) noexcept nogil:
    t.z.first = -1
    for k in range(TABLE): t.offset[k], t.column[k] = INT64_MIN, 0


cdef void fill_table(const Pool* p, const Span* z, const Span* y, Table* t) noexcept nogil:
    """The table for windows whose rows are these. A window whose places are wider has none."""
    cdef Py_ssize_t a, b, c, k = 0
    if p.width > 1 or (t.z.first == z.first and t.z.last == z.last and t.y.first == y.first
                       and t.y.last == y.last): return
    t.z, t.y = z[0], y[0]
    for k in range(p.taps): t.offset[k] = INT64_MIN
    for a in range(z.first, z.last):
        for b in range(y.first, y.last):
            k = (a * p.kernel[1] + b) * p.kernel[2]
            for c in range(p.kernel[2]):
                t.offset[k + c] = a * z.step * p.x.at[0] + b * y.step * p.x.at[1] + c * p.dilation[2] * p.x.at[2]
                t.column[k + c] = c


cdef inline Py_ssize_t offset_of(const Pool* p, const Table* t, Py_ssize_t k, const Span* z, const Span* y,
                                 const Span* x) noexcept nogil:
    """The offset of place k from the start of its window, or INT64_MIN if it is not an element of X."""
    cdef Py_ssize_t a, b, c
    if p.width == 1: return t.offset[k] if x.first <= t.column[k] < x.last else INT64_MIN
    a, b, c = k // (p.kernel[2] * p.kernel[1]), k // p.kernel[2] % p.kernel[1], k % p.kernel[2]
    if not (z.first <= a < z.last and y.first <= b < y.last and x.first <= c < x.last): return INT64_MIN
    return a * z.step * p.x.at[0] + b * y.step * p.x.at[1] + c * x.step * p.x.at[2]


cdef inline void move(real* x, Py_ssize_t offset, Py_ssize_t at, real* y, bint put) noexcept nogil:
    """y = x[at + offset] or, with `put`, x[at + offset] += y."""
    if offset == INT64_MIN:
        if not put: y[0] = 0
    elif put: x[at + offset] += y[0]
    else: y[0] = x[at + offset]


cdef void at_border(const Pool* p, const Table* t, real* x, real* y, Py_ssize_t n, Py_ssize_t k, const Span* sz,
                    const Span* sy, bint put) noexcept nogil:
    """The same for window k of a row, which may lie partly outside of X. The places of the row are p.places[n:]."""
    cdef Span sx = span(p, 2, k)
    move(x, offset_of(p, t, read_place(p, n + k), sz, sy, &sx), sx.at * p.x.at[2], y + k * p.y.at[2], put)


cdef void places_of(const Pool* p, Table* t, real* x, real* y, Py_ssize_t start, bint put) noexcept nogil:
    """y = x at the places of a plane; with `put`, x = 0, then x += y at the places. A place outside of its window
    or of X counts as none."""
    cdef const uint8_t* places
    cdef Py_ssize_t i, j, k, n, low = 0, high = 0, gap = p.y.at[2]
    cdef Py_ssize_t step = p.stride[2] * p.x.at[2], first = p.low[2] * p.x.at[2]
    cdef real* g
    cdef real* row
    cdef Span sz, sy
    if p.width == 1 and not p.adaptive:             # windows low to high - 1 have all their columns
        low = min(p.out[2], (p.low[2] + p.stride[2] - 1) // p.stride[2])
        n = p.size[2] + p.low[2] - p.dilation[2] * (p.kernel[2] - 1)
        high = max(low, min(p.out[2], (n + p.stride[2] - 1) // p.stride[2]))
    if put: memset(x, 0, p.size[0] * p.size[1] * p.size[2] * sizeof(real))
    for i in range(p.out[0]):
        sz = span(p, 0, i)
        for j in range(p.out[1]):
            sy = span(p, 1, j)
            fill_table(p, &sz, &sy, t)
            n = start + (i * p.out[1] + j) * p.out[2]
            g, row = y + i * p.y.at[0] + j * p.y.at[1], x + sz.at * p.x.at[0] + sy.at * p.x.at[1]
            places = <const uint8_t*>p.places + n
            for k in range(low): at_border(p, t, row, g, n, k, &sz, &sy, put)
            for k in range(low, high): move(row, t.offset[places[k]], k * step - first, g + k * gap, put)
            for k in range(high, p.out[2]): at_border(p, t, row, g, n, k, &sz, &sy, put)


# ---- means -----------------------------------------------------------------------------------------------------------

cdef inline double elements(const Pool* p, const Span* s) noexcept nogil:
    """What the sum of a window is divided by."""
    if p.divisor: return <double>p.divisor
    return count_of(p, 0, &s[0]) * count_of(p, 1, &s[1]) * count_of(p, 2, &s[2])


cdef void means(const Pool* p, const real* x, real* y) noexcept nogil:
    """y = the mean of x in each window. The rows of a window are added in float64. Rows that are one piece of
    memory are one row."""
    cdef Span s[3]
    cdef Py_ssize_t i, j, k, a, c, rows, n, _, step = p.x.at[2]
    cdef bint joined = step == 1 and p.x.at[1] == p.size[2]
    cdef const real* row
    cdef real part
    cdef double total
    for i in range(p.out[0]):
        s[0] = span(p, 0, i)
        for j in range(p.out[1]):
            s[1] = span(p, 1, j)
            for k in range(p.out[2]):
                s[2] = span(p, 2, k)
                rows, n, total = s[1].last - s[1].first, s[2].last - s[2].first, 0
                if joined and n == p.size[2]: rows, n = 1, rows * n
                for a in range(s[0].first, s[0].last):
                    row = (x + (s[0].at + a) * p.x.at[0] + (s[1].at + s[1].first) * p.x.at[1]
                           + (s[2].at + s[2].first) * step)
                    for _ in range(rows):
                        if n < LANES:
                            part = 0
                            for c in range(n): part += row[c * step]
                            total += part
                        elif step == 1: total += sum_of[real](row, n)
                        else:
                            for c in range(n): total += row[c * step]
                        row += p.x.at[1]
                y[i * p.y.at[0] + j * p.y.at[1] + k * p.y.at[2]] = <real>(total / elements(p, s))


cdef void shares(const Pool* p, real* x, const real* y) noexcept nogil:
    """x = 0, then x += y / the number of elements, for each window."""
    cdef Span s[3]
    cdef Py_ssize_t i, j, k, a, b, c, step = p.x.at[2]
    cdef real* row
    cdef real share
    for i in range(p.out[0]):
        s[0] = span(p, 0, i)
        for j in range(p.out[1]):
            s[1] = span(p, 1, j)
            for k in range(p.out[2]):
                s[2] = span(p, 2, k)
                share = <real>(y[i * p.y.at[0] + j * p.y.at[1] + k * p.y.at[2]] / elements(p, s))
                for a in range(s[0].first, s[0].last):
                    for b in range(s[1].first, s[1].last):
                        row = x + (s[0].at + a) * p.x.at[0] + (s[1].at + b) * p.x.at[1] + s[2].at * step
                        for c in range(s[2].first, s[2].last): row[c * step] += share


cdef Py_ssize_t whole_plane(const Pool* p, double* count) noexcept nogil:
    """The elements of a plane, if one window has them all and they are side by side; otherwise 0. `count` is what their
    sum is divided by."""
    cdef Span s[3]
    cdef Py_ssize_t n = 1
    for d in range(2, -1, -1):
        s[d] = span(p, d, 0)
        if p.out[d] != 1 or s[d].step != 1 or s[d].first + s[d].at != 0 or s[d].last - s[d].first != p.size[d]: return 0
        if p.size[d] != 1 and p.x.at[d] != n: return 0
        n *= p.size[d]
    count[0] = elements(p, s)
    return n


cdef void whole_means(const Pool* p, const Own* own, const real* x, real* y, Py_ssize_t m) noexcept nogil:
    """The means of m <= WIDE whole planes, of channels one after the other."""
    cdef double[WIDE] total
    cdef Py_ssize_t i, n = own.whole
    memset(total, 0, m * sizeof(double))
    if real is float and n < WIDE: cg_short_sums(<const float*>x, p.x.channel, m, n, total, 1)
    else:
        for i in range(m): total[i] = sum_of[real](x + i * p.x.channel, n)
    for i in range(m): y[i * p.y.channel] = <real>(total[i] / own.count)


cdef inline void whole_share(real* x, const real* y, Py_ssize_t n, double count) noexcept nogil:
    cdef real share = 0 + <real>(y[0] / count)      # not -0
    for i in range(n): x[i] = share


# ---- sums over many windows, element by element ----------------------------------------------------------------------

cdef bint in_many(const Pool* p) noexcept nogil:
    """Whether an element of X may lie in so many windows that their sum in float32 would lose digits."""
    cdef double n = 1
    if itemsize(p.dtype) > 4: return False
    for d in range(3):
        n *= <double>min(p.out[d], p.out[d] // p.size[d] + 2 if p.adaptive else
                         (p.dilation[d] * (p.kernel[d] - 1)) // p.stride[d] + 1)
    return n > MANY


cdef void sum_at_places(const Pool* p, real* x, const real* y, Py_ssize_t start) noexcept nogil:
    """x = the sums of y over the windows whose place it is."""
    cdef Span sz, sy, sx
    cdef Py_ssize_t i, j, k, a, b, c, u, v, w
    cdef double total
    for a in range(p.size[0]):
        sz = windows_on(p, 0, a)
        for b in range(p.size[1]):
            sy = windows_on(p, 1, b)
            for c in range(p.size[2]):
                sx = windows_on(p, 2, c)
                total = 0
                for i in range(sz.first, sz.last):
                    u = tap(p, 0, i, a)
                    for j in range(sy.first, sy.last):
                        v = tap(p, 1, j, b)
                        if u < 0 or v < 0: continue
                        for k in range(sx.first, sx.last):
                            w = tap(p, 2, k, c)
                            if w >= 0 and read_place(p, start + (i * p.out[1] + j) * p.out[2] + k) == (
                                    u * p.kernel[1] + v) * p.kernel[2] + w:
                                total += y[i * p.y.at[0] + j * p.y.at[1] + k * p.y.at[2]]
                x[a * p.x.at[0] + b * p.x.at[1] + c * p.x.at[2]] = <real>total


cdef void sum_shares(const Pool* p, real* x, const real* y) noexcept nogil:
    """x += the sum of y / the number of elements, over the windows that x is in."""
    cdef double factor[TABLE]                       # 1 / elements of at most so many windows along the last dimension
    cdef Span sz, sy, sx, s
    cdef Py_ssize_t i, j, k, m, n, a, b, c
    cdef const real* row
    cdef double total, part, deep, high
    for c in range(p.size[2]):
        sx = windows_on(p, 2, c)
        k = sx.first
        while k < sx.last:
            n = min(sx.last - k, <Py_ssize_t>TABLE)
            for m in range(n):
                s = span(p, 2, k + m)
                factor[m] = 1.0 / (p.divisor if p.divisor else count_of(p, 2, &s))
            for a in range(p.size[0]):
                sz = windows_on(p, 0, a)
                for b in range(p.size[1]):
                    sy = windows_on(p, 1, b)
                    total = 0
                    for i in range(sz.first, sz.last):
                        s = span(p, 0, i)
                        deep = 1 if p.divisor else count_of(p, 0, &s)
                        for j in range(sy.first, sy.last):
                            s = span(p, 1, j)
                            high = 1 if p.divisor else count_of(p, 1, &s)
                            row = y + i * p.y.at[0] + j * p.y.at[1] + k * p.y.at[2]
                            part = 0
                            for m in range(n): part += row[m * p.y.at[2]] * factor[m]
                            total += part / (deep * high)
                    x[a * p.x.at[0] + b * p.x.at[1] + c * p.x.at[2]] += <real>total
            k += n


# ---- entry points ----------------------------------------------------------------------------------------------------

cdef enum:
    MAXIMA, TAKE, PUT, MEANS, SPREAD

cdef struct Job:
    const Pool* p
    int what


cdef void plane(const Pool* p, Own* own, int what, real* x, real* y, Py_ssize_t at) noexcept nogil:
    """One plane; its places are p.places[at:]."""
    cdef Phases* t = &own.phases
    if what == MAXIMA:
        if t.fit: phases_max(p, t, x, y, at)
        else: maxima[real](p, x, y, at)
    elif what == MEANS:
        if t.fit: phases_mean(p, t, x, y)
        else: means[real](p, x, y)
    elif what == TAKE: places_of[real](p, &own.table, x, y, at, False)
    elif what == PUT:
        if in_many(p): sum_at_places[real](p, x, y, at)
        else: places_of[real](p, &own.table, x, y, at, True)
    elif own.whole: whole_share[real](x, y, own.whole, own.count)
    elif t.fit and not in_many(p): phases_spread(p, t, x, y)
    else:
        memset(x, 0, p.size[0] * p.size[1] * p.size[2] * sizeof(real))
        if in_many(p): sum_shares[real](p, x, y)
        else: shares[real](p, x, y)


cdef void planes_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = (<const Job*>job).p
    cdef Own own
    cdef int what = (<const Job*>job).what
    cdef Py_ssize_t i = start, m, x, y, size = itemsize(p.dtype), each = p.out[0] * p.out[1] * p.out[2]
    own.whole = whole_plane(p, &own.count) if what == MEANS or what == SPREAD else 0
    if what == TAKE or what == PUT: clear_table(&own.table)
    elif not own.whole: set_phases(p, &own.phases)
    while i < stop:
        m = 1
        x = (i // p.channels * p.x.image + i % p.channels * p.x.channel) * size
        y = (i // p.channels * p.y.image + i % p.channels * p.y.channel) * size
        if what == MEANS and own.whole:
            m = min(min(stop - i, p.channels - i % p.channels), <Py_ssize_t>WIDE)
            call(p.dtype, whole_means[float], whole_means[double], p, &own, <void*>(p.x.data + x),
                 <void*>(p.y.data + y), m)
        else:
            call(p.dtype, plane[float], plane[double], p, &own, what, <void*>(p.x.data + x),
                 <void*>(p.y.data + y), i * each)
        i += m


cdef void each_plane(const Pool* p, int what) noexcept nogil:
    cdef Job job = Job(p, what)
    cdef Py_ssize_t n = p.n * p.channels, work = n * p.out[0] * p.out[1] * p.out[2]
    cdef int d, t
    if what == TAKE or what == PUT: work *= 4
    else:
        for d in range(3): work *= min(p.kernel[d], p.size[d])
    t = threads_for(work)
    parallel_for(planes_range, &job, n, n if t == 1 else (n + 4 * t - 1) // (4 * t), t)


cdef void join_channels(Pool* p) noexcept nogil:
    """Make the channels of windows along one dimension the rows of a plane, so that a tile has many of them. If there
    are few images, their channels are what threads share."""
    if p.adaptive or p.n < 4 or p.out[2] == 1 or p.low[1] != 0: return
    if p.size[0] * p.size[1] * p.kernel[0] * p.kernel[1] != 1 or p.out[0] * p.out[1] != 1: return
    p.size[1] = p.out[1] = p.channels
    p.x.at[1], p.y.at[1], p.channels = p.x.channel, p.y.channel, 1


cdef void max_pool(Pool* p) noexcept nogil:
    """Y = the largest elements of windows of X, and their places if p.places is not NULL."""
    join_channels(p)
    each_plane(p, MAXIMA)


cdef void take_places(Pool* p) noexcept nogil:
    """Y = X at the places."""
    each_plane(p, TAKE)


cdef void put_places(Pool* p) noexcept nogil:
    """X = the sums of Y at the places."""
    each_plane(p, PUT)


cdef void mean_pool(Pool* p) noexcept nogil:
    """Y = the means of windows of X."""
    join_channels(p)
    each_plane(p, MEANS)


cdef void spread_means(Pool* p) noexcept nogil:
    """X = the sums of what windows with mean Y give to each element."""
    each_plane(p, SPREAD)
