"""Elementwise losses, strip by strip: their values, summed without storing them, and their gradients.

A kernel is a loop over strips of its operands, in the order of criteria.pxd: x, the target, up to two more arrays (a
variance, or weights) and, for a gradient, the incoming gradient g. It reads those of its mask; the others are NULL. `p`
has the numbers of the loss, such as delta, and y is the result. It returns whether an element is outside of the range
for which the loss is defined; a kernel without a return statement returns False. The kernels are in distances.pyx and
likelihoods.pyx."""

from libc.stdint cimport uint8_t, uint64_t, uintptr_t

from cygrad.kernels.array cimport Array, itemsize, real
from cygrad.kernels.by_dtype cimport call, call_double, kernel_of, reals
from cygrad.kernels.codes cimport WORD, ZEROS, greater, put_words
from cygrad.kernels.driver cimport STRIP, strip_of
from cygrad.kernels.lanes cimport sum_of
from cygrad.kernels.threads cimport parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    void cg_stream(char* target, const char* source, size_t nbytes)
    void cg_stream_end()

ctypedef bint (*strip_t)(char*, char*, char*, char*, char*, const double* p, char* y, Py_ssize_t n) noexcept nogil

cdef enum:
    PART = 64 * STRIP       # the least number of elements of a part of a sum
    PARTS = 64              # the largest number of parts
    STREAM = 1 << 24        # bytes: results of at least this size are stored past the cache, as by the driver
    LINE = 64               # bytes of a cache line
    MAX_TERMS = 64

cdef dict names = {}
cdef Terms terms[MAX_TERMS]


# ---- strips ----------------------------------------------------------------------------------------------------------

cdef struct Job:
    const Terms* terms
    const Terms* signs      # the kernel of the codes, or NULL
    const Array* a
    const double* p
    Py_ssize_t n            # elements
    int dtype
    const Array* y          # the values; NULL: only their sum is wanted
    uint8_t* codes
    bint streams
    Py_ssize_t part
    double* totals          # the total of each part
    bint bad


cdef inline bint run(const Terms* k, int dtype, char** q, const double* p, char* y, Py_ssize_t n) noexcept nogil:
    return (<strip_t>kernel_of(&k.kernels, dtype))(q[X], q[T], q[V], q[W], q[G], p, y, n)


cdef void fill(const real* value, Py_ssize_t n, real* strip) noexcept nogil:
    for i in range(n): strip[i] = value[0]


cdef void put_signs(const real* s, Py_ssize_t n, uint8_t* codes) noexcept nogil:
    """A code for each number: 1 where it is above 0, 2 where it is below, else 0. `s` has space for a multiple of 64
    elements."""
    cdef uint64_t words[2]
    cdef Py_ssize_t i = 0
    while i < n:
        words[0], words[1] = greater(&s[i], <real*>ZEROS), greater(<real*>ZEROS, &s[i])
        put_words(words, min(n - i, <Py_ssize_t>WORD), 2, codes + i // 4)
        i += WORD


cdef void strips(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Compute elements start to stop - 1."""
    cdef Job* j = <Job*>job
    cdef char scratch[OPERANDS + 1][STRIP * 8]
    cdef char* q[OPERANDS]
    cdef bint packs[OPERANDS]
    cdef int k, dtype = j.dtype, size = itemsize(dtype)
    cdef int reads = j.terms.reads | (j.signs.reads if j.signs != NULL else 0)
    cdef Py_ssize_t first = start, count
    cdef char* y
    cdef double total = 0
    for k in range(OPERANDS):
        q[k], packs[k] = NULL, False
        if not reads >> k & 1: continue
        if j.a[k].layout.size == j.n: packs[k] = True
        else:
            q[k] = &scratch[k][0]
            call(dtype, fill[float], fill[double], <void*>j.a[k].data, min(stop - start, <Py_ssize_t>STRIP),
                 <void*>&scratch[k][0])
    while start < stop:
        count = min(stop - start, <Py_ssize_t>STRIP)
        for k in range(OPERANDS):
            if packs[k]: q[k] = <char*>strip_of(&j.a[k], start, count, &scratch[k][0])
        y = &scratch[OPERANDS][0] if j.y == NULL or j.streams else j.y.data + start * size
        if run(j.terms, dtype, q, j.p, y, count): j.bad = True
        if j.y == NULL:
            total += call_double(dtype, sum_of[float], sum_of[double], <void*>y, count)
        elif j.streams: cg_stream(j.y.data + start * size, y, count * size)
        if j.signs != NULL:
            y = &scratch[OPERANDS][0]
            run(j.signs, dtype, q, j.p, y, count)
            call(dtype, put_signs[float], put_signs[double], <void*>y, count, j.codes + start // 4)
        start += count
    if j.streams: cg_stream_end()
    if j.y == NULL: j.totals[first // j.part] = total


cdef inline int threads(const Job* j) noexcept nogil:
    return threads_for(j.n * j.terms.cost * itemsize(j.dtype) // 4)


cdef bint total_of(const Terms* k, const Terms* signs, const Array* a, const double* p, uint8_t* codes,
                   double* total) noexcept nogil:
    """The sum of the values of all elements, and the codes of signs() unless it is NULL. The division into parts
    depends only on the size. Returns whether an element is out of range."""
    cdef double totals[PARTS]
    cdef Py_ssize_t n = a[T].layout.size, whole = (n + STRIP - 1) // STRIP, i
    cdef Py_ssize_t part = max(<Py_ssize_t>PART, (whole + PARTS - 1) // PARTS * STRIP)
    cdef Job job = Job(k, signs, a, p, n, a[T].dtype, NULL, codes, False, part, &totals[0], False)
    total[0] = 0
    if n == 0: return False
    parallel_for(strips, &job, n, part, threads(&job))
    for i in range((n + part - 1) // part): total[0] += totals[i]
    return job.bad


cdef bint each(const Terms* k, const Terms* signs, const Array* a, const double* p, uint8_t* codes,
               const Array* y) noexcept nogil:
    """y = k(a), and the codes of signs() unless it is NULL. y is dense and may be one of the operands. Each operand has
    the shape of y or one element. Returns whether an element is out of range."""
    cdef Py_ssize_t n = y.layout.size
    cdef bint streams = n * itemsize(y.dtype) >= STREAM and not <uintptr_t>y.data % LINE
    cdef Job job
    cdef int i, t
    for i in range(OPERANDS):
        if k.reads >> i & 1 and a[i].data == y.data: streams = False
    job = Job(k, signs, a, p, n, y.dtype, y, codes, streams, 0, NULL, False)
    if n == 0: return False
    t = threads(&job)
    parallel_for(strips, &job, n, n if t == 1 else ((n + t - 1) // t + STRIP - 1) // STRIP * STRIP, t)
    return job.bad


# ---- the table -------------------------------------------------------------------------------------------------------

cdef const Terms* find(str name) except NULL:
    cdef int index = names[name]
    return &terms[index]


cdef int register(str name, void* f32, void* f64, int reads, int cost) except -1:
    """Add a kernel that reads the operands of the mask `reads`. `cost` is as in driver.Loop."""
    cdef int index = names.setdefault(name, len(names))
    if index >= MAX_TERMS: raise RuntimeError("the table of losses is full; raise MAX_TERMS in criteria.pyx")
    terms[index] = Terms(reals(f32, f64), reads, cost)
