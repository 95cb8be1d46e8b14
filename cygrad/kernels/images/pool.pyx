"""Kernels of pooling: the maximum or the mean of windows of images. Each thread computes whole planes."""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.lanes cimport LANES, sum_of
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    TABLE = 256             # places in a window of so many elements are decoded by a table
    MANY = 1024             # above so many windows for each element of X, gradients are added in float64

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
    for k in range(min(p.taps, <Py_ssize_t>TABLE)): table[k] = offset_of(p, at, k)


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
                if place >= p.taps or not whole and not lies_inside(p, place, &sz, &sy, &sx):
                    if not put: g[k * p.y.at[2]] = 0
                    continue
                offset = table[place] if place < TABLE else offset_of(p, p.x.at, place)
                offset += sz.at * p.x.at[0] + sy.at * p.x.at[1] + sx.at * p.x.at[2]
                if put: x[offset] += g[k * p.y.at[2]]
                else: g[k * p.y.at[2]] = x[offset]


# ---- means -----------------------------------------------------------------------------------------------------------

cdef inline double count_of(const Pool* p, int d, const Span* s) noexcept nogil:
    """The elements of a window along dimension d, whose product divides the sum if there is no divisor. A float64,
    because the product of three may exceed 64 bits."""
    if p.padding_counts: return <double>(min(s.at + p.kernel[d], p.size[d] + p.low[d]) - s.at)
    return <double>max(<Py_ssize_t>0, s.last - s.first)


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


# ---- sums over many windows, element by element ----------------------------------------------------------------------

cdef bint in_many(const Pool* p) noexcept nogil:
    """Whether an element of X may lie in so many windows that their sum in float32 would lose digits."""
    cdef double n = 1
    if itemsize(p.dtype) > 4: return False
    for d in range(3):
        n *= <double>min(p.out[d], p.out[d] // p.size[d] + 2 if p.adaptive else
                         (p.dilation[d] * (p.kernel[d] - 1)) // p.stride[d] + 1)
    return n > MANY


cdef inline Span windows_on(const Pool* p, int d, Py_ssize_t at) noexcept nogil:
    """The windows first <= i < last that may contain element `at` along dimension d. (at and step are not used.)"""
    cdef Span s
    cdef Py_ssize_t before = at + p.low[d] - p.dilation[d] * (p.kernel[d] - 1)
    s.at = s.step = 0
    if p.adaptive:
        s.first, s.last = at * p.out[d] // p.size[d], ((at + 1) * p.out[d] + p.size[d] - 1) // p.size[d]
        return s
    s.first = 0 if before <= 0 else (before + p.stride[d] - 1) // p.stride[d]
    s.last = min(p.out[d], (at + p.low[d]) // p.stride[d] + 1)
    return s


cdef inline Py_ssize_t tap(const Pool* p, int d, Py_ssize_t i, Py_ssize_t at) noexcept nogil:
    """The number of element `at` in window i along dimension d; -1 if dilation steps over it."""
    cdef Py_ssize_t n = at - i * p.size[d] // p.out[d] if p.adaptive else at + p.low[d] - i * p.stride[d]
    if p.dilation[d] == 1: return n
    return n // p.dilation[d] if n % p.dilation[d] == 0 else -1


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


cdef void plane(const Pool* p, int what, real* x, real* y, Py_ssize_t at) noexcept nogil:
    """One plane; its places are p.places[at:]."""
    if what == MAXIMA:
        if p.width == 1 and halves(p):
            maxima_of_squares[real](p, x, y, <uint8_t*>p.places + at if p.places != NULL else NULL)
        else: maxima[real](p, x, y, at)
    elif what == MEANS: means[real](p, x, y)
    elif what == TAKE: places_of[real](p, x, y, at, False)
    elif what == PUT:
        if in_many(p): sum_at_places[real](p, x, y, at)
        else: places_of[real](p, x, y, at, True)
    else:
        memset(x, 0, p.size[0] * p.size[1] * p.size[2] * sizeof(real))
        if in_many(p): sum_shares[real](p, x, y)
        else: shares[real](p, x, y)


cdef void planes_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Pool* p = (<const Job*>job).p
    cdef Py_ssize_t i, x, y, size = itemsize(p.dtype), each = p.out[0] * p.out[1] * p.out[2]
    for i in range(start, stop):
        x = (i // p.channels * p.x.image + i % p.channels * p.x.channel) * size
        y = (i // p.channels * p.y.image + i % p.channels * p.y.channel) * size
        call(p.dtype, plane[float], plane[double], p, (<const Job*>job).what, <void*>(p.x.data + x),
             <void*>(p.y.data + y), i * each)


cdef void each_plane(const Pool* p, int what) noexcept nogil:
    cdef Job job = Job(p, what)
    cdef Py_ssize_t n = p.n * p.channels, work = n * p.out[0] * p.out[1] * p.out[2]
    cdef int d, t
    if what == TAKE or what == PUT: work *= 4
    else:
        for d in range(3): work *= min(p.kernel[d], p.size[d])
    t = threads_for(work)
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
