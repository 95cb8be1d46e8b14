"""Packed slots and the weak references to their memory (packed.pxd)."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF

from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.provenance cimport raise_rewritten_at
from cygrad.core.graph.slots cimport save_object
from cygrad.core.graph.tensor cimport PACKS
from cygrad.core.graph.trace cimport version_saved, was_rewritten


# ---- weak references to buffers ----------------------------------------------------------------------------------

cdef dict watches = {}          # address of a buffer with the flag WATCHED -> address of its Watch


cdef class Watch:
    def __dealloc__(self):
        if self.buffer == NULL: return
        self.buffer.flags &= ~WATCHED
        watches.pop(<size_t>self.buffer, None)


cdef Watch watch(Buffer* b):
    """The Watch of a buffer."""
    cdef Watch w
    if b.flags & WATCHED: return <Watch><void*><size_t>watches[<size_t>b]
    w = Watch.__new__(Watch)
    watches[<size_t>b] = <size_t><void*>w
    w.buffer = b
    b.flags |= WATCHED
    return w


cdef void unwatch(void* released) noexcept:
    cdef Buffer* b = <Buffer*>released
    cdef Watch w
    cdef size_t found = 0
    try: found = watches.pop(<size_t>b)
    except MemoryError:                             # no memory for the key: search for the buffer
        for found in watches.values():
            if (<Watch><void*>found).buffer == b: break
    w = <Watch><void*>found
    w.buffer, w.version = NULL, b.version
    if w.values is not None: w.values.pop(<size_t>b, None)


# ---- packed slots ----------------------------------------------------------------------------------------------------

cdef class Packed:
    cdef Tensor unpack(self, Node node, const Slot* s):
        """The tensor that slot `s` of `node` saved. Its shape and dtype must be those of the slot."""

    cdef int check(self, Node node, const Slot* s) except -1:
        """Raise InplaceError if the memory was written after slot `s` of `node` saved it."""
        cdef Buffer* b = self.watch.buffer
        if b != NULL:
            if not was_rewritten(node, s, b): return 0
            return raise_rewritten_at(node, s.layout, version_saved(node, s, b), b, 0)
        if self.watch.version == s.version: return 0
        return raise_rewritten_at(node, s.layout, s.version, NULL, self.watch.version)

    cdef Buffer* kept(self) noexcept:
        """The buffer that it keeps alive, or NULL."""
        return NULL


cdef class Packing:
    cdef int pack(self, Node node) except -1:
        """Put a Packed into the slots of a new node whose tensors are not to be kept."""

    cdef int before_write(self, Buffer* b) except -1:
        """The thread is about to write to a watched buffer."""


cdef void set_packing(Flags* f, Packing p) noexcept:
    """Make `p`, or None, that of the thread. The thread owns a reference, because a scope may be freed without being
    closed."""
    cdef void* before = f.pack
    Py_XINCREF(<PyObject*>p if p is not None else NULL)
    f.pack = <void*>p if p is not None else NULL
    Py_XDECREF(<PyObject*>before)


cdef void put_packed(Node node, Slot* s, Packed p) noexcept:
    """Put `p` into a slot, instead of a buffer."""
    save_object(s, p)
    node.flags |= PACKS


cdef int check_packed(Node node, const Slot* s) except -1:
    """Raise InplaceError if a slot is packed, and its memory has been written."""
    return 0 if object_in(s) == NULL else (<Packed>object_in(s)).check(node, s)


late_bound.unwatch = unwatch
