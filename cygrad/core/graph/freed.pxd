from cygrad.core.graph.tensor cimport Tensor

cdef int free_memory(Tensor t) except -1
