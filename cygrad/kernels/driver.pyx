"""The one driver of all elementwise work: strips, packing, grain, threads, and the table of loops.

A strip kernel sees contiguous typed memoryviews and nothing else. The driver walks the result in row-major order and
hands out strips: where an operand is contiguous the strip lies in it; where it is broadcast from one element the strip
is filled once; where it is strided the strip is packed into a scratch that stays in the first-level cache (and a
strided result is unpacked again). So every kernel is one plain loop, and any strides and broadcasting work with it.

Views are made on the stack by CG_VIEW1 (include/cygrad/platform.h): a few stores, no object, no GIL."""

import os

from cython.parallel cimport prange
from libc.string cimport memcpy, memset

from cygrad.kernels.array cimport (
    BOOL, FLOAT32, FLOAT64, INT64, MAX_NDIM, MAX_OPERANDS, Array, Layout, itemsize, view1,
)

cdef extern from "cygrad/platform.h" nogil:
    const int CG_HAVE_OPENMP
    const char* CG_LEVEL
    int omp_get_num_procs()

# A contiguous memoryview is a pointer and a length, whatever its elements are: kernels of all dtypes are called alike.
ctypedef void (*two_t)(char[::1], char[::1]) noexcept nogil
ctypedef void (*three_t)(char[::1], char[::1], char[::1]) noexcept nogil
ctypedef void (*four_t)(char[::1], char[::1], char[::1], char[::1]) noexcept nogil
ctypedef void (*five_t)(char[::1], char[::1], char[::1], char[::1], char[::1]) noexcept nogil

cdef enum:
    MAX_LOOPS = 512

cdef Loop loops[MAX_LOOPS]
cdef dict names = {}
cdef int threads = 1


# ---- the table of loops ----------------------------------------------------------------------------------------------

cdef int enter(str name, void* single, void* double, int operands, void* whole=NULL, void* truth=NULL) except -1:
    """Enter a kernel under `name`; a later one of the same name takes its place (a better instruction set)."""
    cdef int at = names.setdefault(name, len(names))
    if at >= MAX_LOOPS:
        raise RuntimeError(f"the table of kernels is full at {MAX_LOOPS}; raise MAX_LOOPS in kernels/driver.pyx")
    loops[at].single = single
    loops[at].double = double
    loops[at].whole = whole
    loops[at].truth = truth
    loops[at].operands = operands
    return 0


cdef int enter_new(str name, void* single, void* double, int operands) except -1:
    """What plug() of plug.pxd does when its memoryviews are known to be right."""
    if name in names:
        raise ValueError(f"a kernel is named {name!r} already; give yours and its operator another name")
    return enter(name, single, double, operands)


cdef Loop* find(str name) except NULL:
    if name not in names:
        raise KeyError(f"no kernel is named {name!r}; the kernels are {', '.join(sorted(names))}")
    cdef int at = names[name]
    return &loops[at]


cdef bint has(const Loop* loop, int dtype) noexcept nogil:
    """Whether the kernel is compiled for a dtype."""
    return loop != NULL and code(loop, dtype) != NULL


cdef inline void* code(const Loop* loop, int dtype) noexcept nogil:
    if dtype == FLOAT32: return loop.single
    if dtype == FLOAT64: return loop.double
    if dtype == INT64: return loop.whole
    return loop.truth if dtype == BOOL else NULL


def kernel_names():
    """The names of all strip kernels, sorted."""
    return sorted(names)


# ---- threads ---------------------------------------------------------------------------------------------------------

def set_num_threads(n):
    """Let kernels use up to `n` threads (1 in a build without OpenMP). Raises ValueError below 1."""
    global threads
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"set_num_threads wants a whole number of at least 1, got {n!r}")
    threads = min(n, 1024) if CG_HAVE_OPENMP else 1


def get_num_threads():
    """The number of threads that kernels may use."""
    return threads


def level():
    """The level of instructions that these kernels are built for."""
    return (<bytes>CG_LEVEL).decode()


def has_openmp():
    """Whether this build can use more than one thread."""
    return bool(CG_HAVE_OPENMP)


def _threads_at_start():
    asked = os.environ.get("CYGRAD_NUM_THREADS", "")
    if not asked:
        ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else omp_get_num_procs()
        return max(1, min(omp_get_num_procs(), ours))
    if not asked.isdigit() or int(asked) < 1:
        raise ValueError(f"CYGRAD_NUM_THREADS is {asked!r}; it wants a whole number of at least 1")
    return int(asked)


set_num_threads(_threads_at_start())
if hasattr(os, "register_at_fork"):
    # A child of fork has none of the parent's OpenMP threads and would wait for them for ever: it works alone.
    os.register_at_fork(after_in_child=lambda: set_num_threads(1))


cdef int threads_for(Py_ssize_t work) noexcept nogil:
    """How many threads are worth starting for `work` elements."""
    cdef Py_ssize_t most
    if threads == 1 or work < 2 * GRAIN: return 1
    most = work // GRAIN
    return threads if most >= threads else <int>most


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


cdef void span(const Loop* loop, Array* a, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Elements start .. stop of the result, by one thread."""
    cdef char scratch[MAX_OPERANDS][STRIP * 8]
    cdef char* p[MAX_OPERANDS]
    cdef bint packs[MAX_OPERANDS]
    cdef int size[MAX_OPERANDS]
    cdef int k, n = loop.operands
    cdef void* f = code(loop, a[n - 2].dtype)
    cdef bint flat = True
    cdef Py_ssize_t count
    for k in range(n):
        packs[k] = False
        size[k] = itemsize(a[k].dtype)
        if a[k].layout.dense and a[k].layout.size == a[n - 1].layout.size:
            p[k] = a[k].data + start * size[k]
        elif k < n - 1 and one_element(a[k].layout):
            flat = False
            p[k] = &scratch[k][0]
            fill(p[k], a[k].data, stop - start if stop - start < STRIP else STRIP, size[k])
        else:
            flat = False
            p[k] = &scratch[k][0]
            packs[k] = True
    if flat:
        call(f, n, p, stop - start)
        return
    while start < stop:
        count = stop - start if stop - start < STRIP else STRIP
        for k in range(n - 1):
            if packs[k]: gather(p[k], &a[k], start, count)
        call(f, n, p, count)
        if packs[n - 1]: scatter(p[n - 1], &a[n - 1], start, count)
        for k in range(n):
            if p[k] != &scratch[k][0]: p[k] += count * size[k]
        start += count


cdef int each(const Loop* loop, Array* a) except -1:
    """Run `loop` over all elements of the result a[operands - 1]. The other operands have its shape, or one element,
    or strides of 0 where they are broadcast. The dtype of the last operand before the result chooses the kernel, which
    has() for it; masks and the results of comparisons are bools beside it. The result may be one of the operands."""
    cdef Py_ssize_t n = a[loop.operands - 1].layout.size, part
    cdef int t = threads_for(n), i
    if t == 1:
        if n >= GRAIN:
            with nogil: span(loop, a, 0, n)
        elif n > 0:
            span(loop, a, 0, n)
        return 0
    part = ((n + t - 1) // t + STRIP - 1) // STRIP * STRIP
    for i in prange(t, nogil=True, num_threads=t, schedule="static"):
        span(loop, a, i * part, min(n, (i + 1) * part))
    return 0
