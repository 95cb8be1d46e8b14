"""The driver of all strip kernels: the table of loops, packing, and strips.

A strip kernel sees contiguous typed memoryviews and nothing else. The driver walks the result in row-major order and
hands out strips: where an operand is contiguous the strip lies in it; where it is broadcast from one element the strip
is filled once; where it is strided the strip is packed into a scratch that stays in the first-level cache (and a
strided result is unpacked again). So every kernel is one plain loop, and any strides and broadcasting work with it.
A result larger than the cache is streamed: its strips are made in scratch and stored past the cache. Of packed codes
(codes.pxd) a strip is unpacked before the call; those that are kept for backward are made beside the result.

Views are made on the stack by CG_VIEW1 (include/cygrad/platform.h): a few stores, no object, no GIL."""

from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport (
    FLOAT64, LOOP_B8, LOOP_F32, LOOP_F64, LOOP_I64, MAX_NDIM, MAX_OPERANDS, Array, Layout, itemsize, loop_of, view1,
)
from cygrad.kernels.codes cimport BIT, WORD, bits_of, put_words, unpack_codes
from cygrad.kernels.threads cimport GRAIN, parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    const char* CG_LEVEL
    void cg_stream(char* target, const char* source, size_t nbytes)
    void cg_stream_end()
    void cg_prefetch(const char* p, size_t nbytes)

# A contiguous memoryview is a pointer and a length, whatever its elements are: kernels of all dtypes are called alike.
ctypedef void (*two_t)(char[::1], char[::1]) noexcept nogil
ctypedef void (*three_t)(char[::1], char[::1], char[::1]) noexcept nogil
ctypedef void (*four_t)(char[::1], char[::1], char[::1], char[::1]) noexcept nogil
ctypedef void (*five_t)(char[::1], char[::1], char[::1], char[::1], char[::1]) noexcept nogil

cdef enum:
    MAX_LOOPS = 512
    STREAM = 1 << 24        # bytes of a result from which on it is streamed
    N_SMALL = 64                # elements of results for which an operand of one element is filled without strips
    SLOT = 8 * N_SMALL          # bytes of an operand that is filled so, or whose codes are unpacked
    LINE = 64               # bytes of a cache line
    AHEAD = 2048            # bytes of its operands that are asked for before they are read, then. A kernel that
                            # computes for longer than memory takes does better without, and in strips of
    MADE = 8192             # bytes of its result, as each beginning costs 15 ns (exp of 16 million: 3.6 ms, not 4.5)
    PARTS = 4               # pieces of work for each thread, where there is much

cdef Loop loops[MAX_LOOPS]
cdef dict names = {}


# ---- the table of loops ----------------------------------------------------------------------------------------------

cdef int register(str name, void* single, void* double, int operands, int cost=1, int double_cost=2,
                  int number=-1) except -1:
    """Enter a kernel for floating numbers under `name`; a later one of the same name takes its place. `cost` and
    `double_cost` as of Loop. `number`: the operand, if there is one, that is always one element, and that the kernel
    reads as such: no strip has to be filled with it."""
    cdef int at = names.setdefault(name, len(names))
    if at >= MAX_LOOPS:
        raise RuntimeError(f"the table of kernels is full at {MAX_LOOPS}; raise MAX_LOOPS in kernels/driver.pyx")
    loops[at] = Loop(single, double, NULL, NULL, operands, number, cost, double_cost, False)
    return 0


cdef int register_all_dtypes(str name, void* single, void* double, void* whole, void* truth, int operands) except -1:
    """The same of a kernel for all dtypes."""
    register(name, single, double, operands)
    find(name).i64, find(name).b8 = whole, truth
    return 0


cdef int register_new(str name, void* single, void* double, int operands) except -1:
    """What plug() of plug.pxd does when its memoryviews are known to be right."""
    if name in names:
        raise ValueError(f"a kernel is named {name!r} already; give yours and its operator another name")
    return register(name, single, double, operands)


cdef Loop* find(str name) except NULL:
    if name not in names:
        raise KeyError(f"no kernel is named {name!r}; the kernels are {', '.join(sorted(names))}")
    cdef int at = names[name]
    return &loops[at]


cdef bint has(const Loop* loop, int dtype) noexcept nogil:
    """Whether the kernel is compiled for a dtype."""
    return loop != NULL and code(loop, dtype) != NULL


cdef inline void* code(const Loop* loop, int dtype) noexcept nogil:
    cdef int which = loop_of(dtype)
    if which == LOOP_F32: return loop.f32
    if which == LOOP_F64: return loop.f64
    if which == LOOP_I64: return loop.i64
    return loop.b8 if which == LOOP_B8 else NULL


def kernel_names():
    """The names of all strip kernels, sorted."""
    return sorted(names)


def level():
    """The level of instructions that these kernels are built for."""
    return (<bytes>CG_LEVEL).decode()


# ---- packing ---------------------------------------------------------------------------------------------------------

cdef inline void copy_run(char* target, Py_ssize_t target_step, const char* source, Py_ssize_t source_step,
                          Py_ssize_t count, int size) noexcept nogil:
    """Copy `count` elements of `size` bytes; steps are in bytes."""
    cdef Py_ssize_t i
    if target_step == size and source_step == size:
        memcpy(target, source, count * size)
    elif size == 4:
        for i in range(count):
            (<int*>(target + i * target_step))[0] = (<const int*>(source + i * source_step))[0]
    elif size == 8:
        for i in range(count):
            (<long long*>(target + i * target_step))[0] = (<const long long*>(source + i * source_step))[0]
    else:
        for i in range(count):
            memcpy(target + i * target_step, source + i * source_step, size)


cdef inline void walk(char* packed, const Array* x, Py_ssize_t start, Py_ssize_t count, bint packing) noexcept nogil:
    """Move elements start .. start + count of `x`, in row-major order, to `packed` (packing) or from it."""
    cdef const Layout* l = x.layout
    cdef int size = itemsize(x.dtype)
    cdef int d, last = l.ndim - 1
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rest = start, run, step
    cdef char* at = x.data
    if count <= 0: return
    if last < 0:
        if packing: copy_run(packed, size, at, size, 1, size)
        else:       copy_run(at, size, packed, size, 1, size)
        return
    for d in range(last, -1, -1):
        index[d] = rest % l.shape[d]
        rest = rest // l.shape[d]
        at += index[d] * l.strides[d] * size
    step = l.strides[last] * size
    while True:
        run = l.shape[last] - index[last]
        if run > count: run = count
        if packing: copy_run(packed, size, at, step, run, size)
        else:       copy_run(at, step, packed, size, run, size)
        packed += run * size
        count -= run
        if count == 0: return
        at -= index[last] * step
        index[last] = 0
        d = last - 1
        while True:                                 # carry into the next row
            index[d] += 1
            at += l.strides[d] * size
            if index[d] < l.shape[d]: break
            at -= l.shape[d] * l.strides[d] * size
            index[d] = 0
            d -= 1


cdef void gather(char* target, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    walk(target, x, start, count, True)


cdef void scatter(const char* source, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    walk(<char*>source, x, start, count, False)


# ---- strips ----------------------------------------------------------------------------------------------------------

cdef inline void call(void* f, int operands, char** p, Py_ssize_t n) noexcept nogil:
    """One kernel call on contiguous memory."""
    if operands == 2:   (<two_t>f)(view1(p[0], n), view1(p[1], n))
    elif operands == 3: (<three_t>f)(view1(p[0], n), view1(p[1], n), view1(p[2], n))
    elif operands == 4: (<four_t>f)(view1(p[0], n), view1(p[1], n), view1(p[2], n), view1(p[3], n))
    else: (<five_t>f)(view1(p[0], n), view1(p[1], n), view1(p[2], n), view1(p[3], n), view1(p[4], n))


cdef inline bint one_element(const Layout* l) noexcept nogil:
    """Every index leads to the same element."""
    cdef int d
    if l.size == 1: return True
    for d in range(l.ndim):
        if l.strides[d] != 0 and l.shape[d] != 1: return False
    return True


cdef inline void fill(char* strip, const char* value, Py_ssize_t count, int size) noexcept nogil:
    cdef Py_ssize_t i
    cdef float f
    cdef double d
    if size == 4:
        f = (<const float*>value)[0]
        for i in range(count): (<float*>strip)[i] = f
    elif size == 8:
        d = (<const double*>value)[0]
        for i in range(count): (<double*>strip)[i] = d
    else:
        memset(strip, value[0], count)              # bools: no kernel has operands of two bytes


cdef struct Codes:          # packed codes that a kernel makes beside its result
    uint8_t* packed
    int bits                # of a code: 1 or 2


cdef void call_coding(void* f, int operands, char** p, const int* size, Py_ssize_t n, const Codes* codes,
                      Py_ssize_t start) noexcept nogil:
    """call() of a kernel that makes the codes of elements start .. start + n too; start is a multiple of 64. Kernels
    make words of 64: the last few elements are copied, so that what lies behind them may be read and written."""
    cdef char last[MAX_OPERANDS][WORD * 8]
    cdef char* q[MAX_OPERANDS]
    cdef uint64_t words[2]
    cdef Py_ssize_t rest = n % WORD, whole = n - rest
    cdef uint8_t* packed = codes.packed + start * codes.bits // 8
    cdef int k
    for k in range(operands): q[k] = p[k]
    if whole > 0:
        q[operands] = <char*>packed
        call(f, operands + 1, q, whole)
    if rest > 0:
        for k in range(operands):
            q[k] = &last[k][0]
            if k < operands - 1: memcpy(q[k], p[k] + whole * size[k], rest * size[k])
        q[operands] = <char*>words
        call(f, operands + 1, q, WORD)
        k = operands - 1
        memcpy(p[k] + whole * size[k], q[k], rest * size[k])
        put_words(words, rest, codes.bits, packed + whole * codes.bits // 8)


cdef void span(const Loop* loop, Array* a, const Codes* codes, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Elements start .. stop of the result, by one thread, and their codes if they are wanted."""
    cdef char scratch[MAX_OPERANDS][STRIP * 8]
    cdef char made[MADE]
    cdef char* p[MAX_OPERANDS]
    cdef int step[MAX_OPERANDS]                     # bytes from element to element; 0 of what stays where it is
    cdef bint packs[MAX_OPERANDS]
    cdef int size[MAX_OPERANDS]
    cdef int bits[MAX_OPERANDS]                     # of an element of packed codes, or 0
    cdef int k, n = loop.operands
    cdef void* f = code(loop, a[n - 2].dtype)
    cdef bint flat = True, coded = False, asks, streams = streamed(loop, a) and not <uintptr_t>(a[n - 1].data) % LINE
    cdef Py_ssize_t count, most = STRIP, capacity = 4 * STRIP
    cdef char* target = NULL
    for k in range(n):
        packs[k] = False
        size[k] = itemsize(a[k].dtype)
        step[k] = 0
        bits[k] = bits_of(a[k].dtype)
        if bits[k]:
            flat, coded = False, True
            p[k] = &scratch[k][0]
        elif a[k].layout.dense and a[k].layout.size == a[n - 1].layout.size:
            step[k] = size[k]
            p[k] = a[k].data + start * size[k]
        elif k == loop.number:
            p[k] = a[k].data
        elif k < n - 1 and one_element(a[k].layout):
            flat = False
            p[k] = &scratch[k][0]
            capacity = min(capacity, STRIP * 8 // size[k])
            fill(p[k], a[k].data, min(stop - start, capacity), size[k])
        else:
            flat = False
            p[k] = &scratch[k][0]
            capacity = min(capacity, STRIP * 8 // size[k])
            packs[k] = True
    if flat and not streams:
        if codes == NULL: call(f, n, p, stop - start)
        else: call_coding(f, n, p, size, stop - start, codes, start)
        return
    asks = streams and not loop.computes
    if coded or codes != NULL: most = capacity          # (of codes, a byte each, the scratch has room for more)
    if streams:
        if flat and not asks or most > MADE // size[n - 1]: most = MADE // size[n - 1]
        target, p[n - 1], step[n - 1] = p[n - 1], &made[0], 0
    while start < stop:
        count = stop - start if stop - start < most else most
        for k in range(n - 1):
            if packs[k]: gather(p[k], &a[k], start, count)
            elif bits[k]:
                unpack_codes(<uint8_t*>a[k].data + start * bits[k] // 8, count, bits[k], <uint8_t*>p[k])
            elif asks and step[k]: cg_prefetch(p[k] + AHEAD, count * size[k])
        if codes == NULL: call(f, n, p, count)
        else: call_coding(f, n, p, size, count, codes, start)
        if packs[n - 1]: scatter(p[n - 1], &a[n - 1], start, count)
        if streams:
            cg_stream(target, p[n - 1], count * size[n - 1])
            target += count * size[n - 1]
        for k in range(n): p[k] += count * step[k]
        start += count
    if streams: cg_stream_end()


cdef inline bint streamed(const Loop* loop, const Array* a) noexcept nogil:
    """Whether a result is stored past the cache: large, dense, and none of the operands."""
    cdef const Array* y = &a[loop.operands - 1]
    cdef int k
    if y.layout.size * itemsize(y.dtype) < STREAM or not y.layout.dense: return False
    for k in range(loop.operands - 1):
        if a[k].data == y.data: return False
    return True


cdef struct Spans:
    const Loop* loop
    Array* a
    const Codes* codes

cdef void one_span(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    span((<Spans*>job).loop, (<Spans*>job).a, (<Spans*>job).codes, start, stop)


cdef inline bint in_one_call(const Loop* loop, const Array* a, char** p, char* scratch) noexcept nogil:
    """Whether one call does it: operands are contiguous and as long as the result, or the number, or one element, of
    which `scratch` then has as many. `p` has their memory."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef int k
    for k in range(loop.operands):
        p[k] = a[k].data
        if k == loop.number or a[k].layout.dense and a[k].layout.size == n: continue
        if n > N_SMALL or k == loop.operands - 1 or not one_element(a[k].layout): return False
        p[k] = scratch + k * SLOT
        fill(p[k], a[k].data, n, itemsize(a[k].dtype))
    return True


cdef int each(const Loop* loop, Array* a) except -1 nogil:
    """Run `loop` over all elements of the result a[operands - 1]. The other operands have its shape, or one element,
    or strides of 0 where they are broadcast. The dtype of the last operand before the result chooses the kernel, which
    has() for it; masks and the results of comparisons are bools beside it. The result may be one of the operands."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef int t = threads_for(n * (loop.double_cost if a[loop.operands - 2].dtype == FLOAT64 else loop.cost))
    cdef char* p[MAX_OPERANDS]
    cdef char scratch[MAX_OPERANDS * SLOT]
    if t == 1:
        if n >= GRAIN:
            span(loop, a, NULL, 0, n)
        elif in_one_call(loop, a, p, scratch):
            call(code(loop, a[loop.operands - 2].dtype), loop.operands, p, n)
        elif n > 0:
            span(loop, a, NULL, 0, n)
        return 0
    return in_spans(loop, a, NULL, n, t)


cdef int in_spans(const Loop* loop, Array* a, const Codes* codes, Py_ssize_t n, int t) except -1 nogil:
    """The work of each() by t threads."""
    cdef Spans spans = Spans(loop, a, codes)
    cdef Py_ssize_t parts = t if n < t * PARTS * GRAIN else t * PARTS
    parallel_for(one_span, &spans, n, ((n + parts - 1) // parts + STRIP - 1) // STRIP * STRIP, t)
    return 0


# ---- packed codes ----------------------------------------------------------------------------------------------------

cdef inline bint in_one_coded_call(const Loop* loop, const Array* a, char** p, char* scratch) noexcept nogil:
    """in_one_call(), where operands may be packed codes: few, they are a byte each in `scratch`."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef int k
    for k in range(loop.operands):
        p[k] = a[k].data
        if a[k].dtype < BIT and a[k].layout.dense and a[k].layout.size == n: continue
        p[k] = scratch + k * SLOT
        if a[k].dtype < BIT:
            if k == loop.operands - 1 or not one_element(a[k].layout): return False
            fill(p[k], a[k].data, n, itemsize(a[k].dtype))
        else:
            unpack_codes(<uint8_t*>a[k].data, n, bits_of(a[k].dtype), <uint8_t*>p[k])
    return True


cdef int each_coded(const Loop* loop, Array* a) except -1 nogil:
    """each() with operands that are packed codes: of the elements of their layout, whatever it says of memory. (Apart,
    so that each() pays nothing for them.)"""
    cdef Array* y = &a[loop.operands - 1]
    cdef Py_ssize_t n = y.layout.size
    cdef char* p[MAX_OPERANDS]
    cdef char scratch[MAX_OPERANDS * SLOT]
    cdef int t
    if n == 0: return 0
    if n <= N_SMALL and in_one_coded_call(loop, a, p, scratch):
        call(code(loop, a[loop.operands - 2].dtype), loop.operands, p, n)
        return 0
    t = threads_for(n * (loop.double_cost if a[loop.operands - 2].dtype == FLOAT64 else loop.cost))
    if t > 1: return in_spans(loop, a, NULL, n, t)
    span(loop, a, NULL, 0, n)
    return 0


cdef inline bint small_with_codes(const Loop* loop, const Array* a, Py_ssize_t n, const Codes* codes) noexcept nogil:
    """All of it for a word of elements at most, if operands are contiguous or one element: False where they are not."""
    cdef char word[MAX_OPERANDS][WORD * 8]
    cdef char* p[MAX_OPERANDS]
    cdef uint64_t words[2]
    cdef int k, last = loop.operands - 1, size
    for k in range(last + 1):
        p[k] = a[k].data
        size = itemsize(a[k].dtype)
        if a[k].layout.dense and a[k].layout.size == n:
            if n == WORD: continue
            p[k] = &word[k][0]
            if k < last: memcpy(p[k], a[k].data, n * size)
        elif k == last or not one_element(a[k].layout): return False
        else:
            p[k] = &word[k][0]
            fill(p[k], a[k].data, n, size)
    p[last + 1] = <char*>words
    call(code(loop, a[last - 1].dtype), last + 2, p, WORD)
    if n < WORD: memcpy(a[last].data, p[last], n * itemsize(a[last].dtype))
    put_words(words, n, codes.bits, codes.packed)
    return True


cdef int each_with_codes(const Loop* loop, Array* a, int bits, uint8_t* packed) except -1 nogil:
    """each() of a kernel that makes codes beside its result: it takes words for them after the result, one for each bit
    of 64 elements."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef Codes codes = Codes(packed, bits)
    cdef int t
    if n == 0 or n <= WORD and small_with_codes(loop, a, n, &codes): return 0
    t = threads_for(n * (loop.double_cost if a[loop.operands - 2].dtype == FLOAT64 else loop.cost))
    if t > 1: return in_spans(loop, a, &codes, n, t)
    span(loop, a, &codes, 0, n)
    return 0
