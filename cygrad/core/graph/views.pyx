"""Views in the graph. A tensor and its views share a Base, which stores the graph position (node and output number) of
the tensor. A recorded write through one of them puts a new node there. The others are then stale (their `rewrites` is
behind), and so is a view that was itself written. When a stale tensor is next used, it gets a new node: a strided view
of the base (renew). So each use contributes its own gradient. A tensor that shares memory but is not part of the graph
is detached: it comes from detach(), or it is a view made while not recording. The above does not apply to it.

A Window is such a part of the base. The operators as_view and put_view (ops/shapes/window.pyx) read and write it."""

cimport cython

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.extras cimport accumulators_of, add_accumulator
from cygrad.core.graph.tensor cimport Base, Leaf, Node, Tensor, current, gc_track, put_grad
from cygrad.core.thread_state cimport flags
from cygrad.core.graph.recording cimport append_to_tape, new_node, set_edge, take_edges, take_outputs
from cygrad.kernels.array cimport MAX_NDIM, Layout

from cygrad.core.errors import InplaceError


@cython.no_gc
cdef class Window(Attributes):
    """The attributes of as_view and put_view: a strided view of a dense tensor, whose strides and offset count the
    elements of that tensor in row-major order."""

    def __cinit__(self, tuple shape, tuple strides, Py_ssize_t offset):
        if len(shape) != len(strides) or len(shape) > MAX_NDIM:
            raise ValueError(f"a window must have a stride for each of at most {MAX_NDIM} dimensions, got the shape "
                             f"{shape} and the strides {strides}")
        self.shape, self.strides, self.offset, self.ndim = shape, strides, offset, <int>len(shape)
        for d in range(self.ndim): self.sizes[d], self.steps[d] = shape[d], strides[d]


cdef int join(Tensor x, Tensor y, bint recording) except -1:
    """Make `y`, a new view of `x`, share the Base of `x`, or detach it."""
    cdef Base base
    current(x)
    if x.detached or (x._tracked and not recording):
        y.detached = True
        return 0
    if x.base is None:
        base = Base.__new__(Base)
        base.layout = lay.incref(x.layout)
        base.node, base.output_nr = x._node, x._output_nr
        gc_track(x)
        x.base = base
    gc_track(y)
    y.base = x.base
    y.view = True


cdef inline bint same_window(const Layout* x, const Layout* y) noexcept:
    if x == y: return True
    if x.offset != y.offset or not lay.same_shape(x, y): return False
    for d in range(x.ndim):
        if x.strides[d] != y.strides[d]: return False
    return True


cdef inline bint covers(const Layout* x, const Layout* whole) noexcept:
    """Whether the window `x` consists of all elements of `whole`, in row-major order."""
    return same_window(x, whole) or (x.dense and whole.dense and x.offset == whole.offset and x.size == whole.size)


cdef int check_place(Tensor t) except -1:
    """Raise InplaceError unless the window of a view is defined: the base is dense, or the view covers all of it."""
    if t.base.layout.dense or covers(t.layout, t.base.layout): return 0
    raise InplaceError(
        f"this view of shape {t.shape} is part of a tensor of shape {lay.shape_tuple(t.base.layout)} that is a "
        f"strided array of external memory: a recorded write to either has no gradient for the other; write to a "
        f"copy()")


cdef bint is_place(Tensor x, const Layout* window, Tensor v, bint recording) noexcept:
    """Whether `v` is this window on the memory of `x` and, while recording, shares its Base."""
    if v.buffer != x.buffer or v.dtype != x.dtype or not same_window(v.layout, window): return False
    return not recording or (v.base is not None and v.base is x.base)


cdef Node window_node(str name, Tensor t, const Layout* y, int n_in):
    """A node of as_view or put_view for the view `t`, with one output of layout `y` and no edges yet."""
    cdef const Layout* window = t.layout
    cdef Layout* dense
    cdef Node node = new_node()
    node.op = <Operator>late_bound.operators[name]
    if covers(window, t.base.layout):
        dense = lay.dense_like(window)
        node.attributes = Window(lay.shape_tuple(dense), lay.strides_tuple(dense), 0)
        lay.decref(dense)
    else:
        node.attributes = Window(lay.shape_tuple(window), lay.strides_tuple(window),
                                 window.offset - t.base.layout.offset)
    node.dtype = t.dtype
    take_edges(node, n_in)
    take_outputs(node, 1)[0] = lay.incref(y)
    append_to_tape(node, flags())
    return node


cdef int renew(tensor) except -1:
    """Update the graph position of a stale tensor: that of the base, or a new node that is a view of it."""
    cdef Tensor t = <Tensor>tensor
    cdef Base base = t.base
    cdef Node node
    cdef int nr = 0
    if t.detached and t._node is not None and t._node.op is not None:
        raise InplaceError(
            f"this result of {t._node.name()}, of shape {t.shape}, shares memory with a tensor that was written in "
            f"place after it was recorded, so its gradient would not match its value; return a copy() of the input "
            f"from the Function, or write to a copy()")
    if not t.detached and base is not None and base.node is not None:
        if not t.view:
            node, nr = base.node, base.output_nr
        else:
            check_place(t)
            node = window_node("as_view", t, t.layout, 1)
            set_edge(node, 0, base.node, base.output_nr)
        if t._node is not None: move_kept(t, node, nr)
        t._node, t._output_nr, t._tracked = node, nr, True
    t.rewrites = t.buffer.rewrites
    return 0


cdef int move_kept(Tensor t, Node node, int nr) except -1:
    """Move the accumulator that retains the gradient of `t` to `node`, the next graph position of `t`."""
    cdef Leaf leaf
    if t._node is node: return 0
    if t._node.op is not None:
        for _, leaf in accumulators_of(t._node):
            if leaf.tensor == <void*>t: add_accumulator(node, nr, leaf)
    return leave(t)


cdef int leave(Tensor t) except -1:
    """Remove the accumulator of `t` from its old graph position."""
    cdef Leaf leaf
    cdef list kept
    if t._node.op is None:                          # no longer a variable ("null"): only old graphs refer to the leaf
        leaf = <Leaf>t._node
        if leaf.tensor != <void*>t: return 0
        leaf.tensor = NULL
        return put_grad(leaf, None)
    kept = accumulators_of(t._node)
    for i in range(len(kept)):
        if (<Leaf>kept[i][1]).tensor == <void*>t:
            kept.pop(i)
            break


cdef Node put_node(Tensor t):
    """The base's new node for a write to its view `t`; written() adds its edges. None if `t` is not a view."""
    if not t.view: return None
    check_place(t)
    return window_node("put_view", t, t.base.layout, 2)


cdef int written(Tensor t, Node node, int nr, Node put) except -1:
    """Update the graph after a recorded operation has written output `nr` of its `node` to `t`. `put` is the result of
    put_node(). A view stays stale until its next use, which makes it a view of the base again. The accumulator that
    retains the gradient of `t` has already been moved to `node`."""
    cdef Base base = t.base
    t.buffer.rewrites += 1
    if put is not None:
        if base.node is not None and not covers(t.layout, base.layout): set_edge(put, 0, base.node, base.output_nr)
        set_edge(put, 1, node, nr)
        base.node, base.output_nr = put, 0
        return 0
    if base is not None: base.node, base.output_nr = node, nr
    if t._node is not None: leave(t)
    gc_track(t)
    t._node, t._output_nr, t._tracked = node, nr, True
    t.rewrites = t.buffer.rewrites


def place(Tensor x):
    """The graph position of `x`: (node or leaf, output number)."""
    current(x)
    return x._node, x._output_nr


late_bound.renew_place = renew
