"""The operators of a net and what follows from them: its blobs, inputs and outputs, and who uses which blob."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import Blob, GradientSlice, Operator, check_name, check_names
from cygrad.nets.gradients import Pass
from cygrad.nets.turns import Lock

Names = str | list[str] | tuple[str, ...]


class Use(NamedTuple):
    """Who uses the blobs of a net: the positions of operators by the name of the blob. `absent` are the inputs of the
    operators that the net does not have, but whose gradient operators it has."""

    inputs: tuple[Blob, ...]
    absent: tuple[Blob, ...]
    blobs: tuple[Blob, ...]
    writers: dict[str, list[int]]
    readers: dict[str, list[int]]


class Blobs:
    """A list of operators, with its constants. Net adds what changes it."""

    shapes: dict[str, tuple[tuple[int, ...], str]]

    def __init__(self, name: str = "net"):
        self._name = str(check_name(name, "Net", "the name"))
        self._operators: list[Operator] = []
        self._constants: dict[str, int | float | Tensor] = {}
        self._numbers: dict[str, Blob] = {}         # the text of a number: its constant
        self._known: set[str] = set()               # the names of all blobs
        self._next: dict[str, int] = {}             # the next number of a fresh name
        self._outputs: tuple[Blob, ...] | None = None
        self._training: bool | None = None
        self._edits = 0
        self._used: tuple[int, Use] | None = None   # (edits, what follows from the list then)
        self._given: set[str] = set()               # blobs whose names were given, not made
        self._passes: tuple[Pass, ...] = ()
        self._gradients: dict[str, Blob | GradientSlice] | None = None
        self._bindings: dict[str, Tensor] = {}      # blobs that stand for tensors from outside
        self._variables: set[str] = set()           # those that were variables at the capture
        self._objects: dict[str, Any] = {}          # solvers and generators that operators name
        self._turn: Lock = {}                       # the lock of a run
        self._arguments: tuple[Blob, ...] = ()      # the inputs of a captured function
        self._shared: frozenset[str] | None = None  # (blobs that are kept although others may share memory)
        self.shapes = {}

    # ---- what the net is ---------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the net."""
        return self._name

    @property
    def training(self) -> bool | None:
        """The mode that the net runs in: True (train), False (predict), or None, that of the thread. Setting it to
        anything else raises TypeError."""
        return self._training

    @training.setter
    def training(self, value: bool | None) -> None:
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"Net.training must be True, False or None, got {described(value)}")
        self._training = value
        self._edits += 1

    @property
    def edits(self) -> int:
        """The number of changes so far. What was computed from the net is valid while it is the same."""
        return self._edits

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators, in the order in which they run."""
        return tuple(self._operators)

    @property
    def constants(self) -> Mapping[str, int | float | Tensor]:
        """The constants by name, read-only: Python numbers and tensors."""
        return MappingProxyType(self._constants)

    @property
    def inputs(self) -> tuple[Blob, ...]:
        """The blobs that are read before any operator writes them, in the order of their first use, without the
        constants."""
        return self._use().inputs

    @property
    def absent(self) -> tuple[Blob, ...]:
        """The blobs that are read by operators that the net does not have, but whose gradient operators it has. These
        run if the blobs have values."""
        return self._use().absent

    @property
    def outputs(self) -> tuple[Blob, ...]:
        """The results of the net: by default the blobs that are written and that no later operator reads, without
        parts of gradients. A name or a list of names can be assigned, and None for the default. Raises ValueError for
        unknown blobs."""
        if self._outputs is not None: return self._outputs
        use = self._use()
        parts = {b for p in self._passes for o in p.operators for b in o.outputs if b not in p.whole}
        return tuple(b for b in use.blobs if b in use.writers and b not in parts
                     and use.readers.get(b, [-1])[-1] <= use.writers[b][-1])

    @outputs.setter
    def outputs(self, names: Names | None) -> None:
        found = None if names is None else check_names(names, "Net.outputs", "the outputs")
        for name in found or (): self._need(name, "Net.outputs")
        if found is not None and len({*found}) < len(found):
            raise ValueError(f"Net.outputs: each output must be named once, got {described(list(map(str, found)))}")
        self._outputs = found
        self._edits += 1

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The names of all blobs in the order of their first use, then the constants that no operator reads."""
        return self._use().blobs

    @property
    def written(self) -> Mapping[str, list[int]]:
        """The positions of the operators that write each blob, for lowering.py."""
        return self._use().writers

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The backward passes, for lowering.py."""
        return self._passes

    @property
    def bindings(self) -> Mapping[str, Tensor]:
        """The tensors outside that blobs stand for, by name, read-only."""
        return MappingProxyType(self._bindings)

    @property
    def objects(self) -> Mapping[str, Any]:
        """The solvers and generators that operators name, read-only; None is the default generator."""
        return MappingProxyType(self._objects)

    def versions(self, blob: str) -> int:
        """How many operators write a blob. Raises ValueError if there is none of this name."""
        return len(self._use().writers.get(self._need(blob, "Net.versions"), ()))

    def writers(self, blob: str) -> tuple[Operator, ...]:
        """The operators that write a blob, in order. Raises ValueError if there is none of this name."""
        return self._at(self._use().writers.get(self._need(blob, "Net.writers"), ()))

    def readers(self, blob: str) -> tuple[Operator, ...]:
        """The operators that read a blob, in order. Raises ValueError if there is none of this name."""
        return self._at(self._use().readers.get(self._need(blob, "Net.readers"), ()))

    def __len__(self) -> int:
        return len(self._operators)

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.operators)

    def __contains__(self, blob: object) -> bool:
        return isinstance(blob, str) and blob in self._known

    def __bool__(self) -> bool:
        return True                                 # (also without operators)

    def _at(self, positions: Iterable[int]) -> tuple[Operator, ...]:
        return tuple(self._operators[k] for k in positions)

    def _need(self, blob: Any, who: str) -> Blob:
        """`blob` as a Blob of this net."""
        name = check_name(blob, who)
        if name not in self._known:
            raise ValueError(f"{who}: net {cut(self._name)} has no blob {described(str(name))}; it has "
                             f"{cut(', '.join(self.blobs)) or 'none'}")
        return name

    def _use(self) -> Use:
        """Who uses the blobs. It is computed again after an edit."""
        if self._used is not None and self._used[0] == self._edits: return self._used[1]
        inputs: dict[Blob, None] = dict.fromkeys(self._arguments)
        absent: dict[Blob, None] = {}
        blobs: dict[Blob, None] = {}
        seen: set[int] = set()                      # the operators so far, by their ids
        writers: dict[str, list[int]] = {}
        readers: dict[str, list[int]] = {}
        for k, operator in enumerate(self._operators):
            if operator.of is not None and id(operator.of) not in seen:
                absent |= {name: None for name in operator.of.inputs if name is not None and name not in writers}
            seen.add(id(operator))
            for name in operator.inputs:
                if name is None: continue
                if name not in blobs:
                    blobs[name] = None
                    if name not in self._constants and name not in self._bindings: inputs[name] = None
                if name not in readers: readers[name] = [k]
                elif readers[name][-1] != k: readers[name].append(k)
            for name in operator.outputs:
                blobs[name] = None
                if name in writers: writers[name].append(k)
                else: writers[name] = [k]
        for constant in self._constants: blobs[Blob(constant)] = None
        use = Use(tuple(inputs), tuple(absent), tuple(blobs), writers, readers)
        self._used = self._edits, use
        return use
