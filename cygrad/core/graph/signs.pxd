from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport Buffer

cdef void* packed           # the node whose signs get memory now, for the observer; NULL: none

cdef int unpack(Buffer* bits, Tensor t) except -1
cdef bint can_shrink(const Buffer* b) noexcept
cdef void set_evicting(bint on) noexcept
