from cygrad.core.graph cimport Backward, Gradient, Node
from cygrad.core.memory cimport Buffer

cdef bint any_nan(Backward b, const Gradient* g, int n) except -1
cdef int raise_nan(Node node) except -1
cdef int remember_line(Node node) except -1
cdef int remember_write(const Buffer* b) except -1
