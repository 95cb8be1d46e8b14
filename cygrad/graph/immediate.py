"""Immediate mode: each operator runs as it is added to a net, so its values can be looked at while a net is built."""

from collections.abc import Sequence
from threading import local
from types import TracebackType
from typing import Any, Self

from cygrad.core.errors import cut
from cygrad.core.graph.tensor import Tensor
from cygrad.graph.definition import Operator
from cygrad.graph.lowering import Operators


class State(local):
    """The innermost open scope of each thread."""

    scope: "Immediate | None" = None


state = State()


class Immediate(Operators):
    """The scope of Workspace.immediate(). `blobs` are the values of the workspace."""

    def __init__(self, blobs: dict[str, Tensor]):
        super().__init__({}, {}, {})
        self.blobs = blobs
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
        for operator in operators:
            self.values = {**net.constants, **net.bindings, **self.blobs, **made}
            for name in operator.inputs:
                if name is not None and name not in self.values:
                    raise ValueError(f"immediate mode: the blob {str(name)!r} has no value, which {cut(repr(operator))} "
                                     f"needs; feed it before the operator is added")
            inputs = [None if name is None else self.values[name] for name in operator.inputs]
            outputs = self.gradient_alone(operator) if operator.of is not None else self.record_alone(operator, inputs)
            if not isinstance(outputs, (tuple, list)): outputs = () if outputs is None else (outputs,)
            if len(outputs) != len(operator.outputs):
                raise ValueError(f"{operator.type} gave {len(outputs)} result{'s' * (len(outputs) != 1)} for "
                                 f"{len(operator.outputs)} outputs")
            made |= {str(name): y for name, y in zip(operator.outputs, outputs, strict=True) if y is not None}
        self.blobs.update(made)


def run_added(net: Any, operators: Sequence[Operator]) -> None:
    """Run operators that are being added to a net, if the thread is in immediate mode."""
    if state.scope is not None: state.scope.run(net, operators)


def is_immediate() -> bool:
    """Whether the thread is in immediate mode."""
    return state.scope is not None
