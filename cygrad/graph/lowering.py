"""Running the operators of a net, by eager code: directly, or in a trace that makes a program of it.

A pass of add_gradient_operators() that was not edited runs as one backward pass, so its bits are those of eager code.
A gradient operator of any other origin runs the gradient of its own operator alone."""

from collections.abc import Iterable, Mapping
from typing import Any

import cygrad.autograd as autograd
from cygrad.autograd.function import Function
from cygrad.core.errors import cut, described
from cygrad.core.graph.gradient_slice import GradientSlice as Rows
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray
from cygrad.graph.built_in import forward
from cygrad.graph.definition import Operator
from cygrad.graph.gradients import Pass, Version, Versions, registered, targets


class Custom(Function):
    """An operator whose gradient is not that of a row: a registered one, or the grad_f of a Python operator."""

    @staticmethod
    def forward(ctx: Any, run: Any, gradient: Any, *inputs: Any) -> Any:
        outputs = run(inputs)
        ctx.gradient, ctx.n = gradient, len(inputs)
        ctx.save_for_backward(*inputs, *(outputs if isinstance(outputs, tuple) else (outputs,)))
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = ctx.saved_tensors
        return None, None, *ctx.gradient(saved[:ctx.n], saved[ctx.n:], gradients)


class Operators:
    """Running single operators on named values. `records` has the graph of each operator whose gradient runs alone."""

    def __init__(self, values: dict[str, Any], constants: Mapping[str, Any], objects: Mapping[str, Any]):
        self.values, self.constants, self.objects = values, constants, objects
        self.records: dict[int, tuple[list[Any], tuple[Any, ...]]] = {}

    def value(self, name: str) -> Any:
        if name not in self.values:
            raise RuntimeError(f"the blob {described(str(name))} has no value: it is a gradient that does not exist, of "
                               f"integers or of a blob on which no head depends")
        return self.values[name]

    def compute(self, operator: Operator, inputs: list[Any]) -> Any:
        """The outputs of an operator."""
        custom = registered.get(operator.type)
        grad_f = operator.function[1] if operator.function is not None else None
        if (custom or grad_f) and autograd.is_recording():
            gradient = self.by_registered(operator) if custom else by_function(grad_f)
            return Custom.apply(lambda xs: forward(operator, list(xs), self.objects), gradient, *inputs)
        return forward(operator, inputs, self.objects)

    def by_registered(self, operator: Operator) -> Any:
        """The registered gradient of an operator, as a function of tensors."""
        def gradient(inputs: Any, outputs: Any, gradients: Any) -> list[Any]:
            names = [None if g is None else f"{name}_grad" for name, g in zip(operator.outputs, gradients, strict=True)]
            operators, found = registered[operator.type](operator, names)
            values = dict(zip(operator.inputs, inputs, strict=True)) | dict(zip(operator.outputs, outputs, strict=True))
            values |= {n: g for n, g in zip(names, gradients, strict=True) if n is not None}
            for o in operators:
                made = forward(o, [None if n is None else values[n] for n in o.inputs], self.objects)
                values |= dict(zip(o.outputs, made if isinstance(made, tuple) else (made,), strict=True))
            return [None if g is None else values[g] for g in found]
        return gradient

    def record_alone(self, operator: Operator, inputs: list[Any]) -> Any:
        """Run an operator whose gradient runs alone, and remember its graph."""
        leaves = [x.detach().requires_grad_() if isinstance(x, Tensor) and x.dtype.kind == "f" else x for x in inputs]
        with autograd.record(train_mode=None): outputs = self.compute(operator, leaves)
        self.records[id(operator)] = leaves, outputs if isinstance(outputs, tuple) else (outputs,)
        if isinstance(outputs, tuple): return tuple(y.detach() for y in outputs)
        return outputs.detach() if isinstance(outputs, Tensor) else outputs

    def gradient_alone(self, operator: Operator) -> Any:
        """The gradients of the inputs of operator.of, whose graph is remembered."""
        of = operator.of
        assert of is not None
        if id(of) not in self.records:
            raise RuntimeError(f"{operator.type} needs the operator {cut(repr(of))}, which has not run before it in this "
                               f"net; add that one first")
        leaves, outputs = self.records[id(of)]
        heads = operator.inputs[len(operator.inputs) - len(outputs):]
        pairs = [(y, self.value(name)) for y, name in zip(outputs, heads, strict=True)
                 if name is not None and y.requires_grad]
        places = targets(of, self.constants)
        wanted = [i for i in places if isinstance(leaves[i], Tensor) and leaves[i].requires_grad]
        found = dict.fromkeys(places)
        if pairs and wanted:
            ys, gs = zip(*pairs, strict=True)
            found |= zip(wanted, autograd.grad(list(ys), [leaves[i] for i in wanted], list(gs), retain_graph=True,
                                               allow_unused=True), strict=True)
        return [part for g in found.values() for part in ((g.indices, g.values) if isinstance(g, Rows) else (g,))]


class Run(Operators):
    """One run of the operators of a net on tensors.

    net: the Net. values: a tensor for each input. kept: the names of the blobs whose last versions are results.
    After execute(), `values` has the kept blobs."""

    def __init__(self, net: Any, values: Mapping[str, Any], kept: Iterable[str]):
        super().__init__({**net.constants, **net.bindings, **values}, net.constants, net.objects)
        self.net, self.operators = net, net.operators
        self.kept = {*kept}
        self.versions = Versions(self.operators)
        self.passes = {k: p for p in net.passes if (k := find(self.operators, p)) is not None}
        self.inside = {k + i for k, p in self.passes.items() for i in range(len(p.operators))}
        self.recorded = {id(o) for p in self.passes.values() for o in p.forward}
        self.alone = {id(o.of) for k, o in enumerate(self.operators) if o.of is not None and k not in self.inside}
        self.last = self.last_uses()
        self.used = {k: self.used_after(k, p) for k, p in self.passes.items()}
        self.wanted: dict[Version, int] = {}    # the versions that a pass reads or differentiates for: the last pass
        for k, p in sorted(self.passes.items()):
            for version in (*(v for v, _ in p.heads), *(p.whole[name] for name in self.used[k] if name in p.whole)):
                self.wanted[version] = k
        self.tensors: dict[Version, Any] = {}   # their values
        self.at = 0

    def used_after(self, k: int, p: Pass) -> set[str]:
        """The blobs of a pass that are results or that later operators read."""
        end = k + len(p.operators)
        return {name for o in p.operators for name in o.outputs if name in self.kept or self.last[name] >= end}

    def last_uses(self) -> dict[str, int]:
        """The last operator that uses each blob."""
        last = {}
        for k, operator in enumerate(self.operators):
            for name in (*operator.inputs, *operator.outputs):
                if name is not None: last[name] = k
        for k, p in self.passes.items():            # the heads are read when the pass begins
            for (name, _), head in p.heads:
                for n in (name, head):
                    if n is not None: last[n] = max(last.get(n, 0), k)
        return last

    def execute(self) -> dict[str, Any]:
        """Run all operators. Returns the values that are left, by name."""
        for name in self.net.inputs: self.set_value(name, self.values[name], 0)
        for name, x in self.net.bindings.items(): self.set_value(name, x, 0)
        while self.at < len(self.operators):
            k = self.at
            try:
                if k in self.passes: self.run_pass(k, self.passes[k])
                else: self.run_operator(k)
            except Exception as e:
                e.add_note(f"cygrad: in operator {self.at} of net {cut(self.net.name)}: "
                           f"{cut(repr(self.operators[k]))}")
                raise
            self.at = k + (len(self.passes[k].operators) if k in self.passes else 1)
            self.forget(k)
        return {name: self.values[name] for name in self.kept if name in self.values}

    def forget(self, begun: int) -> None:
        """Drop the values that no later operator uses."""
        for operator in self.operators[begun:self.at]:
            for name in (*operator.inputs, *operator.outputs):
                if name is not None and name not in self.kept and self.last[name] < self.at:
                    self.values.pop(name, None)

    def set_value(self, name: str, value: Any, version: int) -> None:
        """Set a blob. One whose gradient a pass gives becomes a variable, unless it is recorded."""
        if (name, version) in self.wanted and isinstance(value, Tensor):
            if not value.requires_grad and value.dtype.kind == "f" and name not in self.net.constants:
                value = value.detach().requires_grad_()
            self.tensors[name, version] = value
        self.values[name] = value

    # ---- operators

    def run_operator(self, k: int) -> None:
        operator = self.operators[k]
        inputs = [None if name is None else self.value(name) for name in operator.inputs]
        if operator.of is not None: outputs = self.gradient_alone(operator)
        elif id(operator) in self.alone: outputs = self.record_alone(operator, inputs)
        elif id(operator) in self.recorded:
            with autograd.record(train_mode=None): outputs = self.compute(operator, inputs)
        else: outputs = self.compute(operator, inputs)
        self.set_outputs(k, outputs)

    def set_outputs(self, k: int, outputs: Any) -> None:
        operator = self.operators[k]
        if not isinstance(outputs, (tuple, list)): outputs = () if outputs is None else (outputs,)
        if len(outputs) != len(operator.outputs):
            raise ValueError(f"{operator.type} gave {len(outputs)} result{'s' * (len(outputs) != 1)} for "
                             f"{len(operator.outputs)} outputs")
        for (name, version), y in zip(self.versions.written[k], outputs, strict=True): self.set_value(name, y, version)

    # ---- gradients

    def run_pass(self, k: int, p: Pass) -> None:
        """Run the operators of a pass as one backward pass."""
        ys, heads = [], []
        for version, head in p.heads:
            y = self.tensors.get(version)
            if not isinstance(y, Tensor) or not y.requires_grad: continue
            ys.append(y)
            heads.append(None if head is None else self.value(head))
        used = self.used[k]
        missing = [name for name in used if name not in p.whole]
        if missing:
            raise RuntimeError(f"the blob {described(missing[0])} is a part of a gradient, which a pass adds up without "
                               f"storing it; read the whole gradient")
        found = self.written_back(ys, heads, p) if p.kind == "backward" else self.returned(k, ys, heads, p, used)
        positions = {name: k + i for i, o in enumerate(p.operators) for name in o.outputs}
        for name in used:
            g = found.get(p.whole[name])
            if isinstance(g, Rows): g = g.indices if name.endswith(("_indices", "_indices_concat")) else g.values
            if g is not None: self.set_value(name, g, dict(self.versions.written[positions[name]])[name])
        for version, last in self.wanted.items():
            if last <= k: self.tensors.pop(version, None)

    def returned(self, k: int, ys: list[Any], heads: list[Any], p: Pass, used: set[str]) -> dict[Version, Any]:
        """The gradients by version."""
        versions = dict.fromkeys(p.whole[name] for name in used)
        leaves = {v: x for v in versions if isinstance(x := self.tensors.get(v), Tensor) and x.requires_grad}
        again = p.create_graph or any(o.of is not None and o.of.is_gradient
                                      for o in self.operators[k + len(p.operators):])
        if not ys or not leaves: return {}
        return dict(zip(leaves, autograd.grad(ys, [*leaves.values()], heads, p.retain_graph or again,
                                              create_graph=again, allow_unused=True), strict=True))

    def written_back(self, ys: list[Any], heads: list[Any], p: Pass) -> dict[Version, Any]:
        """Let the gradients go to the .grad of the variables, and return these."""
        inputs = [self.net.bindings[name] for name in p.inputs] or None
        autograd.backward(ys, heads, p.retain_graph, create_graph=p.create_graph, inputs=inputs)
        return {(name, 0): x.grad for name, x in self.net.bindings.items() if x.requires_grad}


def find(operators: tuple[Operator, ...], p: Pass) -> int | None:
    """Where the operators of a pass begin, if neither they nor those that they differentiate were edited."""
    n = len(p.operators)
    if not n: return None
    for k in range(len(operators) - n + 1):
        if all(a is b for a, b in zip(operators[k:k + n], p.operators, strict=True)):
            m = len(p.forward)
            same = any(all(a is b for a, b in zip(operators[i:i + m], p.forward, strict=True)) for i in range(k - m + 1))
            return k if same else None
    return None


def by_function(grad_f: Any) -> Any:
    """The gradient that the grad_f of a Python operator computes."""
    def gradient(inputs: Any, outputs: Any, gradients: Any) -> list[Any]:
        found = grad_f([*inputs], [*outputs], [*gradients])
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) != len(inputs):
            raise ValueError(f"grad_f of a Python operator gave {len(found)} gradients for {len(inputs)} inputs; use None "
                             f"where there is none")
        return [None if g is None else asarray(g) for g in found]
    return gradient
