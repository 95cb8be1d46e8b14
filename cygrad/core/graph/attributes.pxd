cdef class Attributes:
    cdef dict keywords(self)
