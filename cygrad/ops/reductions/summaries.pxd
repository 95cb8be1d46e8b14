from cygrad.core.graph.tensor cimport Tensor

cdef Tensor floating(x)
