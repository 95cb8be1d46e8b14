from libc.stdint cimport uint8_t, uint64_t

from cygrad.core.graph.tensor cimport Edge, Leaf, Node
from cygrad.core.backward.deposit cimport Collected
from cygrad.core.backward.gradients cimport NO_GRADIENT, Gradient
from cygrad.core.backward.heap cimport Item

cdef enum:
    SMALL = 8                   # nodes of a pass whose table needs no allocation

cdef struct Entry:              # one node in the running pass
    void* node                  # borrowed: the roots keep the graph alive
    Gradient gradient           # of a node with one output: the sum of what has come
    Gradient* several           # of a node with several outputs: an array of such sums; NULL: nothing has come
    Py_ssize_t n_waiting        # elements of output 0 that complete parts of it cover (Pass.runs_early)
    int pending                 # contributions still to come
    uint8_t needed              # it leads to a wanted input (or no inputs were named)
    uint8_t runs                # ... by way of an input: its turn computes something
    uint8_t captured            # its gradient is a result
    uint8_t zero                # zeros have come, of which no array is made (from a derivative in steps)
    uint8_t reached             # a leaf: something has been written to .grad by this pass
    uint8_t early               # a leaf, or a node that keeps a gradient: its turn comes as soon as that is complete
    uint8_t stored              # ... and that has happened
    uint8_t turned              # its turn is over
    uint8_t in_part             # a leaf: a kernel that might have been writing to .grad has failed
    uint8_t state               # of a node that does not run: what its state was


cdef struct Target:         # where a kernel may leave the gradient of an input, other than in new memory
    void* leaf              # a borrowed Leaf whose .grad it may write, or NULL
    Gradient* sum           # the sum of what has come for the input (a leaf's: a mark alone); its `lent` is set until
                            #   the turn ends. NULL: new memory only
    void* lent              # the .grad that borrow_grad() has given out, counted until wrote() or return_grad()
    bint first              # that .grad is to be overwritten
    bint locked             # lock_grad() has locked the leaf


cdef inline Gradient* gradients_of(Entry* e) noexcept:
    """The gradients of a node's outputs; NULL: the node has several, and nothing has come."""
    return e.several if (<Node>e.node).n_out > 1 else &e.gradient

cdef inline bint has_come(const Entry* e) noexcept:
    """Whether a gradient has come for one of the outputs."""
    return e.gradient.kind != NO_GRADIENT or e.several != NULL


cdef class Walk:
    """The first part of a backward pass, its walk: the table of entries, those that are ready, the caller's arguments.
    The fields of the second part (core/backward/engine.pyx) are here too, since a class that adds fields has no list of
    free objects."""
    cdef Entry* entries         # of a small pass: `inline_`
    cdef Entry inline_[SMALL]
    cdef Py_ssize_t n, capacity
    cdef Item* ready            # entries that are complete: a heap, the latest recorded node on top
    cdef Item inline_ready[SMALL + 1]
    cdef Py_ssize_t n_ready
    cdef bint retain            # the graph stays
    cdef bint graph             # gradients are tensors with a graph
    cdef bint selective         # inputs were named
    cdef bint capturing         # ... and their gradients are results
    cdef bint alone             # no other pass runs beside this one
    cdef bint watched           # detect_anomaly is on
    cdef int mode               # the train mode that the caller named; -1: none
    cdef dict shared_leaves     # leaf address -> entry, when another pass runs beside this one
    cdef list captures          # (node, output number, position) of the wanted results
    cdef set wanted             # the addresses of their nodes
    cdef str strict             # the caller's name, if every wanted input must be reachable
    cdef list results
    cdef Collected collected    # the thread's open GradientCollector's, or None
    cdef uint64_t number
    cdef int written            # variables whose .grad has been written
    cdef int incomplete         # ... but only with some of their contributions, since the pass failed
    cdef Node current           # the node whose turn it is

    cdef void drop_entry(self, Entry* e) noexcept
    cdef Py_ssize_t find(self, Node node) noexcept
    cdef Py_ssize_t enter(self, Node node) except -1
    cdef int walk(self, list roots) except -1
    cdef int check_leaf(self, Leaf leaf, const Entry* e) except -1
    cdef bint writes_kept(self, Node node, int k) except -1
    cdef int aim(self, Node node, int i, Target* t) except -1
    cdef bint overwrites(self, Leaf leaf, const Entry* e) noexcept
    cdef bint half_way(self, Leaf leaf) noexcept
    cdef Leaf direct(self, Node node, Entry* e)
    cdef Gradient* sum_of(self, Edge edge, Entry* e) noexcept
