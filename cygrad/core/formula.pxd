from cygrad.core.graph cimport Backward, Node, Slot, Tensor

cdef class Context:
    """What a formula may ask: the attributes, what was kept, the shapes of the inputs."""
    cdef Backward b

    cdef Tensor tensor(self, Slot* s)

cdef Tensor place_of(Node node, int k)
cdef int by_formula(Node node, Backward b) except -1
