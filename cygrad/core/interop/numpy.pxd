from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef int check_lendable(Tensor t, str caller) except -1
cdef Tensor copy_in(a, int dtype)
cdef object as_array(data, dtype)
cdef object lend(const Array* a, Buffer* buffer, bint writable)
cdef object window(Tensor t, bint writable)
cdef bint share_memory(Tensor a, Tensor b) except -1
cdef int check_capture() except -1
