"""Functions that a run calls before and after each operator of a net."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from cygrad.core.errors import cut
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import Operator
from cygrad.nets.gradients import Pass

Hook = Callable[[Operator, Mapping[str, Any]], object]


class Hooks:
    """Calls before(operator, values) and after(operator, values) at each operator of a net, in their order. Those of a
    whole backward pass follow the nodes of its graph."""

    def __init__(self, operators: tuple[Operator, ...], before: Hook | None, after: Hook | None):
        self.operators, self.before, self.after = operators, before, after
        self.nodes: dict[int, Any] = {}         # of the outputs of operators, by their ids
        self.open: int | None = None            # the operator that runs
        self.values: dict[str, Any] = {}
        self.raised = False                     # by one of the functions

    def begin(self, k: int, values: dict[str, Any]) -> None:
        """Operator k begins."""
        self.open, self.values = k, values
        if self.before is not None: self.call("before", self.before, k, values)

    def end(self, values: dict[str, Any]) -> None:
        """The operator that runs ends."""
        if self.open is not None and self.after is not None: self.call("after", self.after, self.open, values)
        self.open, self.values = None, {}

    def call(self, what: str, f: Hook, k: int, values: dict[str, Any]) -> None:
        try: f(self.operators[k], MappingProxyType(values))
        except Exception as e:
            self.raised = True
            e.add_note(f"cygrad: the function `{what}` raised this at operator {k}, {cut(repr(self.operators[k]))}; "
                       f"the operator did not fail")
            raise

    def watch(self, operator: Operator, outputs: Iterable[Any]) -> None:
        """Remember the node of an operator."""
        nodes = [y.grad_fn for y in outputs if isinstance(y, Tensor) and y.grad_fn is not None]
        if nodes: self.nodes[id(operator)] = nodes[0]

    def follow(self, k: int, p: Pass, values: dict[str, Any]) -> None:
        """The operators of a pass, which begin at k, run next: each when the node of its own operator has its turn."""
        self.begin(k, values)
        for i, o in enumerate(p.operators):
            node = self.nodes.pop(id(o.of), None) if o.of is not None else None
            if node is not None: node.register_prehook(partial(self.proceed, k + i))

    def proceed(self, k: int, gradients: Any = None) -> None:
        """All operators up to k begin, and those before it end."""
        while self.open is not None and self.open < k:
            at, values = self.open, self.values
            self.end(values)
            self.begin(at + 1, values)
