from cygrad.core.graph cimport Backward, Node

cdef int by_formula(Node node, Backward b) except -1
