from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.store.buffer cimport Buffer
from cygrad.core.thread_state cimport Flags
from cygrad.kernels.array cimport Array

cdef tuple item_of(const Array* a, Node node, int output_nr, Tensor t, bint made, const Buffer* b)
cdef tuple tensor_item(Tensor t)
cdef bint in_train_mode(const Flags* f) noexcept
cdef list calls_of(const Flags* f)
cdef int note(str kind, tuple what) except -1
