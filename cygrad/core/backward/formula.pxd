from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.graph.slots cimport Slot
from cygrad.core.graph.tensor cimport Node, Tensor
from cygrad.core.backward.turn cimport Turn

cdef class Context:
    """The context of a formula: the attributes, the saved values, the shapes of the inputs."""
    cdef Turn b

    cdef Tensor tensor(self, Slot* s)

cdef int zeros_for(Node node, int k, bint graph, list captures, Gradient* g) except -1
cdef int by_formula(Node node, Turn b) except -1
