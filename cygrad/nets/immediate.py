"""Immediate mode: each operator runs as it is added to a net, so its values can be looked at while a net is built."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import local
from types import TracebackType
from typing import Any, Self

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.graph.scopes import unscoped
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import Operator
from cygrad.nets.gradients import registered
from cygrad.nets.operators import Operators


class ImmediateState(local):
    """The innermost open scope of each thread."""

    scope: "Immediate | None" = None


state = ImmediateState()


class Immediate(Operators):
    """The scope of Workspace.immediate(). `blobs` are the values of the workspace, `used(who)` is the scope in which it
    is in use, and keep(read, made) sets the blobs `made`, and leaves the memory of those that were read as it is."""

    def __init__(self, blobs: dict[str, Tensor], used: Callable[[str], AbstractContextManager[Any]],
                 keep: Callable[[set[str], dict[str, Tensor]], None]):
        super().__init__({}, {}, {})
        self.blobs, self.used, self.keep = blobs, used, keep
        self.outer: list[Immediate | None] = []

    def __enter__(self) -> Self:
        self.outer.append(state.scope)
        state.scope = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        state.scope = self.outer.pop()
        if not self.outer: self.records.clear()

    def run(self, net: Any, operators: Sequence[Operator]) -> None:
        """Run operators that are being added to `net`. If one fails, no blob has changed."""
        made: dict[str, Any] = {}
        self.constants, self.objects = net.constants, net.objects
        for p in net.passes: self.custom |= {id(p.forward[i]): f for i, f in p.custom.items()}
        self.custom |= {id(o): registered[o.type] for o in operators if o.type in registered}
        with self.used("immediate"), mode(net), unscoped():
            for operator in operators:
                self.values = {**net.constants, **net.bindings, **self.blobs, **made}
                outputs = self.outputs(operator)
                for name, y in zip(operator.outputs, outputs, strict=True):
                    if y is not None: made[str(name)] = y
            self.values = {}
            self.keep({str(name) for o in operators for name in o.inputs}, made)

    def outputs(self, operator: Operator) -> tuple[Any, ...]:
        """Run one operator."""
        for name in operator.inputs:
            if name is not None and name not in self.values:
                raise ValueError(f"immediate mode: the blob {described(str(name))} has no value, which "
                                 f"{cut(repr(operator))} needs; feed it before the operator is added")
        if operator.of is not None: return self.gradient_alone(operator)
        return self.record_alone(operator, [None if name is None else self.values[name] for name in operator.inputs])


def mode(net: Any) -> Any:
    """The scope of a net's mode, in which nothing is recorded."""
    return autograd.pause(train_mode=net.training)


def run_added(net: Any, operators: Sequence[Operator]) -> None:
    """Run operators that are being added to a net, if the thread is in immediate mode."""
    if state.scope is not None: state.scope.run(net, operators)


def is_immediate() -> bool:
    """Whether the thread is in immediate mode."""
    return state.scope is not None
