from cygrad.core.thread_state cimport Flags

cdef str doing(const Flags* f)
cdef bint ours(str filename)
cdef int warn_here(str text, category) except -1
cpdef tuple where()
