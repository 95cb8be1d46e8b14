"""Registering hooks and keeping gradients of intermediates."""

from cygrad.core.graph.tensor cimport Node, Tensor, is_tracked, is_variable

from cygrad.core.late_bound import bind_methods
from cygrad.core.backward.hooks import register


def check_function(f, what):
    """That a hook can be called. Raises TypeError."""
    if not callable(f): raise TypeError(f"{what} wants a function, got {type(f).__name__}")


def register_hook(Tensor self, f: Callable[[Tensor], Tensor | None]) -> Handle:
    """Call `f(gradient)` in every backward when this tensor's gradient is complete, before it goes on or arrives in
    .grad; a tensor that `f` returns takes its place. Returns a handle with `remove()`, which is a context manager too;
    an `f` that refers to this tensor keeps it alive until it is removed or the graph is freed. Raises RuntimeError for
    a tensor to which no gradient flows."""
    check_function(f, "register_hook")
    if not is_tracked(self):
        raise RuntimeError(f"register_hook: no gradient flows to this tensor of shape {self.shape}; attach_grad() it, "
                           f"or record what it is computed by")
    return register(self._node, "tensor", (self._output_nr, f))


def register_post_accumulate_grad_hook(Tensor self, f: Callable[[Tensor], object]) -> Handle:
    """Call `f(self)` in every backward when this variable's .grad has received all; what it returns is ignored. Returns
    a handle with `remove()`; until then an `f` that refers to this tensor keeps it alive. Raises RuntimeError unless
    the tensor is a variable."""
    check_function(f, "register_post_accumulate_grad_hook")
    if not is_variable(self):
        raise RuntimeError(f"register_post_accumulate_grad_hook: this tensor of shape {self.shape} is no variable; "
                           f"attach_grad() or requires_grad_() makes one")
    return register(self._node, "accumulated", f)


def register_prehook(Node self, f):
    """Call `f(gradients of the outputs)`, a tuple, before this node's backward; a tuple that it returns takes their
    place. Returns a handle. Raises RuntimeError for the node of a variable, whose own register_hook is that."""
    check_function(f, "register_prehook")
    if self.op is None:
        raise RuntimeError("register_prehook: this is the node of a variable, and nothing comes before .grad but the "
                           "variable's own register_hook; use that, which may replace the gradient")
    return register(self, "before", f)


def register_node_hook(Node self, f):
    """Call `f(gradients of the inputs, gradients of the outputs)`, two tuples with None where there is none, after this
    node's backward; a tuple that it returns takes the place of the first. Of a variable's node, which has no inputs,
    the first is empty, and the call comes when .grad has received the second. Returns a handle."""
    check_function(f, "register_hook")
    return register(self, "after", f)


bind_methods(Tensor, register_hook=register_hook, register_post_accumulate_grad_hook=register_post_accumulate_grad_hook)
bind_methods(Node, register_prehook=register_prehook, register_hook=register_node_hook)
