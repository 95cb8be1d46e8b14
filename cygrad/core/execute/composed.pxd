cdef int rename(error, str name) except -1
