from cygrad.core.graph.tensor cimport Leaf, Tensor

cdef class Undo:
    cdef int restore(self) except -1

cdef class Twin(Undo):
    cdef Leaf leaf          # the variable's accumulator, which other threads read and change
    cdef Leaf state         # the trace's own: its .grad, `fresh` and so on are those of the program
    cdef Tensor tensor      # the variable, which `state` refers to
    cdef object grad        # a weak reference to the stand-in for the old .grad, or None
    cdef object rows        # the old GradientSlice, or None
    cdef list aside         # (weak reference to a stand-in, tensor on the memory, whether that counted) of the gradient

    cdef int clear(self) except -1
