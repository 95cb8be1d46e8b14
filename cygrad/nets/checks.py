"""What operators of a known type take: their inputs and arguments are checked when they are added to a net."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cygrad.core.errors import cut, described
from cygrad.nets.definition import (
    DENSE, IF, NEGATE, NETS_OF, PYTHON, STOP, WHILE, ZERO, NetArgument, Operator, shown_name,
)
from cygrad.nets.gradients import (
    ADD_ROWS, DEDUPLICATE, MOVE, ONES, RANDOM, SOLVER, ZERO_GRAD, ZEROS, ZEROS_LIKE,
)
from cygrad.nets.versions import DROPOUT
from cygrad.ops.calls import arguments_taken, fits, in_words, operand_names, operands
from cygrad.ops.table import ROWS

if TYPE_CHECKING:
    def cache(user_function, /): return user_function       # (functools hides the parameters)
else: from functools import cache


class Taken(NamedTuple):
    """What the operators of a type take: operands as in ops/calls.py, the arguments that they need, and the others;
    None for any."""

    operands: tuple[str, ...]
    needed: tuple[str, ...] = ()
    others: tuple[str, ...] | None = ()


TAKEN = {                                           # by the types that are no rows of the table
    **dict.fromkeys((STOP, ZERO, NEGATE, DENSE, ONES, ZEROS_LIKE), Taken(("x",))),
    ADD_ROWS: Taken(("x", "y", "z")),               # a dense gradient, and the indices and values of a sparse one
    DEDUPLICATE: Taken(("indices", "values"), (), ("op",)),
    DROPOUT: Taken(("x",), (), ("p",)),
    ZEROS: Taken(("x?",), ("shape", "dtype"), ("axis",)),       # (-1 in the shape: the size of this axis of x)
    ZERO_GRAD: Taken(("*variables",), (), ("to", "solver")),
    MOVE: Taken(("running_mean", "running_var", "statistics"), ("factor",)),
    RANDOM: Taken((), ("law", "shape", "numbers", "dtype")),
    SOLVER: Taken(("*parameters",), ("solver", "method", "arguments")),
    IF: Taken(("condition", "*inputs"), NETS_OF[IF]),
    WHILE: Taken(("*inputs",), NETS_OF[WHILE], ("turns",)),
}
MOST_TURNS = (1 << 31) - 1
OWN = {"inplace", "recorded", "generator"}          # arguments that a net has, and no row


@cache
def taken_by(kind: str) -> Taken | None:
    """What the operators of a type take; None: the type is unknown."""
    if kind in TAKEN: return TAKEN[kind]
    return Taken(operands(kind), *arguments_taken(kind)) if kind in ROWS else None


def check_operator(operator: Operator, who: str) -> None:
    """Raise ValueError for another number of inputs than the type of an operator takes, and TypeError for other
    arguments. A gradient operator, and one of an unknown type, can have any."""
    kind = operator.type
    if kind not in NETS_OF and operator.is_gradient or operator.of is not None or kind == PYTHON: return
    taken = taken_by(kind)
    if taken is None: return
    check_inputs(operator, taken, who)
    for name in operator.arguments:
        if name in OWN or name in taken.needed or taken.others is None or name in taken.others: continue
        names = [n.strip("?*[]") for n in taken.operands]
        advice = f"it is an input, so pass it in the list of inputs: {shown(names)}" if name in names else \
            f"its arguments are {shown((*taken.needed, *taken.others))}"
        raise TypeError(f"{who}: {kind} has no argument {described(name)}; {advice}")
    for name in taken.needed:
        if name not in operator.arguments and not (name == "seed" and "generator" in operator.arguments):
            raise TypeError(f"{who}: {kind}: the argument {name!r} is missing; pass it by keyword")
    if kind in NETS_OF: check_nets(operator, who)


def check_nets(operator: Operator, who: str) -> None:
    """Raise TypeError or ValueError if the nets of an If or a While do not have its inputs and outputs."""
    kind, turns = operator.type, operator.arguments.get("turns")
    if turns is not None and (isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MOST_TURNS):
        raise ValueError(f"{who}: {kind}: turns must be None or an int from 1 to {MOST_TURNS:,}, got "
                         f"{described(turns)}")
    n, m = len(operator.inputs) - (kind == IF), len(operator.outputs)
    if kind == WHILE and m > n:
        raise ValueError(f"{who}: While has {m} outputs, but only {n} input{'s' * (n != 1)}; each output is the last "
                         f"value of an input, the first output that of the first input")
    for name in NETS_OF[kind]:
        net = operator.arguments[name]
        if not isinstance(net, NetArgument):
            raise TypeError(f"{who}: {kind}: {name} must be a Net, got {described(net)}; add the operator with "
                            f"add_operator({kind!r}, inputs, outputs, {name}=net)")
        if len(net.inputs) != n:
            raise ValueError(f"{who}: {kind} gives {n} input{'s' * (n != 1)} to {name}, the net {cut(net.name)}, which "
                             f"takes {len(net.inputs)}: {cut(', '.join(net.inputs)) or 'none'}; inputs are matched by "
                             f"their positions; assign net.inputs, which can have names that no operator reads")
        wanted = 1 if name == "condition" else m
        if len(net.outputs) != wanted:
            of = "a condition has one output" if name == "condition" else f"{kind} has {m}"
            raise ValueError(f"{who}: {kind}: {name}, the net {cut(net.name)}, has {len(net.outputs)} "
                             f"output{'s' * (len(net.outputs) != 1)}, {cut(', '.join(net.outputs)) or 'none'}, but "
                             f"{of}; assign net.outputs")


def check_inputs(operator: Operator, taken: Taken, who: str) -> None:
    kind, inputs = operator.type, operator.inputs
    if not fits(taken.operands, len(inputs)):
        words, got = in_words(taken.operands), cut(shown([shown_name(name) for name in inputs]))
        raise ValueError(f"{who}: {kind} takes the inputs {shown(words)}; got {len(inputs)} "
                         f"input{'s' * (len(inputs) != 1)}: {got}; pass those that it takes in one list, and its other "
                         f"arguments by keyword")
    if None not in inputs: return
    for name, blob in zip(operand_names(taken.operands, len(inputs)), inputs, strict=True):
        if blob is None and f"{name}?" not in taken.operands:
            raise ValueError(f"{who}: {kind} takes the inputs {shown(in_words(taken.operands))}; got None for {name}; "
                             f"pass a blob or a number")


def shown(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
