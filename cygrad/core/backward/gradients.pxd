from libc.stdint cimport uint64_t

from cygrad.core.graph.tensor cimport Gradient, Leaf, Tensor

cdef class Collected:
    cdef uint64_t number
    cdef readonly list leaves
    cdef public bint abandoned      # its GradientCollector died without being closed

cdef Tensor from_gradient(Gradient* g, int dtype)
cdef int gradient_of(Tensor t, Gradient* g) except -1
cdef Tensor flowing_in(Tensor t)
cdef object as_tensor(const Gradient* g, int dtype, bint graph)
cdef int add_gradients(Gradient* total, Gradient* g, int dtype) except -1
cdef int add_tensors(Gradient* total, Gradient* g) except -1
cdef int deposit(Leaf leaf, Gradient* g, bint over, uint64_t number) except -1
cdef int deposit_tensor(Leaf leaf, Tensor t, bint over, uint64_t number) except -1
