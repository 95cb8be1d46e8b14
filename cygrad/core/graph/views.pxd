from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.kernels.array cimport MAX_NDIM, Layout

cdef class Window(Attributes):
    cdef readonly tuple shape
    cdef readonly tuple strides
    cdef readonly Py_ssize_t offset
    cdef int ndim
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]

cdef int join(Tensor x, Tensor y, bint recording) except -1
cdef int check_place(Tensor t) except -1
cdef bint is_place(Tensor x, const Layout* window, Tensor v, bint recording) noexcept
cdef Node put_node(Tensor t)
cdef int written(Tensor t, Node node, int nr, Node put) except -1
