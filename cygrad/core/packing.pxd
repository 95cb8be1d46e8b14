from cygrad.core.graph cimport Node, Slot
from cygrad.core.modes cimport Flags

cdef int pack(Node node, Flags* f) except -1
cdef list unpack(Node node, Flags* f)
cdef void repack(Node node, list packed) noexcept
cdef int check_packed(Node node, Slot* s) except -1
