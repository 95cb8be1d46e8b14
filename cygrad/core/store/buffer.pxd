"""The contract of memory: Buffer, who holds it, and the counters.

A Buffer's `holders` counts tensors, slots, gradient slots and leases. It changes in hold() and drop() alone; at zero
the memory goes back to the pool. Roles say what for a buffer is held; the first role that somebody has gives its
category. Everything here runs under the GIL, which is the pool's one lock."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.kernels.array cimport Layout, itemsize

cpdef enum Category:
    PARAMETERS, GRADIENTS, OPTIMIZER, SAVED, WORKSPACE, OTHER, CATEGORIES

cdef enum Event:            # what an observer is told of
    ALLOCATED, FREED, MOVED     # MOVED: from one category to another

cdef enum:
    MAX_ROLES = 0xFFFF      # variables on one buffer, which it counts in 16 bits

    EXTERNAL = 1            # memory of somebody else: `owner` keeps it alive, nothing here counts it
    READONLY = 2
    WATCHED = 4             # somebody wants to know when it is released (core/graph/packing.pyx)
    SCRATCH = 8             # workspace of an operation
    GRAPHLESS = 16          # a gradient without a graph, or recorded from one: for messages alone
    ZEROS = 32              # it is zeros and has no memory yet: make() gives it some

cdef struct Buffer:
    char* data
    size_t nbytes           # what was asked for, and what live_bytes counts
    void* link              # pool: next free block; external: the owner (a counted PyObject*); with a sign
                            #   slot: the node that has it
    void* home              # small: its slab; else its span; of zeros without memory how many bytes they will have
    int holders
    uint32_t version        # in-place writes
    uint32_t saved          # slots that keep it for backward
    uint16_t parameters     # variables on it
    uint16_t optimizer      # solver states on it
    uint32_t gradients      # gradients on it, arrived or under way
    uint16_t size_class
    uint8_t category
    uint8_t flags
    uint8_t signs           # slots among `saved` that need no more than which elements are positive
    uint8_t mark            # for one who walks over buffers and must count each once
    uint16_t leases         # among `holders`: arrays, exported buffers, DLPack capsules
    uint32_t rewrites       # in-place writes that were recorded: tensors made before one do not know its node

cdef struct Counters:
    size_t live             # requested bytes of live buffers
    size_t peak
    size_t external
    uint64_t buffers        # live buffers
    size_t by_category[CATEGORIES]

cdef struct Shaping:        # what an observer is told of the buffer being made, beyond its bytes
    const Layout* layout    # NULL: no tensor's
    int dtype

cdef Counters counters
cdef Shaping shaping

cdef Buffer* allocate(size_t nbytes, int category) except NULL
cdef Buffer* zeros(size_t nbytes, int category) except NULL
cdef int make(Buffer* b) except -1
cdef Buffer* adopt(char* data, size_t nbytes, object owner, bint readonly) except NULL
cdef void release(Buffer* b) noexcept
cdef void shrink(Buffer* b) noexcept
cdef void recategorise(Buffer* b) noexcept
ctypedef void (*observer_t)(int event, Buffer* b, int category) noexcept
cdef void set_observer(observer_t f) noexcept


cdef inline Buffer* allocate_for(const Layout* l, int dtype, int category) except NULL:
    """allocate() for a tensor of this layout and dtype, which an observer is told."""
    shaping.layout, shaping.dtype = l, dtype
    try: return allocate(l.size * itemsize(dtype), category)
    finally: shaping.layout = NULL


cdef inline void hold(Buffer* b) noexcept:
    b.holders += 1

cdef inline void drop(Buffer* b) noexcept:
    b.holders -= 1
    if b.holders == 0: release(b)
    elif b.signs and b.holders == b.signs: shrink(b)

cdef inline void save(Buffer* b) noexcept:
    """Hold for backward."""
    b.holders += 1
    b.saved += 1
    if b.saved == 1: recategorise(b)

cdef inline void unsave(Buffer* b) noexcept:
    """What was kept is no longer kept, but still held: the hold goes to the caller."""
    b.saved -= 1
    if b.saved == 0 and b.holders > 1: recategorise(b)

cdef inline void release_saved(Buffer* b) noexcept:
    """What was kept is neither kept nor held."""
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
