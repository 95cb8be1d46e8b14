"""Running the operators of a net, by eager code: directly, or in a trace that makes a program of it.

What the list says is what runs, operator by operator. An operator that is differentiated runs recorded. Its gradient
operator runs the nodes that it recorded. Contributions to a gradient are added as eager code adds them, and those to a
variable that the net binds go to its .grad, so the bits are those of eager code."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.backward.listed import ListedPass, described_place, reach, variables_of
from cygrad.core.errors import cut, described
from cygrad.core.execute.program import own_part
from cygrad.core.graph.around import hook_on
from cygrad.core.graph.gradient_slice import GradientSlice as Rows
from cygrad.core.graph.planning import set_source, split_here
from cygrad.core.graph.symbol import place
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros
from cygrad.nets.definition import ZERO, Operator, written
from cygrad.nets.gradients import CONCAT, hidden_inputs, kept_names, results_of
from cygrad.nets.hooks import Hooks
from cygrad.nets.operators import Operators, Place, Record
from cygrad.nets.passes import Pass, names_of
from cygrad.nets.sums import Additions, Names, is_addition
from cygrad.nets.versions import Version, Versions, is_view

SHOWN = 24                  # operators that an error lists


class Variables:
    """The variables whose gradients a backward pass delivers, to .grad or, after their hooks, as results.

    pass_     the Pass. first, last: the positions of its operators
    blobs     the blob of each variable, and `names` that of its gradient
    left      how many operators have not contributed yet"""

    def __init__(self, pass_: Pass, positions: list[int]):
        self.pass_, self.first, self.last = pass_, positions[0], positions[-1]
        self.listed: Any = None
        self.blobs: list[str] = []
        self.names: list[Names] = []
        self.left: list[int] = []
        self.older: list[str] = []      # blobs of results that were recorded before the run: their graph runs last
        self.behind: list[Any] = []     # the variables on which these depend
        self.graph = False


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
        self.at, self.hooks, self.split = 0, hooks, split
        self.part: dict[str, tuple[Tensor, int, Tensor]] = {}   # the results of the first part, their versions, and
                                                                # the same with copies of what is in inputs
        self.versions = Versions(self.operators)
        self.position = {id(o): k for k, o in enumerate(self.operators)}
        self.passes = [Variables(p, found) for p in net.passes
                       if (found := [self.position[id(o)] for o in p.operators if id(o) in self.position])]
        self.find_needed()
        used = [o for k, o in enumerate(self.operators) if o.of is not None and self.runs[k]]
        self.differentiated: dict[int, int] = {}        # by the id of an operator: the last position of its gradient
        for o in used: self.differentiated[id(o.of)] = self.position[id(o)]
        recorded = {id(o) for v in self.passes for o in v.pass_.forward}
        self.recorded = {*self.differentiated, *(recorded if used else ())}
        self.results = {id(o): results_of(o, self.constants) for o in used}
        self.additions = Additions(self.operators, self.results, {*self.differentiated})
        self.done: set[int] = set()                 # the additions that have happened
        self.missing: set[str] = set()              # the gradients that do not exist,
        self.zero: dict[str, Any] = {}              # those among them that are zeros if nothing is added to them
        self.pass_of = {id(o): v for v in self.passes for o in v.pass_.operators}
        self.begins, self.ends = ({k: [v for v in self.passes if k in (v.first, v.last)[i:][:1]] for v in self.passes
                                   for k in (v.first, v.last)[i:][:1]} for i in range(2))
        self.others: set[int] = set()               # gradient operators that read other blobs than those kept,
        self.alone: set[int] = set()                # and those whose own operators do not run before them
        self.first: dict[str | None, int] = {}      # the first and
        self.last: dict[str | None, int] = {}       # the last operator that reads each name when it runs
        for k, o in enumerate(self.operators):
            if not self.runs[k]: continue
            for name in o.inputs if o.of is None else self.reads_of(k, o, o.of):
                if name not in self.first: self.first[name] = k
                self.last[name] = k
        self.writers = net.written
        self.variables: dict[str, tuple[Variables, int]] = {}       # by the names of direct contributions,
        self.whole: dict[str, tuple[Variables, int]] = {}           # and of whole gradients that are delivered
        self.delivered_names: set[str] = set()
        for v in self.passes: self.find_variables(v)
        self.runs_alone = self.can_run_alone(used)
        self.wanted: set[Version] = set()           # the versions that must be places in the graph
        for o in used:
            at, owner = self.position.get(id(o.of)), self.pass_of.get(id(o))
            if at is None or owner is not None and owner.pass_.kind == "backward": continue  # (eager code decides)
            for i, names in self.results[id(o)]:
                version = self.versions.read[at][i] if i < len(self.versions.read[at]) else None
                if version is not None and self.needed & {*names}: self.wanted.add(version)
        self.heads_at = {version: None for v in self.passes for version, _ in v.pass_.heads}
        self.places: dict[Version, Place | None] = {}       # of the heads
        self.marked = {name for name, _ in (*self.wanted, *self.heads_at)}
        self.overwritten = {(name, later - 1) for w in self.versions.writes.values() for (name, later), _ in w.versions}

    # ---- before the run

    def find_needed(self) -> None:
        """Set `needed`, the names of gradients that are results or that an operator reads, and `runs`: of the
        operators of backward passes only those run that compute one."""
        self.needed = {*self.kept}
        for v in self.passes:
            if v.pass_.kind != "backward": continue
            for name in self.delivered(v): self.needed |= {*names_of(v.pass_.gradients[name])}
        self.runs = [True] * len(self.operators)
        for k in range(len(self.operators) - 1, -1, -1):
            o = self.operators[k]
            if o.is_gradient and o.outputs and k not in self.versions.writes:
                self.runs[k] = not self.needed.isdisjoint(o.outputs)
            if self.runs[k]: self.needed.update(name for name in o.inputs if name is not None)

    def can_run_alone(self, used: list[Operator]) -> bool:
        """Whether the inputs of all operators exist that do not run themselves, but whose gradient operators do."""
        if not self.alone: return True
        known, asked = {*self.values}, {*map(id, used)}
        for k, o in enumerate(self.operators):
            if o.of is not None and id(o) in asked and self.position.get(id(o.of), k) >= k:
                if not known.issuperset(filter(None, o.of.inputs)): return False
            known.update(o.outputs)
        return True

    def delivered(self, v: Variables) -> list[str]:
        """The blobs of the variables to whose .grad a pass delivers."""
        p = v.pass_
        return [name for name, x in self.net.bindings.items() if x.requires_grad and name in p.gradients
                and (not p.inputs or name in p.inputs or not x.is_leaf)]

    def reads_of(self, k: int, o: Operator, of: Operator) -> Sequence[str | None]:
        """The values that a gradient operator reads when it runs. What its own operator keeps is in the graph."""
        n = len(o.inputs) - len(of.outputs)
        reads, heads = o.inputs[:n], o.inputs[n:]
        kept = [*reads] if o.writes is not None else kept_names(of, [i for i, _ in self.results[id(o)]])
        if kept != [*reads]: self.others.add(k)
        if self.position.get(id(of), k) >= k:
            self.alone.add(k)
            return *of.inputs, *o.inputs
        if k not in self.others: return heads
        return *[name for i, name in enumerate(reads) if i >= len(kept) or name != kept[i]], *heads

    def find_variables(self, v: Variables) -> None:
        """Find the variables of a pass, and whether its operators contribute to them directly."""
        p = v.pass_
        v.graph = p.create_graph or any(id(o) in self.differentiated for o in p.operators)
        blobs = self.delivered(v) if p.kind == "backward" else [
            name for name, x in self.net.bindings.items()
            if name in p.gradients and self.needed & {*names_of(p.gradients[name])} and hook_on([x])]
        v.older = [name for name in blobs if not self.net.bindings[name].is_leaf]
        blobs = [name for name in blobs if name not in v.older]
        if not blobs: return
        targets: dict[str, list[Names]] = {name: [] for name in blobs}      # what operators contribute to each blob
        for k in range(v.first, v.last + 1):
            o = self.operators[k]
            if o.of is None or not self.runs[k] or id(o.of) not in self.position: continue
            read = self.versions.read[self.position[id(o.of)]]
            for i, names in self.results[id(o)]:
                version = read[i] if i < len(read) else None
                if version is not None and version[0] in targets: targets[version[0]].append(names)
        for name in blobs:
            total = names_of(p.gradients[name])
            found, made = ([total], []) if len(total) == 2 else self.additions.contributions(total[0])
            direct = (len({*found}) == len(found) == len(targets[name]) and {*found} == {*targets[name]}
                      and not any(self.is_value((a.total,)) for a in made[1:])
                      and not any(v.graph and id(self.operators[self.writer(names[0], v)]) in self.differentiated
                                  for names in found))
            i = len(v.blobs)
            v.blobs.append(name)
            v.names.append(total)
            self.delivered_names.add(total[0])
            v.left.append(len(found) if direct else 1)
            for names in found if direct else (): self.variables[names[0]] = v, i
            if not direct: self.whole[total[0]] = v, i
            if direct: self.done |= {a.position for a in made}

    def writer(self, name: str, v: Variables) -> int:
        """The operator of a pass that writes a name."""
        return max(k for k in self.writers[name] if k <= v.last)

    def is_used(self, name: str, by: int) -> bool:
        """Whether a name is a result, or an operator reads it that is not the one at `by`."""
        return name in self.kept or self.first.get(name, by) != by or self.last.get(name, by) != by

    # ---- the run

    def execute(self) -> dict[str, Any]:
        """Run all operators. Returns the kept values that exist, by name, in the order of the blobs of the net; with
        `split`, only those that have changed since then (execute_parts)."""
        self.begin_run()
        self.go_on(len(self.operators))
        if self.split == len(self.operators): self.end_part()
        found = {str(name): y for name in self.net.blobs
                 if name in self.kept and isinstance(y := self.values.get(name), Tensor)
                 and not (name in self.part and y is self.part[name][0] and y.version == self.part[name][1])}
        return detached(found)

    def begin_run(self) -> None:
        """Set the inputs."""
        for name in self.net.inputs: self.set_value(name, self.values[name], 0)
        for name, x in self.net.bindings.items(): self.set_value(name, x, 0)

    def go_on(self, stop: int) -> None:
        """Run the operators before `stop` that have not run."""
        try:
            while self.at < stop: self.step(self.at)
        except BaseException:
            for v in self.passes:
                if v.listed is not None: v.listed.fail()
            raise

    def execute_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As execute(): the kept values that the operators before `split` write, as they are then, and those that exist
        after the others and are not the same."""
        last = self.execute()
        return detached({name: y for name, (_, _, y) in self.part.items()}), last

    def end_part(self) -> None:
        """End the first part of a program."""
        made = written(self.operators[:self.split])
        for name in self.net.blobs:
            if name in made and name in self.kept and isinstance(x := self.values.get(name), Tensor):
                self.part[str(name)] = x, x.version, own_part(x)
        split_here()

    def step(self, k: int) -> None:
        """Run operator k."""
        if k == self.split: self.end_part()
        set_source(k)
        if self.hooks is not None: self.hooks.begin(k, self.values)
        try:
            if k in self.begins:
                for v in self.begins[k]: self.begin(v)
            self.run_operator(k)
            if k in self.ends:
                for v in self.ends[k]: self.finish(v)
        except Exception as e:
            if self.hooks is None or not self.hooks.raised: e.add_note(self.progress())
            e.operator = k          # type: ignore[attr-defined]  # for plan.py
            raise
        self.at = k + 1
        if self.hooks is not None: self.hooks.end(self.values)
        o = self.operators[k]
        for name in (*o.inputs, *o.outputs, *(o.of.inputs if o.of is not None and k in self.alone else ())):
            if self.last.get(name, -1) <= k and name not in self.kept: self.values.pop(name, None)

    def progress(self) -> str:
        """The operators that ran and the one that failed, with what it read."""
        return progress(self.net, self.at, self.values)

    def set_value(self, name: str, value: Any, version: int) -> None:
        """Set a blob. One whose gradient an operator computes becomes a variable, unless it is recorded."""
        if name not in self.marked:
            self.values[name] = value
            return
        if (name, version) in self.wanted and isinstance(value, Tensor):
            if not value.requires_grad and value.dtype.kind == "f" and name not in self.constants:
                value = value.detach().requires_grad_()
                if (name, version) in self.overwritten:     # (a leaf cannot be written in place)
                    with self.recording: value = value.copy()
        if (name, version) in self.heads_at: self.places[name, version] = place(value)
        self.values[name] = value

    def set_output(self, name: str, value: Any, version: int) -> None:
        """Set what an operator has written; None is a gradient that does not exist."""
        self.missing.discard(name)
        if value is not None:
            self.set_value(name, value, version)
            return
        self.values.pop(name, None)
        self.missing.add(name)
        if name in self.zero and name not in self.additions.adds:
            shape, dtype = self.zero.pop(name)
            self.missing.discard(name)
            self.set_value(name, zeros(shape, dtype=dtype), version)

    def take(self, name: str, by: int) -> Any:
        """The value of a name for the operator at `by`: if no other uses it, nothing else refers to it."""
        if self.is_used(name, by): return self.values.get(name)
        return self.values.pop(name, None)

    # ---- operators

    def run_operator(self, k: int) -> None:
        o = self.operators[k]
        if k in self.done: return
        if not self.runs[k]:
            self.missing.update(o.outputs)
            return
        if o.of is not None: self.run_gradient(k)
        elif not o.is_gradient or self.missing.isdisjoint(o.inputs): self.run_forward(k)
        elif is_addition(o): self.add_missing(k)
        elif o.type == CONCAT: self.join_existing(k)
        else:
            for name, version in self.versions.written[k]: self.set_output(name, None, version)
        if self.whole: self.deliver(k)

    def run_forward(self, k: int) -> None:
        """Run an operator that is no gradient operator."""
        o = self.operators[k]
        inputs = self.operands(o)
        target = inputs[o.inputs.index(o.outputs[0])] if k in self.versions.writes else None
        if not o.arguments.get("recorded", True): outputs = self.compute(o, inputs)
        elif id(o) in self.differentiated: outputs = self.record(o, inputs)
        elif id(o) in self.recorded or isinstance(target, Tensor) and place(target) is not None:
            with self.recording: outputs = self.compute(o, inputs)
        else: outputs = self.compute(o, inputs)
        if id(o) in self.differentiated and is_view(o) and not any(map(place, inputs)):
            self.record_alone(o, inputs)            # (a later write can give the memory a gradient)
        for (name, version), y in zip(self.versions.written[k], outputs, strict=True):
            self.set_output(name, y, version)
        if k not in self.versions.writes: return
        for (name, version), _ in self.versions.writes[k].versions[1:]:
            if name in self.values: self.set_value(name, self.values[name], version)

    def add_missing(self, k: int) -> None:
        """An addition of which one summand does not exist."""
        o = self.operators[k]
        there = [name for name in o.inputs if name not in self.missing]
        value = self.take(there[0], k) if len(there) == 1 else None     # (rows alone are given to variables)
        for name in o.inputs:
            if name in self.zero and value is None: self.zero[o.outputs[0]] = self.zero[name]
        if id(o) in self.differentiated:
            p = place(value)
            self.records[id(o)] = Record(o, [p if name in there else None for name in o.inputs], [p])
        (name, version), = self.versions.written[k]
        self.set_output(name, value, version)

    def join_existing(self, k: int) -> None:
        """The rows of those gradients that exist."""
        o = self.operators[k]
        there = [name for name in o.inputs if name not in self.missing]
        made = self.compute(o.replace(inputs=there), [self.value(n) for n in there if n is not None]) if there else (
            None,)
        (name, version), = self.versions.written[k]
        self.set_output(name, made[0], version)

    # ---- backward passes

    def begin(self, v: Variables) -> None:
        """Begin a pass: check its heads."""
        places = []
        for (name, version), head in v.pass_.heads:
            y, at = self.values.get(name), self.places.get((name, version))
            if isinstance(y, Tensor) and y.dtype.kind != "f":
                raise TypeError(f"the head {described(name)} is {y.dtype}, which has no gradient; differentiate blobs "
                                f"of floating-point numbers")
            if at is None: continue
            shape, dtype = described_place(*at)
            g = None if head is None else self.value(head)
            if g is not None and (not isinstance(g, Tensor) or (g.shape, g.dtype) != (shape, dtype)):
                raise ValueError(f"the head gradient {described(head)} of {described(name)} must be {dtype} {shape}, "
                                 f"got {described(g)}")
            places.append(at)
        reach(places)
        leaves = [place(self.net.bindings[name])[0] for name in v.blobs]    # type: ignore[index]
        older = [p for name in v.older if (p := place(self.net.bindings[name])) is not None]
        v.behind = variables_of(older)
        if v.pass_.inputs:                          # (only these receive gradients)
            v.behind = [leaf for leaf in v.behind if leaf in leaves]
        leaves += [leaf for leaf in v.behind if leaf not in leaves]
        counts = [*v.left, *[0] * (len(leaves) - len(v.left))]
        for leaf in v.behind: counts[leaves.index(leaf)] += 1
        v.behind = [leaves.index(leaf) for leaf in v.behind]
        v.listed = ListedPass(leaves, counts, [v.pass_.kind != "backward"] * len(leaves), v.graph)

    def finish(self, v: Variables) -> None:
        """End a pass: the graph of results from before the run has its turn."""
        for i in range(len(v.blobs)):
            if v.left[i]: self.count(v, (i,) * v.left[i])
        if v.behind:
            names = [(str(names_of(v.pass_.gradients[name])[0]), place(self.net.bindings[name])) for name in v.older]
            found = [(at, g) for name, at in names if (g := self.values.get(name)) is not None]
            roots, gradients = [at for at, _ in found], [g for _, g in found]
            del found
            v.listed.run(roots, gradients, [], [], tuple(v.behind), v.pass_.retain_graph)
        v.listed.finish()

    def count(self, v: Variables, which: tuple[int, ...], already: bool = False) -> None:
        """Operators have contributed to variables of a pass, or never will. After the last one, the gradient of a
        variable has a value."""
        if not already: v.listed.run([], [], [], [], which)
        for i in which:
            v.left[i] -= 1
            if v.left[i]: continue
            g = self.net.bindings[v.blobs[i]].grad if v.pass_.kind == "backward" else v.listed.gradient(i)
            self.set_parts(self.writer(v.names[i][0], v), v.names[i], g)

    def deliver(self, k: int) -> None:
        """Give the whole gradients that operator k has written to variables, if contributions do not go there
        directly."""
        for name in self.operators[k].outputs:
            v, i = self.whole.get(name, (None, 0))
            if v is None or self.writer(name, v) != k: continue
            g = self.values.pop(name, None)
            if len(v.names[i]) == 2 and g is not None:
                rows: Any = Rows                    # (its stub has no constructor)
                g = rows(g, self.values.pop(v.names[i][1]), self.net.bindings[v.blobs[i]].shape)
            if g is None: self.count(v, (i,))
            else:
                given, g = [g], None
                v.listed.contribute_to(i, given)
                self.count(v, (i,), True)

    def run_gradient(self, k: int) -> None:
        """Run a gradient operator."""
        o = self.operators[k]
        of, v = o.of, self.pass_of.get(id(o))
        if id(of) not in self.records and self.runs_alone:
            self.record_alone(of, [None if name is None else self.values[name] for name in of.inputs])
        record = self.record_of(of, o)
        written = self.results[id(o)]
        if of.type == ZERO:
            for i, (name,) in written:
                at = record.inputs[i]
                if at is not None: self.zero[name] = described_place(*at)
                self.set_output(name, None, self.version(k, name))
            return
        graph = v.graph if v is not None else id(o) in self.differentiated
        heads = self.heads(o, record, lambda name: self.take(name, k))
        again = self.differentiated[id(of)] > k
        if k in self.others: record = self.substituted(o, record)
        if id(o) in self.differentiated: self.run_recorded(k, record, heads, graph)
        else: self.run_part(k, v, record, heads, written, graph, again)
        if not again: self.records.pop(id(of), None)

    def version(self, k: int, name: str) -> int:
        """The version of a name that operator k writes."""
        return dict(self.versions.written[k])[name]

    def run_recorded(self, k: int, record: Record, heads: list[Any], graph: bool) -> None:
        """Run a gradient operator that is differentiated itself: each contribution is a result of its own."""
        o = self.operators[k]
        places = [*(record.place_of(name, self.constants) for name in o.inputs[:len(o.inputs) - len(heads)]),
                  *map(place, heads)]
        places += [record.place_of(name, self.constants) for name in hidden_inputs(o, self.constants)]
        found = self.contributions(o, record, heads, graph)
        outputs = []
        for (_, names), g in zip(self.results[id(o)], found, strict=True):
            self.set_parts(k, names, g)
            outputs += [place(self.values.get(name)) for name in names]
        self.records[id(o)] = Record(o, places, outputs)
        for name in o.outputs:                      # (as soon as it can be added)
            a = self.additions.recorded.get(str(name))
            if a is None or not all(n in self.values or n in self.missing for n in a.before): continue
            self.run_operator(a.position)
            self.done.add(a.position)

    def set_parts(self, k: int, names: Names, g: Any) -> None:
        """Set what operator k has written: a gradient, or the two blobs of a row-sparse one."""
        if isinstance(g, Rows): parts = (g.indices, g.values) if len(names) == 2 else (g.to_dense(),)
        else: parts = (g,) * len(names)
        for name, y in zip(names, parts, strict=True): self.set_output(name, y, self.version(k, name))

    def run_part(self, k: int, v: Variables | None, record: Record, heads: list[Any],
                 written: list[tuple[int, Names]], graph: bool, again: bool) -> None:
        """Run a gradient operator: its contributions are added to sums and to variables."""
        groups: dict[Place, list[Names]] = {}
        which: list[int] = []                       # the variables to which it contributes
        apart: list[Names] = []                     # contributions that are values of their own
        for i, names in written:
            at = record.inputs[i]
            if self.needed.isdisjoint(names): self.missing.update(names)
            elif names[0] in self.variables:
                which.append(self.variables[names[0]][1])
                if self.is_value(names): apart.append(names)
            elif at is None:
                for name in names: self.set_output(name, None, self.version(k, name))
            else: groups.setdefault(at, []).append(names)
        ends, sums, totals = [], [], []
        for at, items in groups.items():
            chain = self.chain(items)
            if chain is None:
                apart += items
                continue
            total, additions = chain
            apart += [names for names in items if names != total and self.is_value(names)]
            ends.append(at)
            sums.append(self.sum_before(additions[0], at) if additions and additions[0].last == items[0] else None)
            totals.append((total, additions))
        roots = [p for p, g in zip(record.outputs, heads, strict=True) if p is not None and g is not None]
        if apart: self.compute_apart(k, record, heads, written, apart, graph)
        gradients = [g for p, g in zip(record.outputs, heads, strict=True) if p is not None and g is not None]
        heads.clear()                               # (a gradient without another reference can be overwritten)
        retain = again or self.split is not None or v is not None and v.pass_.retain_graph
        if not totals and not which: return
        listed = v.listed if v is not None else ListedPass([], [], [], graph)
        found = listed.run(roots, gradients, ends, sums, tuple(which), retain, False, record.inputs)
        if v is None: listed.finish()
        found.reverse()
        for total, additions in totals:
            at_k = additions[-1].position if additions else k
            self.done.update(a.position for a in additions)
            self.set_parts(at_k, total, found.pop())
            if at_k != k: self.deliver(at_k)
        if which and v is not None: self.count(v, tuple(which), True)

    def is_value(self, names: Names) -> bool:
        """Whether a contribution is a result, or read by more than its addition. (A whole gradient is not asked.)"""
        if names[0] in self.delivered_names: return False
        by = -1
        for name in reversed(names):
            if name in self.additions.adds: by = self.additions.adds[name].position
        for name in names:
            if self.is_used(name, by): return True
        return False

    def chain(self, items: list[Names]) -> tuple[Names, list[Any]] | None:
        """The name of the sum to which contributions to one gradient are added as they are computed, and the additions
        that thereby happen. None: they are not added to one another."""
        total, additions = items[0], []
        a = self.additions.of_last.get(total[0])
        if a is not None and a.last == total and a.position not in self.done and all(
                name in self.values or name in self.missing for name in a.before):
            total, additions = (a.total,), [a]
        for names in items[1:]:
            a = self.additions.of_last.get(names[0])
            if a is None or a.last != names or a.before != total: return None
            if additions and self.is_used(total[0], a.position): return None
            total = (a.total,)
            additions.append(a)
        return total, additions

    def sum_before(self, a: Any, at: Place) -> Any:
        """The sum to which a contribution is added, or None. One that is used otherwise is copied."""
        if a.before[0] in self.missing:
            if a.before[0] in self.zero: self.zero[a.total] = self.zero[a.before[0]]
            return None
        if len(a.before) == 2:
            rows: Any = Rows
            return rows(*(self.take(name, a.position) for name in a.before), described_place(*at)[0])
        if self.is_used(a.before[0], a.position): return self.values[a.before[0]].copy()
        return self.values.pop(a.before[0])

    def compute_apart(self, k: int, record: Record, heads: list[Any], written: list[tuple[int, Names]],
                      apart: list[Names], graph: bool) -> None:
        """Compute contributions as values of their own."""
        for (_, names), g in zip(written, self.contributions(self.operators[k], record, heads, graph), strict=True):
            if names in apart: self.set_parts(k, names, g)


def detached(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Results without their graph, unless the thread records."""
    return found if autograd.is_recording() else {name: y.detach() for name, y in found.items()}


def progress(net: Any, at: int, values: Mapping[str, Any]) -> str:
    """The operators that ran, and after them the one that failed, with what is known of its inputs."""
    operators = net.operators
    lines = [f"cygrad: operator {at} of net {cut(net.name)} failed:"]
    if at > SHOWN: lines.append("  ...")
    lines += [f"  {k}  {cut(repr(operators[k]))}" for k in range(max(at - SHOWN, 0), at)]
    read = [f"{name}: {np.dtype(x.dtype).name} {x.shape}" for name in dict.fromkeys(operators[at].inputs)
            if name is not None and isinstance(x := values.get(name), Tensor)]
    lines.append(f"  {at}  {cut(repr(operators[at]))}  <- failed{'; ' * bool(read)}{', '.join(read)}")
    return "\n".join(lines)
