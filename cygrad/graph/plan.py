"""The memory of a net before it runs, and the program that runs it."""

import re
from collections.abc import Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import cut, described
from cygrad.core.execute.program import Program
from cygrad.core.graph.tensor import Tensor
from cygrad.graph.definition import PYTHON
from cygrad.graph.immediate import mode
from cygrad.graph.lowering import Run

if TYPE_CHECKING:
    from cygrad.graph.net import Net

Signature = tuple[tuple[int, ...], str]
CAPTURE = "capture: ", "this tensor has no values: "     # begin the message if a program cannot do what the net does
running: WeakKeyDictionary[Any, WeakSet[Any]] = WeakKeyDictionary()      # the runs of each net, by workspace.py


class Row(NamedTuple):
    """One buffer of a plan: which operators of the program use it, first and last, and where it is."""

    operator: str
    nbytes: int
    offset: int
    first: int
    last: int


class Plan:
    """The memory of a run of a net. `peak_bytes` are those of the arena, which a run takes once and keeps; inputs,
    which the workspace has, are not counted. `bound_bytes` is the most that is needed at one time, which no arena can
    be smaller than. `rows` are the buffers: (operator that writes it first, nbytes, offset, first step, last step)."""

    def __init__(self, net: "Net", program: Program):
        self.name, self.steps = net.name, tuple(step.name for step in program.steps)
        self.peak_bytes, self.bound_bytes = program.arena_bytes, program.bound_bytes
        self.rows = tuple(Row(self.steps[first], nbytes, offset, first, last)
                          for nbytes, offset, first, last, _ in program.lives if offset is not None)

    def __repr__(self) -> str:
        return (f"<plan of {cut(self.name)}: {self.peak_bytes:,} bytes for {len(self.rows)} buffers and "
                f"{len(self.steps)} steps, bound {self.bound_bytes:,}>")


def signature(net: "Net", shapes: Mapping[str, Any] | None, who: str) -> dict[str, Signature]:
    """The shape and dtype of each input."""
    if shapes is not None and not isinstance(shapes, Mapping):
        raise TypeError(f"{who}: shapes must be a dict from blob to shape, got {described(shapes)}")
    given = {**net.shapes, **(shapes or {})}
    found: dict[str, Signature] = {}
    for name in net.inputs:
        if name not in given:
            raise ValueError(f"{who}: the shape of the input {described(str(name))} is missing; pass shapes with a "
                             f"shape or (shape, dtype) for {', '.join(net.inputs)}")
        found[str(name)] = read_signature(given[name], f"{who}: the shape of {described(str(name))}")
    for other in shapes or {}:
        if other not in net:
            raise ValueError(f"{who}: net {cut(net.name)} has no blob {described(other)}; its inputs are "
                             f"{', '.join(net.inputs) or 'none'}")
    return found


def read_signature(value: Any, what: str) -> Signature:
    """(shape, name of the dtype) of a shape, a pair, a tensor or an array."""
    dtype: Any = "float32"
    if isinstance(value, Tensor) or hasattr(value, "__array__"): return tuple(value.shape), np.dtype(value.dtype).name
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], (tuple, list)):
        value, dtype = value
    if isinstance(value, int) and not isinstance(value, bool): value = value,
    if not isinstance(value, (tuple, list)) or any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0
                                                   for n in value):
        raise TypeError(f"{what} must be a tuple of sizes, or a pair of it and a dtype, got {described(value)}")
    try: name = np.dtype(dtype).name
    except TypeError: name = ""
    if name not in {np.dtype(d).name for d in DTYPES}:
        raise TypeError(f"{what} has the dtype {described(dtype)}; wanted one that tensors have")
    return tuple(int(n) for n in value), name


def prepared(net: "Net", inputs: dict[str, Signature], kept: frozenset[str],
             end: int | None = None) -> Program:
    """The program of a net for inputs of these shapes and dtypes. Its outputs are a dict of the kept blobs. `end`: only
    the operators before this one."""
    names = list(inputs)

    def run(*values: Tensor) -> dict[str, Tensor]:
        with mode(net): return Run(net, dict(zip(names, values, strict=True)), kept).execute(end)

    return Program(run, *inputs.values())


def failed_operator(net: "Net", values: Mapping[str, Tensor], error: Exception) -> tuple[int, int] | None:
    """The operator in which a program of the net failed, and how many it ran with, found by its step: the programs of
    the first operators have the first steps."""
    found = [re.search(r"^cygrad: in step (\d+) of ", note) for note in getattr(error, "__notes__", ())]
    steps = [int(match[1]) for match in found if match]
    if not steps: return None
    inputs = {name: read_signature(x, name) for name, x in values.items()}
    begins = Run(net, values, net.kept).begins()
    low, high = 0, len(begins) - 1                  # the last part that begins at or before the step
    while low < high:
        middle = (low + high + 1) // 2
        if len(prepared(net, inputs, net.kept, begins[middle]).steps) < steps[0]: low = middle
        else: high = middle - 1
    return begins[low], (*begins, len(net.operators))[low + 1] - begins[low]


def refuse_plan(net: "Net", who: str, error: RuntimeError) -> NoReturn:
    """Raise RuntimeError instead of `error`, which a trace raised, in the words of a net."""
    place = getattr(error, "operator", None)
    if not str(error).startswith(CAPTURE) or place is None: raise error
    raise RuntimeError(f"{who}: operator {place}, {cut(repr(net.operators[place]))}, needs values, so what comes after "
                       f"it is not known before a run; Workspace.run runs this net, and without a plan") from None


def planned(net: "Net", shapes: Mapping[str, Any] | None) -> Plan:
    """As Net.plan."""
    who = "Net.plan"
    if any(turn.thread != get_ident() for turn in [*running.get(net, ())]):
        raise RuntimeError(f"{who}: net {cut(net.name)} runs in another thread; wait for it, or plan a clone()")
    for k, o in enumerate(net.operators):
        if o.type == PYTHON:
            raise RuntimeError(f"{who}: operator {k}, {cut(repr(o))}, calls a Python function, whose memory is not "
                               f"known before a run; Workspace.run runs this net, and without a plan")
    try: return Plan(net, prepared(net, signature(net, shapes, who), net.kept))
    except RuntimeError as e: refuse_plan(net, who, e)


def inferred(net: "Net", shapes: Mapping[str, Any] | None) -> dict[str, Signature]:
    """As Net.infer."""
    who = "Net.infer"
    inputs = signature(net, shapes, who)
    found = dict(inputs)
    written = frozenset(name for o in net.operators for name in o.outputs)
    whole = {name for p in net.passes for name in p.whole}
    parts = {name for p in net.passes for o in p.operators for name in o.outputs} - whole
    names = list(inputs)

    def run(*values: Tensor) -> None:
        with mode(net):
            blobs = Run(net, dict(zip(names, values, strict=True)), written - parts).execute()
        found.update({str(name): read_signature(y, name) for name, y in blobs.items()})

    try: Program(run, *inputs.values())
    except RuntimeError as e: refuse_plan(net, who, e)
    return found
