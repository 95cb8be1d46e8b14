from cygrad.core.graph cimport Gradient, Node
from cygrad.core.memory cimport Buffer
from cygrad.core.turn cimport Turn

cdef bint any_nan(Turn b, const Gradient* g, int n) except -1
cdef int raise_nan(Node node) except -1
cdef int remember_line(Node node) except -1
cdef int remember_write(const Buffer* b) except -1
