from cygrad.core.backward.turn cimport Turn
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef int trace_stage(Turn b, int stage, Buffer* workspace) except -1
cdef int trace_sum(const Array* x, const Array* y, Buffer* source, Buffer* target) except -1
