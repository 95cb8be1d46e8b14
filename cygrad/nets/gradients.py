"""The backward pass of a list of operators, as more operators.

The operators are visited in reverse. An operator whose outputs have a gradient gets a gradient operator: its type is
that of the operator followed by "_gradient", it reads the gradients of the outputs and what the formula needs, and it
writes the gradients of the inputs. Contributions of several readers are added. Nothing is computed here: lowering.py
runs gradient operators with the operators' own gradients, those of eager code."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from cygrad.core.errors import cut, described
from cygrad.nets.definition import (
    DENSE, IF, NEGATE, NETS_OF, PYTHON, STOP, WHILE, ZERO, Blob, GradientSlice, Operator, check_name, check_type,
    gradient_operator, made_blob,
)
from cygrad.nets.passes import Pass, Registered, names_of
from cygrad.nets.versions import DROPOUT, BlobPlace, Version, Versions, View
from cygrad.ops.calls import kept, operand_names, operands
from cygrad.ops.elementwise.elementwise import add
from cygrad.ops.layers.gradient import scale_gradient
from cygrad.ops.shapes.join import concat
from cygrad.ops.layers.random import dropout_with
from cygrad.ops.shapes.shape import copy
from cygrad.ops.shapes.slices import assign
from cygrad.ops.table import ROWS

SUFFIX = "_gradient"
DEDUPLICATE = "deduplicate"
ONES, ZEROS_LIKE, ADD_ROWS = "ones_like", "zeros_like", "add_rows"
ADD, ASSIGN, CONCAT, COPY = (f.__name__ for f in (add, assign, concat, copy))
ZEROS, ZERO_GRAD, MOVE, RANDOM, SOLVER = "zeros", "zero_grad", "move_running", "random", "solver"
MADE = {ZEROS, ZERO_GRAD, MOVE, RANDOM, SOLVER, DEDUPLICATE, ONES, ZEROS_LIKE}     # nothing flows through them
BUILT_IN = {STOP, ZERO, NEGATE, DENSE, ADD_ROWS, DROPOUT, *MADE}    # types that are no rows of the table

ROW_OF = {NEGATE: scale_gradient.__name__, DENSE: scale_gradient.__name__, DROPOUT: dropout_with.__name__}

EARLY_SHARE = 64            # as in core/backward/engine.pyx
CAPTURE = "capture"         # who asks for the pass of a captured function

registered: dict[str, Registered] = {}


def register_gradient(type: str) -> Callable[[Registered], Registered]:
    """A decorator that registers a gradient for the operators of a type, also in place of the type's own:

        @cg.graph.register_gradient("square")
        def gradient(operator, output_gradients):
            twice = cg.graph.Operator("mul", [operator.inputs[0], output_gradients[0]], "twice")
            return [cg.graph.Operator("add", ["twice", "twice"], "x_grad")], ["x_grad"]

    The function is called with an operator and the names of the gradients of its outputs, None where there is none. It
    returns the operators that compute the gradients of the inputs, and for each input a name, a GradientSlice or None.
    These operators can read the inputs and outputs of the operator, the gradients of its outputs and what they have
    written. None instead of a function removes a registration: register_gradient(type)(None)."""
    name = check_type(type, "register_gradient")

    def register(f: Registered) -> Registered:
        if f is None: registered.pop(name, None)
        elif not callable(f): raise TypeError(f"register_gradient: wanted a function, got {described(f)}")
        else: registered[name] = f
        return f

    return register


class GradientRegistry:
    """The gradients of operators as operators."""

    @staticmethod
    def get_backward_pass(operators: Sequence[Operator], ys: Any) -> tuple[list[Operator],
                                                                            dict[str, Blob | GradientSlice]]:
        """The operators that compute the gradients of `ys`, and the gradient of each blob by name; see
        Net.add_gradient_operators. The operators run after the given ones."""
        found = backward_pass(operators, ys)
        begins = check_heads(ys, "get_backward_pass"), len(found.operators)
        for o in found.operators[:1]: object.__setattr__(o, "begins", begins)
        return list(found.operators), dict(found.gradients)

    @staticmethod
    def register_gradient(type: str) -> Callable[[Registered], Registered]:
        """As the function of this name."""
        return register_gradient(type)


def backward_pass(operators: Sequence[Operator], ys: Any, skip: int = 0, constants: Collection[str] | None = None,
                  taken: set[str] | None = None, who: str = "get_backward_pass", frozen: Collection[str] = (),
                  sizes: Mapping[str, tuple[int, int]] | None = None, early: Collection[int] | None = None) -> Pass:
    """The backward pass of operators[skip:]. `constants` have no gradient, `taken` are names that it must not use, and
    no gradient is wanted for the blobs `frozen`. `sizes` and `early` are for ReverseVisit.runs_early(); with
    an empty tuple, all is in reverse order."""
    heads = check_heads(ys, who)
    if not isinstance(operators, (list, tuple)) or not all(isinstance(o, Operator) for o in operators):
        raise TypeError(f"{who}: the operators must be a list of Operator, got {described(operators)}")
    if isinstance(skip, bool) or not isinstance(skip, int):
        raise TypeError(f"{who}: skip must be an int, got {described(skip)}")
    if skip < 0: raise ValueError(f"{who}: skip must be at least 0, got {skip}")
    walk = ReverseVisit(tuple(operators), skip, {*(constants or ())}, who, taken or set(), frozenset(frozen))
    walk.sizes, walk.early = sizes or {}, early
    if early == (): walk.renewed.clear()
    for y, head in heads.items():
        if y not in walk.known:
            raise ValueError(f"{who}: there is no blob {described(str(y))}; the blobs are "
                             f"{cut(', '.join(sorted(walk.known))) or 'none'}")
        if head is not None: walk.taken.add(head)       # (one that nothing writes is an input)
    return walk.run(heads)._replace(frozen=walk.frozen)


def completed_pass(operators: Sequence[Operator]) -> Pass | None:
    """The pass that the last operators are, if get_backward_pass made them from all operators before them."""
    first = next((k for k in range(len(operators) - 1, -1, -1) if operators[k].begins is not None), None)
    if first is None: return None
    heads, n = operators[first].begins
    if first + n != len(operators): return None
    try: made = backward_pass(operators[:first], heads)
    except (TypeError, ValueError, RuntimeError): return None           # (made from other operators)
    same = tuple(operators[first:])
    if made.operators != same or any(a.of is not b.of and a.of not in made.operators
                                     for a, b in zip(made.operators, same, strict=True)): return None
    return made._replace(operators=same)


def check_heads(ys: Any, who: str) -> dict[Blob, Blob | None]:
    """`ys` as a dict from blob to head, without repetitions."""
    if isinstance(ys, Mapping):
        heads: dict[Blob, Blob | None] = {}
        for y, head in ys.items():
            if isinstance(head, GradientSlice):
                raise TypeError(f"{who}: the head of {described(str(y))} is a GradientSlice; pass the name of a dense "
                                f"gradient")
            heads[check_name(y, who)] = None if head is None else check_name(head, who)
        return heads
    if not isinstance(ys, list):
        raise TypeError(f"{who}: ys must be a list of blobs, or a dict from blob to head gradient or None, got "
                        f"{described(ys)}")
    return {check_name(y, who): None for y in ys}


class ReverseVisit:
    """The visit of the operators in reverse."""

    def __init__(self, operators: tuple[Operator, ...], skip: int, constants: set[str], who: str, taken: set[str],
                 frozen: frozenset[str]):
        self.operators, self.skip, self.constants, self.who = operators, min(skip, len(operators)), constants, who
        self.frozen, self.fixed = frozen, constants | frozen
        self.splits: dict[Version, int] = {}            # how many names of contributions to a gradient there are
        self.versions = Versions(operators)
        self.found_targets: dict[int, list[int]] = {}
        self.at = {id(o): k for k, o in enumerate(operators)}
        self.read: list[tuple[Version | None, ...]] = []        # as Versions.read, of what they are differentiated for
        for k in range(len(operators)): self.read.append(self.read_by(k))
        self.known = {name for o in operators for name in (*o.inputs, *o.outputs) if name is not None} | taken
        self.taken = set(self.known)
        self.added: list[Operator] = []
        self.parts: dict[Version, list[Any]] = {}       # the contributions to the gradient of each version
        self.count: dict[Version, int] = {}             # how many there will be
        self.whole: dict[str, Version] = {}
        self.custom: dict[int, Registered] = {}
        self.sizes: Mapping[str, tuple[int, int]] = {}
        self.early: Collection[int] | None = None
        self.renewed = self.find_renewed()
        self.waiting: dict[tuple[Version, ...], int] = {}       # elements of the parts of a whole with a gradient
        self.next: list[int] = []                       # the operators that runs_early() has found
        self.part_of = {self.versions.written[k][0]: k for k in range(self.skip, len(operators))
                        if is_part(operators[k])}
        self.wholes = {v: written for written in self.versions.written for v in written} if self.part_of else {}

    def run(self, heads: dict[Blob, Blob | None]) -> Pass:
        begun: list[tuple[Version, str | None]] = []
        found: dict[str, Blob | GradientSlice] = {}
        self.count_contributions(heads)
        for y, head in heads.items():
            version: Version = y, self.versions.now.get(y, 0)
            begun.append((version, head))
            if head is None:
                head = self.fresh(f"{y}_autogen_grad")
                self.emit(Operator(ONES, (y,), (head,), is_gradient=True))
            self.add(version, head)
        for k in self.order():
            if self.reaches_views(k): outputs = [self.gradient_through(k)]
            else: outputs = [self.gradient_of(v, found) for v in self.versions.written[k]]
            if self.is_reached(k): self.differentiate(k, outputs)
        for version in sorted(self.parts, key=lambda v: -v[1]): self.gradient_of(version, found)
        return Pass(tuple(self.added), found, self.operators[self.skip:], tuple(begun), self.whole,
                    custom=self.custom)

    # ---- the order of the visit

    def order(self) -> Iterator[int]:
        """The operators in reverse, but for those that runs_early() has found: they are next."""
        early: set[int] = set()
        for k in range(len(self.operators), self.skip - 1, -1):
            if k not in early and k < len(self.operators): yield k
            for by, at, version in ((-1, None, None), *reversed(self.renewed.get(k, ()))):
                if version in self.parts and self.reaches_views(by):
                    self.add(self.versions.writes[by].after, self.through_views(by, at, self.sum_of(version)))
                while self.next:
                    now = max(self.next)
                    self.next.remove(now)
                    early.add(now)
                    yield now

    def find_renewed(self) -> dict[int, list[tuple[int, Any, Any]]]:
        """The views whose memory an operator writes in place, by the operator that uses them first thereafter: the
        positions of the writes, the places and the versions. Eager code makes a new view of the memory then
        (core/graph/views.pyx), which adds all of its gradient there at once. Those that none uses can be heads."""
        stale: dict[Version | None, tuple[int, BlobPlace]] = {}
        found: dict[int, list[tuple[int, Any, Any]]] = {}
        for k in range(self.skip, len(self.operators) if self.versions.writes else 0):
            if stale and self.targets(k) and not self.is_stopped(k):
                found[k] = [(*stale.pop(v), v) for v in dict.fromkeys(self.read[k]) if v in stale]
            if k in self.versions.writes:
                write = self.versions.writes[k]
                stale |= {v: (k, at) for v, at in write.versions if v != write.after and not at.detached}
        found[len(self.operators)] = [(*at, v) for v, at in stale.items()]
        return found

    def is_stopped(self, k: int) -> bool:
        """Whether the result of operator k has no gradient, as one that is captured where nothing is recorded."""
        after = self.operators[k + 1:k + 2]
        return bool(after and after[0].type == STOP and after[0].inputs == self.operators[k].outputs[:1])

    def runs_early(self, k: int) -> bool:
        """Whether the gradient of the part of a blob is computed next instead of in reverse order, as in eager code:
        BackwardPass.runs_early() in core/backward/engine.pyx. Contributions are added in the order in which they are
        computed. `early` are the operators for which this is known. Else `sizes` has those of a part and of its whole,
        by the name of the part, if they are known."""
        if self.early is not None: return k in self.early
        version = self.read[k][0]
        assert version is not None
        whole = self.wholes.get(version, (version,))
        if any(self.parts.get(v) for v in whole): return True
        part, size = self.sizes.get(self.operators[k].outputs[0], (0, 0))
        self.waiting[whole] = self.waiting.get(whole, 0) + part
        return 0 < part <= size // EARLY_SHARE <= self.waiting[whole]

    def fresh(self, name: str) -> Blob:
        """A name that is not taken yet, by default `name`."""
        k, base = 0, name
        while name in self.taken:
            k += 1
            name = f"{base}_{k}"
        self.taken.add(name)
        return made_blob(name)

    def emit(self, operator: Operator) -> None:
        self.added.append(operator)
        for name in operator.outputs: self.versions.write(name)

    # ---- which operators have gradients

    def targets(self, k: int) -> list[int]:
        if k not in self.found_targets: self.found_targets[k] = targets_of(self.operators[k], self.fixed)
        return self.found_targets[k]

    def read_by(self, k: int) -> tuple[Version | None, ...]:
        """The versions of what operator k is differentiated for: its inputs, and hidden ones of a gradient operator."""
        operator = self.operators[k]
        hidden = hidden_inputs(operator, self.constants) if operator.of is not None else ()
        if not hidden: return self.versions.read[k]
        made = self.at.get(id(operator.of))
        seen = {} if made is None else dict(filter(None, self.read[made]))
        return *self.versions.read[k], *((n, seen.get(n, self.versions.now.get(n, 0))) for n in hidden)

    def is_reached(self, k: int) -> bool:
        return (self.operators[k].type == ZERO or not self.count.keys().isdisjoint(self.versions.written[k])
                or self.reaches_views(k))

    def reaches_views(self, k: int) -> bool:
        """Whether a gradient reaches what operator k wrote in place by another blob than that which it names."""
        write = self.versions.writes.get(k)
        if write is None: return False
        others = [v for v, at in write.versions[1:] if not at.detached]
        return any(v in self.count for v in (*others, write.after) if v != write.versions[0][0])

    def count_contributions(self, heads: Mapping[Blob, Any]) -> None:
        """Set `count`."""
        for y in heads: self.count[y, self.versions.now.get(y, 0)] = 1
        for k in range(len(self.operators) - 1, self.skip - 1, -1):
            if not self.is_reached(k): continue
            reached = [self.read[k][i] for i in self.targets(k)]
            if self.reaches_views(k) and self.versions.writes[k].versions[0][1].views:
                reached.append(self.versions.writes[k].before)
            reached += [self.versions.read[k][i] for i, j in kept_graphs(self.operators[k])
                        if self.versions.written[k][j] in self.count]
            for version in reached:
                assert version is not None
                self.count[version] = self.count.get(version, 0) + 1

    # ---- writes through views

    def gradient_through(self, k: int) -> Any:
        """The gradient of what operator k computes and writes in place: the part that it wrote of the gradient of all
        memory that the views share. The rest of it is that of the memory before the write."""
        write = self.versions.writes[k]
        whole = [self.through_views(k, at, self.sum_of(version)) for version, at in write.versions
                 if version in self.parts and not at.detached]
        if write.after in self.parts: whole.append(self.sum_of(write.after))
        root, place = write.before[0], write.versions[0][1]
        self.refuse_unsure(k, place)
        if not whole: return None
        g = whole[0] if len(whole) == 1 else self.total(whole, self.fresh(f"{root}_grad"))
        if not place.views: return g                # (it wrote all of it)
        rest = self.fresh(f"{root}_grad_rest")
        self.emit(Operator(COPY, (g,), (rest,), is_gradient=True))
        part, zeros = self.view(place.views, rest), self.fresh(f"{root}_grad_zeros")
        self.emit(Operator(ZEROS_LIKE, (part,), (zeros,), is_gradient=True))
        self.emit(Operator(ASSIGN, (part, zeros), (part,), {"index": (...,), "inplace": True}, is_gradient=True))
        self.add(write.before, rest)
        return self.view(place.views, g)

    def sum_of(self, version: Version) -> Any:
        """The sum of the contributions to a version, which are taken away."""
        parts = self.parts.pop(version)
        return parts[0] if len(parts) == 1 else self.total(parts, self.fresh(f"{version[0]}_grad"))

    def through_views(self, k: int, place: BlobPlace, g: Any) -> Any:
        """The gradient of the root of a memory that the gradient `g` of a place in it gives."""
        self.refuse_unsure(k, place)
        for operator, j in reversed(place.views):
            out = self.fresh(f"{operator.inputs[0]}_grad")
            self.emit(Operator(operator.type + SUFFIX, [g if i == j else None for i in range(len(operator.outputs))],
                               (out,), operator.arguments, is_gradient=True, of=operator))
            g = out
        return g

    def view(self, views: Sequence[View], name: Blob) -> Blob:
        """The same views of another blob."""
        for operator, j in views:
            names = tuple(self.fresh(f"{name}_{operator.type}") for _ in operator.outputs)
            self.emit(operator.replace(inputs=(name,), outputs=names, name="", is_gradient=True))
            name = names[j]
        return name

    def refuse_unsure(self, k: int, place: BlobPlace) -> None:
        """Raise RuntimeError if only a run shows whether a place is in the memory."""
        if place.sure: return
        raise RuntimeError(f"{self.who}: operator {k}, {cut(repr(self.operators[k]))}, writes to memory that other "
                           f"blobs may share: whether a reshape of elements that are not in row-major order, or a "
                           f"dropout, is a view or a copy is not known before a run; write to a copy()")

    # ---- gradients

    def gradient_of(self, version: Version, found: dict[str, Any]) -> Any:
        """The whole gradient of a version: the sum of its contributions, or None. A later call returns the same."""
        parts = self.parts.get(version)
        if not parts: return None
        if len(parts) > 1:
            name = self.fresh(f"{version[0]}_grad")
            self.parts[version] = parts = [self.total(parts, name)]
        if version == self.versions.first(version[0]): found[version[0]] = parts[0]
        for part in names_of(parts[0]): self.whole[part] = version
        return parts[0]

    def total(self, parts: list[Any], name: Blob) -> Any:
        """The sum of contributions, in their order."""
        sparse = [p for p in parts if isinstance(p, GradientSlice)]
        if len(sparse) == len(parts):
            total = GradientSlice(self.fresh(f"{name}_indices_concat"), self.fresh(f"{name}_values_concat"))
            for what in (0, 1):
                self.emit(Operator(CONCAT, [p[what] for p in parts], (total[what],), {"axis": 0}, is_gradient=True))
            return total
        sum_so_far: Any = parts[0]
        for k, part in enumerate(parts[1:], 2):
            out = name if k == len(parts) else self.fresh(f"{name}_sum_{k - 2}")
            inputs = [n for p in (sum_so_far, part) for n in names_of(p)]
            mixed = isinstance(sum_so_far, GradientSlice) or isinstance(part, GradientSlice)
            self.emit(Operator(ADD_ROWS if mixed else ADD, inputs, (out,), is_gradient=True))
            sum_so_far = out
        return sum_so_far

    def differentiate(self, k: int, outputs: list[Any]) -> None:
        """Emit the gradient of operator k."""
        operator, targets = self.operators[k], self.targets(k)
        for i, j in kept_graphs(operator):
            if outputs[j] is not None: self.add(self.versions.read[k][i], outputs[j])
        if not targets or outputs and all(g is None for g in outputs): return
        if operator.type in registered:
            self.use_registered(k, outputs, self.described_gradient(k))
            return
        missing = without_gradient(operator)
        if missing:
            name = operator.inputs[targets[0]]
            raise RuntimeError(f"{self.described_gradient(k)} for its input {described(str(name))} does not exist: "
                               f"{missing}, or end the path with stop_gradient")
        for key in NETS_OF.get(operator.type, ()):
            net = operator.arguments[key]
            if key != "condition": net.gradients((True,) * len(net.outputs), (True,) * len(net.inputs), self.who)
        inputs, results, _ = kept_by(operator, targets)
        read = [*(self.versions.read[k][i] for i in inputs), *(self.versions.written[k][j] for j in results)]
        needed = [version for version in read if version is not None]
        if self.who != CAPTURE:                     # (the eager pass that was traced has checked)
            for version in needed:
                if self.versions.is_now(version) or self.overwrites(k, version): continue
                self.versions.check(version, self.described_gradient(k))
        reads = *dict.fromkeys([name for name, _ in needed]), *outputs      # (None: that output has no gradient)
        made = [self.contribution(operator, self.read[k][i]) for i in targets]
        written = [names_of(g) for g in made]
        arguments = dict(operator.arguments)
        if len(targets) < len(targets_of(operator, self.constants)): arguments["wanted"] = tuple(targets)
        self.emit(gradient_operator(operator.type + SUFFIX, reads, tuple([n for names in written for n in names]),
                                    arguments, operator, [*zip(targets, written, strict=True)]))
        for i, g in zip(targets, made, strict=True): self.add(self.read[k][i], g)

    def described_gradient(self, k: int) -> str:
        """The beginning of an error about the gradient of operator k."""
        return f"{self.who}: the gradient of operator {k}, {cut(repr(self.operators[k]))},"

    def overwrites(self, k: int, version: Version) -> bool:
        """Whether operator k itself writes over a version: then it keeps a copy."""
        write = self.versions.writes.get(k)
        return write is not None and any(version == (name, later - 1) for (name, later), _ in write.versions)

    def contribution(self, operator: Operator, version: Any) -> Any:
        """A name for a contribution to the gradient of a version."""
        name = f"{version[0]}_grad"
        if self.count.get(version, 1) > 1:
            self.splits[version] = self.splits.get(version, 0) + 1
            name = f"{name}_autosplit_{self.splits[version] - 1}"
        row = ROWS.get(operator.type)
        if row is not None and row.operator.sparse and operator.arguments.get("sparse") and version[1] == 0:
            return GradientSlice(self.fresh(f"{name}_indices"), self.fresh(f"{name}_values"))
        return self.fresh(name)

    def add(self, version: Any, gradient: Any) -> None:
        parts = self.parts.setdefault(version, [])
        parts.append(gradient)
        k = self.part_of.get(version)
        if k is not None and len(parts) == self.count.get(version) and self.targets(k) and self.runs_early(k):
            self.next.append(k)

    def use_registered(self, k: int, outputs: list[Any], who: str) -> None:
        """Emit the operators of a registered gradient."""
        operator = self.operators[k]
        result = registered[operator.type](operator, outputs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"{who} must be (operators, input_gradients), got {described(result)}")
        self.custom[k - self.skip] = registered[operator.type]
        operators, gradients = result
        if len(gradients) != len(operator.inputs):
            raise ValueError(f"{who} has {len(gradients)} input gradients; the operator has {len(operator.inputs)} "
                             f"inputs; use None where there is none")
        renamed: dict[str, Blob] = {}
        scope = {name for g in outputs if g is not None for name in (g if isinstance(g, GradientSlice) else (g,))}
        for made in operators:
            if not isinstance(made, Operator):
                raise TypeError(f"{who} must be made of Operator, got {described(made)}")
            for name in made.inputs:
                if name is None or name in scope or name in renamed: continue
                seen = dict([*filter(None, self.versions.read[k]), *self.versions.written[k]]).get(name)
                if seen is None:
                    raise RuntimeError(f"{who} reads the blob {described(str(name))}, which is not in the scope of the "
                                       f"operator: its inputs, outputs, their gradients and what the gradient writes")
                self.versions.check((name, seen), who)
            reads = [None if n is None else renamed.get(n, n) for n in made.inputs]     # (what came before it)
            for name in made.outputs: renamed.setdefault(name, self.fresh(name))
            self.emit(made.replace(inputs=reads, outputs=[renamed[n] for n in made.outputs], is_gradient=True))
        for version, g in zip(self.versions.read[k], gradients, strict=True):
            if version is None or g is None: continue
            names = g if isinstance(g, tuple) else (g,)
            for name in names:
                if name not in renamed and name not in scope:
                    raise RuntimeError(f"{who} gives the blob {described(str(name))}, which is not in the scope of the "
                                       f"operator: no operator of the gradient writes it")
            names = tuple(renamed.get(n, Blob(n)) for n in names)
            self.add(version, GradientSlice(*names) if isinstance(g, tuple) else names[0])


def is_part(operator: Operator) -> bool:
    """Whether an operator takes a part of a blob, which is a view of it."""
    return operator.type in ROWS and len(operator.outputs) == 1 and bool(ROWS[operator.type].operator.shows_part)


def early_parts(operators: Sequence[Operator], added: Sequence[Operator]) -> set[int]:
    """The parts of blobs whose gradient operators in `added`, those of a pass of `operators`, are not in reverse order.
    """
    at = {id(o): k for k, o in enumerate(operators)}
    found, latest = set(), -1
    for k in dict.fromkeys(at[id(o.of)] for o in reversed(added) if id(o.of) in at):
        if k < latest and is_part(operators[k]): found.add(k)
        latest = max(latest, k)
    return found


def kept_graphs(operator: Operator) -> list[tuple[int, int]]:
    """(input, output) of each blob that an operator writes without recording that: a gradient of the new version is one
    of the version before."""
    if operator.type != SOLVER and operator.arguments.get("recorded", True): return []
    return [(operator.inputs.index(name), j) for j, name in enumerate(operator.outputs) if name in operator.inputs]


def targets_of(operator: Operator, constants: Any) -> list[int]:
    """The positions of the inputs of an operator that can have a gradient."""
    if operator.type == STOP or operator.type in MADE or not operator.arguments.get("recorded", True): return []
    reads = differentiated(operator, constants)
    found = [i for i, name in enumerate(reads) if name is not None and name not in constants]
    if operator.type == IF: found = [i for i in found if i > 0]         # (the first is its condition)
    if operator.of is None and operator.type in ROWS and operator.type not in registered:
        row = ROWS[operator.type]
        if not row.operator.differentiable and not row.selects: return []
        without = row.operator.no_gradient.split()
        if without:
            names = operand_names(operands(operator.type), len(reads))
            return [i for i in found if not names[i] or names[i] not in without]
    return found


def wanted_of(operator: Operator, constants: Any) -> Sequence[int]:
    """The positions of the inputs of operator.of whose gradients a gradient operator writes. (A list that was made
    without a net has gradients of its constants.)"""
    of, n = operator.of, len(operator.outputs)
    assert of is not None
    if operator.writes is not None: return [i for i, _ in operator.writes]
    if "wanted" in operator.arguments: return [int(i) for i in operator.arguments["wanted"]]
    for fixed in (constants, ()):
        found = targets_of(of, fixed)
        if len(found) == n or len(found) == 1 and n == 2 and of.arguments.get("sparse"): return found
    inputs = ", ".join(str(of.inputs[i]) for i in targets_of(of, constants))
    raise RuntimeError(f"{cut(repr(operator))} does not write the gradients of all of {inputs}: the net that "
                       f"made it had a constant among these; give this net the same with add_constant()")


def results_of(operator: Operator, constants: Any) -> list[tuple[int, tuple[str, ...]]]:
    """For each input of operator.of whose gradient a gradient operator writes: its position, and the name of the
    gradient, or both names of a GradientSlice."""
    if operator.writes is not None: return operator.writes      # type: ignore[no-any-return]
    targets, outputs = wanted_of(operator, constants), operator.outputs
    if len(targets) == 1: return [(targets[0], outputs)]
    return [(i, (name,)) for i, name in zip(targets, outputs, strict=True)]


def kept_names(operator: Operator, wanted: Sequence[int]) -> list[str]:
    """The blobs that an operator keeps for the gradients of the inputs `wanted`, as its gradient operator reads them.
    """
    inputs, outputs, _ = kept_by(operator, wanted)
    names = [*(operator.inputs[i] for i in inputs), *(operator.outputs[j] for j in outputs)]
    return [*dict.fromkeys(name for name in names if name is not None)]


def kept_by(operator: Operator, wanted: Sequence[int]) -> tuple[list[int], list[int], bool]:
    """What an operator keeps for the gradients of the inputs `wanted`: the positions of inputs and of outputs, and
    whether it keeps more, which is no blob."""
    kind = ROW_OF.get(operator.type, operator.type)
    if operator.of is None and kind in ROWS:
        inputs, outputs = kept(kind, operator.inputs, operator.arguments, wanted)
        visible = [j for j in outputs if j < len(operator.outputs)]
        return inputs, visible, len(visible) < len(outputs) or ROWS[kind].selects
    carried = len(operator.outputs) if operator.type == WHILE else 0    # (what these are in each turn is no blob)
    inputs = [i for i, name in enumerate(operator.inputs) if name is not None and i >= carried]
    outputs = [*range(len(operator.outputs))] if operator.type == PYTHON else []
    return inputs, outputs, operator.of is not None or operator.type == WHILE


def hidden_inputs(operator: Operator, constants: Any) -> tuple[Blob, ...]:
    """The blobs on which a gradient operator depends by what is no blob: inputs of its own operator, of which this
    keeps something that it has computed from them."""
    of = operator.of
    if of is None or of.type in registered: return ()
    targets = targets_of(of, constants)
    if not kept_by(of, operator.arguments.get("wanted", targets))[2]: return ()
    reads = differentiated(of, constants)
    return tuple(dict.fromkeys(name for i in targets if (name := reads[i]) is not None and name not in operator.inputs))


def differentiated(operator: Operator, constants: Any) -> tuple[Blob | None, ...]:
    """The blobs for which an operator can be differentiated, beginning with its inputs."""
    return operator.inputs if operator.of is None else (*operator.inputs, *hidden_inputs(operator, constants))


def without_gradient(operator: Operator) -> str:
    """Why an operator on the way to a head has no gradient, and what to do; "" if it has one."""
    if operator.type == PYTHON:
        return "" if operator.function and operator.function[1] else "it was added without grad_f; add it with one"
    if operator.of is not None and operator.of.type in NETS_OF:
        return f"{operator.of.type} has no second derivative; add the operators of its nets in its place"
    if operator.type == WHILE and operator.arguments.get("turns") is None:
        return "it keeps values of each turn, and does not say of how many; add it with turns=N"
    if operator.type in NETS_OF: return ""
    if operator.type in ROWS or operator.type in BUILT_IN or operator.of is not None: return ""
    return (f"no row of the table of operators has the type {described(operator.type)}; register one with "
            f"@cygrad.graph.register_gradient({operator.type!r})")
