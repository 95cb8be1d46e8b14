from cygrad.core.graph.tensor cimport Leaf, Tensor

cdef class Twin:
    cdef Leaf leaf          # the variable's accumulator, which other threads read and change
    cdef Leaf state         # the trace's own: its .grad, `fresh` and so on are those of the program. None: of a role
    cdef Tensor tensor      # the variable, which `state` refers to
    cdef object grad        # a weak reference to the stand-in for the old .grad, or None
    cdef object rows        # the old GradientSlice, or None
    cdef list aside         # (weak reference to a stand-in, tensor on the memory, whether that counted) of the gradient
    cdef bint made          # of a role: there was no accumulator before

    cdef int clear(self) except -1
    cdef int restore(self) except -1
    cdef int restore_role(self) except -1

cdef dict made_by_traces    # address of an accumulator that the open trace has made -> the Twin of its role

cdef int keep_role(Leaf leaf) except -1
cdef int track(Tensor x, bint wanted) except -1
