from libc.stdint cimport uint8_t, uint64_t

from cygrad.core.graph.tensor cimport Edge, Leaf, Node
from cygrad.core.graph.trace cimport Trace
from cygrad.core.backward.consumer cimport Consumer
from cygrad.core.backward.deposit cimport Collected
from cygrad.core.backward.gradients cimport NO_GRADIENT, Gradient
from cygrad.core.backward.heap cimport Item
from cygrad.core.store.buffer cimport Buffer
from cygrad.core.store.arena cimport Span

cdef enum:
    SMALL = 8                   # a pass of up to this many nodes allocates no table

cdef struct Entry:              # one node in the running pass
    void* node                  # borrowed: the roots keep the graph alive
    Gradient gradient           # for one output: the sum of its contributions so far
    Gradient* several           # for several outputs: an array of such sums; NULL: no contribution so far
    Py_ssize_t n_waiting        # elements of the output that parts with a complete gradient cover (runs_early);
                                #   in the walk the entry below it on the stack, or -1
    int pending                 # contributions that have not arrived
    uint8_t needed              # a path leads from it to a wanted input, or no inputs were named
    uint8_t runs                # the gradient of one of its inputs is needed: its turn computes something
    uint8_t captured            # its gradient is a result
    uint8_t zero                # contributions were zeros for which no array was made (Operator.zero_derivative)
    uint8_t reached             # a leaf: this pass has written to .grad
    uint8_t replaced            # a leaf: its first contribution has overwritten .grad
    uint8_t early               # a leaf, or a node with a kept gradient: it runs next once its gradient is complete
    uint8_t stored              # the kept gradient is stored
    uint8_t turned              # its turn has ended
    uint8_t in_part             # a leaf: a kernel failed that may have written to .grad
    uint8_t state               # the state of the node before the pass


cdef struct Target:         # existing memory to which a kernel may write the gradient of an input
    void* leaf              # a borrowed Leaf whose .grad it may write, or NULL
    Gradient* sum           # the sum of the contributions to the input's gradient, marked as `lent` until the turn ends
                            #   (of a leaf only the mark is used); NULL: the kernel writes to new memory
    void* lent              # the .grad that borrow_grad() lent, with a reference until wrote() or return_grad()
    bint first              # the kernel overwrites that .grad
    bint locked             # lock_grad() has locked the leaf
    bint consumed           # the leaf's consumer takes the contribution (consumer.pxd),
    Buffer* memory          # in this memory


cdef inline Gradient* gradients_of(Entry* e) noexcept:
    """The gradients of a node's outputs; NULL: the node has several outputs, and no contribution has arrived."""
    return e.several if (<Node>e.node).n_out > 1 else &e.gradient

cdef inline bint has_come(const Entry* e) noexcept:
    """Whether a contribution to the gradient of any output has arrived."""
    return e.gradient.kind != NO_GRADIENT or e.several != NULL


cdef class Walk:
    """The walk of a backward pass: the table of nodes, the heap of ready nodes, the caller's arguments. The fields of
    the second part (core/backward/engine.pyx) are here too, because a subclass that adds fields cannot use the free
    list."""
    cdef Entry* entries         # `inline_` in a small pass
    cdef Span* table            # the memory of the entries and of `ready`; NULL: they are inline
    cdef Entry inline_[SMALL]
    cdef Py_ssize_t n, capacity
    cdef Py_ssize_t known       # the first entries are variables that an earlier part has checked (listed.pyx); else 0
    cdef Item* ready            # a heap of the entries that are ready, the node recorded last on top
    cdef Item inline_ready[SMALL + 1]
    cdef Py_ssize_t n_ready
    cdef bint retain            # retain_graph
    cdef bint graph             # create_graph: gradients are tensors with a graph
    cdef bint selective         # inputs were named
    cdef bint capturing         # their gradients are results
    cdef bint parts             # a net runs it part by part: the walk ends at the wanted inputs (listed.pyx)
    cdef bint apart             # each contribution to the gradient of a wanted input is a result of its own
    cdef bint alone             # no other pass on the same variables runs beside this one
    cdef void* trace            # the thread's trace, or NULL. Its passes write to Twins of variables (trace.pxd)
    cdef bint watched           # detect_anomaly is on
    cdef int mode               # the train mode that the caller named, or -1
    cdef dict shared_leaves     # leaf address -> entry, if another pass may enter the same leaves, else None
    cdef list captures          # (node, output number, position) of the wanted results
    cdef set wanted             # the addresses of their nodes
    cdef str strict             # the caller's name, if every wanted input must be reachable, or None
    cdef list results
    cdef Collected collected    # what the thread's open GradientCollector has collected, or None
    cdef uint64_t number
    cdef int written            # the number of variables whose .grad has been written
    cdef int incomplete         # the number of those that lack contributions, because the pass failed
    cdef Node current           # the running node
    cdef bint consumes          # some variables have a consumer (consumer.pxd),
    cdef list consumed          # and these took contributions, or None
    cdef list late              # (leaf, consumer, gradient or None) of those that wait for the end of the pass, or None

    cdef int grow(self) except -1
    cdef void drop_entry(self, Entry* e) noexcept
    cdef Py_ssize_t find(self, Node node) noexcept
    cdef Py_ssize_t enter(self, Node node) except -1
    cdef int walk(self, list roots) except -1
    cdef int check_leaf(self, Leaf leaf, const Entry* e) except -1
    cdef bint writes_kept(self, Node node, int k) except -1
    cdef int contributions_left(self, Node node) noexcept
    cdef int note_consumed(self, Consumer consumer) except -1
    cdef int aim(self, Node node, int i, Target* t) except -1
    cdef bint overwrites(self, Leaf leaf, const Entry* e) noexcept
    cdef bint half_way(self, Leaf leaf) noexcept
    cdef Leaf direct(self, Node node, Entry* e)
    cdef Gradient* sum_of(self, Edge edge, Entry* e) noexcept


cdef inline Leaf seen_by(Walk w, Leaf leaf):
    """The accumulator that has the state of a variable in this pass."""
    return leaf if w.trace == NULL else (<Trace>w.trace).seen(leaf)


cdef inline bint is_own(Walk w, Leaf leaf):
    """Whether no other thread sees the accumulator of a variable that this pass sees."""
    return w.trace == NULL or (<Trace>w.trace).is_own(leaf)
