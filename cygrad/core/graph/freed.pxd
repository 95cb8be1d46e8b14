from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.unreadable cimport Unreadable

cdef class FreedTensor(Unreadable):
    pass

cdef int free_memory(Tensor t) except -1
