"""Hooks: user callbacks on gradients, which are called in the order of registration and may replace a gradient. The
hooks of a node are released with its slots, so a freed graph refers to no user object. A hook that refers to its own
tensor makes a reference cycle, which the garbage collector finds (core/graph/cycles.pyx)."""

from cygrad.core.graph.around cimport changed
from cygrad.core.store cimport layout as lay
from cygrad.core.graph.extras cimport extras_of, give_extras
from cygrad.core.graph.gradient_slice cimport GradientSlice, check_rows
from cygrad.core.graph.running cimport only_one_runs
from cygrad.core.graph.tensor cimport EXTRAS, Extras, Leaf, Node, Tensor, edge_of, output_layout
from cygrad.core.graph.trace cimport writes_of
from cygrad.core.backward.gradients cimport (
    DENSE, NO_GRADIENT, ROWS, Gradient, as_tensor, drop_gradient, flowing_in, set_rows, set_tensor, share_tensor,
    take_gradient,
)
from cygrad.core.graph.tape cimport expect_cycles
from cygrad.core.backward.turn cimport Turn
from cygrad.core.backward.walk cimport Walk
from cygrad.kernels.array cimport Layout

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError


cdef int replace(Gradient* g, object value, const Layout* like, int dtype, bint graph, str what) except -1:
    """Replace a gradient by what a hook returned."""
    cdef Gradient new
    if type(value) is GradientSlice and g.kind == ROWS:
        check_rows(<GradientSlice>value, like, dtype, f"{what} returned a gradient that does not fit: the")
        set_rows(&new, <GradientSlice>value)
        drop_gradient(g)
        take_gradient(&new, g)
        return 0
    if not isinstance(value, Tensor):
        raise TypeError(f"{what} returned {type(value).__name__}; it may return None or a tensor that replaces the "
                        f"gradient" + (", or a GradientSlice" if g.kind == ROWS else ""))
    if not lay.same_shape((<Tensor>value).layout, like) or (<Tensor>value).dtype != dtype:
        raise ValueError(f"{what} returned a {DTYPES[(<Tensor>value).dtype]} tensor of shape {value.shape}; the "
                         f"gradient is {DTYPES[dtype]} of shape {lay.shape_tuple(like)}, and they must agree")
    if graph: set_tensor(&new, <Tensor>value)
    else:
        if g.kind != DENSE or (<Tensor>value).buffer != g.held.buffer: value = flowing_in(<Tensor>value)
        share_tensor(<Tensor>value, &new)
    drop_gradient(g)
    take_gradient(&new, g)
    return 0


cdef bint has_hooks(Node node, str kind) noexcept:
    """Whether a node has hooks of a kind."""
    cdef Extras extras = extras_of(node)
    return extras is not None and extras.hooks is not None and bool(extras.hooks.get(kind))


cdef list hooks_of(Node node, str kind):
    """A copy of the list of hooks of a kind, because a hook may add or remove some."""
    return list(extras_of(node).hooks[kind].values()) if has_hooks(node, kind) else []


cdef object call_watched(f, tuple args, bint graph, str what):
    """f(*args). Raises InplaceError if f wrote in place to a gradient whose memory has other holders, such as the
    caller of backward: their values would have changed unnoticed. It may write to other gradients."""
    cdef Tensor t
    cdef list seen = []
    for x in args:
        for g in x if isinstance(x, (tuple, list)) else (x,):
            if isinstance(g, Tensor):
                t = g
                if graph or t.buffer.holders > 2: seen.append((t, writes_of(t.buffer)))    # (two: the pass and t)
            elif type(g) is GradientSlice:
                t = (<GradientSlice>g).values
                if t.buffer.holders > 1: seen.append((t, writes_of(t.buffer)))
    value = f(*args)
    for t, writes in seen:
        if writes_of(t.buffer) != writes:
            raise InplaceError(f"{what} wrote in place to a gradient of shape {t.shape} that it shares with others; "
                               f"return a new tensor instead")
    return value


cdef class MultiHook:
    """A function that register_multi_grad_hook has registered on several tensors, and what has arrived in each running
    pass. It refers to no node: each tensor's node has a MultiHookPart."""

    def __cinit__(self, f, Py_ssize_t n, bint first):
        self.f, self.n, self.first, self.passes = f, n, first, {}

    cdef int arrive(self, Walk walk, Py_ssize_t at, gradient) except -1:
        """Tensor number `at` has its gradient in the pass `walk`, or gets none (None)."""
        cdef list gradients
        found = self.passes.get(walk.number)
        if self.first:
            if found is not None or gradient is None: return 0
        elif found is None: found = [self.awaited(walk), [None] * self.n]
        if walk.number not in self.passes:
            if only_one_runs(): self.passes.clear()     # (of earlier passes)
            self.passes[walk.number] = True if self.first else found
        value = gradient
        if not self.first:
            gradients = found[1]
            gradients[at] = gradient
            found[0] -= 1
            if found[0] > 0: return 0
            del self.passes[walk.number]
            value = gradients
        gradient = gradients = found = None             # (`value` is the only reference of this function)
        call_watched(self.f, (value,), walk.graph, "a multi-gradient hook")
        return 0

    cdef Py_ssize_t awaited(self, Walk walk) except -1:
        """The number of its tensors whose gradients a pass computes. None of their nodes has had its turn."""
        cdef Py_ssize_t at, count = 0
        cdef Node node
        for at in range(walk.n):
            node = <Node>walk.entries[at].node
            if node.flags & EXTRAS and walk.entries[at].needed:
                for part in parts_of(node): count += (<MultiHookPart>part).hook is self
        return count


cdef class MultiHookPart:
    """What the hooks of one of these tensors contain."""

    def __cinit__(self, MultiHook hook not None, Py_ssize_t at):
        self.hook, self.at = hook, at


cdef list parts_of(Node node):
    """The MultiHookParts of a node."""
    cdef list out = []
    for _, f in hooks_of(node, "tensor"):
        if type(f) is MultiHookPart: out.append(f)
    return out


cdef void forget_pass(Node node, Walk walk) noexcept:
    """A pass has failed: release the gradients that wait in the hooks of a node."""
    for part in parts_of(node): (<MultiHookPart>part).hook.passes.pop(walk.number, None)


cdef int on_outputs(Node node, Gradient* g, Walk walk) except -1:
    """Call the hooks on tensors, each with the complete gradient of its tensor. If `g` is NULL, none has come."""
    cdef int k
    cdef bint missing
    what = "a hook on a variable" if node.op is None else f"a hook on a result of {node.name()}"
    for nr, f in hooks_of(node, "tensor"):
        k = nr
        missing = g == NULL or g[k].kind == NO_GRADIENT
        if type(f) is MultiHookPart:
            (<MultiHookPart>f).hook.arrive(walk, (<MultiHookPart>f).at, None if missing else as_tensor(&g[k]))
            continue
        if missing: continue
        value = call_watched(f, (as_tensor(&g[k]),), walk.graph, what)
        if value is not None: replace(&g[k], value, output_layout(node, k), node.dtype, walk.graph, what)


cdef tuple outputs_of(Node node, const Gradient* g):
    """The gradients of a node's outputs, for its hooks."""
    return tuple([as_tensor(&g[k]) for k in range(node.n_out)])


cdef int before_node(Node node, Gradient* g, bint graph) except -1:
    """Call the hooks that run before a node, each with the gradients of the node's outputs. Those of a variable run
    before its gradient is stored. None in what a hook returns removes a gradient."""
    cdef int k
    what = "a pre-hook of a variable's node" if node.op is None else f"a pre-hook of {node.name()}"
    for f in hooks_of(node, "before"):
        values = read_values(call_watched(f, (outputs_of(node, g),), graph, what), node.n_out, what)
        for k, value in enumerate(values):
            if value is None: drop_gradient(&g[k])
            else: replace(&g[k], value, output_layout(node, k), node.dtype, graph, what)


cdef int after_node(Node node, Turn b, tuple outputs) except -1:
    """Call the hooks that run after a node, each with the gradients of the node's inputs and of its outputs. None in
    what a hook returns removes a gradient."""
    cdef int i
    what = f"a hook of {node.name()}"
    for f in hooks_of(node, "after"):
        inputs = tuple([as_tensor(&b.dx[i]) if b.want[i] else None for i in range(node.n_in)])
        values = read_values(call_watched(f, (inputs, outputs), b.graph, what), node.n_in, what)
        inputs = None                               # (so that replaced gradients have no other holder)
        for i, value in enumerate(values):
            if not b.want[i]: continue
            if value is None: drop_gradient(&b.dx[i])
            else:
                replace(&b.dx[i], value, b.input_layout(i), (<Node>edge_of(node, i).node).dtype, b.graph, what)


cdef tuple read_values(values, int n, str what):
    """The result of a node's hook as a tuple. The hook may return None, a tuple, or a tensor if `n` is 1."""
    if values is None: return ()
    if isinstance(values, Tensor): values = (values,)
    if not isinstance(values, (tuple, list)) or len(values) != n:
        came = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
        raise ValueError(f"{what} returned {came}; it may return None, or a tuple of {n} tensors or None")
    return tuple(values)


cdef int after_leaf(Leaf leaf, tuple given, bint graph) except -1:
    """Call the hooks that run when a variable's .grad is complete, each with the variable. Then call the hooks of the
    leaf's node, which has no inputs; `given` is the gradient of its output, or None if there are no such hooks."""
    if leaf.tensor == NULL: return 0
    x = <Tensor>leaf.tensor
    for f in hooks_of(leaf, "accumulated"): f(x)
    if given is None: return 0
    what = "a hook of a variable's node"
    for f in hooks_of(leaf, "after"): read_values(call_watched(f, ((), given), graph, what), 0, what)


cdef void remove_hooks(Node node) noexcept:
    """Remove all hooks of a node, which will not run again."""
    extras_of(node).hooks = None


class Handle:
    """A registered hook: `remove()` unregisters it, and so does the end of a `with` block."""

    def __init__(self, hooks, key):
        self._hooks, self._key = hooks, key

    def remove(self):
        """Unregister the hook. A second call does nothing."""
        self._hooks.pop(self._key, None)
        changed()

    def __enter__(self):
        return self

    def __exit__(self, kind=None, value=None, traceback=None):
        self.remove()


class Handles(Handle):
    """Several registered hooks, which `remove()` and the end of a `with` block unregister together."""

    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        """Unregister the hooks. A second call does nothing."""
        for handle in self._handles: handle.remove()


def is_consumed(Node node):
    """Whether something takes the gradients of a variable instead of .grad."""
    return bool(has_hooks(node, "consumed"))


def register(Node node, str kind, hook):
    """Add a hook to a node, of the kind "tensor" (on the gradient of an output: (output number, f), where f is a
    function or a MultiHookPart), "before" or "after" (the node's backward: f), "accumulated" (on a leaf, when .grad is
    complete: f), "consumed" (on a leaf, what takes its gradients: a Consumer), or "eager" (on a leaf, no hook: only
    eager code runs nets). Returns a Handle."""
    cdef Extras extras = give_extras(node)
    expect_cycles()
    if extras.hooks is None: extras.hooks = {}
    hooks = extras.hooks.setdefault(kind, {})
    key = object()                                  # (not the handle: it would make a cycle)
    hooks[key] = hook
    if node.op is None: changed()
    return Handle(hooks, key)
