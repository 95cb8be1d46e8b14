from cygrad.core.graph cimport Backward, Gradient, Node, Slot, Tensor

cdef class Context:
    """What a formula may ask: the attributes, what was kept, the shapes of the inputs."""
    cdef Backward b

    cdef Tensor tensor(self, Slot* s)

cdef int zeros_for(Node node, int k, bint graph, list captures, Gradient* g) except -1
cdef int by_formula(Node node, Backward b) except -1
