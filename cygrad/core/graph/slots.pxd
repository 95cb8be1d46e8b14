"""Slots: what a node saves for backward, one slot for each input or output that its operator needs. Only this module
accesses the content of a slot. Other modules open it as an array, fill it, empty it, or walk the slots of a node. So a
new way of saving (on disk, recomputation) changes this module only."""

from libc.stdint cimport uint8_t, uint32_t

from cygrad.core.store.layout cimport incref
from cygrad.core.store.buffer cimport Buffer, save
from cygrad.kernels.array cimport Array, Layout, itemsize

cdef enum:
    OWN = 0x80              # Slot.source: input i, or OWN | k for output k

cdef enum SlotKind:
    EMPTY
    BUFFER
    CONSTANT                # a Python number, stored in the bits of the dtype
    PACKED                  # a reference to a Python object instead of the buffer (core/graph/packing.pyx)

cdef enum SlotNeed:
    VALUES                  # the elements
    SIGNS                   # which elements are positive: one bit each, once the slot is the only holder
    BITS                    # as SIGNS, and the buffer holds the bits now

cdef union Content:
    Buffer* buffer
    double number
    void* pyobject

cdef struct Slot:
    Content content
    Layout* layout
    uint32_t version        # the buffer's version when it was saved
    uint8_t source
    uint8_t kind
    uint8_t dtype
    uint8_t need            # a SlotNeed

ctypedef void (*slot_observer_t)(void* node, Slot*) noexcept

# set while a profile is open (memory/log.pyx), else NULL
cdef slot_observer_t slot_saved     # called with NULL for a new node, and after its slot has saved a buffer
cdef slot_observer_t slot_emptied   # called before a slot releases its buffer


# ---- open ------------------------------------------------------------------------------------------------------------

cdef inline Slot* find_slot(Slot* s, int n, int source) noexcept:
    """The slot among `n` that saves `source`, or NULL."""
    cdef int k
    for k in range(n):
        if s[k].source == source: return &s[k]
    return NULL

cdef inline Buffer* buffer_in(const Slot* s) noexcept:
    """The buffer that a slot holds, or NULL."""
    return <Buffer*>s.content.buffer if s.kind == BUFFER else NULL

cdef inline void* object_in(const Slot* s) noexcept:
    """The Python object that a slot holds, or NULL."""
    return <void*>s.content.pyobject if s.kind == PACKED else NULL

cdef inline bint was_written(const Slot* s) noexcept:
    """Whether the buffer was written in place after it was saved."""
    return s.kind == BUFFER and s.version != s.content.buffer.version

cdef inline bint has_elements(const Slot* s) noexcept:
    """Whether elements() can be called: the slot holds a buffer (of values or of bits) or a number."""
    return s.kind == BUFFER or s.kind == CONSTANT

cdef inline Array elements(Slot* s) noexcept:
    """The saved elements as an array, which is valid until the slot is emptied."""
    cdef Array a
    a.dtype, a.layout = s.dtype, s.layout
    a.data = (<char*>&s.content.number if s.kind == CONSTANT
              else s.content.buffer.data + s.layout.offset * itemsize(s.dtype))
    return a

cdef inline const uint8_t* sign_bits(const Slot* s) noexcept:
    """The sign bits, one for each element, if the slot holds only these; else NULL."""
    return <const uint8_t*>s.content.buffer.data if s.kind == BUFFER and s.need == BITS else NULL


# ---- fill and empty --------------------------------------------------------------------------------------------------

cdef inline void save_buffer(Slot* s, int source, Buffer* b, const Layout* layout, int dtype) noexcept:
    """Save the elements of a buffer that `layout` describes."""
    s.source, s.dtype, s.layout = source, dtype, incref(layout)
    s.kind, s.need, s.version = BUFFER, VALUES, b.version
    s.content.buffer = b
    save(b)

cdef inline void save_number(Slot* s, int source, double number, const Layout* layout, int dtype) noexcept:
    """Save a number, stored in the bits of `dtype`."""
    s.source, s.dtype, s.layout = source, dtype, incref(layout)
    s.kind, s.need = CONSTANT, VALUES
    s.content.number = number

cdef inline void claim_signs(Slot* s, void* node) noexcept:
    """Mark that backward needs only the signs of this dense output. Once the slot is the buffer's only holder,
    core/graph/signs.pyx replaces the elements with bits. At most one slot of a buffer may do so; the buffer's link
    points to its node."""
    s.need = SIGNS
    s.content.buffer.signs = 1
    s.content.buffer.link.node = node

cdef void share_slot(const Slot* s, Slot* out) noexcept
cdef void save_object(Slot* s, object o) noexcept
cdef void restore_buffer(Slot* s, Buffer* b, const Layout* layout) noexcept
cdef void replace_by_bits(Slot* s, Buffer* bits, void* node) noexcept
cdef bint take_buffer(Slot* s, Buffer** b, Layout** layout) noexcept
cdef void empty_slot(Slot* s) noexcept
