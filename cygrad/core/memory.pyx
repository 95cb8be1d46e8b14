"""The pool: where every byte of tensor data comes from, and the counters that see each one.

Small buffers (up to 4 KiB) are cut from slabs of 64 KiB, header and data side by side; larger ones are taken from the
system one by one. What is freed is kept for the next of its size class and goes back to the system only on
`empty_cache()`: a fresh 64 MiB array costs six times its arithmetic in page faults, a kept one nothing.

Size classes: multiples of 64 bytes up to 4 KiB, then eight to a power of two, rounded to the class below 1 MiB and to
4 KiB above (there the class is searched for the best fit), so that rounding wastes 12.5 % at the most, and nothing on
large blocks."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cygrad.core.modes cimport Flags, flags
from cygrad.core.source cimport doing, where

from cygrad.core.errors import MemoryLimitError

cdef extern from "cygrad/platform.h" nogil:
    void* cg_system_take(size_t nbytes)
    void cg_system_give(void* p)
    void CG_POISON(void* p, size_t n)
    void CG_UNPOISON(void* p, size_t n)
    bint CG_LIKELY(bint x)

cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t p, size_t size) noexcept
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t p) noexcept

cdef enum:
    HEADER = 64             # bytes before the data of a small buffer
    SMALL = 4096            # the largest small buffer
    SLAB = 65536
    EXACT = 1 << 20         # from here on sizes are rounded to pages, not to classes
    PAGE = 4096
    SMALL_CLASSES = 64
    CLASSES = 64 + 8 * 40   # up to 2^52 bytes

    DOMAIN = 0xC96AD        # tracemalloc's domain of our data (tracemalloc.DomainFilter takes the number)

    LOGGING = 1             # bits of `watching`
    FAILING = 2
    OBSERVED = 4

cdef struct Slab:
    Slab* next
    size_t nbytes
    uint32_t live           # buffers in use
    uint32_t size_class

cdef Buffer* free_lists[CLASSES]
cdef Slab* slabs = NULL
cdef size_t limit = <size_t>-1          # of what is held; -1: none
cdef int watching = 0       # 0: no event log, no failure injection; the only thing that an allocation asks about them
cdef object listener = None
cdef observer_t observer = NULL
cdef uint64_t allocations = 0, fail_at = 0
cdef bint fail_persistent = False
cdef size_t highest = 0     # the peak before counters.peak began again (memory.track)

assert sizeof(Buffer) <= HEADER
memset(free_lists, 0, sizeof(free_lists))
memset(&counters, 0, sizeof(counters))


# ---- size classes ----------------------------------------------------------------------------------------------------

cdef inline int class_of(size_t nbytes) noexcept:
    """The class whose every block holds `nbytes` (below EXACT) or may hold them (from EXACT on)."""
    cdef int shift = 0
    cdef size_t n
    if nbytes <= SMALL:
        return 0 if nbytes == 0 else <int>((nbytes - 1) >> 6)
    n = (nbytes - 1) >> 9                           # 8 .. 15 after shifting, for 4 KiB < nbytes
    while n >= 16:
        n >>= 1
        shift += 1
    return SMALL_CLASSES + 8 * shift + <int>n - 8


cdef inline size_t class_bytes(int c) noexcept:
    """The capacity of a block of class `c` (below EXACT)."""
    if c < SMALL_CLASSES: return (<size_t>c + 1) << 6
    return <size_t>(9 + ((c - SMALL_CLASSES) & 7)) << (9 + ((c - SMALL_CLASSES) >> 3))


cdef inline size_t capacity_of(Buffer* b) noexcept:
    return class_bytes(b.size_class) if b.size_class < SMALL_CLASSES else <size_t>b.home


# ---- taking and giving -----------------------------------------------------------------------------------------------

cdef void* take(size_t capacity, size_t nbytes) except NULL:
    """`capacity` bytes from the system for a buffer of `nbytes`; what is cached goes back first where that helps."""
    cdef void* p
    if capacity > limit or counters.held > limit - capacity:
        empty_cache()
        if capacity > limit or counters.held > limit - capacity: over_limit(nbytes)
    p = cg_system_take(capacity)
    if p == NULL:
        empty_cache()
        p = cg_system_take(capacity)
        if p == NULL:
            raise MemoryError(f"the system gave no block of {nbytes} bytes; cygrad holds {counters.held} bytes, "
                              f"{counters.live} of them in live tensors")
    return p


cdef int over_limit(size_t nbytes) except -1:
    """Say what was asked for, by whom, what is there, and what would fit."""
    cdef size_t room = limit - counters.held if limit > counters.held else 0, fits = 0
    cdef int c
    if room >= EXACT: fits = room // PAGE * PAGE
    else:
        for c in range(SMALL_CLASSES - 1, CLASSES):
            if max(class_bytes(c), <size_t>SLAB if c < SMALL_CLASSES else 0) <= room: fits = class_bytes(c)
    operation, (filename, line, _) = doing(flags()) or "tensor", where()
    place = f"{filename}:{line}" if filename else ""
    parts = [f"{name} {counters.by_category[c]:,}" for c, name in enumerate(CATEGORY_NAMES) if counters.by_category[c]]
    raise MemoryLimitError(
        f"memory.limit of {limit:,} bytes: {operation}{place and ' at ' + place} asked for {nbytes:,} "
        f"bytes, but {counters.live:,} are live{' (' * bool(parts)}{', '.join(parts)}{')' * bool(parts)} and hold "
        f"{counters.held:,} of the system; at most {fits:,} would fit; free tensors (memory.why says who holds one), "
        f"work on smaller pieces, or raise the limit",
        nbytes, limit, fits, operation, place)


cdef Buffer* new_slab(int c, size_t nbytes) except NULL:
    """Cut a slab into blocks of class `c`; one of them is returned, the others go to the free list."""
    cdef size_t step = HEADER + class_bytes(c), i, count = (SLAB - HEADER) // step
    cdef Slab* slab = <Slab*>take(SLAB, nbytes)
    cdef Buffer* b
    global slabs
    slab.next, slab.nbytes, slab.live, slab.size_class = slabs, SLAB, 0, c
    slabs = slab
    counters.held += SLAB
    counters.system_allocations += 1
    for i in range(count, 0, -1):
        b = <Buffer*>(<char*>slab + HEADER + (i - 1) * step)
        b.data = <char*>b + HEADER
        b.home = slab
        b.size_class = c
        b.link = free_lists[c]
        free_lists[c] = b
        CG_POISON(b.data, class_bytes(c))
    b = free_lists[c]
    free_lists[c] = <Buffer*>b.link
    return b


cdef Buffer* new_large(int c, size_t nbytes) except NULL:
    cdef size_t capacity = class_bytes(c) if nbytes < EXACT else (nbytes + PAGE - 1) // PAGE * PAGE
    cdef Buffer* b = <Buffer*>PyMem_RawMalloc(sizeof(Buffer))
    if b == NULL: raise MemoryError("no memory for the header of a buffer")
    try:
        b.data = <char*>take(capacity, nbytes)
    except:
        PyMem_RawFree(b)
        raise
    b.size_class = c
    b.home = <void*>capacity
    counters.held += capacity
    counters.system_allocations += 1
    return b


cdef Buffer* best_fit(int c, size_t nbytes) noexcept:
    """The smallest free block of class `c` that holds `nbytes`, taken out of the list; NULL if there is none."""
    cdef Buffer* b = free_lists[c]
    cdef Buffer* before = NULL
    cdef Buffer* best = NULL
    cdef Buffer* before_best = NULL
    while b != NULL:
        if <size_t>b.home >= nbytes and (best == NULL or <size_t>b.home < <size_t>best.home):
            best, before_best = b, before
            if <size_t>b.home < nbytes + PAGE: break
        before, b = b, <Buffer*>b.link
    if best == NULL: return NULL
    if before_best == NULL: free_lists[c] = <Buffer*>best.link
    else: before_best.link = best.link
    return best


cdef Buffer* allocate(size_t nbytes, int category) except NULL:
    """A buffer of `nbytes`, held once by the caller. Raises MemoryError, then nothing has changed."""
    cdef int c
    cdef Buffer* b
    if watching & FAILING: maybe_fail(nbytes)
    if nbytes >> 50: raise MemoryError(f"{nbytes} bytes are more than any machine has")
    c = class_of(nbytes)
    if nbytes < EXACT:
        b = free_lists[c]
        if b != NULL: free_lists[c] = <Buffer*>b.link
        elif c < SMALL_CLASSES: b = new_slab(c, nbytes)
        else: b = new_large(c, nbytes)
    else:
        b = best_fit(c, nbytes)
        if b == NULL: b = new_large(c, nbytes)
    if c < SMALL_CLASSES: (<Slab*>b.home).live += 1
    b.nbytes = nbytes
    b.link = NULL
    b.holders = 1
    b.version = b.saved = b.rewrites = 0
    b.parameters = b.gradients = b.optimizer = 0
    b.gradients = category == GRADIENTS
    b.optimizer = category == OPTIMIZER
    b.flags = SCRATCH if category == WORKSPACE else 0
    b.mark = b.signs = 0
    b.leases = 0
    b.category = category
    counters.live += nbytes
    counters.buffers += 1
    counters.by_category[category] += nbytes
    if counters.live > counters.peak: counters.peak = counters.live
    CG_UNPOISON(b.data, nbytes)
    PyTraceMalloc_Track(DOMAIN, <uintptr_t>b.data, nbytes)
    if watching & (LOGGING | OBSERVED): tell(ALLOCATED, b, category)
    return b


cdef Buffer* adopt(char* data, size_t nbytes, object owner, bint readonly) except NULL:
    """A buffer over memory that `owner` keeps alive (core/external.pyx, which counts it)."""
    cdef Buffer* b = <Buffer*>PyMem_RawMalloc(sizeof(Buffer))
    if b == NULL: raise MemoryError("no memory for the header of an external buffer")
    memset(b, 0, sizeof(Buffer))
    b.data, b.nbytes, b.holders, b.category = data, nbytes, 1, OTHER
    b.flags = EXTERNAL | (READONLY if readonly else 0)
    b.link = <void*>owner
    Py_INCREF(owner)
    return b


cdef void release(Buffer* b) noexcept:
    """The last holder has let go."""
    if b.flags & WATCHED: unwatcher(b)
    if b.flags & EXTERNAL:
        owner = <object>b.link
        Py_DECREF(owner)
        PyMem_RawFree(b)
        return
    counters.live -= b.nbytes
    counters.buffers -= 1
    counters.by_category[b.category] -= b.nbytes
    PyTraceMalloc_Untrack(DOMAIN, <uintptr_t>b.data)
    if watching & (LOGGING | OBSERVED): tell(FREED, b, b.category)
    CG_POISON(b.data, b.nbytes)
    if b.size_class < SMALL_CLASSES: (<Slab*>b.home).live -= 1
    b.link = free_lists[b.size_class]
    free_lists[b.size_class] = b


cdef shrink_t shrinker = NULL


cdef int plug_shrink(shrink_t f) except -1:
    """core/signs.pyx plugs itself in."""
    global shrinker
    shrinker = f
    return 0


cdef shrink_t unwatcher = NULL


cdef int plug_unwatch(shrink_t f) except -1:
    """... and core/packing.pyx."""
    global unwatcher
    unwatcher = f
    return 0


cdef void shrink(Buffer* b) noexcept:
    """Whoever still holds `b` needs no more than which elements are positive."""
    shrinker(b)


cdef void recategorise(Buffer* b) noexcept:
    """The roles of `b` have changed: count its bytes where they belong now."""
    cdef int c = (PARAMETERS if b.parameters else GRADIENTS if b.gradients else OPTIMIZER if b.optimizer
                  else SAVED if b.saved else WORKSPACE if b.flags & SCRATCH else OTHER)
    cdef int before = b.category
    if c == before: return
    b.category = c
    if b.flags & EXTERNAL: return
    counters.by_category[before] -= b.nbytes
    counters.by_category[c] += b.nbytes
    if watching & (LOGGING | OBSERVED): tell(MOVED, b, before)


# ---- what the memory module shows ------------------------------------------------------------------------------------

cdef object external = None         # core/external.pyx plugs in what counts the memory of others


def plug_external(f):
    global external
    external = f


CATEGORY_NAMES = ("parameters", "gradients", "optimizer", "saved", "workspace", "other")


def stats():
    """What is held right now, a dict. In bytes: `live_bytes`, of all tensors; `peak_bytes`, the most that were live
    since the start or `reset_peak()`; `cached_bytes`, what the pool holds beyond that for what comes next;
    `external_bytes`, memory of NumPy and others that tensors share, which counts nowhere else: each byte once, however
    many tensors share it (of arrays with gaps the elements). `live_buffers` are blocks that live; `system_allocations`,
    how often the system was asked for memory. `by_category`: the live bytes by what they are for, a dict of
    "parameters", "gradients", "saved", "optimizer", "workspace" and "other"."""
    cdef int c
    counters.external = external()
    return {
        "live_bytes": counters.live,
        "peak_bytes": max(highest, counters.peak),
        "cached_bytes": counters.held - counters.live,
        "external_bytes": counters.external,
        "live_buffers": counters.buffers,
        "system_allocations": counters.system_allocations,
        "by_category": {CATEGORY_NAMES[c]: counters.by_category[c] for c in range(<int>CATEGORIES)},
    }


def begin_peak():
    """Let counters.peak begin again from what is live now; the peak that users see stays."""
    global highest
    if counters.peak > highest: highest = counters.peak
    counters.peak = counters.live


def restart_peak():
    """Let the peak that users see begin again from what is live now; return what it was."""
    global highest
    cdef size_t before = max(highest, counters.peak)
    highest, counters.peak = 0, counters.live
    return before


def empty_cache():
    """Give every block and every slab that holds no live buffer back to the system."""
    cdef int c
    cdef Buffer* b
    cdef Buffer* following
    cdef Slab* slab
    cdef Slab** link
    global slabs
    for c in range(SMALL_CLASSES, CLASSES):
        b = free_lists[c]
        free_lists[c] = NULL
        while b != NULL:
            following = <Buffer*>b.link
            counters.held -= <size_t>b.home
            CG_UNPOISON(b.data, <size_t>b.home)
            cg_system_give(b.data)
            PyMem_RawFree(b)
            b = following
    for c in range(SMALL_CLASSES):                  # leave in the lists what lies in slabs that stay
        b = free_lists[c]
        free_lists[c] = NULL
        while b != NULL:
            following = <Buffer*>b.link
            if (<Slab*>b.home).live:
                b.link = free_lists[c]
                free_lists[c] = b
            b = following
    link = &slabs
    while link[0] != NULL:
        slab = link[0]
        if slab.live:
            link = &slab.next
            continue
        link[0] = slab.next
        counters.held -= slab.nbytes
        CG_UNPOISON(slab, slab.nbytes)
        cg_system_give(slab)


def set_limit(nbytes):
    """Hold no more than `nbytes` of the system, live or cached; None: no limit."""
    global limit
    limit = <size_t>-1 if nbytes is None else <size_t>nbytes        # (a scope that is left asks for no memory here)
    if counters.held > limit: empty_cache()


# ---- events and failures ---------------------------------------------------------------------------------------------

cdef tuple EVENT_NAMES = ("allocate", "free", "category")


cdef void tell(int event, Buffer* b, int before) noexcept:
    cdef int c = b.category
    cdef Flags* f
    if watching & OBSERVED: observer(event, b, before)
    if not watching & LOGGING: return
    f = flags()
    if f.telling: return                            # by what the listener itself does: it would be called without end
    f.telling = True
    try:
        listener((EVENT_NAMES[event], <uintptr_t>b, b.nbytes, CATEGORY_NAMES[c]))
    finally:                                        # what it raises is printed: it must not break what it watches
        f.telling = False


cdef void set_observer(observer_t f) noexcept:
    """Call `f` at every event, with the category that the buffer had before it; NULL ends it."""
    global observer, watching
    observer = f
    watching = (watching & ~OBSERVED) | (OBSERVED if f != NULL else 0)


def set_listener(f):
    """Call `f((kind, id, nbytes, category))` after every event ("allocate", "free", "category") but those of what `f`
    itself does; None ends it. Returns the listener that was there."""
    global listener, watching
    before, listener = listener, f
    watching = (watching & ~LOGGING) | (LOGGING if f is not None else 0)
    return before


cdef int maybe_fail(size_t nbytes) except -1:
    global allocations
    allocations += 1
    if allocations == fail_at or (fail_persistent and allocations > fail_at):
        raise MemoryError(f"allocation {allocations} of {nbytes} bytes fails on request (testing.fail_allocation)")
    return 0


def set_failure(uint64_t n, bint persistent):
    """Let the n-th allocation from now on fail, and with `persistent` all after it; 0: none. Returns how many
    allocations were counted since the last call."""
    global allocations, fail_at, fail_persistent, watching
    cdef uint64_t counted = allocations
    allocations, fail_at, fail_persistent = 0, n, persistent
    watching = (watching & ~FAILING) | (FAILING if n else 0)
    return counted
