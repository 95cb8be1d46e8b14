from cygrad.core.graph.tensor cimport Tensor

cdef int rename(error, str name, str own=*) except -1
cdef int check_broadcast(str name, Tensor x, Tensor y, Tensor z=*) except -1
