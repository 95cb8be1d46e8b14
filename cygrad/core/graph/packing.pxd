from cygrad.core.graph.slots cimport Slot
from cygrad.core.graph.tensor cimport Node
from cygrad.core.thread_state cimport Flags

cdef int pack(Node node, Flags* f) except -1
cdef list unpack(Node node, Flags* f)
cdef void repack(Node node, list packed) noexcept
cdef int check_packed(Node node, Slot* s) except -1
