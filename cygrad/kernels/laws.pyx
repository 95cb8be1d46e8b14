"""Random numbers of further distributions, and random categories.

Element i of a draw is a function of the key, the counter and i. Where it is one number transformed, two elements share
a block. A sampler that rejects takes the block counter + i alone: attempt t has the blocks with 2t and 2t + 1 in the
upper 64 bits of their counter (random.pyx)."""

from libc.math cimport (
    INFINITY, M_PI, NAN, cos, exp, fabs, floor, hypot, isfinite, log, log1p, nextafter, nextafterf, sqrt,
)
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport call, element
from cygrad.kernels.driver cimport strip_of
from cygrad.kernels.random cimport make_block
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef enum:
    CHUNK = 128             # elements of a task: an even number
    COST = 8                # cost of an element, in elements of cost 1
    FEW = 10                # the least mean of a Poisson distribution that is sampled by transformed rejection

cdef double MAX_RATE = 4611686018427387904.0        # 2^62
cdef double[10] LOG_FACTORIALS = [0, 0, 0.69314718055994530942, 1.79175946922805500081, 3.17805383034794561965,
                                  4.78749174278204599425, 6.57925121201010099506, 8.52516136106541430017,
                                  10.60460290274525022842, 12.80182748008146961121]


# ---- uniform numbers -------------------------------------------------------------------------------------------------

cdef inline double unit(const uint32_t* w) noexcept nogil:
    """A multiple of 2^-53 in [0, 1), from two words."""
    return <double>((<uint64_t>w[1] << 32 | w[0]) >> 11) * (1.0 / 9007199254740992.0)

cdef inline double inner(const uint32_t* w) noexcept nogil:
    """An odd multiple of 2^-53 in (0, 1), from two words."""
    return (<double>((<uint64_t>w[1] << 32 | w[0]) >> 12) + 0.5) * (1.0 / 4503599627370496.0)

cdef inline double tail(const uint32_t* w) noexcept nogil:
    """A number in (0, 1] with 64 bits, so that small ones are exact, from two words."""
    return (<double>(<uint64_t>w[1] << 32 | w[0]) + 0.5) * (1.0 / 18446744073709551616.0)

cdef inline double normal(const uint32_t* w) noexcept nogil:
    """A normal number from one block (Box and Muller 1958)."""
    return sqrt(-2 * log(tail(w))) * cos(2 * M_PI * unit(w + 2))


# ---- the samplers: an element each -----------------------------------------------------------------------------------

cdef inline double gumbel(const uint32_t* w) noexcept nogil:
    """-log(e), where e is exponential. Small e, which give large results, have 64 bits."""
    return -log(-log1p(-min(tail(w), 1 - 1.0 / 9007199254740992.0)))


cdef double gamma(uint64_t key, uint64_t block, double a) noexcept nogil:
    """Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000). For a < 1 it is the
    number for a + 1, times u^(1 / a)."""
    cdef uint32_t w[8]
    cdef uint64_t t = 0
    cdef double d = (a + 1 if a < 1 else a) - 1.0 / 3, c = 1 / sqrt(9 * d), x, v, u
    if a == 0: return 0
    if a == INFINITY: return INFINITY
    while True:
        make_block(key, block, 2 * t, w)
        make_block(key, block, 2 * t + 1, w + 4)
        t += 1
        x = normal(w)
        v = 1 + c * x
        if v <= 0: continue
        v, u = v * v * v, inner(w + 4)
        if u >= 1 - 0.0331 * x * x * x * x and log(u) >= 0.5 * x * x + d * (1 - v + log(v)): continue
        return d * v if a >= 1 else d * v * exp(log(tail(w + 6)) / a)


cdef inline double log_factorial(double k) noexcept nogil:
    """log k!, from 10 on by Stirling's series with an error below 1e-13 of it."""
    cdef double x = k + 1, r = 1 / (x * x)
    if 0 <= k < 10: return LOG_FACTORIALS[<int>k]
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 + (1.0 / 12 - r * (1.0 / 360 - r / 1260)) / x


cdef int64_t poisson(uint64_t key, uint64_t block, double rate) noexcept nogil:
    """For small rates by inversion. Else by PTRS: Hoermann, "The transformed rejection method for generating Poisson
    random variables", Insurance: Mathematics and Economics 12 (1993)."""
    cdef uint32_t w[4]
    cdef uint64_t t = 0
    cdef double p, s, u, v, b, a, k = 0, edge, ratio, bound
    if not rate <= MAX_RATE: return 0               # (another thread has overwritten it; the loop would not end)
    if rate < FEW:
        make_block(key, block, 0, w)
        u = unit(w)
        p = s = exp(-rate)
        while u >= s and p > 0:                     # (p is 0 after some 300 steps)
            k += 1
            p *= rate / k
            s += p
        return <int64_t>k
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    ratio, bound = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        make_block(key, block, 2 * t, w)
        t += 1
        u, v = inner(w) - 0.5, inner(w + 2)
        edge = 0.5 - fabs(u)
        k = floor((2 * a / edge + b) * u + rate + 0.43)
        if k > 9.2e18: continue
        if edge >= 0.07 and v <= bound: return <int64_t>k
        if k < 0 or (edge < 0.013 and v > edge): continue
        if log(v * ratio / (a / (edge * edge) + b)) <= k * log(rate) - rate - log_factorial(k): return <int64_t>k


cdef double truncated(uint64_t key, uint64_t block, double low, double high) noexcept nogil:
    """A normal number between low and high: Robert, "Simulation of truncated normal variables", Statistics and
    Computing 5 (1995). Proposals are normal if the interval is wide and has 0 inside, exponential far from 0, and else
    uniform."""
    cdef uint32_t w[8]
    cdef uint64_t t = 0
    cdef bint flip = high < 0, is_normal, is_exponential
    cdef double x, rate = 0
    if not low <= high: return NAN                  # (another thread has overwritten one; the loop would not end)
    if flip: low, high = -high, -low
    if low == INFINITY or low == high: return -low if flip else low
    is_normal = low <= 0 and high - low > 2.5066282746310002
    is_exponential = False
    if low > 0:
        rate = (low + hypot(low, 2)) / 2
        is_exponential = high - low > exp(0.5 - low / (2 * rate)) / rate
    while True:
        make_block(key, block, 2 * t, w)
        make_block(key, block, 2 * t + 1, w + 4)
        t += 1
        if is_normal: x = normal(w)
        elif is_exponential: x = low - log(tail(w)) / rate
        else: x = low + (high - low) * unit(w)
        if x < low or x > high: continue
        if is_exponential and inner(w + 4) > exp(-0.5 * (x - rate) * (x - rate)): continue
        if not is_normal and not is_exponential:
            if inner(w + 4) > exp(0.5 * ((low - x) * (low + x) if low > 0 else -x * x)): continue
        return -x if flip else x


cdef inline double within(double x, double low, double high, bint is_f32) noexcept nogil:
    """x, rounded, between low and high (if there is a float32 between them)."""
    cdef double y = min(max(x, low), high)
    if not is_f32: return y
    y = <float>y
    if y > high: y = nextafterf(<float>y, <float>-INFINITY)
    if y < low: y = nextafterf(<float>y, <float>INFINITY)
    return y


# ---- all elements ----------------------------------------------------------------------------------------------------

cdef Py_ssize_t blocks_for(Form form, Py_ssize_t n) noexcept nogil:
    """The number of blocks for n elements."""
    return (n + 1) // 2 if form == EXPONENTIAL or form == GUMBEL else n


cdef inline void fill_chunk(const Draws* d, const double** p, const Py_ssize_t* step, Py_ssize_t start, Py_ssize_t n,
                            real* y) noexcept nogil:
    """y = elements start to start + n - 1; start is even."""
    cdef uint32_t w[4]
    cdef Py_ssize_t i
    cdef double low, high, mean, scale, z
    for i in range(n):
        if d.form == EXPONENTIAL or d.form == GUMBEL:
            if i % 2 == 0: make_block(d.key, d.counter + <uint64_t>(start + i) // 2, 0, w)
            if d.form == EXPONENTIAL: y[i] = <real>(p[0][i * step[0]] * -log(tail(w + i % 2 * 2)))
            else: y[i] = <real>(p[0][i * step[0]] + p[1][i * step[1]] * gumbel(w + i % 2 * 2))
        elif d.form == GAMMA:
            y[i] = <real>(p[1][i * step[1]] * gamma(d.key, d.counter + <uint64_t>(start + i), p[0][i * step[0]]))
        else:
            low, high, mean, scale = p[0][i * step[0]], p[1][i * step[1]], p[2][i * step[2]], p[3][i * step[3]]
            z = truncated(d.key, d.counter + <uint64_t>(start + i), (low - mean) / scale, (high - mean) / scale)
            y[i] = <real>within(mean + scale * z, low, high, real is float)


cdef inline void parameters_of(const Draws* d, Py_ssize_t start, Py_ssize_t n, double* scratch, const double** p,
                               Py_ssize_t* step) noexcept nogil:
    """The parameters of elements start to start + n - 1: pointers and strides."""
    cdef int k
    for k in range(d.n_parameters):
        p[k], step[k] = <const double*>d.number + k, d.varies[k]
        if d.varies[k]: p[k] = <const double*>strip_of(&d.parameters[k], start, n, <char*>(scratch + k * CHUNK))


cdef void chunks_range(void* job, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Draws* d = <const Draws*>job
    cdef double scratch[MAX_PARAMETERS * CHUNK]
    cdef const double* p[MAX_PARAMETERS]
    cdef Py_ssize_t step[MAX_PARAMETERS]
    cdef Py_ssize_t chunk, start, n, i
    for chunk in range(first, last):
        start = chunk * CHUNK
        n = min(d.n - start, <Py_ssize_t>CHUNK)
        parameters_of(d, start, n, &scratch[0], p, step)
        if d.form == POISSON:
            for i in range(n):
                (<int64_t*>d.y)[start + i] = poisson(d.key, d.counter + <uint64_t>(start + i), p[0][i * step[0]])
        else:
            call(d.dtype, fill_chunk[float], fill_chunk[double], d, &p[0], &step[0], start, n,
                 element(d.dtype, d.y, start))


cdef void fill(Draws* d) noexcept nogil:
    """Compute all elements. They do not depend on the number of threads."""
    cdef Py_ssize_t chunks = (d.n + CHUNK - 1) // CHUNK
    cdef int t = threads_for(d.n * COST)
    parallel_for(chunks_range, d, chunks, max(1, (chunks + t - 1) // t), t)


cdef inline bint valid(Form form, const double* p) noexcept nogil:
    if form == EXPONENTIAL: return p[0] >= 0
    if form == GUMBEL: return p[0] == p[0] and p[1] >= 0
    if form == GAMMA: return p[0] >= 0 and p[1] >= 0
    if form == POISSON: return 0 <= p[0] <= MAX_RATE
    return p[0] <= p[1] and p[0] < INFINITY and p[1] > -INFINITY and isfinite(p[2]) and p[3] > 0 and isfinite(p[3])


cdef Py_ssize_t first_invalid(const Draws* d, double* p) noexcept nogil:
    """The first element with invalid parameters, which are copied to p; or -1."""
    cdef double scratch[MAX_PARAMETERS * CHUNK]
    cdef const double* each[MAX_PARAMETERS]
    cdef Py_ssize_t step[MAX_PARAMETERS]
    cdef Py_ssize_t start = 0, n, i
    cdef bint varies = False
    for k in range(d.n_parameters): varies |= d.varies[k]
    while start < d.n or (start == 0 and not varies):
        n = min(d.n - start, <Py_ssize_t>CHUNK) if varies else 1
        parameters_of(d, start, n, &scratch[0], each, step)
        for i in range(n):
            for k in range(d.n_parameters): p[k] = each[k][i * step[k]]
            if not valid(d.form, p): return start + i
        if not varies: break
        start += n
    return -1


# ---- categories ------------------------------------------------------------------------------------------------------

cdef Py_ssize_t cumulate(double* rows, Py_ssize_t n, Py_ssize_t k, bint logarithms) noexcept nogil:
    """Replace each of n rows of k weights, or of their logarithms, by its cumulative sums. Returns the first row that
    has a negative weight, a NaN, or an infinite sum or one of 0; or -1."""
    cdef double total, largest, v
    cdef Py_ssize_t i, j
    cdef double* x
    for i in range(n):
        x, total, largest = rows + i * k, 0, -INFINITY
        if logarithms:
            for j in range(k): largest = max(largest, x[j])
        for j in range(k):
            v = exp(x[j] - largest) if logarithms else x[j]
            if not v >= 0: return i
            total += v
            x[j] = total
        if not 0 < total < INFINITY: return i
    return -1


cdef struct Categories:
    uint64_t key, counter
    const double* rows
    Py_ssize_t n_rows, k, n
    int64_t* y


cdef void categories_range(void* job, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Categories* c = <const Categories*>job
    cdef uint32_t w[4]
    cdef Py_ssize_t i, low, high, middle
    cdef const double* row
    cdef double target
    for i in range(first * CHUNK, min(last * CHUNK, c.n)):
        if i % 2 == 0: make_block(c.key, c.counter + <uint64_t>i // 2, 0, w)
        row = c.rows + i % c.n_rows * c.k
        target = min(unit(w + i % 2 * 2) * row[c.k - 1], nextafter(row[c.k - 1], 0))
        low, high = 0, c.k - 1
        while low < high:                           # the first whose cumulative sum is above the target
            middle = low + (high - low) // 2
            if row[middle] > target: high = middle
            else: low = middle + 1
        c.y[i] = low


cdef void categories(uint64_t key, uint64_t counter, const double* rows, Py_ssize_t n_rows, Py_ssize_t k, Py_ssize_t n,
                     int64_t* y) noexcept nogil:
    """y = n categories, two per block; element i has the cumulative sums of row i % n_rows."""
    cdef Py_ssize_t chunks = (n + CHUNK - 1) // CHUNK
    cdef int t = threads_for(n * COST)
    cdef Categories c = Categories(key, counter, rows, n_rows, k, n, y)
    parallel_for(categories_range, &c, chunks, max(1, (chunks + t - 1) // t), t)


cdef void race(uint64_t key, uint64_t counter, const double* p, Py_ssize_t n, double* y) noexcept nogil:
    """y = an exponential number with the rate p; two per block. Their order is that of draws without replacement with
    weights p (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", IPL 97, 2006)."""
    cdef uint32_t w[4]
    cdef Py_ssize_t i
    for i in range(n):
        if i % 2 == 0: make_block(key, counter + <uint64_t>i // 2, 0, w)
        y[i] = -log(tail(w + i % 2 * 2)) / p[i] if p[i] > 0 else INFINITY
