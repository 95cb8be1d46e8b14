from libc.stdint cimport uint32_t

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.array cimport MAX_NDIM, Layout

cdef class Shape(Attributes):
    cdef readonly tuple shape
    cdef int ndim
    cdef int free                                   # one more than the dimension whose size follows from the rest, or 0
    cdef bint rows                                  # whether the first size is that of the operand
    cdef Py_ssize_t sizes[MAX_NDIM]

cdef void permuted(const Layout* x, const int* axes, Layout* y) noexcept nogil
cdef Tensor with_dimensions(Tensor x, uint32_t mask)
cdef Tensor without_dimensions(Tensor x, uint32_t mask)
