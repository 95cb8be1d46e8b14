"""The pool: where every byte of tensor data comes from, and the counters that see each one.

Small buffers (up to 1 KiB) are cut from slabs of 4 KiB, header and data side by side. Medium ones (up to 1 MiB) have
sizes rounded to one of 16 classes to a power of two, so that a freed one is kept for the next of its class; large ones
are rounded to 128 bytes. Slabs, medium and large buffers are spans of the arena (core/store/arena.pyx). If no span of
the arena fits, the buffers kept in the classes return to it first and are joined with adjacent spans; only then are
pages committed. So the memory of one size serves another, and a step whose shapes repeat makes no system call.

What is committed is bounded by what was live lately: at most a quarter and 4 MiB more, if pages that are free must be
decommitted for it. `empty_cache()` decommits all that are free. A fresh 64 MiB array costs six times its arithmetic in
page faults, a kept one nothing."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport arena
from cygrad.core.store.arena cimport Span
from cygrad.core.store.size_class cimport LARGE, MEDIUM, SMALL, SMALL_CLASSES, class_bytes, class_of, rounded
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.source cimport doing, where

from cygrad.core.errors import MemoryLimitError

cdef extern from "cygrad/platform.h" nogil:
    void CG_POISON(void* p, size_t n)
    void CG_UNPOISON(void* p, size_t n)
    bint CG_LIKELY(bint x)

cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t p, size_t size) noexcept
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t p) noexcept

cdef enum:
    HEADER = 64             # bytes before the data of a small buffer
    SLAB = 4096             # a page, on most machines: what lives on in a slab keeps no more than that from the system
    WINDOW = 1 << 16        # medium and large allocations, and slabs in use, between two looks at what was live
    SLACK = 4 << 20

    DOMAIN = 0xC96AD        # tracemalloc's domain of our data (tracemalloc.DomainFilter takes the number)

    LOGGING = 1             # bits of `watching`
    FAILING = 2
    OBSERVED = 4

cdef struct Slab:
    Span* span
    Slab* next
    uint32_t live           # buffers in use

cdef Buffer* free_lists[LARGE]          # buffers of small and medium classes
cdef Buffer* headers = NULL             # records of medium and large buffers, for the next
cdef Slab* slabs = NULL
cdef size_t idle = 0        # slabs without a buffer in use, and medium buffers in the lists
cdef size_t limit = <size_t>-1          # of what is committed; -1: none
cdef size_t window_peak = 0, last_peak = 0      # the most that was live in this window and in the one before
cdef uint32_t window = WINDOW           # allocations until the next
cdef int watching = 0       # 0: no event log, no failure injection; the only thing that an allocation asks about them
cdef object listener = None
cdef observer_t observer = NULL
cdef uint64_t allocations = 0, fail_at = 0
cdef bint fail_persistent = False
cdef size_t highest = 0     # the peak before counters.peak began again (memory.track)

assert sizeof(Buffer) <= HEADER
memset(free_lists, 0, sizeof(free_lists))
memset(&counters, 0, sizeof(counters))


# ---- taking and giving -----------------------------------------------------------------------------------------------

cdef inline size_t bound(size_t live) noexcept:
    """How much may be committed while free pages could be decommitted instead, when `live` bytes are to be live."""
    cdef size_t peak = max(live, max(window_peak, last_peak))
    return peak + peak // 4 + SLACK


cdef Span* take(size_t size, size_t nbytes) except NULL:
    """A span of `size` bytes for a buffer of `nbytes`."""
    cdef Span* s = arena.fit(size)
    if s == NULL and idle > arena.committed >> 5:   # (walking all lists for less would not pay)
        collect_idle()
        s = arena.fit(size)
    if s != NULL: return s
    s = arena.grow(size, min(limit, bound(counters.live + size)))
    if s == NULL and idle:                          # what could be decommitted lies in the lists, then
        collect_idle()
        s = arena.fit(size)
        if s == NULL: s = arena.grow(size, min(limit, bound(counters.live + size)))
    if s == NULL: s = arena.grow(size, limit)
    if s == NULL:                                   # the limit or the system refuses: nothing that is free is kept then
        empty_cache()
        s = arena.fit(size)
        if s == NULL: s = arena.grow(size, limit)
    if s != NULL: return s
    if arena.largest(limit - arena.committed if limit > arena.committed else 0) < size: over_limit(nbytes)
    raise MemoryError(f"the system gave no block of {nbytes} bytes; cygrad holds {arena.committed} bytes, "
                      f"{counters.live} of them in live tensors")


cdef inline void tick() noexcept:
    """A slab has got its first buffer that lives, or a medium or large buffer has come to be live."""
    global window, window_peak
    if counters.live > window_peak: window_peak = counters.live
    window -= 1
    if window == 0: end_window()


cdef void end_window() noexcept:
    """What was live a while ago does not count any more: hold no more than what has been live lately needs."""
    global window, window_peak, last_peak
    window, last_peak, window_peak = WINDOW, window_peak, counters.live
    if arena.committed <= bound(0): return
    collect_idle()
    if arena.committed > bound(0): arena.purge(arena.committed - bound(0))


cdef void collect_idle() noexcept:
    """Give slabs without a buffer in use and what is kept in the medium classes back to the arena."""
    cdef int c
    cdef Buffer* b
    cdef Buffer* following
    cdef Slab* slab
    cdef Slab** link
    global slabs, idle
    for c in range(SMALL_CLASSES, LARGE):
        b = free_lists[c]
        free_lists[c] = NULL
        while b != NULL:
            following = <Buffer*>b.link
            give_large(b)
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
        if slab.live: link = &slab.next
        else:
            link[0] = slab.next
            arena.give(slab.span)
    idle = 0


cdef int over_limit(size_t nbytes) except -1:
    """Say what was asked for, by whom, what is there, and what would fit."""
    cdef size_t fits = arena.largest(limit - arena.committed if limit > arena.committed else 0)
    cdef int c
    if fits <= MEDIUM:                              # (of less than the first medium class not even a slab can be had)
        c = LARGE - 1
        while c >= SMALL_CLASSES and rounded(class_bytes(c)) > fits: c -= 1
        fits = class_bytes(c) if c >= SMALL_CLASSES else 0
    operation, (filename, line, _) = doing(flags()) or "tensor", where()
    place = f"{filename}:{line}" if filename else ""
    parts = [f"{name} {counters.by_category[c]:,}" for c, name in enumerate(CATEGORY_NAMES) if counters.by_category[c]]
    raise MemoryLimitError(
        f"memory.limit of {limit:,} bytes: {operation}{place and ' at ' + place} asked for {nbytes:,} "
        f"bytes, but {counters.live:,} are live{' (' * bool(parts)}{', '.join(parts)}{')' * bool(parts)} and hold "
        f"{arena.committed:,} of the system; at most {fits:,} would fit; free tensors (memory.why says who holds one), "
        f"work on smaller pieces, or raise the limit",
        nbytes, limit, fits, operation, place)


cdef Buffer* new_slab(int c, size_t nbytes) except NULL:
    """Cut a slab into blocks of class `c`; one of them is returned, the others go to the free list."""
    cdef size_t step = HEADER + class_bytes(c), i, count = (SLAB - HEADER) // step
    cdef Span* span = take(SLAB, nbytes)
    cdef Slab* slab = <Slab*>span.data
    cdef Buffer* b
    global slabs, idle
    CG_UNPOISON(slab, SLAB)
    idle += SLAB
    slab.span, slab.next, slab.live = span, slabs, 0
    slabs = slab
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


cdef Buffer* new_header() except NULL:
    global headers
    cdef Buffer* b = headers
    if b != NULL: headers = <Buffer*>b.link
    else:
        b = <Buffer*>PyMem_RawMalloc(sizeof(Buffer))
        if b == NULL: raise MemoryError("no memory for the header of a buffer")
    return b


cdef Buffer* new_large(int c, size_t nbytes) except NULL:
    """A medium or large buffer over a new span."""
    global headers
    cdef Buffer* b = new_header()
    try:
        b.home = take(rounded(nbytes), nbytes)
    except:
        b.link = headers
        headers = b
        raise
    b.data = (<Span*>b.home).data
    b.size_class = c
    return b


cdef void give_large(Buffer* b) noexcept:
    """A medium or large buffer that nobody holds: its span goes back to the arena."""
    global headers
    arena.give(<Span*>b.home)
    b.link = headers
    headers = b


cdef Buffer* allocate(size_t nbytes, int category) except NULL:
    """A buffer of `nbytes`, held once by the caller. Raises MemoryError, then nothing has changed."""
    cdef int c
    cdef Buffer* b
    global idle
    if watching & FAILING: maybe_fail(nbytes)
    if nbytes >> 50: raise MemoryError(f"{nbytes} bytes are more than any machine has")
    if nbytes <= SMALL:
        c = class_of(nbytes)
        b = free_lists[c]
        if b != NULL: free_lists[c] = <Buffer*>b.link
        else: b = new_slab(c, nbytes)
        (<Slab*>b.home).live += 1
        if (<Slab*>b.home).live == 1:
            idle -= SLAB
            tick()
    else:
        c = class_of(nbytes) if nbytes <= MEDIUM else <int>LARGE
        b = free_lists[c] if c < LARGE else NULL
        if b != NULL:
            free_lists[c] = <Buffer*>b.link
            idle -= (<Span*>b.home).size
        else: b = new_large(c, nbytes)
    reset(b, category)
    count(b, nbytes)
    if c >= SMALL_CLASSES: tick()
    return b


cdef inline void reset(Buffer* b, int category) noexcept:
    """Let a buffer be held once, for `category`."""
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


cdef inline void count(Buffer* b, size_t nbytes) noexcept:
    """A buffer has memory from now on."""
    b.nbytes = nbytes
    counters.live += nbytes
    counters.buffers += 1
    counters.by_category[b.category] += nbytes
    if counters.live > counters.peak: counters.peak = counters.live
    CG_UNPOISON(b.data, nbytes)
    PyTraceMalloc_Track(DOMAIN, <uintptr_t>b.data, nbytes)
    if watching & (LOGGING | OBSERVED): tell(ALLOCATED, b, b.category)


cdef Buffer* zeros(size_t nbytes, int category) except NULL:
    """A buffer of zeros, held once, that has no memory until make(): it counts nothing until then."""
    cdef Buffer* b = new_header()
    reset(b, category)
    b.data, b.nbytes, b.size_class, b.home = NULL, 0, LARGE, <void*>nbytes
    b.flags |= ZEROS
    return b


cdef int make(Buffer* b) except -1:
    """Give zeros their memory. Raises MemoryError, then nothing has changed."""
    cdef size_t nbytes = <size_t>b.home
    if watching & FAILING: maybe_fail(nbytes)
    b.home = take(rounded(nbytes), nbytes)          # (an exception leaves it as it was)
    b.data = (<Span*>b.home).data
    CG_UNPOISON(b.data, nbytes)
    memset(b.data, 0, nbytes)                       # before anybody is told that it is there
    b.flags &= ~ZEROS
    count(b, nbytes)
    tick()
    return 0


cdef Buffer* adopt(char* data, size_t nbytes, object owner, bint readonly) except NULL:
    """A buffer over memory that `owner` keeps alive (core/store/external.pyx, which counts it)."""
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
    global idle, headers
    if b.flags & WATCHED: late_bound.unwatch(b)
    if b.flags & ZEROS:
        b.link = headers
        headers = b
        return
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
    if b.size_class == LARGE:
        give_large(b)
        return
    if b.size_class < SMALL_CLASSES:
        (<Slab*>b.home).live -= 1
        if (<Slab*>b.home).live == 0: idle += SLAB
    else: idle += (<Span*>b.home).size
    b.link = free_lists[b.size_class]
    free_lists[b.size_class] = b


cdef void shrink(Buffer* b) noexcept:
    """Whoever still holds `b` needs no more than which elements are positive."""
    late_bound.shrink_signs(b)


cdef void recategorise(Buffer* b) noexcept:
    """The roles of `b` have changed: count its bytes where they belong now."""
    cdef int c = (PARAMETERS if b.parameters else GRADIENTS if b.gradients else OPTIMIZER if b.optimizer
                  else SAVED if b.saved else WORKSPACE if b.flags & SCRATCH else OTHER)
    cdef int before = b.category
    if c == before: return
    b.category = c
    if b.flags & (EXTERNAL | ZEROS): return
    counters.by_category[before] -= b.nbytes
    counters.by_category[c] += b.nbytes
    if watching & (LOGGING | OBSERVED): tell(MOVED, b, before)


# ---- what the memory module shows ------------------------------------------------------------------------------------

CATEGORY_NAMES = ("parameters", "gradients", "optimizer", "saved", "workspace", "other")


def stats() -> dict[str, Any]:
    """What is held right now, a dict. In bytes: `live_bytes`, of all tensors; `peak_bytes`, the most that were live
    since the start or `reset_peak()`; `cached_bytes`, what the pool holds beyond that for what comes next;
    `external_bytes`, memory of NumPy and others that tensors share, which counts nowhere else: each byte once, however
    many tensors share it (of arrays with gaps the elements). `live_buffers` are blocks that live; `system_allocations`,
    how often the system was asked for memory. `by_category`: the live bytes by what they are for, a dict of
    "parameters", "gradients", "saved", "optimizer", "workspace" and "other"."""
    cdef int c
    counters.external = late_bound.external_bytes()
    return {
        "live_bytes": counters.live,
        "peak_bytes": max(highest, counters.peak),
        "cached_bytes": arena.committed - counters.live,
        "external_bytes": counters.external,
        "live_buffers": counters.buffers,
        "system_allocations": arena.commits,
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


def empty_cache() -> None:
    """Give every page on which no live buffer lies back to the system."""
    global headers, window_peak, last_peak
    cdef Buffer* b
    window_peak = last_peak = counters.live         # what was live until now is no reason to hold more
    collect_idle()
    arena.give_back()
    while headers != NULL:
        b = headers
        headers = <Buffer*>b.link
        PyMem_RawFree(b)


def set_limit(nbytes):
    """Hold no more than `nbytes` of the system, live or cached; None: no limit."""
    global limit
    limit = <size_t>-1 if nbytes is None else <size_t>nbytes        # (a scope that is left asks for no memory here)
    if arena.committed > limit: empty_cache()


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
