from cygrad.core.graph.tensor cimport Gradient, Node
from cygrad.core.backward.turn cimport Turn

cdef bint any_nan(Turn b, const Gradient* g, int n) except -1
cdef int raise_nan(Node node) except -1
