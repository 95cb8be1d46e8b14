"""If and While: which net runs, and how often, is known when the operator runs.

Both have one gradient, for eager code and for plans, so the bits are the same. That of an If is the gradient of the
net that has run. A While keeps the values that each turn began with; its gradient goes from the last turn to the first,
and computes each of them again, with what it has drawn from generators.

In eager code the nets run operator by operator. While a program is traced, each If, While and gradient of one becomes a
step that calls programs of its own (core/execute/control.pyx)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

import cygrad.autograd as autograd
from cygrad.autograd.function import Function
from cygrad.core.errors import described
from cygrad.core.execute.control import (
    SubProgram, choose, dense, refuse_planning, refuse_turns, repeat, repeat_back,
)
from cygrad.core.graph.gradient_slice import GradientSlice as Rows
from cygrad.core.graph.planning import is_tracing, item, split_here
from cygrad.core.graph.symbol import place
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros
from cygrad.core.interop.numpy import asarray
from cygrad.nets.definition import IF, NETS_OF, WHILE, Operator
from cygrad.nets.immediate import mode
from cygrad.nets.lowering import Run
from cygrad.nets.operators import RUNNERS
from cygrad.nets.passes import names_of
from cygrad.nets.subnets import Subnet

Values = Sequence[Any]
States = list[tuple[Any, Any]]      # generators, and their states
GRADIENT = " (backward)"    # how the names of the steps of a backward pass end
WHO = "If and While"


def run_nets(operator: Operator, inputs: Values) -> tuple[Any, ...]:
    """The outputs of an If or a While, recorded if this thread records."""
    function: Any = If if operator.type == IF else While
    given = [dense(x) if isinstance(x, Tensor) else x for x in inputs]
    n = 1 if operator.type == IF else len(operator.outputs)
    given[:n] = map(asarray, given[:n])             # (numbers become tensors: the condition, or what is carried)
    if operator.type == IF: check_condition(operator, given[0])
    if is_tracing(): refuse_planning(f"the operator {operator.type}")
    if autograd.is_recording(): return tuple(function.apply(operator, *given))
    return tuple(If.compute(operator, given) if function is If else While.compute(operator, given, False)[0])


def check_condition(operator: Operator, x: Tensor) -> Tensor:
    if x.size == 1: return x
    raise ValueError(f"{operator.type}: the condition must have one element, got {described(x)}; reduce it with any() "
                     f"or all()")


def without_graph(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


def tensors_in(values: Values) -> list[Tensor]:
    return [x for x in values if isinstance(x, Tensor)]


def is_floating(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.kind == "f"


# ---- one run of a net ------------------------------------------------------------------------------------------------

def results(net: Subnet, values: Values) -> list[Tensor]:
    """The outputs of a net, in memory of their own."""
    with mode(net.net): found = Run(net.net, dict(zip(net.inputs, values, strict=True)), net.outputs).execute()
    return owned(net, values, {**dict(zip(net.inputs, values, strict=True)), **found})


def owned(net: Subnet, values: Values, found: Mapping[str, Any]) -> list[Tensor]:
    """The outputs of a net, without a graph and in memory of their own."""
    made, taken = [], {item(x)[7] for x in (*values, *net.net.constants.values()) if isinstance(x, Tensor)}
    for name in net.outputs:
        y = asarray(found[name])
        copied = place(y) is not None or item(y)[7] in taken and not is_tracing()      # (a program copies its results)
        y = y.detach().copy() if copied else dense(y)
        taken.add(item(y)[7])
        made.append(y)
    return made


def gradients(net: Subnet, values: Values, heads: Values, wanted: Sequence[bool]) -> list[Tensor]:
    """The gradients of the wanted inputs of a net, from those of its outputs; None is an output without one."""
    made, names, found = net.gradients(tuple(g is not None for g in heads), tuple(wanted), WHO)
    values = [*map(without_graph, values)]
    given = dict(zip(net.inputs, values, strict=True)) | dict(zip(names, [g for g in heads if g is not None],
                                                                  strict=True))
    with mode(net.net): got = Run(made, given, all_names(found)).execute()
    return collected(net, values, wanted, found, {**given, **got})      # (a head can be a gradient)


def all_names(found: Mapping[str, Any]) -> set[str]:
    return {name for g in found.values() for name in names_of(g)}


def collected(net: Subnet, values: Values, wanted: Sequence[bool], found: Mapping[str, Any],
              got: Mapping[str, Any]) -> list[Tensor]:
    """The gradients of the wanted inputs, dense; zeros where there is none. `found` has their names."""
    result = []
    for name, x, f in zip(net.inputs, values, wanted, strict=True):
        if not f: continue
        parts = [got.get(n) for n in names_of(found[name])] if name in found else [None]
        rows: Any = Rows                            # (its stub has no constructor)
        g = zeros(x.shape, dtype=x.dtype) if parts[0] is None else dense(
            parts[0] if len(parts) == 1 else rows(*parts, x.shape).to_dense())
        result.append(g.detach())
    return result


class HalfRun(Run):
    """A run that stops before its backward pass. What that reads is kept."""

    def end_part(self) -> None:
        """(The results of the first part are read when it ends.)"""


class Halves:
    """A net and its gradient, which runs later. `floating`: which outputs have a gradient."""

    def __init__(self, net: Subnet, values: Values, floating: Sequence[bool], wanted: Sequence[bool]):
        made, self.heads, self.found = net.gradients(tuple(floating), tuple(wanted), WHO)
        values = [*map(without_graph, values)]
        self.net, self.values, self.wanted, self.stop = net, values, wanted, len(net.net.operators)
        given = dict(zip(net.inputs, values, strict=True)) | dict.fromkeys(self.heads)
        self.run = HalfRun(made, given, {*net.outputs, *all_names(self.found)}, split=self.stop)

    def first(self) -> list[Tensor]:
        """The outputs."""
        with mode(self.net.net):
            self.run.begin_run()
            self.run.go_on(self.stop)
        return owned(self.net, self.values, self.run.values)

    def second(self, heads: Values) -> list[Tensor]:
        """The gradients of the wanted inputs from those of the outputs, once."""
        for name, g in zip(self.heads, heads, strict=True): self.run.set_value(name, g, 0)
        with mode(self.net.net): self.run.go_on(len(self.run.operators))
        return collected(self.net, self.values, self.wanted, self.found, self.run.values)


class Kind(NamedTuple):
    """What a tensor will be."""

    shape: tuple[int, ...]
    dtype: str


def kind_of(x: Any) -> Kind:
    return x if isinstance(x, Kind) else Kind(tuple(x.shape), np.dtype(x.dtype).name)


def traced(f: Any, values: Values, more: Values = (), parts: bool = False) -> Any:
    """The program of f(values, *more), of which the tensors, or kinds, are arguments; numbers and None are part of it.
    """
    places = [k for k, x in enumerate(values) if isinstance(x, Tensor | Kind)]

    def run(*arguments: Tensor) -> list[Tensor]:
        given: list[Any] = [*values]
        for k, x in zip(places, arguments, strict=False): given[k] = x
        return f(given, *arguments[len(places):])   # type: ignore[no-any-return]

    return SubProgram(parts, run, *[tuple(kind_of(values[k])) for k in places], *[tuple(kind_of(x)) for x in more])


@contextmanager
def drawing_from(states: States) -> Iterator[None]:
    """A scope in which generators are at other positions."""
    before = [(g, g.state) for g, _ in states]
    try:
        for g, state in states: g.state = state
        yield
    finally:
        for g, state in before: g.state = state


def states_of(*nets: Subnet) -> States:
    """The positions of all generators from which nets can draw."""
    found = {id(g): g for net in nets for g in net.generators()}
    return [(g, g.state) for g in found.values()]


def keep(ctx: Any, values: Values, *more: Tensor | None) -> None:
    """Keep the values that a gradient reads."""
    ctx.others = [None if isinstance(x, Tensor) else x for x in values]
    ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in values], *more)


def kept(ctx: Any) -> tuple[list[Any], list[Any]]:
    """The values that keep() has kept, and what came after them."""
    found, n = ctx.saved_tensors, len(ctx.others)
    return [x if x is not None else y for x, y in zip(found[:n], ctx.others, strict=True)], [*found[n:]]


def spread(found: Values, wanted: Sequence[bool]) -> list[Any]:
    """The wanted gradients, with None for the others."""
    left = iter(found)
    return [next(left) if f else None for f in wanted]


# ---- If --------------------------------------------------------------------------------------------------------------

class If(Function):
    """The outputs of `then` where the condition is true, else those of `otherwise`."""

    @staticmethod
    def compute(o: Operator, inputs: Values) -> list[Tensor]:
        """The outputs, if there will be no gradient."""
        condition, values = inputs[0], inputs[1:]
        if not is_tracing(): return results(branch(o, condition), values)
        return choose(o.type, condition, alike(o, values), tensors_in(values))[0]   # type: ignore[no-any-return]

    @staticmethod
    def forward(ctx: Any, o: Operator, *inputs: Any) -> Any:
        condition, values = inputs[0], inputs[1:]
        wanted = [f and is_floating(x) for f, x in zip(ctx.needs_input_grad[2:], values, strict=True)]
        ctx.operator, ctx.wanted, ctx.halves = o, wanted, []
        if not any(wanted): return tuple(If.compute(o, inputs))
        if not is_tracing():
            net = branch(o, condition)
            ctx.states = states_of(net)
            halves = Halves(net, values, [True] * len(o.outputs), wanted)
            outputs = halves.first()
            if all(map(is_floating, outputs)): ctx.halves.append(halves)
            keep(ctx, inputs)
            return tuple(outputs)
        heads = [Kind(*kind) for kind in alike(o, values)[0].shapes]
        floating = [np.dtype(kind.dtype).kind == "f" for kind in heads]
        ctx.programs = tuple(traced(If.parts(net, len(values), floating, wanted),
                                    [*values, *(kind for kind, f in zip(heads, floating, strict=True) if f)],
                                    parts=True)
                             for net in branches(o))
        outputs, kept_values = choose(o.type, condition, ctx.programs, tensors_in(values), 1)
        keep(ctx, inputs, kept_values)
        return tuple(outputs)

    @staticmethod
    def parts(net: Subnet, n: int, floating: Sequence[bool], wanted: Sequence[bool]) -> Any:
        """A function of the n inputs of a net and of heads, which gives its outputs, and then gradients."""
        def f(both: list[Any]) -> Iterator[Tensor]:
            halves = Halves(net, both[:n], floating, wanted)
            yield from halves.first()
            split_here()
            yield from halves.second(both[n:])

        return f

    @staticmethod
    def backward(ctx: Any, *heads: Any) -> Any:
        o, ((condition, *values), more) = ctx.operator, kept(ctx)
        given = [dense(g) for g in heads if is_floating(g)]
        if is_tracing():
            found, _ = choose(o.type + GRADIENT, condition, ctx.programs, tensors_in([*values, *given]), 2, *more)
            return None, None, *spread(found, ctx.wanted)
        if ctx.halves: halves = ctx.halves.pop()
        else:                                       # (a second pass, or an output that is an integer)
            halves = Halves(branch(o, condition), values, [*map(is_floating, heads)], ctx.wanted)
            with drawing_from(ctx.states): halves.first()
        return None, None, *spread(halves.second(given), ctx.wanted)


def alike(o: Operator, values: Values) -> tuple[Any, ...]:
    """The programs of both nets of an If. Raises ValueError unless their results have the same shapes and dtypes."""
    programs = tuple(traced(lambda given, net=net: results(net, given), values) for net in branches(o))
    for name, a, b in zip(o.outputs, *(p.shapes for p in programs), strict=True):
        if a != b: refuse_other(o, name, f"then gives {shown(a)} and otherwise {shown(b)}")
    return programs


def branches(o: Operator) -> list[Subnet]:
    return [o.arguments[key] for key in NETS_OF[IF]]


def branch(o: Operator, condition: Tensor) -> Subnet:
    """The net that runs."""
    return branches(o)[0 if condition.numpy().any() else 1]


def shown(kind: tuple[tuple[int, ...], Any]) -> str:
    """A shape and a dtype in a message."""
    return f"{np.dtype(kind[1]).name} {kind[0]}"


def refuse_other(o: Operator, name: str, what: str) -> NoReturn:
    """Raise ValueError for results of different shapes or dtypes."""
    advice = "both must have the same shape and dtype" if o.type == IF else "the shape and the dtype must stay"
    raise ValueError(f"{o.type}: for {described(str(name))}, {what}; {advice}")


# ---- While -----------------------------------------------------------------------------------------------------------

class While(Function):
    """The carried values after the last turn, the first inputs being those before the first one."""

    @staticmethod
    def compute(o: Operator, inputs: Values, keeps: bool) -> tuple[list[Tensor], Any]:
        """The outputs, and what the gradient needs of the turns: their values, and what has the positions of generators
        before them."""
        condition, body = (o.arguments[key] for key in NETS_OF[WHILE])
        n = len(o.outputs)
        bound: Any = o.arguments.get("turns")
        if is_tracing():
            programs = tuple(traced(f, inputs) for f in (lambda given: [While.goes_on(o, condition, given)],
                                                         lambda given: While.turn(o, body, given)))
            made, history, generators = repeat(o.type, programs, tensors_in(inputs), -1 if bound is None else bound,
                                               keeps)
            return made, ([history], generators)
        values, start = [*inputs], states_of(condition, body)
        rows = [zeros((bound, *x.shape), dtype=x.dtype) for x in values[:n]] if keeps else []
        positions: list[States] = []                # before each turn
        turns = 0
        while While.goes_on(o, condition, values).numpy().any():
            if turns == bound:
                for g, state in start: g.state = state
                refuse_turns(bound)
            for row, x in zip(rows, values, strict=False): row[turns] = x
            positions.append(states_of(body) if keeps else [])
            values[:n] = While.turn(o, body, values)
            turns += 1
        return values[:n] if turns else [x.copy() for x in values[:n]], (rows, positions)

    @staticmethod
    def goes_on(o: Operator, condition: Subnet, values: Values) -> Tensor:
        """The value of the condition."""
        return check_condition(o, results(condition, values)[0])

    @staticmethod
    def turn(o: Operator, body: Subnet, values: Values) -> list[Tensor]:
        """The carried values after a turn."""
        made = results(body, values)
        for name, x, y in zip(o.outputs, values, made, strict=False):
            if kind_of(x) != kind_of(y):
                refuse_other(o, name, f"the body gives {shown(kind_of(y))}, and a turn began with {shown(kind_of(x))}")
        return made

    @staticmethod
    def forward(ctx: Any, o: Operator, *inputs: Any) -> Any:
        n, bound = len(o.outputs), o.arguments.get("turns")
        outputs, history = While.compute(o, inputs, bound is not None and any(ctx.needs_input_grad))
        if bound is None: ctx.mark_non_differentiable(*outputs)     # (gradients.without_gradient says why)
        ctx.operator, ctx.carried = o, [*map(kind_of, inputs[:n])]
        rows, ctx.positions = history
        keep(ctx, inputs[n:], *rows)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *heads: Any) -> Any:
        o, (others, rows), carried = ctx.operator, kept(ctx), ctx.carried
        body, n = o.arguments["body"], len(carried)
        floating = [is_floating(g) for g in heads]
        given = [dense(g) for g in heads if is_floating(g)]
        wanted = [f and is_floating(x) for f, x in zip(ctx.needs_input_grad[1 + n:], others, strict=True)]
        sums: list[Any] = [kind_of(x) for x, f in zip(others, wanted, strict=True) if f]

        def turn_back(values: Values, heads: Values) -> tuple[list[Tensor], list[Tensor]]:
            """The gradients of the carried values before a turn, and those of other inputs."""
            found = gradients(body, values, spread(heads, floating), [*floating, *wanted])
            return found[:len(given)], found[len(given):]

        if is_tracing():
            def f(values: list[Any], *sums: Tensor) -> list[Tensor]:
                found, more = turn_back(values[:n + len(others)], values[n + len(others):])
                for total, g in zip(sums, more, strict=True): total += g
                return found

            program = traced(f, [*carried, *others, *given], sums)
            given, sums = repeat_back(o.type + GRADIENT, program, rows[0], ctx.positions, tensors_in(others), given,
                                      [*map(tuple, carried)], [*map(tuple, sums)], o.arguments["turns"])
        else:
            totals: list[Any] = [None] * len(sums)
            for turn in range(len(ctx.positions) - 1, -1, -1):
                with drawing_from(ctx.positions[turn]):
                    given, more = turn_back([*(row[turn] for row in rows), *others], given)
                totals = [g if total is None else total + g for total, g in zip(totals, more, strict=True)]
            sums = [zeros(kind.shape, dtype=kind.dtype) if total is None else total
                    for kind, total in zip(sums, totals, strict=True)]
        return None, *spread(given, floating), *spread(sums, wanted)


RUNNERS |= {IF: run_nets, WHILE: run_nets}
