from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.graph.unreadable cimport Unreadable

cdef class Waiting:
    cdef readonly str name              # such as "Linear.weight"
    cdef readonly tuple shape           # with None for each size that is unknown
    cdef readonly list writes           # [(number, function)], in any order
    cdef readonly list places           # [(weak reference to a module, name of its attribute)]
    cdef list tensors                   # weak references to the tensors on it
    cdef list followers                 # weak references to the Waiting of zeros of the same shape
    cdef int category                   # category of such zeros
    cdef object __weakref__

cdef class WaitingTensor(Unreadable):
    pass

cdef Waiting waiting_of(Tensor x)
cdef Tensor zeros_of(Tensor x, int category)
cdef Tensor twin_of(Tensor x, int dtype, list writes)
cpdef Tensor new_waiting(str name, tuple shape, int dtype)
