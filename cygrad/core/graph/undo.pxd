from libc.stdint cimport uint32_t, uint64_t

from cygrad.core.graph.tensor cimport Leaf, Tensor
from cygrad.core.store.buffer cimport Buffer

cdef class Undo:
    cdef int restore(self) except -1

cdef class VersionUndo(Undo):
    cdef Tensor tensor
    cdef uint32_t version

cdef class LeafUndo(Undo):
    cdef Leaf leaf
    cdef Tensor grad
    cdef object rows
    cdef Buffer* memory     # that of `grad`, NULL if it is still there
    cdef bint fresh, incomplete, given
    cdef bint released      # the stand-in has gone
    cdef bint uncounted     # the memory of `rows` does not count
    cdef uint64_t collected

    cdef bint take_back(self) except -1
    cdef int release_if_unused(self) except -1
    cdef int count_rows(self, bint again) except -1
    cdef int drop_new(self) except -1
