"""Hooks: functions of the user's that see gradients on their way, in the order in which they were registered, and may
replace them. A node's hooks die with what it keeps: a graph that was freed refers to nothing of the user's. A hook that
refers to its own tensor makes a cycle, which the garbage collector finds (core/graph/cycles.pyx)."""

from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.extras cimport extras_of, give_extras
from cygrad.core.graph.tensor cimport Extras, Gradient, Leaf, Node, Tensor, drop_gradient, edge_of, output_layout
from cygrad.core.backward.gradients cimport as_tensor, flowing_in, gradient_of
from cygrad.core.store.buffer cimport Buffer
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.backward.turn cimport Turn
from cygrad.kernels.array cimport Layout

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError


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
    if g.buffer == NULL or (<Tensor>value).buffer != g.buffer: value = flowing_in(<Tensor>value)
    gradient_of(<Tensor>value, &new)
    drop_gradient(g)
    g[0] = new
    return 0


cdef bint has_hooks(Node node, str kind) noexcept:
    """Whether a node has hooks of a kind."""
    cdef Extras extras = extras_of(node)
    return extras is not None and extras.hooks is not None and bool(extras.hooks.get(kind))


cdef list hooks_of(Node node, str kind):
    """The hooks of a kind as they are now: a hook may add or remove some."""
    return list(extras_of(node).hooks[kind].values()) if has_hooks(node, kind) else []


cdef object call_watched(f, tuple args, bint graph, str what):
    """f(*args), which may write into a gradient among them if nobody else has it. Raises InplaceError otherwise: the
    others, perhaps the caller of backward, would have another gradient without knowing."""
    cdef Tensor t
    cdef list seen = []
    for x in args:
        for t in [g for g in (x if isinstance(x, tuple) else (x,)) if isinstance(g, Tensor)]:
            if graph or t.buffer.holders > 2: seen.append((t, t.buffer.version))    # (two: the pass, and t)
    value = f(*args)
    for t, version in seen:
        if t.buffer.version != version:
            raise InplaceError(f"{what} wrote in place into the gradient of shape {t.shape} that it was given, which "
                               f"others share; return a new tensor in its place")
    return value


cdef int on_outputs(Node node, Gradient* g, bint graph) except -1:
    """The hooks on tensors: each is called with the complete gradient of its tensor."""
    cdef int k
    what = "a hook on a variable" if node.op is None else f"a hook on a result of {node.name()}"
    for nr, f in hooks_of(node, "tensor"):
        k = nr
        if g[k].buffer == NULL: continue
        value = call_watched(f, (as_tensor(&g[k], node.dtype, graph),), graph, what)
        if value is not None: replace(&g[k], value, output_layout(node, k), node.dtype, graph, what)
    return 0


cdef tuple outputs_of(Node node, const Gradient* g, bint graph):
    """The gradients of a node's outputs, for its hooks."""
    return tuple([as_tensor(&g[k], node.dtype, graph) for k in range(node.n_out)])


cdef int before_node(Node node, Gradient* g, bint graph) except -1:
    """The hooks that run before a node: each is called with the gradients of its outputs."""
    cdef int k
    what = f"a pre-hook of {node.name()}"
    for f in hooks_of(node, "before"):
        values = read_values(call_watched(f, (outputs_of(node, g, graph),), graph, what), node.n_out, what)
        for k, value in enumerate(values):
            if value is not None: replace(&g[k], value, output_layout(node, k), node.dtype, graph, what)
    return 0


cdef int after_node(Node node, Turn b, tuple outputs) except -1:
    """The hooks that run after a node: each is called with the gradients of its inputs and of its outputs."""
    cdef int i
    what = f"a hook of {node.name()}"
    for f in hooks_of(node, "after"):
        inputs = tuple([as_tensor(&b.dx[i], (<Node>edge_of(node, i).node).dtype, b.graph) if b.want[i] else None
                        for i in range(node.n_in)])
        values = read_values(call_watched(f, (inputs, outputs), b.graph, what), node.n_in, what)
        inputs = None                               # (so that what takes its place may be written over)
        for i, value in enumerate(values):
            if value is not None and b.want[i]:
                replace(&b.dx[i], value, b.input_layout(i), (<Node>edge_of(node, i).node).dtype, b.graph, what)
    return 0


cdef tuple read_values(values, int n, str what):
    """What a node's hook returned: nothing, a tensor where there is one place for it, or a tuple."""
    if values is None: return ()
    if isinstance(values, Tensor): values = (values,)
    if not isinstance(values, (tuple, list)) or len(values) != n:
        came = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
        raise ValueError(f"{what} returned {came}; it may return None, or a tuple of {n} tensors or None")
    return tuple(values)


cdef int after_leaf(Leaf leaf, tuple given, bint graph) except -1:
    """The hooks that run when a variable's .grad has received all: each is called with the variable. Then those of the
    leaf as a node, which has no inputs; `given` is what came for its output, None if there are none of them."""
    if leaf.tensor == NULL: return 0
    x = <Tensor>leaf.tensor
    for f in hooks_of(leaf, "accumulated"): f(x)
    if given is None: return 0
    what = "a hook of a variable's node"
    for f in hooks_of(leaf, "after"): read_values(call_watched(f, ((), given), graph, what), 0, what)
    return 0


cdef void forget_hooks(Node node) noexcept:
    """The node will not run again."""
    extras_of(node).hooks = None


class Handle:
    """A registered hook: `remove()` takes it away, and so does the end of a `with` block."""

    def __init__(self, hooks, key):
        self._hooks, self._key = hooks, key

    def remove(self):
        """Take the hook away; a second time is harmless."""
        self._hooks.pop(self._key, None)

    def __enter__(self):
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        self.remove()


def register(Node node, str kind, hook):
    """Add a hook to a node, of the kind "tensor" (on the gradient of an output: (output number, f)), "before" or
    "after" (the node's backward: f), or "accumulated" (on a leaf, when .grad has received all: f). Returns a Handle."""
    cdef Extras extras = give_extras(node)
    expect_cycles()
    if extras.hooks is None: extras.hooks = {}
    hooks = extras.hooks.setdefault(kind, {})
    key = object()                                  # (not the handle: it would make a cycle)
    hooks[key] = hook
    return Handle(hooks, key)
