"""Chains: several calls of loops over the same number of elements, which run together, strip by strip.

Each strip passes through all calls while it is in the first-level cache. A result that only calls of the chain read has
no memory but a strip. The kernels are those of each call alone, and a strip is a part of it as for several threads, so
the bits are the same. Threads are started once for the chain."""

from libc.stdint cimport uint8_t, uintptr_t

from cygrad.kernels.array cimport itemsize
from cygrad.kernels.by_dtype cimport kernel_of
from cygrad.kernels.codes cimport bits_of, unpack_codes
from cygrad.kernels.driver cimport (
    LINE, PARTS, STREAM, Codes, LoopCall, call, call_coding, cost_of, fill, gather, is_one_element,
)
from cygrad.kernels.threads cimport GRAIN, parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    void cg_stream(char* target, const char* source, size_t nbytes)
    void cg_stream_end()

cdef struct Cursor:         # where the operands of a call are in the strip that runs
    void* kernel
    int operands
    char* p[MAX_OPERANDS]
    int step[MAX_OPERANDS]          # bytes to the next element; 0 if p does not advance
    int size[MAX_OPERANDS]
    bint prepares                   # operands are packed or unpacked at each strip
    char* stream                    # where the result is stored past the cache, or NULL


cdef inline bint is_whole(const LoopCall* c, int k, Py_ssize_t n) noexcept nogil:
    """Whether operand k has an element of its own, in order, for each element of the result."""
    return not bits_of(c.a[k].dtype) and c.a[k].layout.dense and c.a[k].layout.size == n


cdef bint needs_strip(const LoopCall* c, int k, Py_ssize_t n) noexcept nogil:
    """Whether operand k, in memory, is read through a strip: it is packed codes, strided, or one element."""
    return not is_whole(c, k, n) and k != c.loop.number


cdef bint is_filled(const LoopCall* c, int k, Py_ssize_t n) noexcept nogil:
    """Whether it is one element, with which its strip is filled once, before the first call."""
    return needs_strip(c, k, n) and not bits_of(c.a[k].dtype) and is_one_element(c.a[k].layout)


cdef bint shared(const Chain* c, const char* p) noexcept nogil:
    """Whether `p` is the address of several operands."""
    cdef int i, k, found = 0
    for i in range(c.n_links):
        for k in range(c.links[i].call.loop.operands):
            found += c.links[i].source[k] < 0 and c.links[i].call.a[k].data == p
    return found > 1


cdef void set_cursor(const Chain* c, int i, Cursor* cursors, char* scratch, Py_ssize_t start,
                     Py_ssize_t stop) noexcept nogil:
    """Set the cursor of call i to element `start`."""
    cdef const Link* l = &c.links[i]
    cdef const LoopCall* s = &l.call
    cdef Cursor* at = &cursors[i]
    cdef int k, last = s.loop.operands - 1
    cdef char* strip
    at.kernel = kernel_of(&s.loop.kernels, s.a[last - 1].dtype)
    at.operands, at.prepares, at.stream = last + 1, False, NULL
    for k in range(last + 1):
        strip = scratch + l.strip[k] * c.strip * c.itemsize
        at.size[k] = 1 if bits_of(s.a[k].dtype) else itemsize(s.a[k].dtype)
        at.step[k] = 0
        if l.source[k] >= 0:
            at.p[k] = cursors[l.source[k]].p[c.links[l.source[k]].call.loop.operands - 1]
            at.step[k] = cursors[l.source[k]].step[c.links[l.source[k]].call.loop.operands - 1]
        elif k == last and s.a[k].data == NULL: at.p[k] = strip
        elif is_whole(s, k, c.n):
            at.p[k], at.step[k] = s.a[k].data + start * at.size[k], at.size[k]
            if k == last and l.strip[k] >= 0 and c.n * at.size[k] >= STREAM and not <uintptr_t>at.p[k] % LINE:
                if not shared(c, s.a[k].data): at.stream, at.p[k], at.step[k] = at.p[k], strip, 0
        elif k == s.loop.number: at.p[k] = s.a[k].data
        else:
            at.p[k] = strip
            if is_filled(s, k, c.n): fill(strip, s.a[k].data, min(stop - start, c.strip), at.size[k])
            else: at.prepares = True


cdef inline void advance(Cursor* at, Py_ssize_t count) noexcept nogil:
    """Go to the next strip."""
    cdef int k
    for k in range(at.operands): at.p[k] += count * at.step[k]


cdef void prepare(const Link* l, Cursor* at, Py_ssize_t n, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    """Unpack codes and pack strided operands into their strips."""
    cdef int k, bits
    for k in range(l.call.loop.operands - 1):
        if l.source[k] >= 0 or l.strip[k] < 0 or is_filled(&l.call, k, n): continue
        bits = bits_of(l.call.a[k].dtype)
        if bits: unpack_codes(<uint8_t*>l.call.a[k].data + start * bits // 8, count, bits, <uint8_t*>at.p[k])
        else: gather(at.p[k], &l.call.a[k], start, count)


cdef void run_part(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Compute elements start to stop - 1 of all results, on one thread."""
    cdef const Chain* c = <const Chain*>job
    cdef char room[SCRATCH + LINE]
    cdef char* scratch = room + (LINE - <uintptr_t>room % LINE)
    cdef Cursor cursors[MAX_LINKS]
    cdef Cursor* at
    cdef const LoopCall* s
    cdef Codes codes
    cdef Py_ssize_t count
    cdef bint streams = False
    cdef int i, n
    for i in range(c.n_links):
        set_cursor(c, i, cursors, scratch, start, stop)
        streams |= cursors[i].stream != NULL
    while start < stop:
        count = min(stop - start, c.strip)
        for i in range(c.n_links):
            at, s = &cursors[i], &c.links[i].call
            n = at.operands
            if at.prepares: prepare(&c.links[i], at, c.n, start, count)
            if s.bits == 0: call(at.kernel, n, at.p, count)
            else:
                codes.packed, codes.bits = s.codes, s.bits
                call_coding(at.kernel, n, at.p, at.size, count, &codes, start)
            if at.stream != NULL:
                cg_stream(at.stream, at.p[n - 1], count * at.size[n - 1])
                at.stream += count * at.size[n - 1]
            advance(at, count)
        start += count
    if streams: cg_stream_end()


cdef void run_chain(Chain* c) noexcept nogil:
    """Make all calls."""
    cdef Py_ssize_t cost = 0, parts
    cdef int i, t
    for i in range(c.n_links): cost += cost_of(c.links[i].call.loop, c.links[i].call.a)
    t = threads_for(c.n * cost)
    if t == 1: run_part(c, 0, c.n)
    else:
        parts = t if c.n * cost < t * PARTS * GRAIN else t * PARTS
        parallel_for(run_part, c, c.n, ((c.n + parts - 1) // parts + c.strip - 1) // c.strip * c.strip, t)
