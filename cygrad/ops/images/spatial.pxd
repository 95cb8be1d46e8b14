from cygrad.core.graph.tensor cimport Tensor

cdef tuple read_sizes(str name, str what, value, int nd, Py_ssize_t least)
cdef Tensor batched(str name, x, int nd)
