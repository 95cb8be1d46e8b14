cdef void* packed           # the node whose signs get memory now, for the observer; NULL: none
