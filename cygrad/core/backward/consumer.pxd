"""What takes the gradient of a variable in place of its .grad: the base of fused updates (cygrad/optim/fusing.pyx)."""

from libc.stdint cimport uint64_t

from cygrad.core.graph.tensor cimport Leaf, Node
from cygrad.core.store.buffer cimport Buffer
from cygrad.kernels.array cimport Array

cdef int n_consumers

cdef enum Taking:
    TAKES_WHOLE             # take() alone, with the complete gradient
    TAKES_SUMS              # also multiples of contributions, added to memory of the consumer
    TAKES_PRODUCT           # also a multiple of the only contribution; begin() or the kernel writes to the variable
    TAKES_ROWS              # also the only contribution by ranges of rows; update_rows() writes to the variable

cdef class Consumer:
    """Takes the gradients of one variable, as a hook of the kind "consumed" (core/backward/hooks.pyx)."""
    cdef readonly str name          # of the variable, for messages
    cdef bint begun                 # begin() has been called, and take() not yet
    cdef double multiplier          # of begin()
    cdef uint64_t owner             # the pass that has locked it, or 0
    cdef unsigned long thread       # that of the pass

    cdef int lock(self, uint64_t number) noexcept
    cdef bint fits(self, Leaf leaf) except -1
    cdef str obstacle(self)
    cdef Taking takes(self) except? TAKES_ROWS
    cdef Buffer* target(self, Array* out) except? NULL
    cdef int begin(self, bint by_rows) except -1
    cdef int update_rows(self, const Array* rows, Py_ssize_t first) except -1
    cdef bint take(self, object gradient) except -1
    cdef int fail(self) except -1
    cdef int passed(self) except -1

cdef Consumer consumer_of(Node node)
cdef bint has_other_hooks(Node node)
