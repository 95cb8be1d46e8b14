"""Matrix products of which a size is 1: they read or write a matrix once, so they are as fast as memory."""

from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call
from cygrad.kernels.lanes cimport WIDE, dot_of
from cygrad.kernels.linalg.microproduct cimport CG_VECTOR, Lines, multiply_lines
from cygrad.kernels.threads cimport parallel_for

cdef extern from "cygrad/lanes.h" nogil:
    void cg_short_dots(const float* x, Py_ssize_t row, Py_ssize_t rows, const float* z, Py_ssize_t n, double* y)

cdef enum:
    LINES = 64                      # rows of a matrix at a time
    STRIP = 1024                    # results of a product with a vector that are summed at a time, in the L1 cache
    RUN = 512                       # terms of it that are summed before their sum is added to that of those before,
    LONG_RUN = 2048                 # or so many if they lie side by side
    LINE = 16                       # threads share its results by so many: a cache line

cdef struct Outer:
    int dtype
    Py_ssize_t n
    double alpha
    const char* a
    Py_ssize_t a_step
    const char* b
    Py_ssize_t b_step
    double beta
    char* c
    Py_ssize_t ldc


cdef inline real updated(real y, double sum, double alpha, double beta) noexcept nogil:
    return <real>(alpha * sum) if beta == 0 else <real>(beta * y + alpha * sum)


# ---- a matrix and a vector -------------------------------------------------------------------------------------------

cdef void multiply_thin(const Thin* p, int t) noexcept nogil:
    """y = alpha M x + beta y, on t threads. With beta = 0, y is not read."""
    cdef Py_ssize_t lines = (p.n + LINE - 1) // LINE
    parallel_for(some_results, <void*>p, p.n, (lines + t - 1) // t * LINE, t)


cdef void some_results(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Thin* p = <const Thin*>job
    if p.along == 1: call(p.dtype, dots[float], dots[double], <void*>p.m, p, start, stop)
    else: call(p.dtype, sums[float], sums[double], <void*>p.m, p, start, stop)


cdef void dots(const real* m, const Thin* p, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows start to stop - 1 of M, whose terms are side by side. A vector with gaps is copied piecewise."""
    cdef real piece[RUN]
    cdef double sum[STRIP]
    cdef const real* x
    cdef real* y = <real*>p.y
    cdef Py_ssize_t first = start, i, j, t, n, terms
    while first < stop:
        n = min(<Py_ssize_t>STRIP, stop - first)
        memset(sum, 0, n * sizeof(double))
        t = 0
        while t < p.k:
            terms, x = min(<Py_ssize_t>(LONG_RUN if p.x_step == 1 else RUN), p.k - t), <const real*>p.x + t * p.x_step
            if p.x_step != 1:
                for j in range(terms): piece[j] = x[j * p.x_step]
                x = piece
            if real is float and terms < WIDE: cg_short_dots(m + first * p.across + t, p.across, n, x, terms, sum)
            elif p.n == 1: sum[0] += dot_of[real](m + t, x, terms)
            else: add_dots(p, m + first * p.across + t, x, n, terms, sum)
            t += terms
        for i in range(n):
            y[(first + i) * p.y_step] = updated[real](y[(first + i) * p.y_step], sum[i], p.alpha, p.beta)
        first += n


cdef void add_dots(const Thin* p, const real* m, const real* x, Py_ssize_t n, Py_ssize_t terms,
                   double* sum) noexcept nogil:
    """Add the dots of n rows of M and x, four at a time: this reads x less often, and more rows at once."""
    cdef real part[LINES]
    cdef int places[LINES]
    cdef int zero = 0
    cdef Py_ssize_t lanes = CG_VECTOR // sizeof(real), whole = terms // lanes * lanes, first = 0, i, count
    cdef Lines lines = Lines(1, whole, 0, &zero)
    if p.across >= 1 << 23: whole = 0
    for i in range(min(n, <Py_ssize_t>LINES)): places[i] = <int>(i * p.across) if whole else 0
    while first < n and whole:
        count = min(<Py_ssize_t>LINES, n - first)
        multiply_lines(p.dtype, 1, count, &lines, <const char*>x, 0, <const char*>(m + first * p.across), places,
                       <char*>part, 0, NULL, 0)
        for i in range(count): sum[first + i] += part[i]
        first += count
    if whole == terms: return
    for i in range(n): sum[i] += dot_of[real](m + i * p.across + whole, x + whole, terms - whole)


cdef void sums(const real* m, const Thin* p, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows start to stop - 1 of M, which are side by side: four terms of all are added at once."""
    cdef real whole[STRIP]
    cdef real part[STRIP]
    cdef const real* x = <const real*>p.x
    cdef const real* q
    cdef real* y = <real*>p.y
    cdef real a, b, c, d
    cdef Py_ssize_t first = start, n, j, t, end, step = p.along, x_step = p.x_step
    while first < stop:
        n = min(<Py_ssize_t>STRIP, stop - first)
        memset(whole, 0, n * sizeof(real))
        t = 0
        while t < p.k:
            end = min(t + RUN, p.k)
            memset(part, 0, n * sizeof(real))
            while t + 4 <= end:
                q = m + first + t * step
                a, b, c, d = x[t * x_step], x[(t + 1) * x_step], x[(t + 2) * x_step], x[(t + 3) * x_step]
                for j in range(n): part[j] += (a * q[j] + b * q[step + j]) + (c * q[2 * step + j] + d * q[3 * step + j])
                t += 4
            while t < end:
                q, a = m + first + t * step, x[t * x_step]
                for j in range(n): part[j] += a * q[j]
                t += 1
            for j in range(n): whole[j] += part[j]
        for j in range(n):
            y[(first + j) * p.y_step] = updated[real](y[(first + j) * p.y_step], whole[j], p.alpha, p.beta)
        first += n


# ---- two vectors -----------------------------------------------------------------------------------------------------

cdef void multiply_outer(int dtype, Py_ssize_t m, Py_ssize_t n, double alpha, const char* a, Py_ssize_t a_step,
                         const char* b, Py_ssize_t b_step, double beta, char* c, Py_ssize_t ldc, int t) noexcept nogil:
    """C (m, n) = alpha a b' + beta C, on t threads. With beta = 0, C is not read."""
    cdef Outer p = Outer(dtype, n, alpha, a, a_step, b, b_step, beta, c, ldc)
    if m == 1: parallel_for(part_of_row, &p, n, (n + t - 1) // t, t)
    else: parallel_for(some_outer, &p, m, (m + t - 1) // t, t)


cdef void part_of_row(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Columns start to stop - 1 of the only row."""
    cdef Outer p = (<const Outer*>job)[0]
    cdef int size = itemsize(p.dtype)
    p.n, p.b, p.c = stop - start, p.b + start * p.b_step * size, p.c + start * size
    some_outer(&p, 0, 1)


cdef void some_outer(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Outer* p = <const Outer*>job
    call(p.dtype, outer[float], outer[double], <void*>p.a, p, start, stop)


cdef void outer(const real* a, const Outer* p, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef real piece[STRIP]
    cdef const real* b = <const real*>p.b
    cdef real* c
    cdef real x, beta = <real>p.beta
    cdef Py_ssize_t first = 0, i, j, n
    while first < p.n:
        n = min(<Py_ssize_t>STRIP, p.n - first)
        for j in range(n): piece[j] = b[(first + j) * p.b_step]
        for i in range(start, stop):
            x, c = <real>(p.alpha * a[i * p.a_step]), <real*>p.c + i * p.ldc + first
            if beta == 0:
                for j in range(n): c[j] = x * piece[j]
            else:
                for j in range(n): c[j] = beta * c[j] + x * piece[j]
        first += n
