from cygrad.core.graph.attributes cimport Attributes

cdef enum:
    NONE, MEAN, SUM         # Reduced.kind

cdef class Reduced(Attributes):
    cdef readonly str reduction
    cdef int kind           # the same, for kernels

cdef Reduced read_reduction(str name, reduction)
