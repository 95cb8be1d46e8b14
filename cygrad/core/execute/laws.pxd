from libc.stdint cimport uint64_t

from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.laws cimport Draws, Form

cdef class Sampling:
    cdef Draws draws
    cdef Tensor y
    cdef list held              # tensors whose memory `draws` reads
    cdef readonly uint64_t blocks

    cdef Tensor run(self, uint64_t key, uint64_t counter)

cdef Sampling plan(str name, Form form, shape, int dtype, dict parameters)
cdef Tensor weights_of(values)
cdef Tensor cumulative(str name, str what, values, axis, bint logarithms)
