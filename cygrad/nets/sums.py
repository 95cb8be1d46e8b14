"""Sums of contributions to gradients, which a run adds up without storing the contributions.

A list has a name for each contribution and an operator for each addition. Eager code adds a contribution to the sum as
it is computed, mostly in the kernel that computes it. A run does the same where nothing else reads the names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cygrad.nets.definition import Operator
from cygrad.nets.gradients import ADD, ADD_ROWS

Names = tuple[str, ...]     # one, or two of a GradientSlice


class Addition(NamedTuple):
    """An operator that adds a contribution to a sum: its position, the names of both, and the name of the result."""

    position: int
    before: Names
    last: Names
    total: str


class Additions:
    """The additions of a list of operators; `results` are those of gradient operators, by their ids.

    of_last     additions that may happen as their contribution is computed, by the name of that
    recorded    the others, which are differentiated themselves
    totals      those of of_last by the name of the sum, and `adds` by the names of both that are added"""

    def __init__(self, operators: Sequence[Operator], results: Mapping[int, Sequence[tuple[int, Names]]],
                 recorded: Collection[int]):
        slices = {names[0] for found in results.values() for _, names in found if len(names) == 2}
        self.of_last: dict[str, Addition] = {}
        self.recorded: dict[str, Addition] = {}
        self.totals: dict[str, Addition] = {}
        self.adds: dict[str, Addition] = {}
        for k, o in enumerate(operators):
            if not is_addition(o): continue
            at = len(o.inputs) - 1 if o.inputs[0] in slices or len(o.inputs) == 2 else 1
            inputs: Any = o.inputs                  # (none is None)
            before, last = inputs[:at], inputs[at:]
            made = Addition(k, before, last, o.outputs[0])
            for name in inputs: self.adds[name] = made
            found = self.recorded if id(o) in recorded else self.of_last
            if last[0] in found: continue           # (an edited net reads it twice)
            found[last[0]] = made
            if found is self.of_last: self.totals[made.total] = made

    def contributions(self, name: str) -> tuple[list[Names], list[Addition]]:
        """What the value of a name is the sum of, in this order, and the additions that make it, the last one first.
        """
        waiting: list[Names] = [(name,)]
        found, made = [], []
        while waiting:
            names = waiting.pop()
            a = self.totals.get(names[0]) if len(names) == 1 else None
            if a is None: found.append(names)
            else:
                made.append(a)
                waiting += [a.before, a.last]
        return found[::-1], made


def is_addition(operator: Operator) -> bool:
    """Whether an operator of a backward pass adds two contributions."""
    return (operator.is_gradient and operator.of is None and operator.type in (ADD, ADD_ROWS)
            and len(operator.inputs) == (2 if operator.type == ADD else 3) and None not in operator.inputs)
