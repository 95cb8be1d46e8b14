from cygrad.core.graph cimport Node

cdef class Tape:
    """What is recorded while it is the thread's tape."""
    cdef Node head
    cdef Tape parent
    cdef object children    # a WeakSet of the tapes opened inside, or None
    cdef object __weakref__
