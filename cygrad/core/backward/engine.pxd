from cygrad.core.graph.tensor cimport Leaf, Node
from cygrad.core.graph.trace cimport Trace
from cygrad.core.backward.consumer cimport Consumer
from cygrad.core.backward.gradients cimport Gradient
from cygrad.core.backward.turn cimport Turn
from cygrad.core.backward.walk cimport Entry, Walk


cdef class BackwardPass(Walk):
    """A backward pass. Its fields are declared in walk.pxd."""
    cdef int contribute(self, Node node, int output_nr, Gradient* g) except -1
    cdef void count_down(self, Entry* e) noexcept
    cdef bint runs_early(self, Node node) noexcept
    cdef int to_leaf(self, Leaf leaf, Entry* e, Gradient* g) except -1
    cdef void clear_busy(self, Leaf leaf) noexcept
    cdef int arrived(self, Leaf leaf, Entry* e, bint overwrite) noexcept
    cdef void arrived_directly(self, Turn b) noexcept
    cdef void mark_incomplete(self) noexcept
    cdef int keep_at(self, Leaf leaf, Entry* e, Gradient* g) except -1
    cdef int leaf_turn(self, Entry* e) except -1
    cdef bint consume(self, Leaf leaf, Entry* e) except -1
    cdef int check_consumers(self) except -1
    cdef bint give(self, Consumer consumer, gradient) except -1
    cdef int end_consumers(self, bint done) except -1
    cdef int store_kept(self, Node node, Gradient* g) except -1
    cdef int capture(self, Entry* e) except -1
    cdef int keep_apart(self, Node node, int output_nr, Gradient* g) except -1
    cdef int turn(self, Turn b, Py_ssize_t at) except -1
    cdef int open(self, Turn b, Node node) except -1
    cdef bint wants(self, Turn b, Node node) except -1
    cdef int compute(self, Turn b, Node node) except -1
    cdef void free(self, Node node) noexcept
    cdef int contribute_all(self, Turn b, Node node, bint zero) except -1
    cdef void close(self, Turn b, Node node) noexcept
    cdef int trace_leaves(self) except -1
    cdef int trace_nodes(self, Trace t) except -1
    cdef int go(self, list roots, list numbers, list gradients) except -1
    cdef int begin_part(self) except -1
    cdef int open_pass(self) except -1
    cdef void end_pass(self) noexcept
    cdef int note_failure(self, object error) except -1

cdef list run_pass(list roots, list numbers, list gradients, bint retain, bint graph, list captures, str strict,
                   int mode)
