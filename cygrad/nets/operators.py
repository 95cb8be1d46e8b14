"""Running single operators of a net by eager code, and the gradient of one operator alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import cygrad.autograd as autograd
from cygrad.autograd.function import Function
from cygrad.core.errors import cut, described
from cygrad.core.graph.gradient_slice import GradientSlice as Rows
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros_like
from cygrad.core.interop.numpy import asarray
from cygrad.nets.built_in import apart, forward
from cygrad.nets.definition import ZERO, Operator
from cygrad.nets.gradients import Registered, differentiated, targets_of
from cygrad.nets.versions import is_in_place
from cygrad.ops.gradient import scale_gradient


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
    if isinstance(found, (tuple, list)): return tuple(y for part in found for y in flat(part))
    return (found,)


# ---- gradients that are not those of rows ----------------------------------------------------------------------------

class Custom(Function):
    """An operator whose gradient is a registered one, or the grad_f of a Python operator."""

    @staticmethod
    def forward(ctx: Any, run: Any, gradient: Any, *inputs: Any) -> Any:
        outputs = run(inputs)
        ctx.gradient, ctx.n = gradient, len(inputs)
        ctx.others = [None if isinstance(x, Tensor) else x for x in inputs]     # (numbers and missing operands)
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in inputs], *outputs)
        return outputs if len(outputs) != 1 else outputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = ctx.saved_tensors
        inputs = [x if x is not None else other for x, other in zip(saved[:ctx.n], ctx.others, strict=True)]
        return None, None, *ctx.gradient(inputs, saved[ctx.n:], gradients)


def by_registered(operator: Operator, f: Registered, objects: Mapping[str, Any]) -> Any:
    """The registered gradient of an operator, as a function of tensors."""
    def gradient(inputs: Any, outputs: Any, gradients: Any) -> list[Any]:
        names = [None if g is None else f"{name}_grad" for name, g in zip(operator.outputs, gradients, strict=True)]
        operators, found = f(operator, names)
        values: dict[Any, Any] = dict(zip(operator.inputs, inputs, strict=True))
        values |= dict(zip(operator.outputs, outputs, strict=True))
        values |= {n: g for n, g in zip(names, gradients, strict=True) if n is not None}
        for o in operators:
            given = [None if n is None else values[n] for n in o.inputs]
            values |= zip(o.outputs, run_forward(o, given, objects), strict=True)
        rows: Any = Rows                            # (its stub has no constructor)
        return [None if g is None else values[g] if isinstance(g, str) else
                rows(values[g[0]], values[g[1]], x.shape).to_dense() for g, x in zip(found, inputs, strict=True)]
    return gradient


def by_function(grad_f: Any) -> Any:
    """The gradient that the grad_f of a Python operator computes."""
    def gradient(inputs: Any, outputs: Any, gradients: Any) -> list[Any]:
        given = grad_f([*inputs], [*outputs], [*gradients])
        found = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(found) != len(inputs):
            raise ValueError(f"grad_f of a Python operator gave {len(found)} gradient{'s' * (len(found) != 1)} for "
                             f"{len(inputs)} inputs; use None where there is none")
        for g in found:
            if autograd.is_recording() and g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"grad_f of a Python operator gave {described(g)}, which has no second derivative; "
                                   f"compute it from its arguments by operators of cygrad")
        return [None if g is None else asarray(g) for g in found]
    return gradient


# ---- running ---------------------------------------------------------------------------------------------------------

class Record(NamedTuple):
    """An operator that ran recorded: its inputs by place, its outputs, and its inputs by name."""

    operator: Operator
    places: list[Any]
    outputs: tuple[Any, ...]
    blobs: dict[Any, Any]


class Operators:
    """Running single operators on named values.

    custom      the registered gradients of operators of passes, by their ids
    records     of operators whose gradients run alone, by their ids; a gradient operator has its heads as `places`"""

    def __init__(self, values: dict[str, Any], constants: Mapping[str, Any], objects: Mapping[str, Any]):
        self.values, self.constants, self.objects = values, constants, objects
        self.custom: dict[int, Registered] = {}
        self.records: dict[int, Record] = {}

    def value(self, name: str) -> Any:
        if name not in self.values:
            raise RuntimeError(f"the blob {described(str(name))} has no value: it is a gradient that does not exist, "
                               f"of integers or of a blob on which no head depends")
        return self.values[name]

    def compute(self, operator: Operator, inputs: list[Any], writes: bool = True) -> tuple[Any, ...]:
        """The outputs of an operator, recorded if this thread records; see forward()."""
        custom = self.custom.get(id(operator))
        grad_f = operator.function[1] if operator.function is not None else None
        if not (custom or grad_f) or not operator.outputs or not autograd.is_recording():
            return run_forward(operator, inputs, self.objects, writes)
        gradient = by_registered(operator, custom, self.objects) if custom else by_function(grad_f)
        writes = writes and is_in_place(operator)
        target = operator.inputs.index(operator.outputs[0]) if writes else -1
        given = apart(inputs, inputs[target]) if writes else inputs
        made = flat(Custom.apply(lambda xs: run_forward(operator, list(xs), self.objects, False), gradient, *given))
        return (inputs[target].copy_(made[0]),) if writes else made

    def record_alone(self, operator: Operator, inputs: list[Any]) -> tuple[Any, ...]:
        """Run an operator whose gradient runs alone, and remember its graph."""
        target = inputs[operator.inputs.index(operator.outputs[0])] if is_in_place(operator) else None
        given = inputs if target is None else apart(inputs, target)
        blobs = {name: x.detach().requires_grad_() if isinstance(x, Tensor) and x.dtype.kind == "f" else x
                 for name, x in zip(operator.inputs, given, strict=True)}
        with autograd.record(train_mode=None):      # (a blob in several places has a gradient for each)
            places = [scale_gradient(blobs[name], 1.0) if operator.inputs.count(name) > 1
                      and isinstance(blobs[name], Tensor) and blobs[name].requires_grad else blobs[name]
                      for name in operator.inputs]
            outputs = self.compute(operator, places, False)     # (a leaf cannot be written)
        self.records[id(operator)] = Record(operator, places, outputs, blobs)
        if target is not None: return (target.copy_(outputs[0].detach()),)
        return tuple(y.detach() if isinstance(y, Tensor) else y for y in outputs)

    def record_of(self, operator: Operator, needed_by: Operator) -> Record:
        """The record of an operator that has run."""
        if id(operator) not in self.records:
            raise RuntimeError(f"{needed_by.type} needs the operator {cut(repr(operator))}, which has not run before "
                               f"it in this net; add that one first, or make a new net and differentiate it")
        record = self.records[id(operator)]
        if operator.of is None: return record
        of = operator.of                            # (a gradient operator: its gradients are computed again, recorded)
        first = self.record_of(of, operator)
        heads = [None if g is None else g.detach().requires_grad_() for g in record.places]
        read = operator.inputs[:len(operator.inputs) - len(heads)]
        if any(name not in first.blobs for name in read):       # (it reads a result of its operator)
            raise RuntimeError(f"the gradient of {cut(repr(operator))} does not run alone; let a net run it, to which "
                               f"add_gradient_operators() added all operators of this pass and none was changed since")
        with autograd.record(train_mode=None): found = self.of_wanted(operator, self.gradients(first, heads, True))
        names = differentiated(operator, self.constants)
        hidden = names[len(operator.inputs):]
        places = [first.blobs[n] for n in read] + heads + [first.blobs[n] for n in hidden]
        return Record(operator, places, found, dict(zip(names, places, strict=True)))

    def gradient_alone(self, operator: Operator) -> tuple[Any, ...]:
        """The gradients of the inputs of operator.of, which has run."""
        of = operator.of
        assert of is not None
        record = self.record_of(of, operator)
        names = operator.inputs[len(operator.inputs) - len(record.outputs):]
        heads = [None if name is None else self.value(name) for name in names]
        self.records[id(operator)] = Record(operator, heads, (), {})
        found = self.of_wanted(operator, self.gradients(record, heads, False))
        made = tuple(part for g in found for part in ((g.indices, g.values) if isinstance(g, Rows) else (g,)))
        if len(made) > len(operator.outputs):
            inputs = ", ".join(str(of.inputs[i]) for i in targets_of(of, self.constants))
            raise RuntimeError(f"{cut(repr(operator))} does not write the gradients of all of {inputs}: the net that "
                               f"made it had a constant among these; give this net the same with add_constant()")
        return made

    def of_wanted(self, operator: Operator, found: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients that a gradient operator writes."""
        if "wanted" not in operator.arguments or operator.of is None: return found
        wanted = operator.arguments["wanted"]
        return tuple(g for i, g in zip(targets_of(operator.of, self.constants), found, strict=True) if i in wanted)

    def gradients(self, record: Record, heads: list[Any], create_graph: bool) -> tuple[Any, ...]:
        """The gradients of the inputs of an operator that can have one; None where there is none."""
        of, leaves, ys, _ = record
        if of.type == ZERO: return tuple(zeros_like(leaves[i].detach()) for i in targets_of(of, self.constants))
        pairs = [(y, g) for y, g in zip(ys, heads, strict=True) if g is not None and y is not None and y.requires_grad]
        places = targets_of(of, self.constants)
        wanted = [i for i in places if isinstance(leaves[i], Tensor) and leaves[i].requires_grad]
        found: dict[int, Any] = dict.fromkeys(places)
        if pairs and wanted:
            made = autograd.grad([y for y, _ in pairs], [leaves[i] for i in wanted], [g for _, g in pairs],
                                 retain_graph=True, create_graph=create_graph, allow_unused=True)
            found |= zip(wanted, made, strict=True)
        return tuple(found.values())
