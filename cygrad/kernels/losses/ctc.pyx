"""Kernels of the connectionist temporal classification loss (Graves et al. 2006, section 4.1), in log space.

The states of a sample are its labels with a blank before, between and after them: 2 length + 1. At each step a path
stays in its state, goes to the next, or skips a blank between two different labels.

    alpha_t(s) = log of the sum over all paths that are in state s at step t, of the product of their probabilities so
    far, beta_t(s) = the same for the steps after t        loss = -log sum_s e^(alpha_t(s) + beta_t(s)) for any t
    dx_t(c) = -g sum over the states s of symbol c of e^(alpha_t(s) + beta_t(s) + loss)

The operator checks the labels and lengths. Another thread may write them meanwhile, so sample_of() reads the lengths of
a sample once, and they and each label are brought into their range where they are used."""

from libc cimport math
from libc.stdint cimport int64_t
from libc.string cimport memset

from cygrad.kernels.array cimport itemsize, real
from cygrad.kernels.by_dtype cimport call, call_double, number, put_number
from cygrad.kernels.mathematics cimport exp, log
from cygrad.kernels.threads cimport parallel_for

cdef enum:
    PADS = 2                # elements of -inf before and after a row of states, so that skips need no branches

cdef struct Sample:
    Py_ssize_t number
    Py_ssize_t steps        # number of steps of the input
    Py_ssize_t length       # length of the target
    const int64_t* labels


cdef inline Py_ssize_t within(int64_t i, Py_ssize_t most) noexcept nogil:
    return 0 if i < 0 else most if i > most else i


cdef inline Sample sample_of(const Ctc* c, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t length = within(c.target_lengths[i], min(c.longest, c.n_targets))
    return Sample(i, within(c.input_lengths[i], c.steps), length,
                  c.targets + within(c.starts[i], c.n_targets - length))


cdef inline Py_ssize_t label_of(const Ctc* c, const Sample* p, Py_ssize_t s) noexcept nogil:
    return within(p.labels[s], c.classes - 1)


cdef Py_ssize_t row_size(const Ctc* c) noexcept nogil:
    """Elements of a row of states with its pads."""
    return 2 * c.longest + 1 + 2 * PADS


cdef size_t part_bytes(const Ctc* c, bint backward) noexcept nogil:
    """Bytes of workspace for one part: skips, emissions, two rows, and in backward alpha for all steps."""
    cdef Py_ssize_t rows = 4 + (c.steps if backward else 0)
    return (rows * row_size(c) * itemsize(c.dtype) + 63) // 64 * 64


cdef inline real log_sum(real a, real b, real c) noexcept nogil:
    """log(e^a + e^b + e^c), which is -inf if all three are."""
    cdef real m = a if a > b else b
    m = c if c > m else m
    m = m if m > -math.INFINITY else 0
    return m + log(exp(a - m) + exp(b - m) + exp(c - m))


cdef inline void clear(real* row, Py_ssize_t n) noexcept nogil:
    for i in range(n): row[i] = -<real>math.INFINITY


cdef inline void emissions(const Ctc* c, Py_ssize_t t, const Sample* p, real* e) noexcept nogil:
    """The log-probabilities of the symbols of the states at step t."""
    cdef const real* x = <const real*>c.x + (t * c.samples + p.number) * c.classes
    cdef Py_ssize_t s
    e[0] = x[c.blank]
    for s in range(p.length):
        e[2 * s + 1] = x[label_of(c, p, s)]
        e[2 * s + 2] = x[c.blank]


cdef void find_skips(const Sample* p, real* skip) noexcept nogil:
    """skip[s] = 0 if a path may go from state s - 2 to state s, else -inf."""
    cdef Py_ssize_t s
    for s in range(1, p.length):
        if p.labels[s] != p.labels[s - 1]: skip[2 * s + 1] = 0


cdef real forward(const Ctc* c, const Sample* p, real* work, bint every) noexcept nogil:
    """The loss of a sample. `every`: alpha of every step stays in the workspace, else that of two steps."""
    cdef Py_ssize_t size = row_size(c), states = 2 * p.length + 1, n = p.steps, t, s
    cdef real* skip = work + PADS
    cdef real* e = skip + size
    cdef real* rows = e + size + (2 * size if every else 0)
    cdef real* last
    cdef real* alpha = rows
    cdef real least = -<real>math.INFINITY
    clear(work, size)
    find_skips[real](p, skip)
    if n == 0: return 0 if states == 1 else -least
    clear(rows - PADS, (n if every else 2) * size)
    for t in range(n):
        emissions[real](c, t, p, e)
        alpha = rows + (t if every else t % 2) * size
        last = rows + (t - 1 if every else (t + 1) % 2) * size
        if t == 0:
            for s in range(min(states, 2)): alpha[s] = e[s]
        else:
            for s in range(states): alpha[s] = log_sum(last[s], last[s - 1], last[s - 2] + skip[s]) + e[s]
    return -log_sum(alpha[states - 1], alpha[states - 2], least)


cdef void backward(const Ctc* c, const Sample* p, real* work) noexcept nogil:
    """Write the gradient of a sample. If the loss is infinite, it is NaN for the symbols of the target, or 0."""
    cdef Py_ssize_t size = row_size(c), states = 2 * p.length + 1, n = p.steps, sample = p.number, t, s
    cdef real* skip = work + PADS
    cdef real* e = skip + size
    cdef real* beta = e + size
    cdef real* next_ = beta + size
    cdef real* alpha
    cdef real* dx
    cdef real loss = forward[real](c, p, work, True), g = (<const real*>c.g)[sample], least = -<real>math.INFINITY
    cdef double blanks
    for t in range(c.steps):
        memset(<real*>c.dx + (t * c.samples + sample) * c.classes, 0, c.classes * sizeof(real))
    if loss == -least and c.zero_infinity: return
    clear(beta - PADS, size)
    clear(next_ - PADS, size)
    for t in range(n - 1, -1, -1):
        if t == n - 1:
            for s in range(max(states - 2, 0), states): beta[s] = 0
        else:
            emissions[real](c, t + 1, p, e)
            for s in range(states): next_[s] = beta[s] + e[s]
            for s in range(states): beta[s] = log_sum(next_[s], next_[s + 1], next_[s + 2] + skip[s + 2])
        alpha = e + 3 * size + t * size
        dx = <real*>c.dx + (t * c.samples + sample) * c.classes
        for s in range(states): e[s] = exp(alpha[s] + beta[s] + loss)
        blanks = 0
        for s in range(0, states, 2): blanks += e[s]
        for s in range(1, states, 2): dx[label_of(c, p, s // 2)] -= g * e[s]
        dx[c.blank] -= g * <real>blanks


cdef void some(void* job, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Samples a to b - 1, which are one part."""
    cdef const Ctc* c = <const Ctc*>job
    cdef char* work = c.workspace + a // c.part * part_bytes(c, c.loss == NULL)
    cdef Sample p
    for i in range(a, b):
        p = sample_of(c, i)
        if c.loss == NULL:
            call(c.dtype, backward[float], backward[double], c, &p, <void*>work)
            continue
        put_number(c.dtype, c.loss, i, call_double(c.dtype, forward[float], forward[double], c, &p, <void*>work, False))
        if c.zero_infinity and number(c.dtype, c.loss, i) == math.INFINITY: put_number(c.dtype, c.loss, i, 0)


cdef void ctc(Ctc* c) noexcept nogil:
    """Write the losses, or the gradients if loss is NULL."""
    if c.samples: parallel_for(some, c, c.samples, c.part, <int>((c.samples + c.part - 1) // c.part))
