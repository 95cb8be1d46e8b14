from libc.stdint cimport uint64_t

from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.graph.tensor cimport Leaf, Tensor

cdef class Collected:
    cdef uint64_t number
    cdef readonly list leaves
    cdef bint adds                  # gradients of variables with grad_req "add" are added from the first on
    cdef public bint abandoned      # its GradientCollector was freed without being closed

cdef int deposit(Leaf leaf, Gradient* g, bint overwrite) except -1
cdef int clear(Tensor t) except -1
cdef int deposit_tensor(Leaf leaf, Tensor t, bint overwrite) except -1
