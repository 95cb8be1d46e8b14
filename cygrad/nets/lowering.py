"""Running the operators of a net, by eager code: directly, or in a trace that makes a program of it.

A pass of add_gradient_operators() that was not edited runs as one backward pass, so its bits are those of eager code.
A gradient operator of any other origin runs the gradient of its own operator alone."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.graph.gradient_slice import GradientSlice as Rows
from cygrad.core.graph.planning import set_source, split_here
from cygrad.core.graph.symbol import place_of
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros_like
from cygrad.nets.definition import ZERO, GradientSlice, Operator
from cygrad.nets.gradients import Pass, find
from cygrad.nets.hooks import Hooks
from cygrad.nets.operators import Operators
from cygrad.nets.versions import Version, Versions

SHOWN = 24                  # operators that an error lists


class Run(Operators):
    """One run of the operators of a net on tensors.

    net: the Net. values: a tensor for each input. kept: the names of the blobs whose last versions are results. hooks:
    functions that are called with each operator and the values before and after it. split: the operator before which a
    program can stop and from which it can run again. After execute(), `values` has the kept blobs."""

    def __init__(self, net: Any, values: Mapping[str, Any], kept: Iterable[str],
                 hooks: Hooks | None = None, split: int | None = None):
        super().__init__({**net.constants, **net.bindings, **values}, net.constants, net.objects)
        self.net, self.operators = net, net.operators
        self.kept = {*kept}
        self.versions = Versions(self.operators)
        self.passes = whole_passes(self.operators, net.passes)
        self.inside = {k + i for k, p in self.passes.items() for i in range(len(p.operators))}
        self.recorded = {id(o) for p in self.passes.values() for o in p.forward}
        self.alone = {id(o.of) for k, o in enumerate(self.operators) if o.of is not None and k not in self.inside}
        for p in net.passes: self.custom |= {id(p.forward[i]): f for i, f in p.custom.items()}
        self.last = self.last_uses()
        self.used = {k: self.used_after(k, p) for k, p in self.passes.items()}
        self.wanted: dict[Version, int] = {}    # the versions that a pass reads or differentiates for: the last pass
        for k, p in sorted(self.passes.items()):
            for version in (*(v for v, _ in p.heads), *(p.whole[name] for name in self.used[k] if name in p.whole)):
                self.wanted[version] = k
        self.tensors: dict[Version, Any] = {}   # their values,
        self.edges: dict[Version, Any] = {}     # and their places in the graph, if later writes move them
        self.overwritten = {(name, later - 1) for w in self.versions.writes.values() for (name, later), _ in w.versions}
        self.at, self.hooks, self.split = 0, hooks, split

    def used_after(self, k: int, p: Pass) -> set[str]:
        """The blobs of a pass that are results or that later operators read."""
        end = k + len(p.operators)
        return {name for o in p.operators for name in o.outputs if name in self.kept or self.last[name] >= end}

    def last_uses(self) -> dict[str, int]:
        """The last operator that uses each blob."""
        last: dict[str, int] = {}
        for k, operator in enumerate(self.operators):       # (a pass reads its graph, not the blobs)
            for name in (*(operator.inputs if k not in self.inside else ()), *operator.outputs):
                if name is not None: last[name] = k
        for k, p in self.passes.items():            # the heads are read when the pass begins
            for (name, _), head in p.heads:
                for n in (name, head):
                    if n is not None: last[n] = max(last.get(n, 0), k)
        return last

    def execute(self) -> dict[str, Any]:
        """Run all operators. Returns the kept values that exist, by name, in the order of the blobs of the net."""
        for name in self.net.inputs: self.set_value(name, self.values[name], 0)
        for name, x in self.net.bindings.items(): self.set_value(name, x, 0)
        while self.at < len(self.operators):
            k = self.at
            if k == self.split: split_here()
            set_source(k)
            if self.hooks is not None and k not in self.passes: self.hooks.begin(k, self.values)
            try:
                if k in self.passes: self.run_pass(k, self.passes[k])
                else: self.run_operator(k)
            except Exception as e:
                if self.hooks is None or not self.hooks.raised: e.add_note(self.progress())
                e.operator = self.at    # type: ignore[attr-defined]  # for plan.py
                raise
            self.at = k + (len(self.passes[k].operators) if k in self.passes else 1)
            if self.hooks is not None: self.hooks.end(self.values)
            self.forget(k)
        found = {str(name): y for name in self.net.blobs
                 if name in self.kept and isinstance(y := self.values.get(name), Tensor)}
        return found if autograd.is_recording() else {name: y.detach() for name, y in found.items()}

    def progress(self) -> str:
        """The operators that ran and the one that failed, with what it read."""
        return progress(self.net, self.at, self.values)

    def forget(self, begun: int) -> None:
        """Drop the values that no later operator uses."""
        for operator in self.operators[begun:self.at]:
            for name in (*operator.inputs, *operator.outputs):
                if name is not None and name not in self.kept and self.last.get(name, -1) < self.at:
                    self.values.pop(name, None)

    def set_value(self, name: str, value: Any, version: int) -> None:
        """Set a blob. One whose gradient a pass gives becomes a variable, unless it is recorded."""
        if (name, version) in self.wanted and isinstance(value, Tensor):
            if not value.requires_grad and value.dtype.kind == "f" and name not in self.net.constants:
                value = value.detach().requires_grad_()
                if (name, version) in self.overwritten:     # (a leaf cannot be written in place)
                    with autograd.record(train_mode=None): value = value.copy()
            self.tensors[name, version] = value
            if self.versions.writes and value.grad_fn is not None:
                self.edges[name, version] = autograd.GradientEdge(*place_of(value))
        self.values[name] = value

    # ---- operators

    def run_operator(self, k: int) -> None:
        operator = self.operators[k]
        inputs = [None if name is None else self.value(name) for name in operator.inputs if operator.of is None]
        if operator.of is not None: outputs = self.gradient_alone(operator)
        elif not operator.arguments.get("recorded", True): outputs = self.compute(operator, inputs)
        elif id(operator) in self.alone: outputs = self.record_alone(operator, inputs)
        elif id(operator) in self.recorded:
            with autograd.record(train_mode=None): outputs = self.compute(operator, inputs)
        else: outputs = self.compute(operator, inputs)
        if self.hooks is not None: self.hooks.watch(operator, outputs)
        for (name, version), y in zip(self.versions.written[k], outputs, strict=True):
            if y is not None: self.set_value(name, y, version)
            else: self.values.pop(name, None)       # (a gradient that does not exist)
        for (name, version), _ in self.versions.writes[k].versions[1:] if k in self.versions.writes else ():
            if name in self.values: self.set_value(name, self.values[name], version)

    # ---- gradients

    def run_pass(self, k: int, p: Pass) -> None:
        """Run the operators of a pass as one backward pass."""
        ys, heads = self.heads(p)
        parts = [name for name in self.used[k] if name not in p.whole]
        if parts:
            raise RuntimeError(f"the blob {described(str(parts[0]))} is a part of a gradient, which a pass adds up "
                               f"without storing it; read the whole gradient")
        if self.hooks is not None: self.hooks.follow(k, p, self.values)
        found = self.written_back(ys, heads, p) if p.kind == "backward" else self.returned(k, ys, heads, p)
        positions = {str(name): k + i for i, o in enumerate(p.operators) for name in o.outputs}
        zeros = self.zero_versions(p)
        rows = {g.indices for g in p.gradients.values() if isinstance(g, GradientSlice)}
        for name in self.used[k]:
            g = found.get(p.whole[name])
            if g is None and p.whole[name] in zeros: g = zeros_like(self.tensors[p.whole[name]].detach())
            if isinstance(g, Rows): g = g.indices if name in rows else g.values
            if g is not None: self.set_value(name, g, dict(self.versions.written[positions[name]])[name])
            else: self.values.pop(name, None)
        if self.hooks is not None: self.hooks.proceed(k + len(p.operators) - 1)
        for version, last in self.wanted.items():
            if last <= k:
                self.tensors.pop(version, None)
                self.edges.pop(version, None)

    def returned(self, k: int, ys: list[Any], heads: list[Any], p: Pass) -> dict[Version, Any]:
        """The gradients by version."""
        versions = dict.fromkeys(p.whole[name] for o in p.operators for name in o.outputs if name in self.used[k])
        variables = {v: x for v in versions if isinstance(x := self.tensors.get(v), Tensor) and x.requires_grad}
        made, read = {*map(id, p.operators)}, {*map(id, p.forward)}
        later = [{id(o.of) for o in other.operators} for at, other in self.passes.items() if at > k]
        again = p.create_graph or any(made & differentiated for differentiated in later)
        retain = p.retain_graph or again or self.split is not None
        retain = retain or any(read & differentiated for differentiated in later)
        if not ys or not variables: return {}
        places = [self.edges.get(v, x) for v, x in variables.items()]
        return dict(zip(variables, autograd.grad(ys, places, heads, retain, create_graph=again, allow_unused=True),
                        strict=True))

    def written_back(self, ys: list[Any], heads: list[Any], p: Pass) -> dict[Version, Any]:
        """Let the gradients go to the .grad of the variables, and return these."""
        inputs = [self.net.bindings[name] for name in p.inputs] or None
        retain = p.retain_graph or self.split is not None
        autograd.backward(ys, heads, retain, create_graph=p.create_graph, inputs=inputs)
        return {(name, 0): x.grad for name, x in self.net.bindings.items() if x.requires_grad}

    def heads(self, p: Pass) -> tuple[list[Any], list[Any]]:
        """The heads of a pass that depend on variables, and their gradients; None for ones."""
        ys, gradients = [], []
        for (name, version), head in p.heads:
            y, g = self.tensors.get((name, version)), None if head is None else self.value(head)
            if isinstance(y, Tensor) and y.dtype.kind != "f":
                raise TypeError(f"the head {described(name)} is {y.dtype}, which has no gradient; differentiate blobs "
                                f"of floating-point numbers")
            if not isinstance(y, Tensor) or not y.requires_grad: continue
            if g is not None and (not isinstance(g, Tensor) or (g.shape, g.dtype) != (y.shape, y.dtype)):
                raise ValueError(f"the head gradient {described(head)} of {described(name)} must be {y.dtype} "
                                 f"{y.shape}, got {described(g)}")
            ys.append(y)
            gradients.append(g)
        return ys, gradients

    def zero_versions(self, p: Pass) -> set[Version | None]:
        """The versions whose gradients are zeros where there are none, by zero_gradient."""
        places = {id(o): k for k, o in enumerate(self.operators)}
        return {v for o in p.forward if o.type == ZERO for v in self.versions.read[places[id(o)]]}


def whole_passes(operators: tuple[Operator, ...], passes: Iterable[Pass]) -> dict[int, Pass]:
    """The passes that can run as one, by where they begin: those whose operators were not edited, and which belong to
    no gradient operator that runs alone."""
    found = {k: p for p in passes if (k := find(operators, p)) is not None}
    while True:
        inside = {id(o) for p in found.values() for o in p.operators}
        alone = {id(o.of) for o in operators if o.of is not None and id(o) not in inside}
        broken = [k for k, p in found.items() if alone & {*map(id, p.operators), *map(id, p.forward)}
                  or any(o.of is not None and id(o) not in inside for o in p.forward)]
        if not broken: return found
        for k in broken: del found[k]


def progress(net: Any, at: int, values: Mapping[str, Any]) -> str:
    """The operators that ran, and after them the one that failed, or the backward pass that begins there, with what is
    known of their inputs."""
    operators = net.operators
    whole = whole_passes(operators, net.passes).get(at)
    n = 1 if whole is None else len(whole.operators)
    lines = [f"cygrad: {'the backward pass of ' if n > 1 else ''}operator {at} of net {cut(net.name)} failed:"]
    if at > SHOWN: lines.append("  ...")
    lines += [f"  {k}  {cut(repr(operators[k]))}" for k in range(max(at - SHOWN, 0), at)]
    for k in range(at, min(at + n, at + SHOWN)):
        read = [f"{name}: {np.dtype(x.dtype).name} {x.shape}" for name in dict.fromkeys(operators[k].inputs)
                if name is not None and isinstance(x := values.get(name), Tensor)]
        lines.append(f"  {k}  {cut(repr(operators[k]))}{'  <- failed' * (k == at)}"
                     f"{'; ' * bool(read)}{', '.join(read)}")
    return "\n".join(lines)
