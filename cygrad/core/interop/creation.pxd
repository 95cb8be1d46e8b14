from cygrad.core.graph.tensor cimport Tensor

cdef str HEAD            # the operator's name that statistics and events show for a head gradient

cdef void fill(char* data, Py_ssize_t n, int dtype, double value) noexcept
cdef Tensor head_full(Tensor y, double value)
