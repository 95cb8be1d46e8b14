"""The memory of a net before it runs, and the program that runs it."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import MemoryLimitError, cut, described
from cygrad.core.execute.program import Program
from cygrad.core.graph.around import eager_reason, hook_on
from cygrad.core.graph.planning import address
from cygrad.core.graph.tensor import Tensor
from cygrad.core.sizes import read_size
from cygrad.core.store.buffer import most_held
from cygrad.memory.rows import Recomputed
from cygrad.nets.branches import GRADIENT
from cygrad.nets.definition import NETS_OF
from cygrad.nets.fixed import fixing
from cygrad.nets.gradients import ADD
from cygrad.nets.immediate import mode
from cygrad.nets.lowering import Run
from cygrad.nets.state import state_of
from cygrad.nets.subnets import is_python
from cygrad.nets.turns import other_thread
from cygrad.ops.table import ROWS

if TYPE_CHECKING:
    from cygrad.nets.net import Net

Signature = tuple[tuple[int, ...], str]
CAPTURE = "capture: ", "this tensor has no values: "     # begin the message if a program cannot do what the net does


MOST_DRAWN = 2000           # buffers in the drawing of a plan that Jupyter shows, some 300 bytes of HTML each
ALIGNMENT = 64              # bytes: what the sizes of buffers are rounded up to
DTYPE_NAMES = {np.dtype(d).name for d in DTYPES}
SIGNS = "signs"             # the step that keeps only the signs of a result for its backward
AGAIN = " (again)"          # how the names of steps end that run again, under a budget
FUSED = "fused "            # how the names of steps begin that run several operators (core/execute/chaining)


class PlanRow(NamedTuple):
    """One buffer of a plan: the operator of the step that writes it first, where it is, its first and last step, the
    blob that is in it, "" if the buffer is no blob of the net, and the kind of that step (Plan.kinds)."""

    operator: str
    nbytes: int
    offset: int
    first: int
    last: int
    blob: str = ""
    kind: str = "forward"


def kinds_of(steps: Sequence[str]) -> tuple[str, ...]:
    """As Plan.kinds. Sums of gradients are "add" between steps of the backward pass."""
    kinds = ["recomputed" if s.endswith(AGAIN) else "gradient" if s.endswith(GRADIENT)
             else "forward" if s in ROWS or s in (*NETS_OF, SIGNS) or s.startswith(FUSED) else "other" for s in steps]
    for k in range(1, len(kinds) - 1):
        if steps[k] == ADD and kinds[k - 1] == "gradient" == kinds[k + 1]: kinds[k] = "gradient"
    return tuple(kinds)


class Plan:
    """The memory of a run of a net. `peak_bytes` are those of the arena, which a run takes once and keeps; inputs,
    which the workspace has, are not counted. `held_bytes` are the most that a first run takes from the system, in whole
    pages: for the arena, and for the .grad of variables that had no memory when the plan was made. A memory.limit() of
    that more than what is held suffices. `bound_bytes` is the most that is needed at one time, which no arena can
    be smaller than. `steps` are the names of the kernel calls, and `kinds` what each is for: "forward", "gradient",
    "recomputed" or "other" (solvers, .grad, random numbers). `recomputed` is (calls, share): the steps that run again
    because of a budget, and their share of the work of all others. `rows` are the buffers: (operator, nbytes, offset,
    first step, last step, blob, kind). Those of the results are in use until the end. `inputs` and `outputs` are dicts
    from blob to bytes. print(plan.table()) lists the buffers, plan.plot() draws them."""

    peak_bytes: int
    bound_bytes: int
    held_bytes: int

    def __init__(self, net: "Net", program: Program, names: Mapping[int, str] | None = None):
        self.name, self.steps = net.name, tuple(step.name for step in program.steps)
        self.peak_bytes, self.bound_bytes = program.arena_bytes, program.bound_bytes
        self.held_bytes = sum(map(most_held, program.missing))
        self.recomputed = Recomputed(*program.recomputed)
        self.kinds = kinds_of(self.steps)
        found, end = names or {}, len(self.steps) - 1
        results = self.outputs = {str(name): nbytes for name, nbytes in program.output_bytes.items()}
        self.inputs: dict[str, int] = {}
        rows = []
        for number, (nbytes, offset, first, last, *_) in enumerate(program.lives):
            if offset is None: continue
            blob = found.get(number, "")
            last = end if blob in results else last
            rows.append(PlanRow(self.steps[first], nbytes, offset, first, last, blob, self.kinds[first]))
        self.rows = tuple(rows)

    def __repr__(self) -> str:
        return (f"<plan of {cut(self.name)}: {self.peak_bytes:,} bytes for {len(self.rows)} buffers and "
                f"{len(self.steps)} steps, bound {self.bound_bytes:,}>")

    def _repr_html_(self) -> str:
        """The drawing, for Jupyter; of a plan with many buffers only what print() shows."""
        from cygrad.core.notebook import scrolled, titled

        drawing = scrolled(self.plot()) if len(self.rows) <= MOST_DRAWN else ""
        return titled("Plan", f"of {self.name}: {self.peak_bytes:,} bytes for {len(self.rows):,} buffers and "
                              f"{len(self.steps):,} steps, bound {self.bound_bytes:,}", drawing)

    def live(self) -> list[int]:
        """The bytes in use at each step, with the sizes of buffers rounded up to 64 bytes. The maximum is
        bound_bytes."""
        change = [0] * (len(self.steps) + 1)
        for row in self.rows:
            size = -(-row.nbytes // ALIGNMENT) * ALIGNMENT
            change[row.first] += size
            change[row.last + 1] -= size
        return [*accumulate(change)][:-1]

    def peak_step(self) -> int:
        """The first step at which the most bytes are in use; 0 if there is no step."""
        live = self.live()
        return live.index(max(live)) if live else 0

    def table(self) -> str:
        """The buffers as text, in the order of their first steps. A * marks those in use at the peak."""
        at = self.peak_step()
        lines = [("", "blob", "operator", "bytes", "offset", "from", "to")]
        for row in self.rows:
            lines.append(("*" if row.first <= at <= row.last else "", row.blob, row.operator, f"{row.nbytes:,}",
                          f"{row.offset:,}", str(row.first), str(row.last)))
        widths = [max(len(line[k]) for line in lines) for k in range(7)]
        text = ["  ".join(word.ljust(w) if k < 3 else word.rjust(w)
                          for k, (word, w) in enumerate(zip(line, widths, strict=True))).rstrip() for line in lines]
        where = f", step {at}, {self.steps[at]}" if self.steps else ""
        text.append(f"{self.peak_bytes:,} bytes, bound {self.bound_bytes:,}{where}; inputs "
                    f"{sum(self.inputs.values()):,} bytes, outputs {sum(self.outputs.values()):,} bytes")
        return "\n".join(text)

    def plot(self, path: str | PathLike[str] | None = None) -> str:
        """A drawing of the arena over time as SVG, which is also written to `path` if one is given: a rectangle for
        each buffer from its first to its last step, over its addresses, and below them the bytes in use. Raises
        ValueError if the path does not end with .svg and OSError if the file cannot be written."""
        from cygrad.nets.plan_drawing import plot

        return plot(self, path)


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
    if name not in DTYPE_NAMES:
        raise TypeError(f"{what} has the dtype {described(dtype)}; wanted one that tensors have")
    return tuple(int(n) for n in value), name


def eager_only(net: "Net") -> str | None:
    """Why only eager code can run a net now, if there is such a reason: an open scope, or a hook on a variable."""
    passes = bool(net.passes) or any(o.is_gradient for o in net.operators)
    return eager_reason(net.bindings.values(), passes, any(p.kind == "backward" for p in net.passes))


@contextmanager
def without_collections() -> Iterator[None]:
    """A scope in which the garbage collector does not run. A plan makes some objects for each operator, none of them
    garbage, so the collector would visit all operators each time that their number has grown by a quarter."""
    collects = gc.isenabled()
    gc.disable()
    try: yield
    finally:
        if collects: gc.enable()


@without_collections()
def prepared(net: "Net", inputs: dict[str, Signature], kept: frozenset[str],
             split: int | None = None, budget: int | None = None) -> Program:
    """The program of a net for inputs of these shapes and dtypes. Its outputs are a dict of the kept blobs. `split`: it
    can stop before this operator (Program.begin), and its outputs are two dicts (Run.execute_parts). `budget`: what the
    live bytes stay under in a run."""
    names = list(inputs)

    def run(*values: Tensor) -> Any:
        blobs = dict(zip(names, values, strict=True))
        with mode(net):
            running = Run(net, blobs, kept, split=split)
            return running.execute() if split is None else running.execute_parts()

    program = traced(net, run, inputs, budget=budget)
    program.watch(net.bindings.values())
    return program


def traced(net: "Net", run: Callable[..., Any], inputs: Mapping[str, Signature], limit: int | None = None,
           budget: int | None = None) -> Program:
    """The program of the function `run`. `limit`: the most bytes of its arena. `budget`: of all that is live in a run.
    """
    try: return Program(run, *inputs.values(), _limit=limit, _budget=budget)
    except MemoryLimitError as e:
        if state_of(net).gradients and state_of(net).shared is None:
            e.add_note("cygrad: this net keeps all gradients; after share_blobs() it keeps those of its inputs")
        raise
    except (IndexError, ValueError) as e:
        at = getattr(e, "operator", None)
        why = None if at is None else fixing(net.operators, net.constants, net.shapes, inputs, at)
        if why: e.add_note(why)
        raise


def refuse_plan(net: "Net", who: str, error: RuntimeError) -> NoReturn:
    """Raise RuntimeError instead of `error`, which a trace raised, in the words of a net."""
    place = getattr(error, "operator", None)
    if not str(error).startswith(CAPTURE) or place is None: raise error
    raise RuntimeError(f"{who}: operator {place}, {cut(repr(net.operators[place]))}, needs values, so what comes after "
                       f"it is not known before a run; Workspace.run runs this net, and without a plan") from None


class Observed(Run):
    """A run that lists the addresses of the blobs: the first blob at each."""

    def __init__(self, net: "Net", values: Mapping[str, Any], kept: frozenset[str]):
        super().__init__(net, values, kept)
        self.addresses: dict[int, str] = {}

    def set_value(self, name: str, value: Any, version: int) -> None:
        super().set_value(name, value, version)
        if not isinstance(value, Tensor): return
        at = address(value)
        if name in self.kept or at not in self.addresses: self.addresses[at] = str(name)


@without_collections()
def planned(net: "Net", shapes: Mapping[str, Any] | None, budget: Any) -> Plan:
    """As Net.plan."""
    who = "Net.plan"
    limit = None if budget is None else read_size(budget, who)
    if other_thread(state_of(net).lock):
        raise RuntimeError(f"{who}: net {cut(net.name)} runs in another thread; wait for it, or plan a clone()")
    for k, o in enumerate(net.operators):
        if is_python(o):
            raise RuntimeError(f"{who}: operator {k}, {cut(repr(o))}, calls a Python function, whose memory is not "
                               f"known before a run; Workspace.run runs this net, and without a plan")
    why = eager_only(net)
    if why:
        raise RuntimeError(f"{who}: {why}, so eager code runs net {cut(net.name)} now, without a plan; plan before, or "
                           f"after it")
    inputs, kept = signature(net, shapes, who), net.kept
    names, seen = list(inputs), dict[int, str]()

    def run(*values: Tensor) -> dict[str, Tensor]:
        with mode(net):
            running = Observed(net, dict(zip(names, values, strict=True)), kept)
            found = running.execute()
        seen.update(running.addresses)
        return found

    try: program = traced(net, run, inputs, limit=limit)
    except RuntimeError as e: refuse_plan(net, who, e)
    plan = Plan(net, program, {k: seen[life[5]] for k, life in enumerate(program.lives) if life[5] in seen})
    plan.inputs = {name: int(np.prod(shape)) * np.dtype(dtype).itemsize for name, (shape, dtype) in inputs.items()}
    return plan


@without_collections()
def inferred(net: "Net", shapes: Mapping[str, Any] | None) -> dict[str, Signature]:
    """As Net.infer."""
    who = "Net.infer"
    inputs = signature(net, shapes, who)
    hook = hook_on(net.bindings.values()) if net.passes else None
    if hook: raise RuntimeError(f"{who}: {hook}, which is not called for virtual gradients; remove it meanwhile")
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
