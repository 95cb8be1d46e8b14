"""Counter-based random numbers: Philox4x32-10.

Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. A block of four 32-bit words is a
function of a key and a counter. Each element of a draw can therefore be computed without the elements before it, by any
thread, and again later.

The lower 64 bits of a 128-bit counter are the number of the block. The upper 64 bits count the attempts for an integer,
which may be drawn several times; for other draws they are 0."""

from libc.math cimport M_PI, cos, fabs, log, nextafter, nextafterf, sin, sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, element, vector
from cygrad.kernels.mathematics cimport log as near_log
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    void cg_prefetch(const char* p, size_t nbytes)

cdef extern from "cygrad/philox.h" nogil:
    void cg_philox(uint64_t key, uint64_t first, uint32_t* words) noexcept
    const uint32_t M0 "CG_M0", M1 "CG_M1"           # the multipliers
    const uint32_t W0 "CG_W0", W1 "CG_W1"           # added to the key in each round
    const int ROUNDS "CG_ROUNDS"

cdef extern from "cygrad/double.h" nogil:
    void cg_turn_d(double x, double* sine, double* cosine) noexcept


# ---- blocks ----------------------------------------------------------------------------------------------------------

cdef void make_words(uint64_t key, uint64_t first, uint32_t* words) noexcept nogil:
    """The words of blocks first to first + LANES - 1."""
    cg_philox(key, first, words)


cdef void make_block(uint64_t key, uint64_t block, uint64_t attempt, uint32_t* w) noexcept nogil:
    """One block, w[0] to w[3]."""
    cdef uint32_t k0 = <uint32_t>key, k1 = <uint32_t>(key >> 32)
    cdef uint32_t t0 = <uint32_t>block, t1 = <uint32_t>(block >> 32)
    cdef uint32_t t2 = <uint32_t>attempt, t3 = <uint32_t>(attempt >> 32)
    cdef uint64_t p0, p1
    for _ in range(ROUNDS):
        p0 = <uint64_t>M0 * t0
        p1 = <uint64_t>M1 * t2
        t0 = <uint32_t>(p1 >> 32) ^ t1 ^ k0
        t1 = <uint32_t>p1
        t2 = <uint32_t>(p0 >> 32) ^ t3 ^ k1
        t3 = <uint32_t>p0
        k0 += W0
        k1 += W1
    w[0], w[1], w[2], w[3] = t0, t1, t2, t3


def philox(counter, key):
    """Return the four words of the block at `counter` (128 bits) for `key` (64 bits)."""
    cdef uint32_t w[4]
    make_block(key, counter & 0xFFFFFFFFFFFFFFFF, counter >> 64, w)
    return w[0], w[1], w[2], w[3]


cdef inline uint64_t pair(const uint32_t* words, Py_ssize_t i) noexcept nogil:
    """Words 2i and 2i + 1 as a 64-bit number."""
    return <uint64_t>words[2 * i + 1] << 32 | words[2 * i]


cdef inline double unit(uint64_t bits) noexcept nogil:
    """A multiple of 2^-53 in [0, 1)."""
    return <double>(bits >> 11) * (1.0 / 9007199254740992.0)


# ---- floating-point numbers ------------------------------------------------------------------------------------------
# Each function fills y from blocks first, first + 1, ... The words of the last block may not all be used.

cdef void uniform_(uint64_t key, uint64_t first, double low, double span, double high, real[::1] y) noexcept nogil:
    """y = low + span u, below high; u a multiple of 2^-24 (four per block) or 2^-53 (two per block)"""
    cdef uint32_t words[4 * LANES]
    cdef Py_ssize_t done = 0, n = y.shape[0], k, count
    cdef real top, v
    if real is float: top = nextafterf(<float>high, <float>low)
    else:             top = nextafter(high, low)
    while done < n:
        make_words(key, first, words)
        first += LANES
        if real is float:
            count = min(n - done, <Py_ssize_t>(4 * LANES))
            for k in range(count):
                v = <float>(low + span * (<double><int>(words[k] >> 8) * (1.0 / 16777216.0)))
                y[done + k] = v if v < <float>high else top
        else:
            count = min(n - done, <Py_ssize_t>(2 * LANES))
            for k in range(count):
                v = low + span * unit(pair(words, k))
                y[done + k] = v if v < high else top
        done += count


cdef void normal_(uint64_t key, uint64_t first, double mean, double scale, real[::1] y) noexcept nogil:
    """y = mean + scale sqrt(-2 log u) cos(2 pi v) and ... sin(2 pi v): Box and Muller 1958, two per block

    u has 64 bits, so the tails reach 9.4 standard deviations. A float32 result is the float64 result, rounded."""
    cdef uint32_t words[4 * LANES]
    cdef double u[LANES]
    cdef double turn[LANES]
    cdef float z[2 * LANES]
    cdef Py_ssize_t done = 0, n = y.shape[0], k, count
    cdef double r
    while done < n:
        make_words(key, first, words)
        first += LANES
        count = min(n - done, <Py_ssize_t>(2 * LANES))
        for k in range(LANES):
            u[k] = (<double>pair(words, 2 * k) + 0.5) * (1.0 / 18446744073709551616.0)
            turn[k] = unit(pair(words, 2 * k + 1))
        if real is float:
            if rounded_normals(u, turn, mean, scale, z):
                for k in range(count): y[done + k] = z[k]
                done += count
                continue
        for k in range((count + 1) // 2):
            r = scale * sqrt(-2 * log(u[k]))
            y[done] = <real>(mean + r * cos(2 * M_PI * turn[k]))
            if done + 1 < n: y[done + 1] = <real>(mean + r * sin(2 * M_PI * turn[k]))
            done += 2


cdef bint rounded_normals(const double* u, const double* turn, double mean, double scale, float* z) noexcept nogil:
    """The float32 numbers of LANES blocks, from vectorized functions, whose last digits are not those of the C library.
    False if one of them might be rounded otherwise, which is the case in one of about 5,000 calls."""
    cdef double v[2 * LANES]
    cdef double error[2 * LANES]
    cdef double r, y, sine, cosine
    cdef Py_ssize_t k
    cdef int wrong = 0
    for k in range(LANES):
        r = scale * sqrt(-2 * near_log(u[k]))
        cg_turn_d(turn[k], &sine, &cosine)
        v[2 * k], v[2 * k + 1] = r * cosine, r * sine
        error[2 * k] = error[2 * k + 1] = r * (1.0 / 70368744177664.0)      # 2^-46; both errors are below 2^-48
    for k in range(2 * LANES):
        y = mean + v[k]
        r = error[k] + fabs(y) * (1.0 / 1125899906842624.0)
        z[k] = <float>y
        wrong |= (<float>(y - r) != z[k]) | (<float>(y + r) != z[k])
    return wrong == 0


cdef void bernoulli_(uint64_t key, uint64_t first, double p, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y = 1 where u < p, two per block"""
    cdef uint32_t words[4 * LANES]
    cdef Py_ssize_t done = 0, k, count
    while done < n:
        make_words(key, first, words)
        first += LANES
        count = min(n - done, <Py_ssize_t>(2 * LANES))
        for k in range(count): y[done + k] = unit(pair(words, k)) < p
        done += count


cdef inline int per_block(int law, int dtype) noexcept nogil:
    """Numbers per block, which has 16 bytes of random bits."""
    return 16 // itemsize(dtype) if law == UNIFORM else 2


cdef Py_ssize_t blocks_of(int law, int dtype, Py_ssize_t n) noexcept nogil:
    """The number of blocks for `n` numbers."""
    return (n + per_block(law, dtype) - 1) // per_block(law, dtype)


cdef struct Sample:
    int law, dtype
    uint64_t key, counter
    double a, b, c
    char* y


cdef void sample_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Elements start to stop - 1; start is a multiple of 4."""
    cdef Sample* s = <Sample*>job
    cdef uint64_t first = s.counter + <uint64_t>start // per_block(s.law, s.dtype)
    cdef Py_ssize_t n = stop - start
    cdef void* y = element(s.dtype, s.y, start)
    if s.law == BERNOULLI: bernoulli_(s.key, first, s.a, <uint8_t*>s.y + start, n)
    elif s.law == UNIFORM:
        call(s.dtype, uniform_[float], uniform_[double], s.key, first, s.a, s.b, s.c, vector(s.dtype, y, n))
    else: call(s.dtype, normal_[float], normal_[double], s.key, first, s.a, s.b, vector(s.dtype, y, n))


cdef int sample(int law, int dtype, uint64_t key, uint64_t counter, double a, double b, double c, Py_ssize_t n,
                char* y) except -1:
    """Fill y with n numbers of a law (see Law). They depend only on key and counter, not on the number of threads."""
    cdef int t = threads_for(n)
    cdef Sample s = Sample(law, dtype, key, counter, a, b, c, y)
    with nogil: parallel_for(sample_range, &s, n, whole_blocks(n, t), t)


cdef Py_ssize_t whole_blocks(Py_ssize_t n, int t) noexcept nogil:
    """Numbers per thread for `n` numbers on `t` threads, rounded up to a multiple of 4."""
    return max(4, ((n + t - 1) // t + 3) // 4 * 4)


# ---- integers --------------------------------------------------------------------------------------------------------

cdef inline uint64_t bounded(uint64_t key, uint64_t block, uint64_t max_value, uint64_t mask,
                             uint64_t attempt) noexcept nogil:
    """A number from 0 to `max_value`, uniform. Draws as many bits as max_value has (`mask`), again while they are
    larger."""
    cdef uint32_t w[4]
    cdef uint64_t v
    while True:
        make_block(key, block, attempt, w)
        v = (<uint64_t>w[1] << 32 | w[0]) & mask
        if v <= max_value: return v
        v = (<uint64_t>w[3] << 32 | w[2]) & mask
        if v <= max_value: return v
        attempt += 1


cdef inline uint64_t mask_for(uint64_t max_value) noexcept nogil:
    cdef uint64_t mask = max_value
    cdef int shift
    for shift in range(6): mask |= mask >> (1 << shift)
    return mask


cdef struct Draw:
    uint64_t key, counter, low, max_value
    uint64_t* y


cdef void integers_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """The first attempts of LANES numbers are made together; few numbers need another one."""
    cdef Draw* d = <Draw*>job
    cdef uint32_t words[4 * LANES]
    cdef uint64_t v[LANES]
    cdef uint64_t mask = mask_for(d.max_value), max_value = d.max_value, a, b, first, more
    cdef Py_ssize_t k, count
    while start < stop:
        first, count, more = d.counter + <uint64_t>start, min(stop - start, <Py_ssize_t>LANES), 0
        make_words(d.key, first, words)
        for k in range(LANES):
            a, b = pair(words, 2 * k) & mask, pair(words, 2 * k + 1) & mask
            v[k] = a if a <= max_value else b
            more |= v[k] > max_value
        for k in range(count if more else 0):
            if v[k] > max_value: v[k] = bounded(d.key, first + <uint64_t>k, max_value, mask, 1)
        for k in range(count): d.y[start + k] = d.low + v[k]
        start += count


cdef int integers(uint64_t key, uint64_t counter, uint64_t low, uint64_t max_value, Py_ssize_t n,
                  uint64_t* y) except -1:
    """y = low + a uniform number from 0 to `max_value`; one block each. Negative numbers are in two's complement."""
    cdef int t = threads_for(n)
    cdef Draw draw = Draw(key, counter, low, max_value, y)
    with nogil: parallel_for(integers_range, &draw, n, max(1, (n + t - 1) // t), t)


cdef int permute(uint64_t key, uint64_t counter, Py_ssize_t n, uint64_t* y) except -1:
    """y = a random permutation of 0 ... n - 1 (Fisher and Yates; Durstenfeld 1964); one block each."""
    cdef uint32_t words[4 * LANES]
    cdef uint64_t v[LANES]
    cdef Py_ssize_t i, k, low, high = n - 1
    cdef uint64_t a, b, mask
    with nogil:
        for i in range(n): y[i] = i
        while high > 0:                             # exchange y[high] ... y[low]
            low = max(<Py_ssize_t>1, high - (LANES - 1))
            make_words(key, counter + <uint64_t>low, words)
            for k in range(LANES):
                mask = mask_for(<uint64_t>(low + k))
                a, b = pair(words, 2 * k) & mask, pair(words, 2 * k + 1) & mask
                v[k] = a if a <= <uint64_t>(low + k) else b
            for k in range(high - low + 1):
                i = low + k
                if v[k] > <uint64_t>i: v[k] = bounded(key, counter + <uint64_t>i, i, mask_for(i), 1)
                cg_prefetch(<const char*>(y + v[k]), 8)     # the memory is read at random places
            for k in range(high - low, -1, -1): y[low + k], y[v[k]] = y[v[k]], y[low + k]
            high = low - 1
    return 0


# ---- dropout ---------------------------------------------------------------------------------------------------------

cdef void dropout_(uint64_t key, uint64_t first, uint64_t dropped, double scale, real[::1] x,
                   real[::1] y) noexcept nogil:
    """y = scale x where the element's word is at least `dropped`, else 0; four per block. y may be x."""
    cdef uint32_t words[4 * LANES]
    cdef Py_ssize_t done = 0, n = y.shape[0], k, count
    while done < n:
        make_words(key, first, words)
        first += LANES
        count = min(n - done, <Py_ssize_t>(4 * LANES))
        for k in range(count): y[done + k] = <real>scale * x[done + k] if words[k] >= dropped else 0
        done += count


cdef Py_ssize_t mask_blocks(Py_ssize_t n) noexcept nogil:
    """The number of blocks for the mask of `n` elements."""
    return (n + 3) // 4


cdef struct Dropout:
    int dtype
    uint64_t key, counter
    double p
    const char* x
    char* y


cdef void dropout_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Dropout* d = <Dropout*>job
    cdef uint64_t dropped = <uint64_t>(d.p * 4294967296.0), first = d.counter + <uint64_t>start // 4
    cdef double scale = 1 / (1 - d.p) if d.p < 1 else 0
    cdef Py_ssize_t n = stop - start
    call(d.dtype, dropout_[float], dropout_[double], d.key, first, dropped, scale,
         vector(d.dtype, element(d.dtype, d.x, start), n), vector(d.dtype, element(d.dtype, d.y, start), n))


cdef int dropout(int dtype, uint64_t key, uint64_t counter, double p, Py_ssize_t n, const char* x,
                 char* y) except -1 nogil:
    """y = 0 with probability p, else x / (1 - p). Key, counter and index decide which. y may be x."""
    cdef int t = threads_for(n)
    cdef Dropout d = Dropout(dtype, key, counter, p, x, y)
    parallel_for(dropout_range, &d, n, whole_blocks(n, t), t)
