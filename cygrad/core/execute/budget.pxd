from cygrad.core.execute.following cimport Follower
from cygrad.core.execute.recipes cimport RecipeScope
from cygrad.core.execute.spills cimport Spiller
from cygrad.core.graph.packed cimport Packing

cdef class Budget:
    """A bound on the live bytes, while it is open."""
    cdef readonly size_t nbytes
    cdef readonly size_t floor  # the most bytes so far that could not have been evicted
    cdef RecipeScope region
    cdef Follower follower      # of the steps in its scopes, unless they are inside another one; None with a spiller
    cdef readonly Spiller spiller       # or None
    cdef Packing before         # the thread's packing before, or None
    cdef unsigned long thread   # that opened it
    cdef double began           # backward_work then,
    cdef double ran             # and that of the passes in the scope, once it is closed; 0: there were none

    cdef int open(self) except -1
    cdef int close(self) except -1
    cdef int abandon(self) except -1
    cdef int leave(self) except -1
