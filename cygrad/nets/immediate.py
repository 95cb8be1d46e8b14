"""Immediate mode: each operator runs as it is added to a net, so its values can be looked at while a net is built."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import local
from types import TracebackType
from typing import Any, Self

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.graph.gradient_slice import GradientSlice as Rows
from cygrad.core.graph.scopes import unscoped
from cygrad.core.graph.symbol import place
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import Operator
from cygrad.nets.gradients import differentiated
from cygrad.nets.operators import Operators, Record


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
        self.heads_of: dict[int, list[Any]] = {}    # what gradient operators have read, by their ids

    def __enter__(self) -> Self:
        self.outer.append(state.scope)
        state.scope = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        state.scope = self.outer.pop()
        if not self.outer:
            self.records.clear()
            self.heads_of.clear()

    def run(self, net: Any, operators: Sequence[Operator]) -> None:
        """Run operators that are being added to `net`. If one fails, no blob has changed."""
        made: dict[str, Any] = {}
        self.constants, self.objects = net.constants, net.objects
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
        if operator.of is None:
            inputs = [None if name is None else self.values[name] for name in operator.inputs]
            return self.record_alone(operator, inputs)
        record = self.record_of(operator.of, operator)
        heads = self.heads(operator, record, self.value)
        self.heads_of[id(operator)] = heads
        return self.parts(self.contributions(operator, self.substituted(operator, record), heads, False))

    def parts(self, found: list[Any]) -> tuple[Any, ...]:
        """Gradients, and the two parts of row-sparse ones."""
        return tuple(part for g in found for part in ((g.indices, g.values) if isinstance(g, Rows) else (g,)))

    def record_of(self, operator: Operator, needed_by: Operator) -> Record:
        """As in the base. An operator that is not of this scope runs now, for its gradient operator, and a gradient
        operator computes its gradients again, recorded."""
        if operator.of is None and id(operator) not in self.records:
            if all(name is None or name in self.values for name in operator.inputs):
                self.record_alone(operator, [None if name is None else self.values[name] for name in operator.inputs])
        if operator.of is None or id(operator) not in self.heads_of: return super().record_of(operator, needed_by)
        first = self.record_of(operator.of, operator)
        heads = [None if g is None else g.detach().requires_grad_() for g in self.heads_of[id(operator)]]
        names = differentiated(operator, self.constants)
        n = len(operator.inputs)
        places = [*(first.place_of(name, self.constants) for name in names[:n - len(heads)]), *map(place, heads),
                  *(first.place_of(name, self.constants) for name in names[n:])]
        found = self.parts(self.contributions(operator, first, heads, True))
        return Record(operator, places, [place(g) for g in found])


def mode(net: Any) -> Any:
    """The scope of a net's mode, in which nothing is recorded."""
    return autograd.pause(train_mode=net.training)


def run_added(net: Any, operators: Sequence[Operator]) -> None:
    """Run operators that are being added to a net, if the thread is in immediate mode."""
    if state.scope is not None: state.scope.run(net, operators)


def is_immediate() -> bool:
    """Whether the thread is in immediate mode."""
    return state.scope is not None
