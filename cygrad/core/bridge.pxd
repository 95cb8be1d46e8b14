from cygrad.core.graph cimport Tensor
from cygrad.core.memory cimport Buffer
from cygrad.kernels.array cimport Array

cdef object lend(const Array* a, Buffer* buffer, bint writable)
cdef object window(Tensor t, bint writable)
