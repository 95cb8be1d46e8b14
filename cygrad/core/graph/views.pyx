"""Views and the graph. A tensor and the views of it share a Base, which knows where the tensor stands in the graph. A
recorded write through one of them puts a new node there. The others are stale then (their `rewrites` is behind), and so
is a view that was written itself: when one is used next, it takes a node of its own, a window on the base (renew). So
each has the gradient of its own uses. A tensor that shares memory but is out of the graph, by detach() or as a view
taken while not recording, is detached: it has no part in this.

A Window is such a part of the base; as_view and put_view of ops/window.pyx read and write one."""

cimport cython

from cygrad.core.late_bound cimport late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Operator
from cygrad.core.graph.extras cimport keep_for, kept_of
from cygrad.core.graph.tensor cimport Base, Leaf, Node, Tensor, current, put_grad, show
from cygrad.core.thread_state cimport flags
from cygrad.core.graph.recording cimport append_to_tape, new_node, set_edge, take_edges, take_outputs
from cygrad.kernels.array cimport MAX_NDIM, Layout

from cygrad.core.errors import InplaceError


@cython.no_gc
cdef class Window(Attributes):
    """The attributes of as_view and put_view: a strided view of a dense tensor, whose strides and offset count the
    elements of that tensor in row-major order."""

    def __init__(self, tuple shape, tuple strides, Py_ssize_t offset):
        cdef int d
        if len(shape) != len(strides) or len(shape) > MAX_NDIM:
            raise ValueError(f"a window has a stride for each of at most {MAX_NDIM} dimensions, got the shape {shape} "
                             f"and the strides {strides}")
        self.shape, self.strides, self.offset, self.ndim = shape, strides, offset, <int>len(shape)
        for d in range(self.ndim): self.sizes[d], self.steps[d] = shape[d], strides[d]


cdef int join(Tensor x, Tensor y, bint recording) except -1:
    """`y` is a new view of `x`: it belongs to the same family, or to none."""
    cdef Base base
    current(x)
    if x.detached or (x._tracked and not recording):
        y.detached = True
        return 0
    if x.base is None:
        base = Base.__new__(Base)
        base.layout = lay.incref(x.layout)
        base.node, base.output_nr = x._node, x._output_nr
        show(x)
        x.base = base
    show(y)
    y.base = x.base
    y.view = True
    return 0


cdef inline bint same_window(const Layout* x, const Layout* y) noexcept:
    cdef int d
    if x == y: return True
    if x.offset != y.offset or not lay.same_shape(x, y): return False
    for d in range(x.ndim):
        if x.strides[d] != y.strides[d]: return False
    return True


cdef inline bint covers(const Layout* x, const Layout* whole) noexcept:
    """Whether the window `x` has all elements of `whole`, in row-major order."""
    return same_window(x, whole) or (x.dense and whole.dense and x.offset == whole.offset and x.size == whole.size)


cdef int check_place(Tensor t) except -1:
    """That the place of a view in its base can be told: as elements of a dense base, or as all of it."""
    if t.base.layout.dense or covers(t.layout, t.base.layout): return 0
    raise InplaceError(
        f"this view of shape {t.shape} is part of a tensor of shape {lay.shape_tuple(t.base.layout)} that lies in "
        f"steps over memory of others: a recorded write to either has no gradient for the other; write to a copy()")


cdef bint is_place(Tensor x, const Layout* window, Tensor v, bint recording) noexcept:
    """Whether `v` is that window on the memory of `x` itself, in the graph too where that matters."""
    if v.buffer != x.buffer or v.dtype != x.dtype or not same_window(v.layout, window): return False
    return not recording or (v.base is not None and v.base is x.base)


cdef Node window_node(str name, Tensor t, const Layout* y, int n_in):
    """A node of as_view or put_view for the view `t`, with an output like `y` and no edges yet."""
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
    """`t` is stale: the base's place, or a window on it, is where `t` stands now."""
    cdef Tensor t = <Tensor>tensor
    cdef Base base = t.base
    cdef Node node
    cdef int nr = 0
    if t.detached and t._node is not None and t._node.op is not None:
        raise InplaceError(
            f"this result of {t._node.name()}, of shape {t.shape}, shares memory with a tensor that was written in "
            f"place after it was recorded, so its gradient is not that of its value; let a Function return a copy() of "
            f"its input, or write to a copy()")
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
    """An accumulator that keeps the gradient of `t` where it stood keeps it at `node`, where `t` will stand."""
    cdef Leaf leaf
    if t._node is node: return 0
    if t._node.op is not None:
        for _, leaf in kept_of(t._node):
            if leaf.tensor == <void*>t: keep_for(node, nr, leaf)
    return leave(t)


cdef int leave(Tensor t) except -1:
    """No accumulator serves `t` any longer where it stood."""
    cdef Leaf leaf
    cdef list kept
    cdef int i
    if t._node.op is None:                          # a variable no longer (grad_req "null"): only old graphs know it
        leaf = <Leaf>t._node
        if leaf.tensor != <void*>t: return 0
        leaf.tensor = NULL
        return put_grad(leaf, None)
    kept = kept_of(t._node)
    for i in range(len(kept)):
        if (<Leaf>kept[i][1]).tensor == <void*>t:
            kept.pop(i)
            break
    return 0


cdef Node put_node(Tensor t):
    """The node of the base once its view `t` will have been written: written() gives it its edges. None: `t` is no
    view."""
    if not t.view: return None
    check_place(t)
    return window_node("put_view", t, t.base.layout, 2)


cdef int written(Tensor t, Node node, int nr, Node put) except -1:
    """A recorded operation has written output `nr` of its `node` to `t`; `put` is its put_node(). A view stays
    stale: it stands at a window on the base when it is used next. An accumulator that keeps the gradient of `t` is
    at `node` already."""
    cdef Base base = t.base
    t.buffer.rewrites += 1
    if put is not None:
        if base.node is not None and not covers(t.layout, base.layout): set_edge(put, 0, base.node, base.output_nr)
        set_edge(put, 1, node, nr)
        base.node, base.output_nr = put, 0
        return 0
    if base is not None: base.node, base.output_nr = node, nr
    if t._node is not None: leave(t)
    show(t)
    t._node, t._output_nr, t._tracked = node, nr, True
    t.rewrites = t.buffer.rewrites
    return 0


def place(Tensor x):
    """Where `x` stands in the graph: (node or leaf, output number)."""
    current(x)
    return x._node, x._output_nr


late_bound.renew_place = renew
