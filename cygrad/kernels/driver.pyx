"""The driver runs strip kernels: the table of kernels, strips and packing.

A strip kernel is one loop over contiguous typed memoryviews. The driver walks the result in row-major order and calls
the kernel for one strip after the other:

- If an operand is contiguous, the strip is a part of its memory.
- If an operand is broadcast from one element, a strip in scratch memory is filled once.
- If an operand is strided, each strip is packed into scratch memory, which stays in the first-level cache. A strided
  result is computed there and then unpacked.
- If rows are long, strips end where rows end. An operand that is contiguous along rows is then read in place, one that
  is broadcast along them is filled once a row, and one whose columns are contiguous is transposed, some rows at a time.
- If an operand is packed codes (codes.pxd), each strip is unpacked before the call. A kernel can also write codes for
  backward beside its result.
- If the result is larger than the cache, it is streamed: each strip is computed in scratch memory and then stored past
  the cache.

Kernels therefore support all strides and broadcasting. CG_VIEW1 (include/cygrad/platform.h) creates the views on the
stack with a few stores, without an object and without the GIL."""

from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport LOOP_B8, LOOP_I64, MAX_NDIM, MAX_OPERANDS, Array, Layout, itemsize
from cygrad.kernels.by_dtype cimport kernel_of, reals
from cygrad.kernels.codes cimport BIT, WORD, bits_of, put_words, unpack_codes
from cygrad.kernels.grid cimport Grid, go_on, go_to, merge_axes
from cygrad.kernels.threads cimport GRAIN, parallel_for, threads_for

cdef extern from "cygrad/platform.h" nogil:
    const char* CG_LEVEL
    void cg_stream(char* target, const char* source, size_t nbytes)
    void cg_stream_end()

cdef extern from "cygrad/transpose.h" nogil:
    void cg_transpose_tile(char* rows, Py_ssize_t row, const char* columns, Py_ssize_t column, Py_ssize_t nrows,
                           Py_ssize_t ncolumns, int size)

cdef enum:
    MAX_LOOPS = 512
    N_SMALL = 64            # elements: up to this size, operands are filled or unpacked whole, for a single call
    SLOT = 8 * N_SMALL      # bytes of scratch memory for such an operand
    STREAM_STRIP = 4096     # bytes of a compute-bound kernel's streamed strip; a call takes 15 ns to start. exp of 16
                            # million numbers takes 7.1 ms with 8,192 bytes, 5.3 with 4,096 and 6.6 with 1,024.
    READ_STRIP = 2048       # bytes of any other streamed strip. The CPU asks for operands by itself, ahead of a short
                            # strip: x + y of 16 million takes 6.3 ms, with 4,096 bytes 8.5, with 8,192 and prefetches
                            # 10.7, and 6.9 without streaming.
    TILE = 128              # columns of a tile of rows
    TILE_BYTES = LINE * TILE
    PACKED_STRIP = TILE_BYTES       # bytes of a packed strip of the operand with the largest elements
    SHORT = 32              # elements: shorter rows are packed one by one
    LONG = 1024             # elements: rows of at least this length are read in place. Several shorter ones are packed
                            # for one call of the kernel, which takes as long as 500 additions.

cdef Loop loops[MAX_LOOPS]
cdef dict names = {}


# ---- the table of kernels --------------------------------------------------------------------------------------------

cdef int register(str name, void* f32, void* f64, int operands, int cost=1, int f64_cost=2, int number=-1) except -1:
    """Register a floating-point kernel under `name`, or replace the one of that name. For `cost`, `f64_cost` and
    `number` see Loop; no strip is filled with operand `number`."""
    cdef int index = names.setdefault(name, len(names))
    if index >= MAX_LOOPS:
        raise RuntimeError(f"the table of kernels is full at {MAX_LOOPS}; raise MAX_LOOPS in kernels/driver.pyx")
    loops[index] = Loop(reals(f32, f64), operands, number, cost, f64_cost, False)


cdef int register_all_dtypes(str name, void* f32, void* f64, void* i64, void* b8, int operands) except -1:
    """Register a kernel for float32, float64, int64 and bool."""
    register(name, f32, f64, operands)
    find(name).kernels.of[<int>LOOP_I64], find(name).kernels.of[<int>LOOP_B8] = i64, b8


cdef int register_new(str name, void* f32, void* f64, int operands) except -1:
    """Register a kernel under a new name. Called by register() of registry.pxd, which checks the memoryviews."""
    if name in names:
        raise ValueError(f"there is already a kernel named {name!r}; give yours and its operator another name")
    return register(name, f32, f64, operands)


cdef Loop* find(str name) except NULL:
    if name not in names:
        raise KeyError(f"there is no kernel named {name!r}; the kernels are {', '.join(sorted(names))}")
    cdef int index = names[name]
    return &loops[index]


def kernel_names():
    """The names of all strip kernels, sorted."""
    return sorted(names)


def level():
    """Return the instruction level that these kernels are built for."""
    return (<bytes>CG_LEVEL).decode()


# ---- packing ---------------------------------------------------------------------------------------------------------

cdef void fill(char* strip, const char* value, Py_ssize_t count, int size) noexcept nogil:
    cdef Py_ssize_t i
    cdef float f
    cdef double d
    if size == 4:
        f = (<const float*>value)[0]
        for i in range(count): (<float*>strip)[i] = f
    elif size == 8:
        d = (<const double*>value)[0]
        for i in range(count): (<double*>strip)[i] = d
    elif size == 1:
        memset(strip, value[0], count)
    else:
        for i in range(count): memcpy(strip + i * size, value, size)


cdef inline void copy_run(char* target, Py_ssize_t target_step, const char* source, Py_ssize_t source_step,
                          Py_ssize_t count, int size) noexcept nogil:
    """Copy `count` elements of `size` bytes; steps are in bytes."""
    cdef Py_ssize_t i
    if target_step == size and source_step == size:
        memcpy(target, source, count * size)
    elif target_step == size and source_step == 0:
        fill(target, source, count, size)
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
    """Copy elements start to start + count - 1 of x, in row-major order, to `packed` (if `packing`) or from it."""
    cdef const Layout* l = x.layout
    cdef int size = itemsize(x.dtype)
    cdef int d, last = l.ndim - 1
    cdef Py_ssize_t index[MAX_NDIM]
    cdef Py_ssize_t rest = start, run, step
    cdef char* p = x.data
    if count <= 0: return
    if last < 0:
        if packing: copy_run(packed, size, p, size, 1, size)
        else:       copy_run(p, size, packed, size, 1, size)
        return
    for d in range(last, -1, -1):
        index[d] = rest % l.shape[d]
        rest = rest // l.shape[d]
        p += index[d] * l.strides[d] * size
    step = l.strides[last] * size
    while True:
        run = l.shape[last] - index[last]
        if run > count: run = count
        if packing: copy_run(packed, size, p, step, run, size)
        else:       copy_run(p, step, packed, size, run, size)
        packed += run * size
        count -= run
        if count == 0: return
        p -= index[last] * step
        index[last] = 0
        d = last - 1
        while True:                                 # carry into the next row
            index[d] += 1
            p += l.strides[d] * size
            if index[d] < l.shape[d]: break
            p -= l.shape[d] * l.strides[d] * size
            index[d] = 0
            d -= 1


cdef void gather(char* target, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    """Copy elements start to start + count - 1 of x, in row-major order, to `target`."""
    cdef Array a[2]
    cdef Grid g
    cdef Layout y
    cdef char tile[TILE_BYTES]
    cdef int d, last
    if count >= STRIP and not x.layout.dense:
        y = x.layout[0]
        a[0] = x[0]
        a[1] = Array(target - start * itemsize(x.dtype), &y, x.dtype)
        merge_axes(&g, a, 1)
        last = g.ndim - 1
        if transposed(&g, 0, itemsize(x.dtype)) or g.shape[last] > max(SHORT, y.shape[y.ndim - 1]):
            g.step[1][last] = itemsize(x.dtype)
            for d in range(last - 1, -1, -1): g.step[1][d] = g.step[1][d + 1] * g.shape[d + 1]
            by_rows(NULL, -1, 2, a, &g, start, start + count, 0, tile, NULL)
            return
    walk(target, x, start, count, True)


cdef struct Copied:
    char* target
    const Array* x

cdef void copy_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef const Array* x = (<Copied*>job).x
    gather((<Copied*>job).target + start * itemsize(x.dtype), x, start, stop - start)


cdef void copy_all(char* target, const Array* x) noexcept nogil:
    """Copy x, in row-major order, to `target`, on several threads if x is large."""
    cdef Copied job = Copied(target, x)
    cdef Py_ssize_t n = x.layout.size
    cdef int t = threads_for(n)
    if t == 1: gather(target, x, 0, n)
    else: parallel_for(copy_range, &job, n, (n + t - 1) // t, t)


cdef void scatter(const char* source, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    walk(<char*>source, x, start, count, False)


# ---- strips ----------------------------------------------------------------------------------------------------------

cdef bint is_one_element(const Layout* l) noexcept nogil:
    """Whether every index addresses the same element."""
    if l.size == 1: return True
    for d in range(l.ndim):
        if l.strides[d] != 0 and l.shape[d] != 1: return False
    return True


cdef void call_coding(void* f, int operands, char** p, const int* size, Py_ssize_t n, const Codes* codes,
                      Py_ssize_t start) noexcept nogil:
    """Call a kernel that also writes the codes of elements start to start + n - 1; start is a multiple of 64. Kernels
    write words of 64 codes, so the last n % 64 elements are copied to memory with space for 64."""
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


# How by_rows() reads an operand.
cdef enum How:
    IN_PLACE                # it is contiguous along rows, or the number of the kernel
    FILLED                  # each row is one element
    PACKED                  # its rows are strided
    TRANSPOSED              # its rows are strided and begin next to each other


cdef inline bint transposed(const Grid* g, int k, int size) noexcept nogil:
    """Whether an array's rows are long and strided, and begin next to each other."""
    cdef int last = g.ndim - 1
    return last > 0 and g.shape[last] >= SHORT and g.step[k][last - 1] == size and g.step[k][last] != size and (
        g.step[k][last] != 0)


cdef void by_rows(void* f, int number, int n, const Array* a, Grid* g, Py_ssize_t start, Py_ssize_t stop,
                  Py_ssize_t streams, char* scratch, char* strip) noexcept nogil:
    """Call kernel f for elements start to stop - 1 of the rows of `g`, which the result a[n - 1] has contiguous one
    after the other. Operand `number` is not advanced. f = NULL copies a[0]. `scratch` has TILE_BYTES for each operand
    that is not read in place. If `streams` is not 0, the result is streamed: `strip` has so many bytes. (They are the
    caller's: a thread may have a small stack.)"""
    cdef char* p[MAX_OPERANDS]
    cdef char* q[MAX_OPERANDS]                      # in the memory of the operands
    cdef Py_ssize_t p_step[MAX_OPERANDS]            # from row to row
    cdef Py_ssize_t q_step[MAX_OPERANDS]
    cdef int size[MAX_OPERANDS]
    cdef How how[MAX_OPERANDS]
    cdef int k, last = g.ndim - 1
    cdef bint tiled = False, each_row
    cdef Py_ssize_t length = g.shape[last], column = start % length, end, c, r, rows, count
    cdef Py_ssize_t max_count = length, max_rows = LINE, step
    for k in range(n):
        size[k] = itemsize(a[k].dtype)
        step = g.step[k][last]
        q_step[k] = 0 if last == 0 or k == number else g.step[k][last - 1]
        if k == number or step == size[k]: how[k] = IN_PLACE
        else:
            max_count = min(max_count, TILE_BYTES // size[k])
            if step == 0: how[k] = FILLED
            elif transposed(g, k, size[k]):
                how[k], tiled = TRANSPOSED, True
                max_count, max_rows = min(max_count, TILE), min(max_rows, TILE_BYTES // TILE // size[k])
            else: how[k] = PACKED
    if tiled: streams = 0
    elif streams: max_count = min(max_count, streams // size[n - 1])
    go_to(g, a, n, start // length)
    while start < stop:
        end, rows = min(length, column + stop - start), 1
        if last > 0 and end - column == length and (tiled or length <= max_count):
            rows = min(g.shape[last - 1] - g.index[last - 1], (stop - start) // length)
            if tiled: rows = min(rows, max_rows)
        c = column
        while c < end:
            count = min(max_count, end - c)
            each_row = streams != 0
            for k in range(n):
                q[k] = g.at[k] + (0 if k == number else c * g.step[k][last])
                p[k], p_step[k] = scratch + k * TILE_BYTES, 0
                if how[k] == IN_PLACE: p[k], p_step[k] = q[k], q_step[k]
                elif how[k] == TRANSPOSED:
                    cg_transpose_tile(p[k], TILE * size[k], q[k], g.step[k][last], rows, count, size[k])
                    p_step[k] = TILE * size[k]
                elif how[k] == FILLED and q_step[k] == 0 and f != NULL: fill(p[k], q[k], count, size[k])
                else: each_row = True
            for r in range(rows):
                if each_row and f != NULL:
                    for k in range(n - 1):
                        if how[k] == FILLED and q_step[k] != 0: fill(p[k], q[k] + r * q_step[k], count, size[k])
                        elif how[k] == PACKED:
                            copy_run(p[k], size[k], q[k] + r * q_step[k], g.step[k][last], count, size[k])
                    if streams: p[n - 1] = strip
                if f != NULL: call(f, n, p, count)
                elif how[0] == TRANSPOSED: memcpy(p[1], p[0], count * size[0])
                else: copy_run(p[1], size[1], q[0] + r * q_step[0], g.step[0][last], count, size[0])
                if streams: cg_stream(q[n - 1] + r * q_step[n - 1], p[n - 1], count * size[n - 1])
                for k in range(n): p[k] += p_step[k]
            c += count
        start += end - column if rows == 1 else rows * length
        column = 0
        go_on(g, n, rows)
    if streams: cg_stream_end()


cdef inline Py_ssize_t period(const Layout* l) noexcept nogil:
    """After how many elements those of an array that is broadcast along its first axes begin again."""
    cdef Py_ssize_t n = l.size
    for d in range(l.ndim):
        if l.strides[d] != 0 and l.shape[d] != 1: break
        n = n // l.shape[d]
    return n


cdef void span(const Loop* loop, Array* a, const Codes* codes, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Compute elements start to stop - 1 of the result, and their codes unless `codes` is NULL, on one thread."""
    cdef char scratch[MAX_OPERANDS][TILE_BYTES]
    cdef char strip[STREAM_STRIP]
    cdef char* p[MAX_OPERANDS]
    cdef int step[MAX_OPERANDS]                     # bytes to the next element; 0 if p[k] does not advance
    cdef bint packs[MAX_OPERANDS]
    cdef int size[MAX_OPERANDS]
    cdef int bits[MAX_OPERANDS]                     # per element of packed codes, or 0
    cdef int k, n = loop.operands
    cdef void* f = kernel_of(&loop.kernels, a[n - 2].dtype)
    cdef bint flat = True, coded = False, packing = False, once = False
    cdef bint streams = streamed(loop, a) and not <uintptr_t>(a[n - 1].data) % LINE
    cdef Grid g
    cdef Py_ssize_t count, max_count = PACKED_STRIP, rows = 0, length = 1
    cdef Py_ssize_t stream_strip = STREAM_STRIP if loop.compute_bound else READ_STRIP
    cdef char* target = NULL
    for k in range(n):
        packs[k] = False
        step[k] = 0
        bits[k] = bits_of(a[k].dtype)
        size[k] = 1 if bits[k] else itemsize(a[k].dtype)
        max_count = min(max_count, PACKED_STRIP // size[k])
        if bits[k]:
            flat, coded = False, True
            p[k] = &scratch[k][0]
        elif a[k].layout.dense and a[k].layout.size == a[n - 1].layout.size:
            step[k] = size[k]
            p[k] = a[k].data + start * size[k]
        elif k == loop.number:
            p[k] = a[k].data
        else:
            flat = False
            p[k] = &scratch[k][0]
            packs[k] = k == n - 1 or not is_one_element(a[k].layout)
            packing |= packs[k]
    if flat and not streams:
        if codes == NULL: call(f, n, p, stop - start)
        else: call_coding(f, n, p, size, stop - start, codes, start)
        return
    if packing and not coded and codes == NULL and step[n - 1]:
        merge_axes(&g, a, n)
        length = g.shape[g.ndim - 1]
        for k in range(n - 1):
            if transposed(&g, k, size[k]): rows = max(rows, LINE // size[k])
        if rows and (rows * length > max_count or streams) or length >= LONG:
            streams = streams and length * size[n - 1] % LINE == 0
            by_rows(f, loop.number, n, a, &g, start, stop, stream_strip if streams else 0, &scratch[0][0], strip)
            return
        if rows: max_count = rows * length
    if streams:
        max_count = max_count * stream_strip // PACKED_STRIP        # the largest elements fill a strip
        target, p[n - 1], step[n - 1] = p[n - 1], &strip[0], 0
    for k in range(n - 1):                          # what is packed once: one element, and a short row that is repeated
        count = max_count - max_count % period(a[k].layout) if packs[k] and not once else 0
        if count > 0 and not rows and codes == NULL and not coded and not (streams and count * size[n - 1] % LINE):
            packs[k], once, max_count = False, True, count
            gather(p[k], &a[k], start, min(count, stop - start))
        elif p[k] == &scratch[k][0] and not packs[k] and not bits[k]:
            fill(p[k], a[k].data, min(max_count, stop - start), size[k])
    while start < stop:
        count = min(stop - start, max_count - (start % length if rows else 0))
        for k in range(n - 1):
            if packs[k]: gather(p[k], &a[k], start, count)
            elif bits[k]:
                unpack_codes(<uint8_t*>a[k].data + start * bits[k] // 8, count, bits[k], <uint8_t*>p[k])
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
    """Whether the result is stored past the cache: it is large and dense, and is not one of the operands."""
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

cdef void span_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    span((<Spans*>job).loop, (<Spans*>job).a, (<Spans*>job).codes, start, stop)


cdef inline bint in_one_call(const Loop* loop, const Array* a, char** p, char* scratch) noexcept nogil:
    """Whether one kernel call suffices. Each operand must be contiguous and as long as the result, or the number, or
    one element; the latter is repeated in `scratch`. Sets `p` to the operands' memory."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef int k
    for k in range(loop.operands):
        p[k] = a[k].data
        if k == loop.number or a[k].layout.dense and a[k].layout.size == n: continue
        if n > N_SMALL or k == loop.operands - 1 or not is_one_element(a[k].layout): return False
        p[k] = scratch + k * SLOT
        fill(p[k], a[k].data, n, itemsize(a[k].dtype))
    return True


cdef inline int threads_of(const Loop* loop, const Array* a, Py_ssize_t n) noexcept nogil:
    return threads_for(n * cost_of(loop, a))


cdef int each(const Loop* loop, Array* a) except -1 nogil:
    """Run `loop` over all elements of the result a[operands - 1]. Each other operand has its shape, with strides of 0
    where it is broadcast, or one element. The dtype of the last operand before the result selects the kernel, and has()
    must be true for it. Masks and results of comparisons are bools. The result may be one of the operands."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef int t = threads_of(loop, a, n)
    cdef char* p[MAX_OPERANDS]
    cdef char scratch[MAX_OPERANDS * SLOT]
    if t == 1:
        if n >= GRAIN:
            span(loop, a, NULL, 0, n)
        elif in_one_call(loop, a, p, scratch):
            call(kernel_of(&loop.kernels, a[loop.operands - 2].dtype), loop.operands, p, n)
        elif n > 0:
            span(loop, a, NULL, 0, n)
        return 0
    return in_spans(loop, a, NULL, n, t)


cdef int in_spans(const Loop* loop, Array* a, const Codes* codes, Py_ssize_t n, int t) except -1 nogil:
    """The work of each(), on t threads."""
    cdef Spans spans = Spans(loop, a, codes)
    cdef Py_ssize_t parts = t if n < t * PARTS * GRAIN else t * PARTS
    parallel_for(span_range, &spans, n, ((n + parts - 1) // parts + STRIP - 1) // STRIP * STRIP, t)


cdef int run(LoopCall* c) except -1 nogil:
    """Make a call, on all elements."""
    if c.bits: return each_with_codes(c.loop, c.a, c.bits, c.codes)
    return each_coded(c.loop, c.a) if c.coded else each(c.loop, c.a)


# ---- packed codes ----------------------------------------------------------------------------------------------------

cdef inline bint in_one_coded_call(const Loop* loop, const Array* a, char** p, char* scratch) noexcept nogil:
    """in_one_call() for operands that may be packed codes, which are unpacked into `scratch`; n <= N_SMALL."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef int k
    for k in range(loop.operands):
        p[k] = a[k].data
        if a[k].dtype < BIT and a[k].layout.dense and a[k].layout.size == n: continue
        p[k] = scratch + k * SLOT
        if a[k].dtype < BIT:
            if k == loop.operands - 1 or not is_one_element(a[k].layout): return False
            fill(p[k], a[k].data, n, itemsize(a[k].dtype))
        else:
            unpack_codes(<uint8_t*>a[k].data, n, bits_of(a[k].dtype), <uint8_t*>p[k])
    return True


cdef int each_coded(const Loop* loop, Array* a) except -1 nogil:
    """each() for operands that may be packed codes. The layout of packed codes gives their number; its strides are
    ignored. A function of its own, so that each() is not slower."""
    cdef Array* y = &a[loop.operands - 1]
    cdef Py_ssize_t n = y.layout.size
    cdef char* p[MAX_OPERANDS]
    cdef char scratch[MAX_OPERANDS * SLOT]
    cdef int t
    if n == 0: return 0
    if n <= N_SMALL and in_one_coded_call(loop, a, p, scratch):
        call(kernel_of(&loop.kernels, a[loop.operands - 2].dtype), loop.operands, p, n)
        return 0
    t = threads_of(loop, a, n)
    if t > 1: return in_spans(loop, a, NULL, n, t)
    span(loop, a, NULL, 0, n)


cdef inline bint small_with_codes(const Loop* loop, const Array* a, Py_ssize_t n, const Codes* codes) noexcept nogil:
    """Do the work for n <= 64 elements if each operand is contiguous or one element; if not, return False."""
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
        elif k == last or not is_one_element(a[k].layout): return False
        else:
            p[k] = &word[k][0]
            fill(p[k], a[k].data, n, size)
    p[last + 1] = <char*>words
    call(kernel_of(&loop.kernels, a[last - 1].dtype), last + 2, p, WORD)
    if n < WORD: memcpy(a[last].data, p[last], n * itemsize(a[last].dtype))
    put_words(words, n, codes.bits, codes.packed)
    return True


cdef int each_with_codes(const Loop* loop, Array* a, int bits, uint8_t* packed) except -1 nogil:
    """each() for a kernel that also writes codes. Its argument after the result is an array of words: `bits` words for
    each 64 elements."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size
    cdef Codes codes = Codes(packed, bits)
    cdef int t
    if n == 0 or n <= WORD and small_with_codes(loop, a, n, &codes): return 0
    t = threads_of(loop, a, n)
    if t > 1: return in_spans(loop, a, &codes, n, t)
    span(loop, a, &codes, 0, n)
