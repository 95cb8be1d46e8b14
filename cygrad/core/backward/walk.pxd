from libc.stdint cimport uint8_t, uint64_t

from cygrad.core.graph.tensor cimport Gradient, Leaf, Node
from cygrad.core.backward.gradients cimport Collected
from cygrad.core.backward.heap cimport Item

cdef enum:
    SMALL = 8                   # nodes of a pass that needs no memory of its own for them

cdef struct Entry:              # one node in the running pass
    void* node                  # borrowed: the roots keep the graph alive
    Gradient g                  # what has come so far; several outputs: g.buffer is an array of Gradient;
                                #   under create_graph g.buffer is a counted Tensor (or an array of them)
    int pending                 # contributions still to come
    bint needed                 # it leads to a wanted input (or no inputs were named)
    bint runs                   # ... by way of an input: its turn computes something
    bint captured               # its gradient is a result
    bint zero                   # zeros have come, of which no array is made (from a derivative in steps)
    bint reached                # a leaf: something has been written to .grad by this pass
    bint early                  # a leaf, or a node that keeps a gradient: its turn comes as soon as that is complete
    bint stored                 # ... and that has happened
    bint turned                 # its turn is over
    bint in_part                # a leaf: a kernel failed that might have been writing to .grad
    uint8_t state               # of a node that does not run: what its state was


cdef class Walk:
    """A backward pass as far as its walk: the table of entries, those that are ready, what was asked for; and what
    the turns add (core/backward/engine.pyx), since a class that adds fields has no list of free objects."""
    cdef Entry* entries         # of a small pass: `few`
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
    cdef Node current           # whose turn it is

    cdef void drop_entry(self, Entry* e) noexcept
    cdef void forget_one(self, Gradient* g) noexcept
    cdef Py_ssize_t find(self, Node node) noexcept
    cdef Py_ssize_t enter(self, Node node) except -1
    cdef int walk(self, list roots) except -1
    cdef int check_leaf(self, Leaf leaf, const Entry* e) except -1
    cdef bint writes_kept(self, Node node, int k) except -1
