from cygrad.core.graph.tensor cimport Tensor

cdef str HEAD            # the operator's name that statistics and events show for a head gradient

cdef Tensor head_full(Tensor y, double value)
