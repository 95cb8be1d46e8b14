from cygrad.core.execute.recipes cimport RecipeScope
from cygrad.core.graph.packed cimport Packing

cdef class Budget:
    """A bound on the live bytes, while it is open."""
    cdef readonly size_t nbytes
    cdef readonly size_t floor  # the most bytes so far that could not have been evicted
    cdef RecipeScope region
    cdef Packing before         # the thread's packing before, or None
    cdef unsigned long thread   # that opened it
    cdef size_t first           # recipes that had been executed then, and their work
    cdef double first_work, first_backward

    cdef int open(self) except -1
    cdef int close(self) except -1
    cdef int abandon(self) except -1
    cdef int leave(self) except -1
