cimport cython

from cygrad.core.graph.attributes cimport Attributes
from cygrad.kernels.array cimport Layout

@cython.no_gc
cdef class Half(Attributes):
    cdef readonly bint upper

@cython.no_gc
cdef class Whole(Attributes):
    cdef readonly bint full

cdef int refuse_derivative(const Layout* x, str message) except -1 with gil
