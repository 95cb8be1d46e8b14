from cygrad.core.graph cimport Call, Tensor
from cygrad.kernels.array cimport Array

cdef int check_indices(str name, const Array* x, int axis, int n, const Array* index) except -1
cdef Tensor own(Tensor t, Tensor written)
cdef Tensor index_tensor(v, Tensor written)
cdef Tensor zero_like(Tensor g, tuple shape)
