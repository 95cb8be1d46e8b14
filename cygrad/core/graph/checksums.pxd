from cygrad.core.graph.tensor cimport Node
from cygrad.kernels.array cimport Array

cdef bint checking

cdef bytes checksum(const Array* a)
cdef int remember(Node node) except -1
cdef int compare(Node node) except -1
