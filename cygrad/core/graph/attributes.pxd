cdef class Attributes:
    pass
