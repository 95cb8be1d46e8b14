from cygrad.core.graph.tensor cimport Node
from cygrad.core.thread_state cimport Flags

cdef class Tape:
    """What is recorded while it is the thread's tape."""
    cdef Node head
    cdef Tape parent        # the tape that it was opened inside, or None
    cdef void* before       # the ring of all tapes, uncounted
    cdef void* after
    cdef object __weakref__

cdef Tape root              # has the nodes that no open scope has
cdef void link(Node node, Flags* f) noexcept
cdef void expect_cycles() noexcept
