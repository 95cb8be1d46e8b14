"""Registers hooks on tensors and nodes."""

from cygrad.core.backward.hooks cimport MultiHook, MultiHookPart
from cygrad.core.graph.trace cimport refuse_call
from cygrad.core.graph.tensor cimport Node, Tensor, is_tracked, is_variable

from cygrad.core.errors import described
from cygrad.core.late_bound import bind_methods
from cygrad.core.backward.hooks import Handles, register


def check_function(f, what):
    """Raise TypeError unless a hook is callable."""
    if not callable(f): raise TypeError(f"{what} takes a function, got {type(f).__name__}")


def refuse_captured(what):
    """Raise RuntimeError while a function is captured."""
    refuse_call(what)


def register_hook(Tensor self, f: Callable[[Tensor], Tensor | None]) -> Handle:
    """Call `f(gradient)` in every backward when this tensor's gradient is complete, before it is propagated further or
    stored in .grad. If `f` returns a tensor, that replaces the gradient. Returns a handle with `remove()`, which is
    also a context manager. A reference from `f` to this tensor keeps it alive until the hook is removed or the graph is
    freed. Raises TypeError if `f` is not callable, RuntimeError for a tensor to which no gradient flows."""
    check_function(f, "register_hook")
    refuse_call("register_hook()")
    if not is_tracked(self):
        raise RuntimeError(f"register_hook: no gradient flows to this tensor of shape {self.shape}; call "
                           f"attach_grad() on it, or record the operation that computes it")
    return register(self._node, "tensor", (self._output_nr, f))


def register_post_accumulate_grad_hook(Tensor self, f: Callable[[Tensor], object]) -> Handle:
    """Call `f(self)` in every backward when this variable's .grad is complete. The return value is ignored. Returns a
    handle with `remove()`; until it is removed, a reference from `f` to this tensor keeps the tensor alive. Raises
    TypeError if `f` is not callable, RuntimeError unless the tensor is a variable."""
    check_function(f, "register_post_accumulate_grad_hook")
    refuse_call("register_post_accumulate_grad_hook()")
    if not is_variable(self):
        raise RuntimeError(f"register_post_accumulate_grad_hook: this tensor of shape {self.shape} is not a "
                           f"variable; call attach_grad() or requires_grad_() on it")
    return register(self._node, "accumulated", f)


def register_prehook(Node self, f):
    """Call `f(gradients of the outputs)`, a tuple, before this node's backward, after the hooks on its results. If `f`
    returns a tuple, that replaces the gradients; None in it removes one. The node of a variable has one output, the
    variable: `f` is called after the variable's own hooks and before the gradient is stored in .grad, and not where
    autograd.grad returns it. Returns a handle with `remove()`. Raises TypeError if `f` is not callable."""
    check_function(f, "register_prehook")
    refuse_call("register_prehook()")
    return register(self, "before", f)


def register_node_hook(Node self, f):
    """Call `f(gradients of the inputs, gradients of the outputs)` after this node's backward: two tuples, with None for
    a missing gradient. If `f` returns a tuple, that replaces the gradients of the inputs; None in it removes one. The
    node of a variable has no inputs: its first tuple is empty, and `f` is called when the second is stored in .grad.
    Returns a handle with `remove()`. Raises TypeError if `f` is not callable."""
    check_function(f, "register_hook")
    refuse_call("register_hook()")
    return register(self, "after", f)


def register_multi_grad_hook(tensors: Iterable[Tensor], fn: Callable[..., object],
                             mode: Literal['all', 'any'] = "all") -> Handle:
    """Call `fn` once in every backward pass. With mode "all", when the gradients of all `tensors` that the pass
    computes are complete: `fn(gradients)`, a list with None for tensors that have none in this pass, because they are
    not part of its graph, because `inputs` leaves them out, or because no gradient reaches them. With "any", as soon as
    the first of them is complete: `fn(gradient)`; tensors to which no gradient flows are left out. `fn` is called among
    the hooks of the tensor whose gradient is the last or the first; what it returns is ignored. A pass inside a hook
    counts by itself.

    Returns a handle with `remove()`, which is also a context manager. Raises TypeError unless `tensors` are tensors and
    `fn` is callable, ValueError for another mode, and, with "all", RuntimeError for a tensor to which no gradient
    flows; then nothing is registered."""
    cdef Tensor t
    cdef MultiHook hook
    cdef list places = []
    check_function(fn, "register_multi_grad_hook")
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {described(mode)}")
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise TypeError(f"register_multi_grad_hook takes a list of tensors, got {described(tensors)}")
    refuse_call("register_multi_grad_hook()")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"register_multi_grad_hook: tensor {i} must be a tensor, got {described(x)}")
        t = x
        if is_tracked(t): places.append((t._node, t._output_nr))
        elif mode == "all":
            raise RuntimeError(f"register_multi_grad_hook: no gradient flows to tensor {i}, of shape {t.shape}; call "
                               f"attach_grad() on it, record the operation that computes it, or leave it out")
    hook = MultiHook(fn, len(places), mode == "any")
    return Handles([register(node, "tensor", (nr, MultiHookPart(hook, at))) for at, (node, nr) in enumerate(places)])


bind_methods(Tensor, register_hook=register_hook, register_post_accumulate_grad_hook=register_post_accumulate_grad_hook)
bind_methods(Node, register_prehook=register_prehook, register_hook=register_node_hook)
