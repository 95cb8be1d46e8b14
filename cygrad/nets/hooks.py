"""Functions that a run calls before and after each operator of a net."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from cygrad.core.errors import cut
from cygrad.nets.definition import Operator

Hook = Callable[[Operator, Mapping[str, Any]], object]


class Hooks:
    """Calls before(operator, values) and after(operator, values) at each operator of a net, in their order."""

    def __init__(self, operators: tuple[Operator, ...], before: Hook | None, after: Hook | None):
        self.operators, self.before, self.after = operators, before, after
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
