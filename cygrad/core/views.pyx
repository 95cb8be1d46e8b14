"""Views and the graph. A tensor and the views of it share a Base, which knows where the whole memory stands in the
graph. A recorded write through one of them puts a new node there; the others are behind then (`rewrites`), and when one
is used next it takes the node of a window on the whole (renew). A tensor that shares memory but is out of the graph, by
detach() or as a view taken while not recording, is detached: it has no part in this.

A window is (shape, strides, offset) in the elements of the whole; as_view and put_view of ops/window.pyx read and write
one."""

from cygrad.core cimport layout as lay
from cygrad.core.extras cimport keep_for, kept_of
from cygrad.core.graph cimport Base, Leaf, Node, Tensor, plugged
from cygrad.core.modes cimport flags
from cygrad.core.nodes cimport enrol, set_edge, take_edges, take_outputs
from cygrad.kernels.array cimport Layout


cdef int join(Tensor x, Tensor y, bint recording) except -1:
    """`y` is a new view of `x`: it belongs to the same family, or to none."""
    cdef Base base
    if x.detached or (x.tracked and not recording):
        y.detached = True
        return 0
    if x.base is None:
        base = Base.__new__(Base)
        base.layout = lay.share(x.layout)
        base.node, base.output_nr = x.node, x.output_nr
        x.base = base
    y.base = x.base
    return 0


cdef inline bint same_window(const Layout* x, const Layout* y) noexcept:
    cdef int d
    if x == y: return True
    if x.offset != y.offset or not lay.same_shape(x, y): return False
    for d in range(x.ndim):
        if x.strides[d] != y.strides[d]: return False
    return True


cdef bint partial(Tensor t) noexcept:
    """Whether `t` is another window on its memory than the whole."""
    return t.base is not None and not same_window(t.layout, t.base.layout)


cdef bint is_place(Tensor x, const Layout* window, Tensor v, bint recording) noexcept:
    """Whether `v` is that window on the memory of `x` itself, in the graph too where that matters."""
    if v.buffer != x.buffer or v.dtype != x.dtype or not same_window(v.layout, window): return False
    return not recording or (v.base is not None and v.base is x.base)


cdef Node window_node(str name, const Layout* window, const Layout* whole, const Layout* y, int n_in, int dtype):
    """A node of as_view or put_view, with an output like `y` and no edges yet."""
    cdef Node node = Node.__new__(Node)
    node.op = plugged(name)
    node.attributes = (lay.shape_tuple(window), lay.strides_tuple(window), window.offset - whole.offset)
    node.dtype = dtype
    take_edges(node, n_in)
    take_outputs(node, 1)[0] = lay.share(y)
    enrol(node, flags())
    return node


cdef int renew(Tensor t) except -1:
    """`t` is behind: its part of the whole is where it stands now."""
    cdef Base base = t.base
    cdef Node node, before = t.node
    if not t.detached and base is not None and base.node is not None:
        if not partial(t):
            t.node, t.output_nr = base.node, base.output_nr
        else:
            node = window_node("as_view", t.layout, base.layout, t.layout, 1, t.dtype)
            set_edge(node, 0, base.node, base.output_nr)
            t.node, t.output_nr = node, 0
        t.tracked = True
        if before is not None and before.op is not None: move_kept(t, before)
    t.rewrites = t.buffer.rewrites
    return 0


cdef int move_kept(Tensor t, Node before) except -1:
    """An accumulator that kept the gradient of `t` where it stood keeps it where `t` stands now."""
    cdef list kept
    cdef int i
    if before is t.node: return 0
    kept = kept_of(before)
    for i in range(len(kept)):
        if (<Leaf>kept[i][1]).tensor != <void*>t: continue
        keep_for(t.node, t.output_nr, <Leaf>kept.pop(i)[1])
        break
    return 0


cdef Node put_node(Tensor t):
    """The node of the whole once `t`, a part of it, will have been written: written() gives it its edges."""
    return window_node("put_view", t.layout, t.base.layout, t.base.layout, 2, t.dtype)


cdef void written(Tensor t, Node node, Node put) noexcept:
    """A recorded operation, `node`, has written to `t`; `put` is its put_node() if it is a part of a whole."""
    cdef Base base = t.base
    if put is not None:
        if base.node is not None: set_edge(put, 0, base.node, base.output_nr)
        set_edge(put, 1, node, 0)
        base.node, base.output_nr = put, 0
    elif base is not None:
        base.node, base.output_nr = node, 0
    t.node, t.output_nr, t.tracked = node, 0, True
    t.buffer.rewrites += 1
    t.rewrites = t.buffer.rewrites


def place(Tensor x):
    """Where `x` stands in the graph: (node or leaf, output number)."""
    if x.rewrites != x.buffer.rewrites: renew(x)
    return x.node, x.output_nr
