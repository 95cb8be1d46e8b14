cdef int default_dtype() noexcept
cdef int promote(int a, int b) except -1
