"""Running single operators of a net by eager code: forward, recorded, and the gradient of a recorded operator.

A gradient operator runs the gradient of its own operator: the nodes that this recorded, from its outputs to the places
in the graph of its inputs. So its bits are those of eager code."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cygrad.autograd as autograd
from cygrad.autograd.function import Function
from cygrad.core.backward.listed import ListedPass, described_place, is_gradient_at, node_on, written_place
from cygrad.core.errors import cut, described
from cygrad.core.graph.planning import is_tracing
from cygrad.core.graph.symbol import place
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros_like
from cygrad.core.interop.numpy import asarray
from cygrad.nets.built_in import apart, forward
from cygrad.nets.definition import ZERO, Operator
from cygrad.nets.gradients import differentiated, kept_names, targets_of, wanted_of
from cygrad.nets.versions import is_in_place

Place = tuple[Any, int]     # (node, output number) in the graph

# How operators of a type run that run nets, and record themselves: branches.py, which imports this module, sets it.
RUNNERS: dict[str, Callable[[Operator, list[Any]], tuple[Any, ...]]] = {}


def run_forward(operator: Operator, inputs: list[Any], objects: Mapping[str, Any],
                writes: bool = True) -> tuple[Any, ...]:
    """The outputs of an operator, by eager code; see forward()."""
    outputs = flat(forward(operator, inputs, objects, writes))
    if len(outputs) == len(operator.outputs): return outputs
    raise ValueError(f"{operator.type} gave {len(outputs)} result{'s' * (len(outputs) != 1)} for "
                     f"{len(operator.outputs)} output{'s' * (len(operator.outputs) != 1)}; add it with a name for each "
                     f"result")


def flat(found: Any) -> tuple[Any, ...]:
    """The tensors of a result, which can be tuples inside each other."""
    if isinstance(found, Tensor): return (found,)
    if isinstance(found, (tuple, list)): return tuple(y for part in found for y in flat(part))
    return (found,)


# ---- Python operators ------------------------------------------------------------------------------------------------

class Custom(Function):
    """A Python operator with a grad_f."""

    @staticmethod
    def forward(ctx: Any, run: Any, grad_f: Any, *inputs: Any) -> Any:
        outputs = run(inputs)
        ctx.grad_f, ctx.n = grad_f, len(inputs)
        ctx.others = [None if isinstance(x, Tensor) else x for x in inputs]     # (numbers and missing operands)
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in inputs], *outputs)
        return outputs if len(outputs) != 1 else outputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = ctx.saved_tensors
        inputs = [x if x is not None else other for x, other in zip(saved[:ctx.n], ctx.others, strict=True)]
        given = ctx.grad_f(inputs, [*saved[ctx.n:]], [*gradients])
        found = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(found) != len(inputs):
            raise ValueError(f"grad_f of a Python operator gave {len(found)} gradient{'s' * (len(found) != 1)} for "
                             f"{len(inputs)} inputs; use None where there is none")
        for g in found:
            if autograd.is_recording() and g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"grad_f of a Python operator gave {described(g)}, which has no second derivative; "
                                   f"compute it from its arguments by operators of cygrad")
        return None, None, *[None if g is None else asarray(g) for g in found]


# ---- running ---------------------------------------------------------------------------------------------------------

class Record(NamedTuple):
    """An operator that ran recorded: the places of what it can be differentiated for (gradients.differentiated), and
    of its outputs. None: no gradient flows there."""

    operator: Operator
    inputs: list[Place | None]
    outputs: list[Place | None]

    def place_of(self, name: str | None, constants: Any) -> Place | None:
        """The place of a blob that the operator reads or writes."""
        for names, places in ((self.operator.outputs, self.outputs),
                              (differentiated(self.operator, constants), self.inputs)):
            if name in names: return places[names.index(name)]
        return None


class Operators:
    """Running single operators on named values. `records` has the operators that ran recorded, by their ids."""

    def __init__(self, values: dict[str, Any], constants: Mapping[str, Any], objects: Mapping[str, Any]):
        self.values, self.constants, self.objects = values, constants, objects
        self.records: dict[int, Record] = {}
        self.recording = autograd.record(train_mode=None)       # (a scope that can be entered again)

    def value(self, name: str) -> Any:
        if name not in self.values:
            raise RuntimeError(f"the blob {described(str(name))} has no value: it is a gradient that does not exist, "
                               f"of integers or of a blob on which no head depends")
        return self.values[name]

    def operands(self, operator: Operator) -> list[Any]:
        """The values of the inputs of an operator."""
        try: return [None if name is None else self.values[name] for name in operator.inputs]
        except KeyError: return [None if name is None else self.value(name) for name in operator.inputs]

    def compute(self, operator: Operator, inputs: list[Any], writes: bool = True) -> tuple[Any, ...]:
        """The outputs of an operator, recorded if this thread records; see forward()."""
        if operator.type in RUNNERS: return RUNNERS[operator.type](operator, inputs)
        grad_f = operator.function[1] if operator.function is not None else None
        if grad_f is None or not operator.outputs or not autograd.is_recording():
            return run_forward(operator, inputs, self.objects, writes)
        return flat(Custom.apply(lambda xs: run_forward(operator, list(xs), self.objects, False), grad_f, *inputs))

    def record(self, operator: Operator, inputs: list[Any]) -> tuple[Any, ...]:
        """The outputs of an operator, which runs recorded, as its gradient operator needs it."""
        places = [place(x) for x in inputs]
        with self.recording:
            if not is_in_place(operator):
                outputs = self.compute(operator, inputs)
                written = [place(y) for y in outputs]
            elif is_tracing():
                outputs = self.compute(operator, inputs)
                written = [written_place(outputs[0])] if place(outputs[0]) else [None]
            else:                                   # (a formula may keep the old value, so it reads a copy)
                target = inputs[operator.inputs.index(operator.outputs[0])]
                made = self.compute(operator, apart(inputs, target), False)
                written, outputs = [place(made[0])], (target.copy_(made[0]),)
        self.records[id(operator)] = Record(operator, places, written)
        return outputs

    def record_alone(self, operator: Operator, inputs: list[Any]) -> tuple[Any, ...]:
        """The outputs of an operator, recorded for itself: inputs that can have a gradient become variables, and its
        outputs have no graph."""
        target = inputs[operator.inputs.index(operator.outputs[0])] if is_in_place(operator) else None
        given = inputs if target is None else apart(inputs, target)
        alone: dict[Any, Any] = dict(zip(operator.inputs, given, strict=True))
        for name in [operator.inputs[i] for i in targets_of(operator, self.constants)]:
            x = alone[name]
            if isinstance(x, Tensor) and x.dtype.kind == "f": alone[name] = x.detach().requires_grad_()
        xs = [alone[name] for name in operator.inputs]
        with autograd.record(train_mode=None): outputs = self.compute(operator, xs, False)
        self.records[id(operator)] = Record(operator, [place(x) for x in xs], [place(y) for y in outputs])
        if target is not None: return (target.copy_(outputs[0].detach()),)
        return tuple(y.detach() if isinstance(y, Tensor) else y for y in outputs)

    def record_of(self, operator: Operator, needed_by: Operator) -> Record:
        """The record of an operator that has run."""
        if id(operator) in self.records: return self.records[id(operator)]
        raise RuntimeError(f"{needed_by.type} needs the operator {cut(repr(operator))}, which has not run before "
                           f"it in this net; add that one first, or make a new net and differentiate it")

    # ---- gradients

    def heads(self, operator: Operator, record: Record, take: Any) -> list[Any]:
        """The gradients of the outputs, which a gradient operator reads: take(name) gives the value, or None."""
        names = operator.inputs[len(operator.inputs) - len(record.outputs):]
        found = []
        for j, name in enumerate(names):
            g = None if name is None else take(name)
            at = record.outputs[j]
            if g is not None and at is not None and not is_gradient_at(*at, g):
                shape, dtype = described_place(*at)
                raise ValueError(f"the head gradient {described(str(name))} of "
                                 f"{described(str(record.operator.outputs[j]))} must be {dtype} {shape}, got "
                                 f"{described(g)}")
            found.append(g)
            del g
        return found

    def substituted(self, operator: Operator, record: Record) -> Record:
        """The record, on other values where a gradient operator reads other blobs than those that its own operator
        keeps."""
        of, n = record.operator, len(record.outputs)
        kept, reads = kept_names(of, wanted_of(operator, self.constants)), operator.inputs[:len(operator.inputs) - n]
        if tuple(kept) == tuple(reads): return record
        roots = {*record.outputs} - {None}
        nodes = {id(node): node for node, _ in roots}       # type: ignore[misc]
        values: dict[int, Any] = {}
        for name, other in zip(kept, reads, strict=False):
            if name == other or other is None: continue
            places = [i for i, x in enumerate(of.inputs) if x == name] or [~j for j, y in enumerate(of.outputs)
                                                                           if y == name]
            values |= dict.fromkeys(places, self.value(other))
        if not values: return record
        node = next(iter(nodes.values()))
        if len(kept) != len(reads) or len(nodes) > 1 or len(node.next_functions) != len(of.inputs):
            raise RuntimeError(f"{cut(repr(operator))} reads other blobs than {cut(repr(of))} keeps, which are "
                               f"{', '.join(map(str, kept)) or 'none'}; let it read these")
        try: new = node_on(node, values)
        except ValueError as e: raise ValueError(f"{cut(repr(operator))}: {e}") from None
        return record._replace(outputs=[None if p is None else (new, p[1]) for p in record.outputs])

    def contributions(self, operator: Operator, record: Record, heads: Sequence[Any], graph: bool) -> list[Any]:
        """The gradients of the inputs that a gradient operator writes, each for itself. The record can be used
        again."""
        targets = wanted_of(operator, self.constants)
        if record.operator.type == ZERO:
            return [zeros_like(self.value(str(record.operator.inputs[i]))) for i in targets]
        reached = [i for i in targets if record.inputs[i] is not None]
        roots = [(p, g) for p, g in zip(record.outputs, heads, strict=True) if p is not None and g is not None]
        found: dict[int, Any] = dict.fromkeys(targets)
        if roots and reached:
            listed = ListedPass([], [], [], graph)
            ends = [record.inputs[i] for i in reached]
            made = listed.run([p for p, _ in roots], [g for _, g in roots], ends, [None] * len(ends), retain=True,
                              apart=True)
            listed.finish()
            found |= zip(reached, made, strict=True)
        return list(found.values())
