from libc.stdint cimport uint32_t

from cygrad.core.graph.slots cimport Slot
from cygrad.core.graph.tensor cimport Node
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Layout

cdef object line_of(Node node)
cdef str line_here()
cdef int remember_line(Node node) except -1
cdef int remember_write(const Buffer* b) except -1
cdef int check_slot(Node node, const Slot* s) except -1
cdef int raise_rewritten_at(Node node, const Layout* l, uint32_t kept, const Buffer* b, uint32_t last) except -1
