from cygrad.core.graph cimport Node, Tensor
from cygrad.kernels.array cimport Layout

cdef int join(Tensor x, Tensor y, bint recording) except -1
cdef int renew(Tensor t) except -1
cdef bint partial(Tensor t) noexcept
cdef bint is_place(Tensor x, const Layout* window, Tensor v, bint recording) noexcept
cdef Node put_node(Tensor t)
cdef void written(Tensor t, Node node, Node put) noexcept

cdef inline int current(Tensor t) except -1:
    """Let `t` know of every recorded write to its memory."""
    return 0 if t.rewrites == t.buffer.rewrites else renew(t)
