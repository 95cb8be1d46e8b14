from libc.stdint cimport uint64_t

from cygrad.core.graph.tensor cimport Leaf, Node, Tensor

cdef class Around:
    """What was around when a program was traced."""
    cdef dict tensors           # address of a tensor that recorded operations read -> (weak reference, role_of() it)
    cdef list reached           # (weak reference to a variable that a pass reaches, its consumer or None)
    cdef list rows              # (Leaf that gets rows, whether its .grad was a tensor)
    cdef list nodes             # the nodes recorded before, through which a pass goes
    cdef list solvers           # (solver, weak references to its parameters)
    cdef uint64_t first         # nodes with smaller numbers were recorded before the trace
    cdef uint64_t changes       # the count of changes at the last comparison that found no difference
    cdef uint64_t dtype_reads   # at the begin of the trace
    cdef int modes              # the number of open scopes that set the mode, in the function
    cdef int training           # the mode of the thread, if the function depends on it, else -1
    cdef int dtype              # the default dtype, if the function depends on it, else -1
    cdef bint gradients         # a backward pass wrote to the .grad of a variable

    cdef int read(self, Tensor x) except -1
    cdef int reach(self, Leaf leaf) except -1
    cdef bint is_older(self, Node node) noexcept
    cdef int finish(self) except -1
    cdef str difference(self, bint resumes)
    cdef str changed_role(self)
    cdef str older_graph(self)
    cdef str other_gradient(self)


cdef void changed() noexcept
cdef bint is_hooked(Node node) noexcept
