"""Fills and empties the slots of a node. slots.pxd describes them."""

from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad.core.store cimport layout as lay
from cygrad.core.store.buffer cimport save, release_saved

slot_saved = slot_emptied = NULL


cdef void save_object(Slot* s, object o) noexcept:
    """Save a Python object instead of the buffer."""
    if s.kind == BUFFER: release_buffer(s)
    Py_INCREF(o)
    s.content.pyobject = <void*>o
    s.kind = PACKED


cdef void restore_buffer(Slot* s, Buffer* b, const Layout* layout) noexcept:
    """Save a buffer instead of the object."""
    cdef void* o = s.content.pyobject
    save(b)
    lay.decref(s.layout)
    s.layout = lay.incref(layout)
    s.content.buffer = b
    s.kind, s.version = BUFFER, b.version
    Py_DECREF(<object>o)


cdef void share_slot(const Slot* s, Slot* out) noexcept:
    """Save the same in `out`, an empty slot of another node."""
    out.source, out.kind, out.dtype = s.source, s.kind, s.dtype
    if s.kind == EMPTY: return
    if s.kind == BUFFER: save_buffer(out, s.source, s.content.buffer, s.layout, s.dtype)
    else:
        out.content, out.layout = s.content, lay.incref(s.layout)
        if s.kind == PACKED: Py_INCREF(<object>s.content.pyobject)
    out.need, out.version = VALUES if s.need == SIGNS else s.need, s.version


cdef void replace_by_bits(Slot* s, Buffer* bits, void* node) noexcept:
    """Save sign bits instead of the elements that they were computed from."""
    cdef Buffer* b = s.content.buffer
    save(bits)
    b.signs = 0
    b.link.node = NULL
    s.content.buffer, s.need, s.version = bits, BITS, bits.version
    if slot_saved != NULL: slot_saved(node, s)
    release_saved(b)


cdef bint take_buffer(Slot* s, Buffer** b, Layout** layout) noexcept:
    """Empty a slot and move its content to the caller, who becomes the holder of the buffer and gets the reference to
    the layout. False if the slot holds no buffer."""
    if s.kind != BUFFER: return False
    b[0], layout[0] = s.content.buffer, s.layout
    if slot_emptied != NULL: slot_emptied(NULL, s)
    if s.need == SIGNS: unclaim_signs(s)
    s.kind = EMPTY
    b[0].saved -= 1
    return True


cdef void empty_slot(Slot* s) noexcept:
    """Release the content of a slot."""
    cdef int kind = s.kind
    cdef void* o = s.content.pyobject
    if kind == EMPTY: return
    # the slot is EMPTY before the release: freeing external memory can run Python, which may read the slot
    if kind == BUFFER: release_buffer(s)
    else: s.kind = EMPTY
    lay.decref(s.layout)
    if kind == PACKED: Py_DECREF(<object>o)


cdef void release_buffer(Slot* s) noexcept:
    if slot_emptied != NULL: slot_emptied(NULL, s)
    if s.need == SIGNS: unclaim_signs(s)
    s.kind = EMPTY
    release_saved(s.content.buffer)


cdef inline void unclaim_signs(Slot* s) noexcept:
    s.need = VALUES
    s.content.buffer.signs -= 1
    s.content.buffer.link.node = NULL
