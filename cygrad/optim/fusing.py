"""Updates that are fused into backward: the gradient of a parameter goes into its update as soon as it is complete, and
its memory is free before the next one is computed."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from weakref import ref

from cygrad.core.backward.hooks import is_consumed, register
from cygrad.core.graph.symbol import place_of
from cygrad.core.graph.tensor import Tensor


def refuse_fused(solver: Any, what: str) -> None:
    """Raise RuntimeError for what needs gradients in .grad, or other parameters, while the updates of a solver are
    fused. (Other libraries' solvers have none.)"""
    if getattr(solver, "fused", None) is None: return
    raise RuntimeError(f"{what}: the updates of this solver are fused into backward, so gradients are not stored; "
                       f"close() what fuse_into_backward() returned first")


class Consumer:
    """Takes the complete gradients of one parameter. The engine calls it instead of storing them in .grad, unless it
    returns False."""

    def __init__(self, solver: Any, name: str):
        self.solver, self.name = ref(solver), name

    def __call__(self, gradient: Any) -> bool:
        solver = self.solver()
        return solver is not None and bool(solver._consume(self.name, gradient))


class FusedUpdates:
    """What Solver.fuse_into_backward() returns. close() ends it, and so does the end of a `with` block; a handle that
    is not kept leaves it on. `rate` is the decay that weight_decay() has set for the next backward pass."""

    def __init__(self, solver: Any, parameters: dict[str, Tensor]):
        self._solver, self.rate = ref(solver), 0.0
        for name, x in parameters.items():
            if not is_consumed(place_of(x)[0]): continue
            raise RuntimeError(f"fuse_into_backward: another solver has fused the updates of {name!r}; close() what "
                               f"its fuse_into_backward() returned first")
        self._handles = [register(place_of(x)[0], "consumed", Consumer(solver, name)) for name, x in parameters.items()]

    def close(self) -> None:
        """Let gradients go to .grad again. A second call does nothing."""
        for handle in self._handles: handle.remove()
        self._handles = []
        solver = self._solver()
        if solver is not None and solver.fused is self: solver.fused = None

    def __enter__(self) -> Self:
        if not self._handles:
            raise RuntimeError("fuse_into_backward: these updates are closed; call fuse_into_backward() again")
        return self

    def __exit__(self, kind: type[BaseException] | None = None, value: BaseException | None = None,
                 traceback: TracebackType | None = None) -> None:
        self.close()
