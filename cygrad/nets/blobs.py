"""What a net is, as its users read it: its operators, blobs, inputs and outputs, and who uses which blob."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import Blob, Names, Operator, check_names
from cygrad.nets.passes import Pass
from cygrad.nets.state import StateHolder

class Blobs(StateHolder):
    """The part of Net that reads its operators and blobs, and sets its mode and its outputs."""

    @property
    def name(self) -> str:
        """The name of the net."""
        return self._state.name

    @property
    def training(self) -> bool | None:
        """The mode that the net runs in: True (train), False (predict), or None, that of the thread. Setting it to
        anything else raises TypeError."""
        return self._state.training

    @training.setter
    def training(self, value: bool | None) -> None:
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"Net.training must be True, False or None, got {described(value)}")
        self._state.training = value
        self._state.edits += 1

    @property
    def edits(self) -> int:
        """The number of changes so far. What was computed from the net is valid while it is the same."""
        return self._state.edits

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators, in the order in which they run."""
        return tuple(self._state.operators)

    @property
    def constants(self) -> Mapping[str, int | float | Tensor]:
        """The constants by name, read-only: Python numbers and tensors."""
        return MappingProxyType(self._state.constants)

    @property
    def inputs(self) -> tuple[Blob, ...]:
        """The blobs that are read before any operator writes them, in the order of their first use, without the
        constants. A name or a list of names can be assigned: these come first, in this order, also those that no
        operator reads. Raises ValueError for a name that is there twice, and for a constant, a tensor outside, and a
        blob that an operator writes first."""
        return self._state.use().inputs

    @inputs.setter
    def inputs(self, names: Names) -> None:
        self._state.set_arguments(check_names(names, "Net.inputs", "the inputs"))

    @property
    def absent(self) -> tuple[Blob, ...]:
        """The blobs that are read by operators that the net does not have, but whose gradient operators it has. These
        run if the blobs have values."""
        return self._state.use().absent

    @property
    def outputs(self) -> tuple[Blob, ...]:
        """The results of the net: by default the blobs that are written and that no later operator reads, without
        parts of gradients. A name or a list of names can be assigned, and None for the default. Raises ValueError for
        unknown blobs."""
        s = self._state
        if s.assigned is not None: return s.assigned
        use, parts = s.use(), {b for p in s.passes for o in p.operators for b in o.outputs if b not in p.whole}
        return tuple(b for b in use.blobs if b in use.writers and b not in parts
                     and use.readers.get(b, [-1])[-1] <= use.writers[b][-1])

    @outputs.setter
    def outputs(self, names: Names | None) -> None:
        found = None if names is None else check_names(names, "Net.outputs", "the outputs")
        for name in found or (): self._state.need(name, "Net.outputs")
        if found is not None and len({*found}) < len(found):
            raise ValueError(f"Net.outputs: each output must be named once, got {described(list(map(str, found)))}")
        self._state.assigned = found
        self._state.edits += 1

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The names of all blobs in the order of their first use, then the constants that no operator reads."""
        return self._state.use().blobs

    @property
    def shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shapes and dtypes of blobs that are known, which are printed and saved: the default of plan() and
        infer()."""
        return self._state.shapes

    @shapes.setter
    def shapes(self, shapes: dict[str, tuple[tuple[int, ...], str]]) -> None:
        self._state.shapes = shapes

    @property
    def written(self) -> Mapping[str, Sequence[int]]:
        """The positions of the operators that write each blob, for lowering.py."""
        return self._state.use().writers

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The backward passes, for lowering.py."""
        return self._state.passes

    @property
    def bindings(self) -> Mapping[str, Tensor]:
        """The tensors outside that blobs stand for, by name, read-only."""
        return MappingProxyType(self._state.bindings)

    @property
    def objects(self) -> Mapping[str, Any]:
        """The solvers and generators that operators name, read-only; None is the default generator."""
        return MappingProxyType(self._state.objects)

    def versions(self, blob: str) -> int:
        """How many operators write a blob. Raises ValueError if there is none of this name."""
        return len(self._state.use().writers.get(self._state.need(blob, "Net.versions"), ()))

    def writers(self, blob: str) -> tuple[Operator, ...]:
        """The operators that write a blob, in order. Raises ValueError if there is none of this name."""
        return self._at(self._state.use().writers.get(self._state.need(blob, "Net.writers"), ()))

    def readers(self, blob: str) -> tuple[Operator, ...]:
        """The operators that read a blob, in order. Raises ValueError if there is none of this name."""
        return self._at(self._state.use().readers.get(self._state.need(blob, "Net.readers"), ()))

    def __len__(self) -> int:
        return len(self._state.operators)

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.operators)

    def __contains__(self, blob: object) -> bool:
        return isinstance(blob, str) and blob in self._state.known

    def __bool__(self) -> bool:
        return True                                 # (also without operators)

    def _at(self, positions: Iterable[int]) -> tuple[Operator, ...]:
        return tuple(self._state.operators[k] for k in positions)
