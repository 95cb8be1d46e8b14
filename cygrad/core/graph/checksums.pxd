from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef bint checking

cdef bytes checksum(const Array* a)
cdef int remember(Node node) except -1
cdef int compare(Node node) except -1
cdef Tensor bytes_of(Buffer* b)
cdef bytes checksum_of_memory(Buffer* b)
