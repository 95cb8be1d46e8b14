"""The memory of a net before it runs, and the program that runs it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import cut, described
from cygrad.core.execute.program import Program
from cygrad.core.graph.tensor import Tensor
from cygrad.graph.lowering import Run

if TYPE_CHECKING:
    from cygrad.graph.net import Net

Signature = tuple[tuple[int, ...], str]


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
    given = {**net.shapes, **(shapes or {})}
    found = {}
    for name in net.inputs:
        if name in net.bindings: continue
        if name not in given:
            raise ValueError(f"{who}: the shape of the input {described(str(name))} is missing; pass shapes with a shape "
                             f"or (shape, dtype) for {', '.join(net.inputs)}")
        found[str(name)] = read_signature(given[name], f"{who}: the shape of {described(str(name))}")
    for name in shapes or {}:
        if name not in net:
            raise ValueError(f"{who}: net {cut(net.name)} has no blob {described(name)}; its inputs are "
                             f"{', '.join(net.inputs)}")
    return found


def read_signature(value: Any, what: str) -> Signature:
    """(shape, name of the dtype) of a shape, a pair, a tensor or an array."""
    dtype: Any = "float32"
    if isinstance(value, Tensor) or hasattr(value, "__array__"): return tuple(value.shape), np.dtype(value.dtype).name
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], (tuple, list)): value, dtype = value
    if isinstance(value, int) and not isinstance(value, bool): value = value,
    if not isinstance(value, (tuple, list)) or any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0
                                                   for n in value):
        raise TypeError(f"{what} must be a tuple of sizes, or a pair of it and a dtype, got {described(value)}")
    try: name = np.dtype(dtype).name
    except TypeError: name = ""
    if name not in {np.dtype(d).name for d in DTYPES}:
        raise TypeError(f"{what} has the dtype {described(dtype)}; wanted one that tensors have")
    return tuple(int(n) for n in value), name


def prepared(net: "Net", inputs: dict[str, Signature], kept: frozenset[str]) -> Program:
    """The program of a net for inputs of these shapes and dtypes. Its outputs are a dict of the kept blobs."""
    names = list(inputs)

    def run(*values: Tensor) -> dict[str, Tensor]:
        with mode(net): return Run(net, dict(zip(names, values, strict=True)), kept).execute()

    return Program(run, *inputs.values())


def mode(net: "Net") -> Any:
    """The scope of a net's mode, in which nothing is recorded."""
    return autograd.pause(train_mode=net.training)


def planned(net: "Net", shapes: Mapping[str, Any] | None) -> Plan:
    """As Net.plan."""
    return Plan(net, prepared(net, signature(net, shapes, "Net.plan"), net.kept))


def inferred(net: "Net", shapes: Mapping[str, Any] | None) -> dict[str, Signature]:
    """As Net.infer."""
    inputs = signature(net, shapes, "Net.infer")
    found: dict[str, Signature] = dict(inputs)
    written = frozenset(name for o in net.operators for name in o.outputs)
    whole = {name for p in net.passes for name in p.whole}
    parts = {name for p in net.passes for o in p.operators for name in o.outputs} - whole
    names = list(inputs)

    def run(*values: Tensor) -> None:
        with mode(net):
            blobs = Run(net, dict(zip(names, values, strict=True)), written - parts).execute()
        found.update({name: read_signature(y, name) for name, y in blobs.items()})

    Program(run, *inputs.values())
    return found
