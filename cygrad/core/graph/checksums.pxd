from cygrad.core.graph.tensor cimport Node

cdef bint checking

cdef int remember(Node node) except -1
cdef int compare(Node node) except -1
