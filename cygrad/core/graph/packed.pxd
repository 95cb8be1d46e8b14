"""What slots hold instead of tensors. A Packing, which a scope makes that of its thread, decides what a new node keeps;
a Packed is what it keeps, and computes, reads or makes the tensor again when backward needs it.

A Watch detects writes to the memory that was packed, up to its release. What is unpacked may be a copy, but after such
a write the gradient would no longer be the gradient of the program."""

from libc.stdint cimport uint32_t

from cygrad.core.graph.slots cimport Slot, buffer_in, object_in
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.store.buffer cimport WATCHED, Buffer
from cygrad.core.thread_state cimport Flags


cdef class Watch:
    """A weak reference to a buffer, shared by all that watch it."""
    cdef Buffer* buffer         # NULL once that is released
    cdef uint32_t version       # the one that it had then
    cdef void* value            # borrowed: the Value in it now (core/execute/recipes.pxd), or NULL
    cdef dict values            # the values of regions that live as long as their buffers, by address, or None


cdef class Packed:
    """What a slot holds instead of a tensor."""
    cdef Watch watch            # of the memory of that tensor

    cdef Tensor unpack(self, Node node, const Slot* s)
    cdef int check(self, Node node, const Slot* s) except -1
    cdef Buffer* kept(self) noexcept


cdef class Packing:
    """What the nodes that a thread records save."""
    cdef readonly str scope     # the scope that made it, for messages

    cdef int pack(self, Node node) except -1
    cdef int before_write(self, Buffer* b) except -1


cdef Watch watch(Buffer* b)
cdef void unwatch(void* released) noexcept
cdef void put_packed(Node node, Slot* s, Packed p) noexcept
cdef int check_packed(Node node, const Slot* s) except -1
cdef void set_packing(Flags* f, Packing p) noexcept


cdef inline Buffer* kept_by(const Slot* s) noexcept:
    """The buffer that a slot keeps alive, itself or by a Packed, or NULL."""
    return (<Packed>object_in(s)).kept() if object_in(s) != NULL else buffer_in(s)


cdef inline int will_write(Flags* f, Buffer* b) except -1:
    """Call this before a write to a buffer."""
    return (<Packing>f.pack).before_write(b) if b.flags & WATCHED and f.pack != NULL else 0


cdef inline void give_up(Buffer* b) noexcept:
    """The memory of a buffer is about to be used for something else. For those that watch it, it is released."""
    if not b.flags & WATCHED: return
    unwatch(b)
    b.flags &= ~WATCHED
