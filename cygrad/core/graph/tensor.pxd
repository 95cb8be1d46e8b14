"""The graph: Tensor, Node and Leaf.

A Tensor is a view of a Buffer: it has a Layout (shape, strides, offset) and the Node that made it. A Node is a recorded
operation: the operator, its attributes, an edge for each input and a slot for each value that backward needs. A slot
(slots.pxd) holds a buffer and never a tensor, so recording alone makes no reference cycle. Users can make cycles, with
hooks for instance; cycles.pyx shows those to the garbage collector."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.operator cimport Operator
from cygrad.core.store.layout cimport decref
from cygrad.core.store.buffer cimport EXTERNAL, VIRTUAL, WATCHED, ZEROS, Buffer, drop, make, make_real
from cygrad.core.graph.slots cimport Slot, find_slot
from cygrad.kernels.array cimport Array, Layout, itemsize

cdef extern from "Python.h":
    void PyObject_GC_Track(PyObject*)
    void PyObject_GC_UnTrack(PyObject*)

cdef enum State:
    RECORDED, RUNNING, FREED

cdef struct Edge:
    void* node              # a reference to a Node, or NULL if no gradient is wanted
    uint16_t output_nr

cdef class Extras:
    """Rare per-node state, in a side table (extras.pxd)."""
    cdef list kept          # (output number, Leaf) for each output whose gradient is retained
    cdef dict hooks         # kind (core/backward/hooks.pyx) -> {key: hook}
    cdef object line        # (file, line) that recorded the node, while detect_anomaly is on

cdef dict all_extras        # address of a node -> its Extras
cdef dict all_lifts         # address of a tensor -> the list of its Lifts (lifts.pxd)


cdef class Node:            # 144 bytes; a graph of a million operations has a million nodes
    cdef Operator op        # None for a leaf and for the head of a tape
    cdef uint16_t n_in
    cdef uint16_t n_out
    cdef uint16_t nr[2]     # output numbers of the two inline edges
    cdef uint32_t mark      # the index of this node in the entries of the running pass
    cdef uint8_t state
    cdef uint8_t flags
    cdef uint8_t dtype      # dtype of output 0
    cdef uint8_t n_slots
    cdef uint64_t seq       # order of recording
    cdef Layout* layout     # layout of output 0; with several outputs: an array of Layout*
    cdef object attributes
    cdef void* edge[2]      # two inputs inline; with more, edge[0] is an array of Edge
    cdef Slot slot[2]       # two slots inline; with more, slot[0].layout is an array of Slot
    cdef void* before       # neighbours in the ring of a tape, borrowed
    cdef void* after


cdef class Leaf(Node):
    """The accumulator of a variable, which receives its gradients."""
    cdef void* tensor       # the variable, borrowed; NULL once that is freed
    cdef Tensor grad
    cdef object rows        # a GradientSlice, which is .grad instead of `grad`, or None
    cdef uint8_t req        # a GradReq
    cdef uint64_t busy      # the pass that has written some, but not all, of its contributions; 0: none
    cdef uint64_t writer    # the pass whose kernel is writing .grad, perhaps without the GIL; 0: none
    cdef unsigned long thread       # the thread of that pass
    cdef uint64_t collected  # the last GradientCollector that collected it
    cdef bint sparse        # attach_grad(stype="row_sparse"): .grad becomes a GradientSlice where it can
    cdef bint given         # .grad belongs to the caller (mark_variables) and is never replaced
    cdef bint fresh         # a backward has reached it since its gradient was last used or zeroed
    cdef bint incomplete    # a failed pass wrote some, but not all, of its contributions


cdef enum GradReq:
    NULL_REQ, WRITE, ADD

cdef enum NodeFlag:
    TRAINING = 1            # recorded in train mode
    PACKS = 2               # has slots that are PACKED
    EXTRAS = 4              # has Extras
    REACHED = 8             # a pass that a net runs part by part has begun, and will run it


cdef class Base:
    """Shared by a tensor and its views: the tensor's graph position and its layout."""
    cdef Node node          # None: no recorded write
    cdef uint16_t output_nr
    cdef Layout* layout


cdef class Tensor:
    """Fields with an underscore can be out of date: a recorded write to the buffer raises its `rewrites`. Read them
    through node_of(), is_tracked() and similar functions, or after current(), which update them."""
    cdef Buffer* buffer
    cdef Layout* layout
    cdef Node _node         # the node that made it, or its Leaf
    cdef Base base          # None if it has no views
    cdef uint16_t _output_nr
    cdef uint8_t dtype
    cdef uint8_t _tracked   # operations on it are recorded while recording
    cdef uint8_t detached   # shares memory with a tensor, but is not part of its graph
    cdef uint8_t view       # it is a view of the tensor that `base` describes
    cdef uint8_t lifted     # it has Lifts, in a side table (lifts.pxd)
    cdef uint32_t rewrites  # the buffer's count when these fields were last updated (views.pyx)
    cdef object __weakref__


cdef bint collected                     # whether nodes are registered with the garbage collector (expect_cycles)
cdef Py_ssize_t external_gradients      # variables whose .grad uses memory of another library
cdef Tensor ensure_tensor(x)
cdef void release_accumulator(Tensor t) noexcept
cdef void free_slots(Node n) noexcept
cdef bint lock_grad(Leaf leaf, uint64_t number) noexcept
cdef int put_grad(Leaf leaf, Tensor grad) except -1
cdef uint64_t next_number() noexcept


cdef inline int ready(Tensor t) except -1:
    """Allocate the memory of `t` if it has none yet: a gradient of zeros gets memory when it is first read or written.
    Raises MemoryError, and RuntimeError for a virtual tensor that this thread does not trace."""
    return make(t.buffer) if t.buffer.flags & (ZEROS | VIRTUAL) else 0

cdef inline char* data_of(Tensor t) except? NULL:          # (NULL is valid for an empty tensor of external memory)
    """The address of the first element of `t`. All access to elements goes through this function, array_of() or
    ready(). Raises MemoryError, and RuntimeError for a virtual tensor."""
    if t.buffer.flags & (ZEROS | VIRTUAL): make_real(t.buffer)
    return t.buffer.data + t.layout.offset * itemsize(t.dtype)

cdef inline Tensor shell():
    """A tensor without a buffer, to be filled by fill()."""
    return Tensor.__new__(Tensor)

cdef inline void fill(Tensor t, Buffer* buffer, Layout* layout, int dtype) noexcept:
    """Fill a shell. It takes over one holder of `buffer` and one reference to `layout`."""
    t.buffer = buffer
    t.layout = layout
    t.dtype = dtype
    t.rewrites = buffer.rewrites

cdef inline int current(Tensor t) except -1:
    """Update the graph position of `t` after recorded writes to its memory. Raises InplaceError if it has none."""
    return 0 if t.rewrites == t.buffer.rewrites else late_bound.renew_place(t)

cdef inline bint is_tracked(Tensor t) except -1:
    """Whether operations on `t` are recorded while recording."""
    if t.rewrites != t.buffer.rewrites: late_bound.renew_place(t)
    return t._tracked

cdef inline Node node_of(Tensor t):
    """The node that made `t`, the Leaf of a variable, or None."""
    if t.rewrites != t.buffer.rewrites: late_bound.renew_place(t)
    return t._node

cdef inline bint is_variable(Tensor t) except -1:
    """Whether `t` is a variable: a leaf whose gradient is wanted."""
    if t.rewrites != t.buffer.rewrites: late_bound.renew_place(t)
    return t._tracked and t._node.op is None

cdef inline bint is_result(Tensor t) except -1:
    """Whether a recorded operation made `t`."""
    if t.rewrites != t.buffer.rewrites: late_bound.renew_place(t)
    return t._node is not None and t._node.op is not None

cdef inline void empty_tensor(Tensor t) noexcept:
    """Release the memory of a tensor and the gradient of a variable."""
    if t._node is not None and (t._node.op is None or t._node.flags & EXTRAS): release_accumulator(t)
    if t.lifted: all_lifts.pop(<size_t><void*>t)
    drop(t.buffer)
    decref(t.layout)

cdef inline Array array_of(Tensor t) except *:
    cdef Array a
    a.data, a.layout, a.dtype = data_of(t), t.layout, t.dtype
    return a

cdef inline void gc_track(Tensor t) noexcept:
    """Register `t` with the garbage collector before it gets its first node or base."""
    if t._node is None and t.base is None: PyObject_GC_Track(<PyObject*>t)

cdef inline void attach(Tensor y, Node node, int output_nr) noexcept:
    gc_track(y)
    y._node = node
    y._output_nr = output_nr
    y._tracked = True

cdef inline bint sole(Buffer* b, const Layout* l, const Layout* wanted, int dtype) noexcept:
    """Whether `b` has no holder but the caller, not even a weak one, and can be overwritten by a dense result of the
    shape `wanted`."""
    return (b.holders == 1 and not b.flags & (EXTERNAL | WATCHED) and l.dense and l.offset == 0
            and b.nbytes == <size_t>(wanted.size * itemsize(dtype)))

cdef inline const Layout* output_layout(Node n, int k) noexcept:
    return (<Layout**>n.layout)[k] if n.n_out > 1 else n.layout

cdef inline Edge edge_of(Node n, int i) noexcept:
    cdef Edge e
    if n.n_in > 2: return (<Edge*>n.edge[0])[i]
    e.node = n.edge[i]
    e.output_nr = n.nr[i]
    return e

cdef inline Slot* slots_of(Node n) noexcept:
    return <Slot*>n.slot[0].layout if n.n_slots > 2 else &n.slot[0]

cdef inline Slot* slot_from(Node n, int source) noexcept:
    """The slot that saves input i (source i) or output k (source OWN | k), or NULL."""
    return find_slot(slots_of(n), n.n_slots, source)
