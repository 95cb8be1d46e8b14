from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.graph.tensor cimport Node

cdef bint any_nan(const Gradient* g, int n) except -1
cdef int raise_nan(Node node) except -1
