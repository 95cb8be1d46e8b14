"""Registers hooks on tensors and nodes."""

from cygrad.core.graph.trace cimport refuse_call
from cygrad.core.graph.tensor cimport Node, Tensor, is_tracked, is_variable

from cygrad.core.late_bound import bind_methods
from cygrad.core.backward.hooks import register


def check_function(f, what):
    """Raise TypeError unless a hook is callable."""
    if not callable(f): raise TypeError(f"{what} takes a function, got {type(f).__name__}")


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
    """Call `f(gradients of the outputs)`, a tuple, before this node's backward. If `f` returns a tuple, that replaces
    the gradients. Returns a handle with `remove()`. Raises TypeError if `f` is not callable, RuntimeError for the node
    of a variable: use the variable's register_hook instead."""
    check_function(f, "register_prehook")
    refuse_call("register_prehook()")
    if self.op is None:
        raise RuntimeError("register_prehook: this is the node of a variable, which has no backward; use the "
                           "variable's own register_hook, which may replace the gradient")
    return register(self, "before", f)


def register_node_hook(Node self, f):
    """Call `f(gradients of the inputs, gradients of the outputs)` after this node's backward: two tuples, with None for
    a missing gradient. If `f` returns a tuple, that replaces the gradients of the inputs. The node of a variable has no
    inputs: its first tuple is empty, and `f` is called when the second is stored in .grad. Returns a handle with
    `remove()`. Raises TypeError if `f` is not callable."""
    check_function(f, "register_hook")
    refuse_call("register_hook()")
    return register(self, "after", f)


bind_methods(Tensor, register_hook=register_hook, register_post_accumulate_grad_hook=register_post_accumulate_grad_hook)
bind_methods(Node, register_prehook=register_prehook, register_hook=register_node_hook)
