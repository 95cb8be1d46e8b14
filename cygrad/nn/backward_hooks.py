"""Full backward hooks of modules. The arguments of a call pass through one node, ModuleInputs, before forward, and its
results through another, ModuleResults, after it. Both compute nothing, and their results share the memory of what went
in. So the gradients of the arguments are those of this call alone, and one function sees and replaces them together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from cygrad.autograd.function import Function
from cygrad.autograd.hooks import refuse_captured
from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.thread_state import is_recording

Grads = tuple[Tensor | None, ...]


class ModuleInputs(Function):
    """The arguments of a call of a module with full backward hooks."""

    @staticmethod
    def forward(ctx, call, *xs):
        """The tensors themselves; apply() makes new ones of them."""
        ctx.call = call
        ctx.mark_non_differentiable(*(x for x, needs in zip(xs, ctx.needs_input_grad[1:], strict=True) if not needs))
        return xs

    @staticmethod
    def backward(ctx, *grads):
        """What the hooks make of the gradients."""
        return None, *ctx.call.at_inputs(grads)


class ModuleResults(ModuleInputs):
    """The results of such a call. Its backward gets None for a result that no gradient has reached."""

    @staticmethod
    def forward(ctx, call, *xs):
        """The tensors themselves."""
        ctx.set_materialize_grads(False)
        return ModuleInputs.forward(ctx, call, *xs)

    @staticmethod
    def backward(ctx, *grads):
        """What the pre-hooks make of the gradients."""
        return None, *ctx.call.at_results(grads)


class WatchedCall:
    """One call of a module, with the hooks that it had then: `before` see the gradients of the results, `after` those
    of the arguments too."""

    def __init__(self, module: Any, before: Sequence[Callable[..., Any]], after: Sequence[Callable[..., Any]]):
        self.module, self.before, self.after = module, before, after
        refuse_captured(f"a full backward hook of {self.name()}")
        self.inputs: list[int] | None = None        # the places of tensors, if a gradient flows to any
        self.results: list[int] | None = None
        self.n_inputs = self.n_results = 0
        self.given: Grads | None = None             # the gradients of the results, until the hooks have seen them

    def take(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that forward gets."""
        self.n_inputs = len(args)
        if self.after: args, self.inputs = self._through(ModuleInputs, args)
        return args

    def give(self, y: Any) -> Any:
        """The result that the caller gets, for that of forward."""
        if isinstance(y, Tensor): values: Any = (y,)
        elif isinstance(y, tuple | list): values = y
        else:
            warnings.warn(f"the full backward hooks of {type(self.module).__name__} are not called, because forward "
                          f"returned {described(y)}; return a tensor or a tuple of tensors", stacklevel=4)
            return y
        self.n_results = len(values)
        values, self.results = self._through(ModuleResults, values)
        if self.results is None: return y
        if isinstance(y, Tensor): return values[0]
        return type(y)(*values) if hasattr(y, "_fields") else type(y)(values)

    def _through(self, function, values):
        """(values, places of the tensors): the values with the tensors passed through a node. If no gradient flows to
        any of these, the values as they are, and None."""
        places = [i for i, x in enumerate(values) if isinstance(x, Tensor)]
        if not is_recording() or not any(values[i].requires_grad for i in places): return values, None
        values = list(values)
        for i, x in zip(places, function.apply(self, *(values[i] for i in places)), strict=True): values[i] = x
        return tuple(values), places

    def at_results(self, grads: Grads) -> list[Tensor | None]:
        """Call the hooks for the gradients of the results."""
        given = spread(grads, self.results, self.n_results)
        for hook in self.before:
            given = replaced(hook(self.module, given), given, f"a full backward pre-hook of {self.name()}")
        if self.after and self.inputs is None:      # no gradient flows to the arguments
            nothing: Grads = (None,) * self.n_inputs
            for hook in self.after:
                what = f"a full backward hook of {self.name()}"
                if any(g is not None for g in replaced(hook(self.module, nothing, given), nothing, what)):
                    raise ValueError(f"{what} returned a gradient, but none flows to the arguments of this call; it "
                                     f"may return None")
        elif self.after: self.given = given
        return [given[i] for i in self.results or ()]

    def at_inputs(self, grads: Grads) -> Sequence[Tensor | None]:
        """Call the hooks for the gradients of the arguments."""
        given, self.given = self.given, None
        if given is None: return grads              # (they have not come through the results of the call)
        found = spread(grads, self.inputs, self.n_inputs)
        for hook in self.after:
            found = replaced(hook(self.module, found, given), found, f"a full backward hook of {self.name()}")
        return [found[i] for i in self.inputs or ()]

    def name(self) -> str:
        """The class of the module, for messages."""
        return type(self.module).__name__


def spread(grads: Grads, places: list[int] | None, n: int) -> Grads:
    """A tuple of `n` with the gradients at their places and None elsewhere."""
    out: list[Tensor | None] = [None] * n
    for i, g in zip(places or (), grads, strict=True): out[i] = g
    return tuple(out)


def replaced(values: Any, grads: Grads, what: str) -> Grads:
    """What a hook returned for `grads`: None leaves them, a tuple replaces them, and so does a tensor if there is one.
    Raises ValueError for anything else."""
    if values is None: return grads
    if isinstance(values, Tensor): values = (values,)
    if not isinstance(values, tuple | list) or len(values) != len(grads):
        came = f"{len(values)} values" if isinstance(values, tuple | list) else described(values)
        raise ValueError(f"{what} returned {came}; it may return None, or a tuple of {len(grads)} tensors or None")
    return tuple(values)
