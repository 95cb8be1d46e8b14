from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.trace cimport Trace
from cygrad.kernels.array cimport Layout

cdef Trace begin_trace(int purpose)
cdef int end_trace(Trace t) except -1
cdef Trace suspend_trace()
cdef int resume_trace(Trace t) except -1
cdef Tensor virtual_tensor(Trace t, Layout* layout, int dtype, int kind)
