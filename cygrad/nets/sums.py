"""Sums of contributions to gradients, which a run adds up without storing the contributions.

A list has a name for each contribution and an operator for each addition. Eager code adds a contribution to the sum as
it is computed, mostly in the kernel that computes it. A run does the same where nothing else reads the names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cygrad.nets.definition import Operator
from cygrad.nets.gradients import ADD, ADD_ROWS, results_of

Names = tuple[str, ...]     # one, or two of a GradientSlice


class Addition(NamedTuple):
    """An operator that adds a contribution to a sum: its position, the names of both, and the name of the result."""

    position: int
    before: Names
    last: Names
    total: str


class Additions:
    """The additions of a list of operators. `of_last` has those that may happen as their contribution is computed, by
    the name of that, and `recorded` the others, which are differentiated themselves. `adds` has the addition of
    each name that is added to another."""

    def __init__(self, operators: Sequence[Operator], constants: Any, recorded: Collection[int]):
        slices = {names[0] for o in operators if o.of is not None for _, names in results_of(o, constants)
                  if len(names) == 2}
        self.of_last: dict[str, Addition] = {}
        self.recorded: dict[str, Addition] = {}
        self.totals: dict[str, Addition] = {}
        self.adds: dict[str, Addition] = {}
        for k, o in enumerate(operators):
            if not is_addition(o): continue
            at = len(o.inputs) - 1 if o.inputs[0] in slices or len(o.inputs) == 2 else 1
            before, last = tuple(map(str, o.inputs[:at])), tuple(map(str, o.inputs[at:]))
            made = Addition(k, before, last, str(o.outputs[0]))
            self.adds |= dict.fromkeys((*before, *last), made)
            found = self.recorded if id(o) in recorded else self.of_last
            if last[0] in found: continue           # (an edited net reads it twice)
            found[last[0]] = made
            if found is self.of_last: self.totals[made.total] = made

    def contributions(self, name: str) -> list[Names]:
        """What the value of a name is the sum of, in this order."""
        if name not in self.totals: return [(name,)]
        _, before, last, _ = self.totals[name]
        first = [before] if len(before) == 2 else self.contributions(before[0])
        return first + ([last] if len(last) == 2 else self.contributions(last[0]))


def is_addition(operator: Operator) -> bool:
    """Whether an operator of a backward pass adds two contributions."""
    return (operator.is_gradient and operator.of is None and operator.type in (ADD, ADD_ROWS)
            and len(operator.inputs) == (2 if operator.type == ADD else 3) and None not in operator.inputs)


def uses(names: Sequence[Sequence[str]]) -> Mapping[str, list[int]]:
    """The positions of the operators that use each name, which the arguments list for each operator."""
    found: dict[str, list[int]] = {}
    for k, used in enumerate(names):
        for name in dict.fromkeys(used): found.setdefault(name, []).append(k)
    return found
