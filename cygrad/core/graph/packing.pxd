from cygrad.core.graph.packed cimport Packing
from cygrad.core.graph.slots cimport Slot
from cygrad.core.graph.tensor cimport Node
from cygrad.core.thread_state cimport Flags


cdef class HookPacking(Packing):
    cdef object pack_hook, unpack_hook


cdef int pack(Node node, Flags* f) except -1
cdef list unpack(Node node, Flags* f, bint retain)
cdef void repack(Node node, list packed) noexcept
