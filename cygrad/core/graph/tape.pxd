from cygrad.core.graph.tensor cimport Node
from cygrad.core.thread_state cimport Flags

cdef class Tape:
    """The nodes that are recorded while this is the thread's tape."""
    cdef Node head
    cdef Tape parent        # the enclosing tape, or None
    cdef void* before       # the ring of all tapes, borrowed
    cdef void* after
    cdef object __weakref__

cdef Tape root              # holds the nodes of no open scope
cdef void link(Node node, Flags* f) noexcept
cdef void expect_cycles() noexcept
