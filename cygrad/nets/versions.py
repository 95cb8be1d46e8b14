"""Which write of a blob an operator reads, along a list of operators, and which blobs share memory.

An operator in place writes to memory. The blobs that are views of this memory, and the blob that they are views of,
then have other values: each gets a new version, of which the operator is the writer."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cygrad.core.errors import described
from cygrad.nets.definition import DENSE, NEGATE, STOP, Operator
from cygrad.ops.table import ROWS

Version = tuple[str, int]   # a blob, and how many operators have written it
View = tuple[Operator, int]     # an operator and the number of its output

DROPOUT = "dropout"
ALIASES = {NEGATE, DENSE, STOP, DROPOUT}        # views of all elements of their input, or copies (DROPOUT)


class Memory:
    """Memory of which several blobs are views. `root` is the version of the blob that has all its elements."""

    def __init__(self, root: Version):
        self.root = root
        self.places: dict[str, BlobPlace] = {}      # blobs that are views of it now, and where


class BlobPlace(NamedTuple):
    """Where a blob is: the views that lead to it from the root of the memory, the first one first. `dense`: whether a
    reshape is a view. `sure`: whether it is known before a run that these are views and not copies. `detached`: whether
    it has no gradient."""

    memory: Memory
    views: tuple[View, ...] = ()
    dense: bool = True
    sure: bool = True
    detached: bool = False


class Write(NamedTuple):
    """A recorded write in place: the new versions of blobs, that of the blob that is written first, with their places,
    and the versions of the root before and after it."""

    versions: list[tuple[Version, BlobPlace]]
    before: Version
    after: Version


class Versions:
    """How often each blob has been written, along a list of operators."""

    def __init__(self, operators: Sequence[Operator]):
        self.now: dict[str, int] = {}
        self.inputs: set[str] = set()                           # the blobs that are read before they are written
        self.read: list[tuple[Version | None, ...]] = []        # by operator: the versions of its inputs
        self.written: list[tuple[Version, ...]] = []
        self.writes: dict[int, Write] = {}                      # the operators in place
        self.places: dict[str, BlobPlace] = {}                  # blobs that share memory, or may, and where
        self.unsure: set[Version] = set()                       # these may be equal to the versions before them
        self.operators = operators
        latest: dict[str | None, Version | None] = {None: None}
        for k, operator in enumerate(operators):
            for name in operator.inputs:
                if name is None or name in latest: continue
                self.inputs.add(name)
                latest[name] = name, 0
            self.read.append(tuple([latest[name] for name in operator.inputs]))
            views = self.views_of(operator) if operator.of is None and operator.inputs and is_view(operator) else ()
            written = tuple([self.write(name) for name in operator.outputs])
            self.written.append(written)
            for version in written: latest[version[0]] = version
            if operator.arguments and is_in_place(operator):
                self.writes[k] = write = self.write_in_place(operator)
                for version, _ in write.versions: latest[version[0]] = version
            elif (views or self.places) and not (operator.arguments.get("inplace")
                                                 and operator.outputs[0] in operator.inputs):
                self.move(operator, views)          # (what is written unrecorded stays where it is)

    def write(self, name: str) -> Version:
        """Count a write, and return the new version."""
        self.now[name] = now = self.now.get(name, 0) + 1
        return name, now

    def history(self, name: str) -> str:
        """Which operators have written a blob."""
        found = [(version, k) for k, written in enumerate(self.written)
                 for version in {*written, *(v for v, _ in (self.writes[k].versions if k in self.writes else ()))}]
        return "; ".join(f"version {n} by operator {k}, {self.operators[k]!r}" for (b, n), k in found if b == name)

    def first(self, name: str) -> Version:
        """The first version of a blob: 0 of an input, else 1."""
        return name, 0 if name in self.inputs or name not in self.now else 1

    def is_now(self, version: Version) -> bool:
        """Whether a version of a blob is the last one so far."""
        return self.now.get(version[0], 0) == version[1]

    def check(self, needed: Version, who: str) -> None:
        """Raise RuntimeError unless the blob still has the version that is needed."""
        name, version = needed
        now = self.now.get(name, 0)
        if all((name, later) in self.unsure for later in range(version + 1, now + 1)): return
        raise RuntimeError(f"{who} needs version {version} of the blob {described(name)}, which has version "
                           f"{now} now: {self.history(name)}; let the later operators write to "
                           f"another blob")

    # ---- blobs that share memory

    def place(self, name: str) -> BlobPlace:
        """The place of a blob; in memory of its own if none is known."""
        if name not in self.places:
            memory = Memory((name, self.now.get(name, 0)))
            self.places[name] = memory.places[name] = BlobPlace(memory)
        return self.places[name]

    def views_of(self, operator: Operator) -> Sequence[BlobPlace]:
        """The places of the outputs of an operator, which are views of its first input."""
        kind, source = operator.type, operator.inputs[0]
        if source is None: return ()
        place, op = self.place(source), ROWS[kind].operator if kind not in ALIASES else None
        alias, in_order = (True, True) if op is None else (op.alias, op.in_order)
        sure = place.sure and kind != DROPOUT and (op is None or not op.may_copy or place.dense)
        return [BlobPlace(place.memory, place.views if alias else (*place.views, (operator, j)),
                      place.dense and in_order, sure, place.detached or kind == STOP)
                for j in range(len(operator.outputs))]

    def move(self, operator: Operator, views: Iterable[BlobPlace]) -> None:
        """The outputs of an operator are in other memory than before."""
        for name in operator.outputs:
            old = self.places.pop(name, None)
            if old is not None: del old.memory.places[name]
        for name, place in zip(operator.outputs, views, strict=False):
            self.places[name] = place.memory.places[name] = place

    def write_in_place(self, operator: Operator) -> Write:
        """The write of an operator whose output has been counted. All that shares its memory has a new version."""
        name: str = operator.outputs[0]
        if name not in self.places:
            memory = Memory((name, self.now[name] - 1))
            self.places[name] = memory.places[name] = BlobPlace(memory)
        place = self.places[name]
        memory, versions = place.memory, [((name, self.now[name]), place)]
        for other, at in memory.places.items():
            if other == name: continue
            version = self.write(other)
            if not (place.sure and at.sure): self.unsure.add(version)
            versions.append((version, at))
        before = memory.root
        whole = [version for version, at in versions if not at.views and not at.detached]
        memory.root = whole[0] if whole else (before[0], -len(self.written))    # (a version that no blob has)
        return Write(versions, before, memory.root)


def is_in_place(operator: Operator) -> bool:
    """Whether a recorded operator writes over one of its inputs."""
    a = operator.arguments
    if "inplace" not in a: return False
    return bool(a["inplace"] and a.get("recorded", True) and operator.outputs
                and operator.outputs[0] in operator.inputs)


def is_view(operator: Operator) -> bool:
    """Whether the outputs of an operator are views of its first input, or may be."""
    if operator.type == DROPOUT: may = "generator" not in operator.arguments        # (in predict mode)
    else: may = ROWS[operator.type].operator.views if operator.type in ROWS else operator.type in ALIASES
    return bool(may) and not is_in_place(operator)
