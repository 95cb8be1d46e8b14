"""Buffers, their reference counts and the memory counters.

A Buffer's `holders` counts tensors, slots, gradient slots and leases. When it reaches zero, the memory returns to the
pool. The role counts (`parameters`, `gradients`, `optimizer`, `saved`) count what the buffer is used for; the first of
them that is not zero determines its category. Everything here runs under the GIL, which is the pool's only lock."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.core.store.arena cimport Span
from cygrad.kernels.array cimport Layout, itemsize

cpdef enum Category:
    PARAMETERS, GRADIENTS, OPTIMIZER, SAVED, WORKSPACE, OTHER, CATEGORIES

cdef enum Event:            # the events that are reported to an observer
    ALLOCATED, FREED, MOVED     # MOVED: from one category to another

cdef enum:
    MAX_ROLES = 0xFFFF      # the maximum number of variables on one buffer, counted in 16 bits

    EXTERNAL = 1            # memory outside the pool: `owner` keeps it alive, and the counters exclude it
    READONLY = 2
    WATCHED = 4             # late_bound.unwatch is called when it is released (core/graph/packing.pyx)
    SCRATCH = 8             # workspace of an operation
    GRAPHLESS = 16          # a gradient without a graph, or a result computed from one; used only in error messages
    ZEROS = 32              # zeros without memory: make() allocates it
    VIRTUAL = 64            # addresses without memory, during a trace (core/graph/trace.pyx). The counters exclude it

cdef struct Buffer
cdef struct Life

cdef struct Slab:           # a span that is cut into small buffers
    Span* span
    Slab* next
    uint32_t live           # buffers in use

cdef union Home:            # where the memory of a buffer is
    Slab* slab              # small
    Span* span              # medium and large
    size_t size             # zeros without memory: their size in bytes
    Life* life              # virtual; NULL once that has ended: life_of()

cdef union Link:
    Buffer* next            # free: the next free block
    void* owner             # external: a reference to the owner
    void* node              # with a sign slot: the node of that slot; NULL without one
    void* trace             # zeros that a traced program makes: its Trace; NULL for others

cdef struct Buffer:
    char* data
    size_t nbytes           # the requested size, which live_bytes counts
    Link link
    Home home
    int holders
    uint32_t version        # number of in-place writes
    uint32_t saved          # number of slots that save it for backward
    uint16_t parameters     # number of variables on it
    uint16_t optimizer      # number of solver states on it
    uint32_t gradients      # number of gradients on it, stored in .grad or pending
    uint16_t size_class
    uint8_t category
    uint8_t flags
    uint8_t signs           # number of slots among `saved` that need only the signs of the elements
    uint8_t mark            # set during a walk that must count each buffer once
    uint16_t leases         # number of arrays, exported buffers and DLPack capsules among `holders`
    uint32_t rewrites       # number of recorded in-place writes; a tensor with a smaller count is stale

cdef struct Counters:
    size_t live             # requested bytes of live buffers
    size_t peak
    size_t external
    uint64_t buffers        # live buffers
    size_t by_category[CATEGORIES]

cdef struct Life:           # the life of a virtual buffer. A trace owns it.
    char* data
    size_t nbytes
    Buffer* buffer          # NULL once that is released
    int first_use, last_use     # the steps that use it; -1: none
    int storage             # the memory outside the arena that it stands for, or -1
    int number              # its place among the lives of the trace
    void* trace             # the Trace

cdef struct Shaping:        # the layout and dtype of the buffer being allocated, for an observer
    const Layout* layout    # NULL: the buffer is not allocated for a tensor
    int dtype

cdef Counters counters
cdef Shaping shaping

cdef Buffer* allocate(size_t nbytes, int category) except NULL
cdef Buffer* zeros(size_t nbytes, int category) except NULL
cdef int make(Buffer* b) except -1
cdef int make_real(Buffer* b) except -1
cdef int refuse_virtual() except -1
cdef Buffer* new_virtual(Life* life, int category) except NULL
cdef void make_virtual(Buffer* b, Life* life) noexcept
cdef void forget_virtual(Buffer* b) noexcept
cdef void set_aside(Buffer* b) noexcept
cdef void count_again(Buffer* b) noexcept
cdef void set_tracing(bint on) noexcept
cdef Buffer* adopt(char* data, size_t nbytes, object owner, bint readonly) except NULL
cdef void release(Buffer* b) noexcept
cdef void shrink(Buffer* b) noexcept
cdef void recategorise(Buffer* b) noexcept
ctypedef void (*observer_t)(int event, Buffer* b, int category) noexcept
cdef void set_observer(observer_t f) noexcept


cdef inline Buffer* allocate_for(const Layout* l, int dtype, int category) except NULL:
    """allocate() for a tensor of this layout and dtype. An observer finds both in `shaping`."""
    shaping.layout, shaping.dtype = l, dtype
    try: return allocate(l.size * itemsize(dtype), category)
    finally: shaping.layout = NULL


cdef inline Life* life_of(const Buffer* b) noexcept:
    """The life of a virtual buffer; NULL if it has ended, and for another buffer."""
    return b.home.life if b.flags & VIRTUAL else NULL

cdef inline void hold(Buffer* b) noexcept:
    b.holders += 1

cdef inline void drop(Buffer* b) noexcept:
    b.holders -= 1
    if b.holders == 0: release(b)
    elif b.signs and b.holders == b.signs: shrink(b)

cdef inline void save(Buffer* b) noexcept:
    """Add a holder that saves the buffer for backward."""
    b.holders += 1
    b.saved += 1
    if b.saved == 1: recategorise(b)

cdef inline void unsave(Buffer* b) noexcept:
    """Undo save(), except that the caller takes over its holder."""
    b.saved -= 1
    if b.saved == 0 and b.holders > 1: recategorise(b)

cdef inline void release_saved(Buffer* b) noexcept:
    """Undo save() and release its holder."""
    b.saved -= 1
    b.holders -= 1
    if b.holders == 0: release(b)
    elif b.saved == 0: recategorise(b)
    elif b.signs and b.holders == b.signs: shrink(b)

cdef inline void mark_gradient(Buffer* b) noexcept:
    b.gradients += 1
    if b.gradients == 1: recategorise(b)

cdef inline void unmark_gradient(Buffer* b) noexcept:
    b.gradients -= 1
    if b.gradients == 0: recategorise(b)
