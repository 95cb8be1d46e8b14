"""The pool: allocates the memory of all tensors and counts every byte of it.

Small buffers (up to 1 KiB) are cut from slabs of 4 KiB, with header and data next to each other. Sizes of medium
buffers (up to 1 MiB) are rounded up to one of 16 classes for each power of two, and a freed buffer is kept for the next
one of its class. Sizes of large buffers are rounded up to 128 bytes. Slabs, medium buffers and large buffers are spans
of the arena (core/store/arena.pyx). If no free span fits, the cached buffers of all classes return to the arena, which
joins them with their neighbours; only then does the arena commit pages. So memory of one size can serve another, and a
step whose shapes repeat takes nothing from the system.

The live bytes of the recent past bound what is committed: if free pages must be decommitted for it, at most a quarter
and 4 MiB more than their peak stays committed. `empty_cache()` decommits all free pages. The page faults of a fresh 64
MiB array cost six times its arithmetic; a cached array has none."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport arena, tables
from cygrad.core.store.arena cimport Span
from cygrad.core.store.size_class cimport LARGE, MEDIUM, SMALL, SMALL_CLASSES, class_bytes, class_of, rounded
from cygrad.core.thread_state cimport Flags, flags
from cygrad.core.source cimport doing, where

from cygrad.core.errors import MemoryLimitError
from cygrad.core.store.arena import in_pages

cdef extern from "cygrad/platform.h" nogil:
    void CG_POISON(void* p, size_t n)
    void CG_UNPOISON(void* p, size_t n)
    bint CG_LIKELY(bint x)

cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t p, size_t size) noexcept
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t p) noexcept

cdef enum:
    HEADER = 64             # bytes before the data of a small buffer
    SLAB = 4096             # a page on most machines, so that a long-lived small buffer keeps only one page committed
    WINDOW = 1 << 16        # the live peak is taken over windows of this many allocations: see tick()
    SLACK = 4 << 20

    DOMAIN = 0xC96AD        # the tracemalloc domain of tensor data (for tracemalloc.DomainFilter)

    LOGGING = 1             # bits of `watching`
    FAILING = 2
    OBSERVED = 4
    TRACING = 8
    BOUNDED = 16

cdef Buffer* free_lists[LARGE]          # buffers of small and medium classes
cdef Buffer* headers = NULL             # a list of headers of medium and large buffers for reuse
cdef Slab* slabs = NULL
cdef size_t idle = 0        # bytes of slabs without a buffer in use, and of medium buffers in the lists
cdef size_t limit = <size_t>-1          # the maximum number of committed bytes; -1: no limit
cdef size_t window_peak = 0, last_peak = 0      # peaks of the live bytes in this window and in the previous one
cdef uint32_t window = WINDOW           # allocations until the next window
cdef int watching = 0       # LOGGING, FAILING, OBSERVED, TRACING; if it is 0, an allocation needs one test for all
cdef uint64_t real_allocations = 0      # those that traces have made nevertheless, for constants
cdef object listener = None
cdef observer_t observer = NULL
cdef uint64_t allocations = 0, fail_at = 0
cdef bint fail_persistent = False
cdef size_t highest = 0     # the peak before counters.peak was last reset (memory.track)

assert sizeof(Buffer) <= HEADER
memset(free_lists, 0, sizeof(free_lists))
memset(&counters, 0, sizeof(counters))


# ---- allocation ------------------------------------------------------------------------------------------------------

cdef inline size_t bound(size_t live) noexcept:
    """The maximum number of committed bytes when `live` bytes are live and free pages could be decommitted instead."""
    cdef size_t peak = max(live, max(window_peak, last_peak))
    return peak + peak // 4 + SLACK


cdef Span* take(size_t size, size_t nbytes) except NULL:
    """A span of `size` bytes for a buffer of `nbytes`."""
    cdef Span* s = arena.fit(size)
    if s == NULL and idle > arena.committed >> 5:   # (for less, walking all lists costs more than it gains)
        collect_idle()
        s = arena.fit(size)
    if s != NULL: return s
    s = arena.grow(size, min(limit, bound(counters.live + size)))
    if s == NULL and idle:                          # the lists may hold pages that can be decommitted
        collect_idle()
        s = arena.fit(size)
        if s == NULL: s = arena.grow(size, min(limit, bound(counters.live + size)))
    if s == NULL: s = arena.grow(size, limit)
    if s == NULL:                                   # over the limit, or out of memory: release all free memory first
        empty_cache()
        s = arena.fit(size)
        if s == NULL: s = arena.grow(size, limit)
    if s != NULL: return s
    if arena.largest(limit - arena.committed if limit > arena.committed else 0) < size: over_limit(nbytes)
    raise MemoryError(f"the system cannot provide a block of {nbytes} bytes; cygrad has committed {arena.committed} "
                      f"bytes, {counters.live} of them in live tensors")


def take_table(size_t nbytes):
    """The address of a span of at least `nbytes` for the table of a backward pass."""
    cdef Span* s = take((nbytes + arena.GRAIN - 1) // arena.GRAIN * arena.GRAIN, nbytes)
    CG_UNPOISON(s.data, s.size)
    return <size_t>s


cdef inline void tick() noexcept:
    """Called when a slab gets its first live buffer, and when a medium or large buffer becomes live."""
    global window, window_peak
    if counters.live > window_peak: window_peak = counters.live
    window -= 1
    if window == 0: end_window()


cdef void end_window() noexcept:
    """Begin a new window. The peak before the previous window no longer counts, so decommit what exceeds the bound."""
    global window, window_peak, last_peak
    window, last_peak, window_peak = WINDOW, window_peak, counters.live
    if arena.committed <= bound(0): return
    collect_idle()
    if arena.committed > bound(0): arena.purge(arena.committed - bound(0))


cdef void collect_idle() noexcept:
    """Return slabs without a buffer in use and the cached medium buffers to the arena."""
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
            following = b.link.next
            give_large(b)
            b = following
    for c in range(SMALL_CLASSES):                  # keep in the lists the blocks of slabs that are in use
        b = free_lists[c]
        free_lists[c] = NULL
        while b != NULL:
            following = b.link.next
            if b.home.slab.live:
                b.link.next = free_lists[c]
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
    """Raise MemoryLimitError with the size, operation and line of the request, the live bytes, and the size that would
    fit."""
    cdef size_t fits = arena.largest(limit - arena.committed if limit > arena.committed else 0)
    cdef int c
    if fits <= MEDIUM:                              # (below the first medium class not even a slab fits)
        c = LARGE - 1
        while c >= SMALL_CLASSES and rounded(class_bytes(c)) > fits: c -= 1
        fits = class_bytes(c) if c >= SMALL_CLASSES else 0
    operation, (filename, line, _) = doing(flags()) or "tensor", where()
    place = f"{filename}:{line}" if filename else ""
    parts = [f"{name} {counters.by_category[c]:,}" for c, name in enumerate(CATEGORY_NAMES) if counters.by_category[c]]
    raise MemoryLimitError(
        f"memory.limit of {limit:,} bytes: {operation}{place and ' at ' + place} requested {nbytes:,} bytes, but "
        f"{counters.live:,} are live{' (' * bool(parts)}{', '.join(parts)}{')' * bool(parts)} and {arena.committed:,} "
        f"are committed; at most {fits:,} would fit; free tensors (memory.why lists the holders), work on smaller "
        f"pieces, or raise the limit",
        nbytes, limit, fits, operation, place)


cdef Buffer* new_slab(int c, size_t nbytes) except NULL:
    """Cut a slab into blocks of class `c`. Returns one of them and adds the others to the free list."""
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
        b.home.slab = slab
        b.size_class = c
        b.link.next = free_lists[c]
        free_lists[c] = b
        CG_POISON(b.data, class_bytes(c))
    b = free_lists[c]
    free_lists[c] = b.link.next
    return b


cdef Buffer* new_header() except NULL:
    global headers
    cdef Buffer* b = headers
    if b != NULL: headers = b.link.next
    else:
        b = <Buffer*>PyMem_RawMalloc(sizeof(Buffer))
        if b == NULL: raise MemoryError("no memory for the header of a buffer")
    return b


cdef inline void free_header(Buffer* b) noexcept:
    """Keep the header of a medium or large buffer for the next one."""
    global headers
    b.link.next, headers = headers, b


cdef Buffer* new_large(int c, size_t nbytes) except NULL:
    """A medium or large buffer on a new span."""
    cdef Buffer* b = new_header()
    try:
        b.home.span = take(rounded(nbytes), nbytes)
    except:
        free_header(b)
        raise
    b.data = b.home.span.data
    b.size_class = c
    return b


cdef void give_large(Buffer* b) noexcept:
    """Return the span of a medium or large buffer without holders to the arena."""
    arena.give(b.home.span)
    free_header(b)


cdef Buffer* allocate(size_t nbytes, int category) except NULL:
    """A buffer of `nbytes`, whose only holder is the caller. If it raises MemoryError, nothing has changed."""
    cdef int c
    cdef Buffer* b
    global idle
    if watching & (FAILING | TRACING | BOUNDED):
        if watching & FAILING: maybe_fail(nbytes)
        if watching & TRACING and is_virtual(): return <Buffer*>late_bound.allocate_virtual(nbytes, category)
        if watching & BOUNDED: late_bound.make_room(nbytes)
    if nbytes >> 50: raise MemoryError(f"{nbytes} bytes are more than any machine has")
    if nbytes <= SMALL:
        c = class_of(nbytes)
        b = free_lists[c]
        if b != NULL: free_lists[c] = b.link.next
        else: b = new_slab(c, nbytes)
        b.home.slab.live += 1
        if b.home.slab.live == 1:
            idle -= SLAB
            tick()
    else:
        c = class_of(nbytes) if nbytes <= MEDIUM else <int>LARGE
        b = free_lists[c] if c < LARGE else NULL
        if b != NULL:
            free_lists[c] = b.link.next
            idle -= b.home.span.size
        else: b = new_large(c, nbytes)
    reset(b, category)
    count(b, nbytes)
    if c >= SMALL_CLASSES: tick()
    return b


cdef inline void reset(Buffer* b, int category) noexcept:
    """Initialise the header of a buffer of `category` with one holder."""
    b.link.next = NULL
    b.holders = 1
    b.version = b.saved = b.rewrites = 0
    b.parameters = b.gradients = b.optimizer = 0
    b.gradients = category == GRADIENTS
    b.optimizer = category == OPTIMIZER
    b.flags = SCRATCH if category == WORKSPACE else 0
    b.mark = b.signs = 0
    b.leases = 0
    b.category = category


cdef inline void add_to_counters(Buffer* b, size_t nbytes) noexcept:
    b.nbytes = nbytes
    counters.live += nbytes
    counters.buffers += 1
    counters.by_category[b.category] += nbytes
    if counters.live > counters.peak: counters.peak = counters.live


cdef inline void count(Buffer* b, size_t nbytes) noexcept:
    """Count a buffer that has just got its memory, and report it to observer and listener."""
    add_to_counters(b, nbytes)
    CG_UNPOISON(b.data, nbytes)
    PyTraceMalloc_Track(DOMAIN, <uintptr_t>b.data, nbytes)
    if watching & (LOGGING | OBSERVED): notify(ALLOCATED, b, b.category)


cdef Buffer* zeros(size_t nbytes, int category) except NULL:
    """A buffer of zeros with one holder, the caller. It has no memory and counts nothing until make()."""
    cdef Buffer* b = new_header()
    reset(b, category)
    b.data, b.nbytes, b.size_class, b.home.size = NULL, 0, LARGE, nbytes
    b.flags |= ZEROS
    if watching & TRACING and is_virtual(): b.link.trace = flags().trace
    return b


cdef int make(Buffer* b) except -1:
    """Allocate the memory of a buffer of zeros. If it raises MemoryError, nothing has changed. Raises RuntimeError for
    a virtual buffer, except in the thread that traces it."""
    cdef size_t nbytes = b.home.size
    if b.flags & VIRTUAL:
        if b.home.life != NULL and b.home.life.trace == flags().trace: return 0
        refuse_virtual()
    if watching & (FAILING | TRACING | BOUNDED):
        if watching & FAILING: maybe_fail(nbytes)
        if watching & TRACING and is_virtual(): return late_bound.make_virtual(b, nbytes)
        if watching & BOUNDED: late_bound.make_room(nbytes)
    b.home.span = take(rounded(nbytes), nbytes)     # (if this raises, `home` is unchanged)
    b.data = b.home.span.data
    CG_UNPOISON(b.data, nbytes)
    memset(b.data, 0, nbytes)                       # before count() reports the buffer
    b.flags &= ~ZEROS
    count(b, nbytes)
    tick()
    return 0


cdef int make_real(Buffer* b) except -1:
    """make(), for a caller that reads or writes the elements now."""
    if not b.flags & VIRTUAL: make(b)
    return refuse_virtual() if b.flags & VIRTUAL else 0


cdef Buffer* adopt(char* data, size_t nbytes, object owner, bint readonly) except NULL:
    """A buffer on memory that `owner` keeps alive. core/store/external.pyx counts such memory."""
    cdef Buffer* b = <Buffer*>PyMem_RawMalloc(sizeof(Buffer))
    if b == NULL: raise MemoryError("no memory for the header of an external buffer")
    memset(b, 0, sizeof(Buffer))
    b.data, b.nbytes, b.holders, b.category = data, nbytes, 1, OTHER
    b.flags = EXTERNAL | (READONLY if readonly else 0)
    b.link.owner = <void*>owner
    Py_INCREF(owner)
    return b


cdef void release(Buffer* b) noexcept:
    """Free a buffer whose last holder has released it."""
    global idle
    if b.flags & WATCHED: late_bound.unwatch(b)
    if b.flags & ZEROS:
        free_header(b)
        return
    if b.flags & EXTERNAL:
        owner = <object>b.link.owner
        Py_DECREF(owner)
        PyMem_RawFree(b)
        return
    if b.flags & VIRTUAL:
        release_virtual(b)
        return
    subtract_from_counters(b)
    PyTraceMalloc_Untrack(DOMAIN, <uintptr_t>b.data)
    if watching & (LOGGING | OBSERVED): notify(FREED, b, b.category)
    CG_POISON(b.data, b.nbytes)
    if b.size_class == LARGE:
        give_large(b)
        return
    if b.size_class < SMALL_CLASSES:
        b.home.slab.live -= 1
        if b.home.slab.live == 0: idle += SLAB
    else: idle += b.home.span.size
    b.link.next = free_lists[b.size_class]
    free_lists[b.size_class] = b


cdef inline void subtract_from_counters(Buffer* b) noexcept:
    counters.live -= b.nbytes
    counters.buffers -= 1
    counters.by_category[b.category] -= b.nbytes


cdef void shrink(Buffer* b) noexcept:
    """Replace the elements of `b` with sign bits: its only holder is a slot that needs nothing else."""
    late_bound.shrink_signs(b)


cdef void recategorise(Buffer* b) noexcept:
    """Count the bytes of `b` in the category that its roles give it now."""
    cdef int c = (PARAMETERS if b.parameters else GRADIENTS if b.gradients else OPTIMIZER if b.optimizer
                  else SAVED if b.saved else WORKSPACE if b.flags & SCRATCH else OTHER)
    cdef int before = b.category
    if c == before: return
    b.category = c
    if b.flags & (EXTERNAL | ZEROS) or (b.flags & VIRTUAL and b.home.life == NULL): return
    if not b.flags & VIRTUAL:
        counters.by_category[before] -= b.nbytes
        counters.by_category[c] += b.nbytes
    if watching & (LOGGING | OBSERVED): notify(MOVED, b, before)


# ---- virtual memory --------------------------------------------------------------------------------------------------
# The buffers of a trace (core/graph/trace.pyx) have addresses, but no memory. They do not count in the statistics, only
# in what is reported to observer and listener.

cdef inline bint is_virtual() noexcept:
    """Whether allocations of this thread are virtual."""
    cdef Flags* f = flags()
    global real_allocations
    if f.trace != NULL: real_allocations += f.values > 0
    return f.trace != NULL and not f.values

def real_allocations_of_traces():
    """The number of allocations of real memory in all traces so far, for tests."""
    return real_allocations

cdef int refuse_virtual() except -1:
    raise RuntimeError("this tensor has no values: it stands for each slice inside of vmap(), or it was made while a "
                       "program was traced (by memory.plan, or to capture a net); use only operations there, and read "
                       "results after it")

cdef Buffer* new_virtual(Life* life, int category) except NULL:
    """A virtual buffer of life.nbytes at life.data, whose only holder is the caller."""
    cdef Buffer* b = new_header()
    reset(b, category)
    b.data, b.nbytes, b.size_class, b.home.life = life.data, life.nbytes, LARGE, life
    b.flags |= VIRTUAL
    life.buffer = b
    if watching & (LOGGING | OBSERVED): notify(ALLOCATED, b, b.category)
    return b

cdef void make_virtual(Buffer* b, Life* life) noexcept:
    """Give virtual memory to a buffer of zeros."""
    b.data, b.nbytes, b.home.life = life.data, life.nbytes, life
    b.flags = (b.flags & ~ZEROS) | VIRTUAL
    life.buffer = b
    if watching & (LOGGING | OBSERVED): notify(ALLOCATED, b, b.category)

cdef void forget_virtual(Buffer* b) noexcept:
    """End the life of a virtual buffer. Its holders keep the header. Its version rises, so that a later backward pass
    notices it."""
    cdef Life* life = b.home.life
    if life == NULL: return
    life.buffer = NULL
    b.home.life = NULL
    b.version += 1
    if watching & (LOGGING | OBSERVED): notify(FREED, b, b.category)

cdef void release_virtual(Buffer* b) noexcept:
    forget_virtual(b)
    free_header(b)

cdef void set_aside(Buffer* b) noexcept:
    """Report a buffer of the pool as freed, because a virtual one takes its place in the program."""
    if watching & (LOGGING | OBSERVED): notify(FREED, b, b.category)

cdef void count_again(Buffer* b) noexcept:
    """Undo set_aside()."""
    if watching & (LOGGING | OBSERVED): notify(ALLOCATED, b, b.category)

cdef void set_tracing(bint on) noexcept:
    """Whether any thread traces."""
    global watching
    watching = (watching & ~TRACING) | (TRACING if on else 0)


# ---- statistics, peaks and limits --------------------------------------------------------------------------------

CATEGORY_NAMES = ("parameters", "gradients", "optimizer", "saved", "workspace", "other")


def stats() -> dict[str, Any]:
    """The current state of the memory, as a dict. In bytes: `live_bytes`, the memory of all tensors; `peak_bytes`, the
    maximum of the live bytes since the start or since `reset_peak()`; `cached_bytes`, free memory that the pool holds
    for later allocations, and tables of backward passes; `external_bytes`, memory of NumPy and other libraries that
    tensors share. External memory counts nowhere else, and each byte counts once, however many tensors share it; gaps
    do not count. `live_buffers` is the number of live buffers, `system_allocations` the number of times that the pool
    took memory from the system. `by_category` divides the live bytes by purpose, a dict of "parameters", "gradients",
    "saved", "optimizer", "workspace" and "other"."""
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
    """Reset counters.peak to the live bytes. The peak that users see stays."""
    global highest
    if counters.peak > highest: highest = counters.peak
    counters.peak = counters.live


def restart_peak():
    """Reset the peak that users see to the live bytes. Returns the previous peak."""
    global highest
    cdef size_t before = max(highest, counters.peak)
    highest, counters.peak = 0, counters.live
    return before


def most_held(size_t nbytes):
    """The bytes that a buffer of `nbytes` on a span of its own takes from the system at most, in whole pages, when free
    memory has gone back."""
    return in_pages(SLAB if nbytes <= SMALL else rounded(nbytes))


def empty_cache() -> None:
    """Return every page without a live buffer to the system."""
    global headers, window_peak, last_peak
    cdef Buffer* b
    window_peak = last_peak = counters.live         # earlier peaks no longer justify holding more
    tables.free_spare()
    collect_idle()
    arena.release_all()
    while headers != NULL:
        b = headers
        headers = b.link.next
        PyMem_RawFree(b)


def set_limit(nbytes):
    """Limit the memory taken from the system, live and cached, to `nbytes`. None means no limit."""
    global limit
    limit = <size_t>-1 if nbytes is None else <size_t>nbytes        # (leaving a scope must not allocate here)
    if arena.committed > limit: empty_cache()


def is_bounded():
    """Whether a memory.limit() or a memory.budget() is open, in any thread."""
    return limit != <size_t>-1 or watching & BOUNDED != 0


def set_bounded(on):
    """Whether the pool calls make_room() before it takes memory."""
    global watching
    watching = (watching & ~BOUNDED) | (BOUNDED if on else 0)


# ---- events and failures ---------------------------------------------------------------------------------------------

cdef tuple EVENT_NAMES = ("allocate", "free", "category")


cdef void notify(int event, Buffer* b, int before) noexcept:
    cdef int c = b.category
    cdef Flags* f
    if watching & OBSERVED: observer(event, b, before)
    if not watching & LOGGING: return
    f = flags()
    if f.telling: return                            # an event of the listener itself: reporting it would recurse
    f.telling = True
    try:
        listener((EVENT_NAMES[event], <uintptr_t>b, b.nbytes, CATEGORY_NAMES[c]))
    finally:                                        # an exception is printed, and the allocation continues
        f.telling = False


cdef void set_observer(observer_t f) noexcept:
    """Call `f` at every event, with the category that the buffer had before the event. NULL removes the observer."""
    global observer, watching
    observer = f
    watching = (watching & ~OBSERVED) | (OBSERVED if f != NULL else 0)


def set_listener(f):
    """Call `f((kind, id, nbytes, category))` after every event ("allocate", "free", "category"), except for events that
    `f` itself causes. None removes the listener. Returns the previous listener."""
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
    """Make the n-th allocation from now on fail, and with `persistent` all later ones too; 0 means none. Returns the
    number of allocations since the previous call."""
    global allocations, fail_at, fail_persistent, watching
    cdef uint64_t counted = allocations
    allocations, fail_at, fail_persistent = 0, n, persistent
    watching = (watching & ~FAILING) | (FAILING if n else 0)
    return counted
