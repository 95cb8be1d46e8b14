"""Hooks: functions of the user's that see gradients on their way, in the order in which they were registered, and may
replace them. A node's hooks die with what it keeps: a graph that was freed refers to nothing of the user's. Neither
nodes nor tensors are known to the garbage collector, so a hook that refers to its own tensor keeps it alive until then,
or until it is removed."""

from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad.core.graph cimport (
    Backward, Edge, Extras, Gradient, Leaf, Node, Tensor, drop_gradient, edge_of, output_layout,
)
from cygrad.core cimport layout as lay
from cygrad.core.gradients cimport as_tensor, gradient_of
from cygrad.core.memory cimport Buffer
from cygrad.kernels.array cimport Layout

from cygrad.core.dtypes import DTYPES


cdef int replace(Gradient* g, object value, const Layout* like, int dtype, bint graph, str what) except -1:
    """Let `g` be what a hook returned."""
    cdef Gradient new
    if not isinstance(value, Tensor):
        raise TypeError(f"{what} returned {type(value).__name__}; it may return None, or a tensor in the place of the "
                        f"gradient")
    if not lay.same_shape((<Tensor>value).layout, like) or (<Tensor>value).dtype != dtype:
        raise ValueError(f"{what} returned a {DTYPES[(<Tensor>value).dtype]} tensor of shape {value.shape}; the "
                         f"gradient is {DTYPES[dtype]} of shape {lay.shape_tuple(like)}, and they must agree")
    if graph:
        Py_INCREF(value)
        if g.buffer != NULL: Py_DECREF(<object><void*>g.buffer)
        g.buffer = <Buffer*><void*>value
        return 0
    gradient_of(<Tensor>value, &new)
    drop_gradient(g)
    g[0] = new
    return 0


cdef int on_outputs(Node node, Gradient* g, bint graph) except -1:
    """The hooks on tensors: each is called with the complete gradient of its tensor."""
    cdef int k
    if node.extras.hooks is None: return 0
    for nr, f in list(node.extras.hooks.values()):
        k = nr
        if g[k].buffer == NULL: continue
        value = f(as_tensor(&g[k], node.dtype, graph))
        if value is not None:
            replace(&g[k], value, output_layout(node, k), node.dtype, graph, f"a hook on a result of {node.name()}"
                    if node.op is not None else "a hook on a variable")
    return 0


cdef tuple outputs_of(Node node, const Gradient* g, bint graph):
    """The gradients of a node's outputs, for its hooks."""
    return tuple([as_tensor(&g[k], node.dtype, graph) for k in range(node.n_out)])


cdef int before_node(Node node, Gradient* g, bint graph) except -1:
    """The hooks that run before a node: each is called with the gradients of its outputs."""
    cdef int k
    if node.extras.before is None: return 0
    for f in list(node.extras.before.values()):
        values = f(outputs_of(node, g, graph))
        if values is None: continue
        if isinstance(values, Tensor): values = (values,)
        check_count(values, node.n_out, f"a pre-hook of {node.name()}")
        for k in range(node.n_out):
            if values[k] is None: continue
            replace(&g[k], values[k], output_layout(node, k), node.dtype, graph, f"a pre-hook of {node.name()}")
    return 0


cdef int after_node(Node node, Backward b, tuple outputs) except -1:
    """The hooks that run after a node: each is called with the gradients of its inputs and of its outputs."""
    cdef int i
    cdef Edge e
    for f in list(node.extras.after.values()):
        inputs = []
        for i in range(node.n_in):
            e = edge_of(node, i)
            inputs.append(as_tensor(&b.dx[i], (<Node>e.node).dtype, b.graph) if b.want[i] else None)
        values = f(tuple(inputs), outputs)
        if values is None: continue
        if isinstance(values, Tensor): values = (values,)
        check_count(values, node.n_in, f"a hook of {node.name()}")
        for i in range(node.n_in):
            if values[i] is None or not b.want[i]: continue
            e = edge_of(node, i)
            replace(&b.dx[i], values[i], b.input_layout(i), (<Node>e.node).dtype, b.graph, f"a hook of {node.name()}")
    return 0


cdef int check_count(values, int n, str what) except -1:
    if not isinstance(values, (tuple, list)) or len(values) != n:
        came = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
        raise ValueError(f"{what} returned {came}; it may return None, or a tuple of {n} tensors or None")
    return 0


cdef int after_leaf(Leaf leaf) except -1:
    """The hooks that run when a variable's .grad has received all: each is called with the variable."""
    if leaf.extras.accumulated is None or leaf.tensor == NULL: return 0
    x = <Tensor>leaf.tensor
    for f in list(leaf.extras.accumulated.values()): f(x)
    return 0


cdef void forget_hooks(Node node) noexcept:
    """The node will not run again."""
    cdef Extras extras = node.extras
    extras.hooks = extras.before = extras.after = None


class Handle:
    """A registered hook: `remove()` takes it away, and so does the end of a `with` block."""

    def __init__(self, hooks, key):
        self._hooks, self._key = hooks, key

    def remove(self):
        """Take the hook away; a second time is harmless."""
        self._hooks.pop(self._key, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def register(Node node, str kind, entry):
    """Add a hook to a node: kind "hooks" (entry: (output number, f)), "before", "after" or "accumulated" (f). Returns a
    Handle."""
    cdef Extras extras
    if node.extras is None: node.extras = Extras.__new__(Extras)
    extras = node.extras
    if kind == "hooks":
        if extras.hooks is None: extras.hooks = {}
        hooks = extras.hooks
    elif kind == "before":
        if extras.before is None: extras.before = {}
        hooks = extras.before
    elif kind == "after":
        if extras.after is None: extras.after = {}
        hooks = extras.after
    else:
        if extras.accumulated is None: extras.accumulated = {}
        hooks = extras.accumulated
    key = object()                                  # (not the handle: it would make a cycle)
    hooks[key] = entry
    return Handle(hooks, key)
