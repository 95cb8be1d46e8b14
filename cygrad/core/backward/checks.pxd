from cygrad.core.graph.tensor cimport Node

cdef int check_node(Node node, int mode) except -1
