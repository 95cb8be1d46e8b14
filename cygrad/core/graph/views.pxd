from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.kernels.array cimport Layout

cdef int join(Tensor x, Tensor y, bint recording) except -1
cdef int check_place(Tensor t) except -1
cdef bint is_place(Tensor x, const Layout* window, Tensor v, bint recording) noexcept
cdef Node put_node(Tensor t)
cdef int written(Tensor t, Node node, int nr, Node put) except -1
