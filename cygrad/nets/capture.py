"""Nets from eager code: a function is traced, and what it called becomes operators.

The trace lists operators, backward passes, updates of solvers and random draws, with the addresses of the arrays that
they read and wrote (core/graph/calls.pyx). Here each array gets the name of a blob. Arrays from outside become
bindings: the net uses their memory. Those that the function made from values become constants."""

import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, NoReturn

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import cut, described
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.execute.program import Program
from cygrad.core.graph.planning import item
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.built_in import DEFAULT
from cygrad.nets.definition import Blob, Operator, made_operator
from cygrad.nets.gradients import CAPTURE, COPY, ROW_OF, STOP, backward_pass
from cygrad.nets.passes import Pass
from cygrad.nets.plan import without_collections
from cygrad.nets.state import NetState, state_of
from cygrad.nets.versions import DROPOUT
from cygrad.ops.calls import arguments_of

Elements = tuple[int, int, tuple[int, ...], tuple[int, ...]]
Key = tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, int] | None]


class Item(NamedTuple):
    """An array, as a trace lists it (core/graph/calls.pyx)."""

    address: int
    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    place: tuple[int, int] | None       # in the graph
    tensor: Tensor | None               # if its memory is real
    made: bool                          # by the function
    buffer: int                         # the address of its buffer
    gradient: bool
    variable: bool

    @property
    def elements(self) -> Elements:
        """What identifies the elements: address, dtype, shape and strides."""
        return self[:4]

    @property
    def key(self) -> Key:
        """What identifies the array: its elements and its place in the graph."""
        return self[:5]


class KnownBlob(NamedTuple):
    """The last blob that has certain elements. `recorded`: it may have a graph, so a tensor without one is detached."""

    name: str
    recorded: bool


@without_collections()
def capture(cls: type, f: Callable[..., Any], examples: tuple[Any, ...], name: str | None,
            names: Mapping[str, Tensor] | None, named: Mapping[str, Any]) -> Any:
    """As Net.capture; `cls` is Net."""
    if not callable(f): raise TypeError(f"Net.capture takes a function and its arguments, got {described(f)}")
    if names is not None and not isinstance(names, Mapping):
        raise TypeError(f"Net.capture: names must be a dict from name to tensor, such as "
                        f"dict(model.named_parameters()), got {described(names)}")
    calls: list[Any] = []
    found: list[Item] = []

    def run(*xs: Tensor) -> None:
        inputs.extend(read(x) for x in xs)
        with autograd.record(train_mode=None) if recording else nullcontext(): result = f(*xs, **named)
        found.extend(read(y) for y in results(result))

    inputs: list[Item] = []
    recording = autograd.is_recording()             # (a trace begins without)
    try: Program(run, *examples, _calls=calls)
    except RuntimeError as e:
        if not str(e).startswith("this tensor has no values: "): raise
        raise RuntimeError("capture: reading the values of a tensor, here by an operation such as an assignment to the "
                           "elements of a mask, cannot be captured; use where() or keep it outside the captured "
                           "function") from e
    net = cls(name or getattr(f, "__name__", type(f).__name__).replace("<lambda>", "net"))
    reader = Reader(state_of(net), calls, own_names(f) if names is None else names)
    reader.take_inputs(f, inputs)
    for call in calls: reader.take(call)
    net.outputs = [*dict.fromkeys(reader.output(y) for y in found)]
    net.training = reader.training
    return net


def own_names(f: Any) -> dict[str, Tensor]:
    """The names of the parameters and buffers of a module; none for another function."""
    if not hasattr(f, "named_parameters") or not hasattr(f, "named_buffers"): return {}
    return dict([*f.named_parameters(), *f.named_buffers()])


def results(result: Any) -> list[Tensor]:
    """The tensors in what a function returned."""
    if result is None: return []
    if isinstance(result, Tensor): return [result]
    if isinstance(result, Mapping): result = list(result.values())
    if isinstance(result, (tuple, list)): return [y for part in result for y in results(part)]
    raise TypeError(f"Net.capture: a captured function returns tensors, or tuples, lists or dicts of them, or None; "
                    f"this one returned {described(result)}")


class Reader:
    """Turns the calls of a trace into operators of a net, whose state is `net`."""

    def __init__(self, net: NetState, calls: list[Any], names: Mapping[str, Tensor]):
        self.net, self.blobs = net, dict[Key, str]()
        self.arrays: dict[Elements, KnownBlob] = {}
        self.keys: dict[int, set[Key]] = {}         # the arrays in each buffer, by its address
        self.rewritten: set[int] = set()            # the buffers that a recorded operator wrote in place
        self.gradients: set[Elements] = set()       # that backward passes have left in .grad
        self.refused: dict[Elements, str] = {}      # arrays without a known blob, and why
        self.current: dict[str, Elements] = {}      # the gradient of each variable
        self.generators = {id(call[2]): call[1] for call in calls if call[0] == "draw"}
        self.records = any(call[0] in ("backward", "grad") or call[0] == "operator" and call[6] for call in calls)
        self.written = {call[3][0][0] for call in calls if call[0] == "operator" and call[5]}   # addresses, in place
        self.wanted: dict[int, str] = {}            # the names that the caller wants, by address
        for name, x in names.items():
            if not isinstance(x, Tensor):
                raise TypeError(f"Net.capture: names[{name!r}] must be a tensor, got {described(x)}")
            self.wanted[address(x)] = name
        self.sizes: dict[str, tuple[int, int]] = {}     # of parts of tensors, as ReverseVisit.runs_early() takes them
        self.training = False

    def take_inputs(self, f: Any, items: list[Item]) -> None:
        """Name the arguments by the parameters of the function."""
        try: words = [p.name for p in inspect.signature(f).parameters.values() if p.kind in (
            p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        except (TypeError, ValueError): words = []
        for k, given in enumerate(items):
            name = self.net.fresh(words[k] if k < len(words) else "x")
            self.set_name(given, self.net.add_argument(name, given.shape, DTYPES[given.dtype].name))

    def take(self, call: tuple[Any, ...]) -> None:
        kind = call[0]
        if kind == "operator": self.take_operator(*call[1:])
        elif kind in ("backward", "grad"): self.take_pass(kind, *call[1:])
        elif kind == "zeros":
            y, beside = Item(*call[1]), call[2:]    # beside: a tensor, and which size is that of which of its axes
            arguments = {"shape": y.shape, "dtype": DTYPES[y.dtype].name}
            if beside: arguments |= {"shape": (*y.shape[:beside[1]], -1, *y.shape[beside[1] + 1:]), "axis": beside[2]}
            self.add("zeros", beside[:1], (y,), arguments)
        elif kind == "zero_grad":
            variables, to, solver = call[1:]
            arguments = {} if to == "zeros" else {"to": to}
            if solver is not None: arguments["solver"] = self.net.object_name("solver", solver)
            self.add("zero_grad", tuple(map(self.binding, variables)), (), arguments)
        elif kind == "solver": self.take_solver(*call[1:])
        elif kind == "random": self.take_random(*call[1:])
        elif kind == "running statistics":
            average, var, stats, factor = call[1:]
            self.add("move_running", (average, var, stats), (average, var), {"factor": factor}, again=True)

    # ---- names

    def name(self, x: Any) -> Any:
        """The blob of an array, as a trace lists it, or of a number."""
        if isinstance(x, tuple):
            known = self.blobs.get(x[:5]) if not self.refused and not x[8] else None    # (of most, as blob() gives it)
            return self.blob(Item(*x)) if known is None else known
        if isinstance(x, np.generic): x = x.item()  # (operators take it as a Python number)
        return self.net.constant_for(x)

    def blob(self, a: Item) -> str:
        """The blob of an array."""
        if a.elements in self.refused: refuse_array(a, self.refused[a.elements])
        if a.gradient and a.elements not in self.gradients: refuse_array(a, "a .grad from before the call, or ")
        if a.key in self.blobs: return self.blobs[a.key]
        known, outside = self.arrays.get(a.elements), a.tensor is not None and not a.made
        if known is None or outside and a.variable:         # (a variable is a blob of its own)
            if a.tensor is None: refuse_array(a)
            self.set_name(a, self.bind(a.tensor) if outside else self.keep(a.tensor))
            if outside or not a.variable: return self.blobs[a.key]
            known = self.arrays[a.elements]
        name = self.other(a, known.name)            # the same elements, at another place in the graph
        if a.variable or (a.place is None and known.recorded): name = self.emit(STOP, (name,), 1)[0]    # a detach()
        self.blobs[a.key] = name
        self.keys.setdefault(a.buffer, set()).add(a.key)
        return name

    def other(self, a: Item, name: str) -> str:
        """The blob of an array that has a new place in the graph, because another one with the same elements, the blob
        `name`, was written in place: it is the one that had them before, if there is one."""
        if a.place is None or a.variable or a.buffer not in self.rewritten: return name
        found = {self.blobs[key] for key in self.keys[a.buffer] if key[:4] == a.elements and key[4] is not None}
        return (found - {name}).pop() if len(found - {name}) == 1 else name

    def set_name(self, a: Item, name: str) -> None:
        """Name an array."""
        address, dtype, shape, strides, place, _, _, buffer, gradient, _ = a
        elements, key = (address, dtype, shape, strides), (address, dtype, shape, strides, place)
        if self.refused: self.refused.pop(elements, None)
        if gradient: self.gradients.add(elements)   # (a view of one)
        self.blobs[key] = name
        known = self.arrays.get(elements)           # (a detached array must not stand for one with a graph)
        if place is not None or known is None or not known.recorded:
            self.arrays[elements] = KnownBlob(name, place is not None)
        if buffer in self.keys: self.keys[buffer].add(key)
        else: self.keys[buffer] = {key}

    def set_gradient(self, a: Item, name: str, graph: bool) -> None:
        """Name a gradient. Without a graph, it is detached from the operators that compute it."""
        self.gradients.add(a.elements)
        self.set_name(a, name)
        if graph and a.place is not None: return
        del self.blobs[a.key]
        self.arrays[a.elements] = KnownBlob(name, True)

    def elements(self, a: Item) -> str:
        """A blob with the elements of an array, perhaps at another place in the graph."""
        known = self.arrays.get(a.elements)
        if known is None or a.key in self.blobs or a.elements in self.refused: return self.blob(a)
        return known.name if not a.gradient or a.elements in self.gradients else self.blob(a)

    def output(self, a: Item) -> str:
        """The blob of a result. That of a tensor from outside, or of a constant, is a copy."""
        name = self.elements(a)
        held = name in self.net.bindings or name in self.net.constants
        return self.emit(COPY, (name,), 1)[0] if held else name

    def binding(self, x: Tensor) -> str:
        """The blob of a tensor from outside."""
        return self.blob(read(x))

    def bind(self, x: Tensor) -> str:
        """A new blob that stands for a tensor from outside."""
        return self.net.bind(self.wanted.get(address(x), "parameter" if x.requires_grad else "tensor"), x)

    def keep(self, x: Tensor) -> str:
        """The blob of a tensor that the function made from values. No operator can write to a constant."""
        name = self.net.add_constant(x)
        start, end = address(x), address(x) + x.nbytes
        return self.emit(COPY, (name,), 1)[0] if any(start <= at < end for at in self.written) else name

    # ---- operators

    def emit(self, type: str, inputs: tuple[Any, ...], outputs: int | tuple[str, ...],
             arguments: Mapping[str, Any] | None = None, within: str | None = None) -> tuple[str, ...]:
        """Add an operator; a number of outputs means fresh names."""
        if outputs == 1: writes: tuple[Any, ...] = self.net.fresh(type),
        elif isinstance(outputs, int):
            made: list[Blob] = []
            for _ in range(outputs): made.append(self.net.fresh(type, set(made)))
            writes = tuple(made)
        else: writes = outputs
        if arguments: self.net.append(Operator(type, inputs, writes, arguments, within or ""))
        else: self.net.append_made(made_operator(type, inputs, writes, within or ""))
        return writes

    def add(self, type: str, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
            arguments: Mapping[str, Any] | None = None, again: bool = False) -> None:
        """Add an operator on arrays. With `again`, the outputs are blobs that exist."""
        reads = tuple(x if isinstance(x, str) else self.name(x) for x in inputs)
        if again: self.emit(type, reads, tuple(self.name(y) for y in outputs), arguments)
        else:
            for y, name in zip(outputs, self.emit(type, reads, len(outputs), arguments), strict=True):
                self.set_name(Item(*y), name)

    def take_operator(self, op: Any, attributes: Any, inputs: list[Any], outputs: list[Any], into: bool,
                      recorded: bool, tracked: bool, within: str | None, training: bool) -> None:
        self.training = self.training or training
        type, arguments = self.call_of(op, attributes, len(inputs))
        reads = tuple(self.name(x) for x in inputs)
        if into:                                    # (views of the target see what it writes)
            how = {"recorded": False} if self.records and not recorded else {}
            self.emit(type, reads, reads[:1], arguments | {"inplace": True} | how, within)
            target = Item(*outputs[0])
            if recorded:
                self.track(target.buffer)
                self.rewritten.add(target.buffer)
            self.set_name(target, reads[0])
            return
        if len(outputs) > 1: outputs = outputs[:len(op.outputs.split())]
        names = self.emit(type, reads, len(outputs), arguments, within)
        if op.shows_part: self.sizes[names[0]] = math.prod(Item(*outputs[0]).shape), math.prod(Item(*inputs[0]).shape)
        if self.records and tracked and not recorded and op.differentiable:
            names = tuple(self.emit(STOP, (name,), 1)[0] for name in names)
        for y, name in zip(outputs, names, strict=True): self.set_name(y, name)

    def track(self, buffer: int) -> None:
        """After a recorded write to a buffer: its arrays have a graph from now on, unless they are detached."""
        for key in [key for key in self.keys.get(buffer, ()) if key[4] is None]:
            self.arrays[key[:4]] = KnownBlob(self.blobs.pop(key, self.arrays[key[:4]].name), True)
            self.keys[buffer].discard(key)

    def call_of(self, op: Any, attributes: Any, n: int) -> tuple[str, dict[str, Any]]:
        """The type and the arguments of an execution. Random operators name their generator."""
        try: type, arguments = arguments_of(op, attributes, n)
        except ValueError as e: raise RuntimeError(f"capture: {op.name} cannot be captured: {e}") from None
        generator = self.generators.get(id(attributes))
        if generator is None: return type, arguments
        self.training = True
        kept = {key: value for key, value in arguments.items() if key not in ("key", "seed", "counter")}
        return DROPOUT if type == ROW_OF[DROPOUT] else type, kept | self.generator(generator)

    def generator(self, g: Generator) -> dict[str, Any]:
        """The argument that names a generator."""
        return {"generator": DEFAULT if g is default_generator else self.net.object_name("generator", g)}

    def take_random(self, g: Generator, law: str, a: float, b: float, c: float, y: Any) -> None:
        made = Item(*y)
        numbers = {"normal": (a, b), "uniform": (a, c), "bernoulli": (a,)}[law]
        arguments = {"law": law, "shape": made.shape, "numbers": numbers, "dtype": DTYPES[made.dtype].name}
        self.add("random", (), (y,), arguments | self.generator(g))

    def take_solver(self, solver: Any, method: str, arguments: tuple[Any, ...],
                    found: list[tuple[Tensor, Any]]) -> None:
        """One operator for a method of a solver, which changes parameters or gradients."""
        if any(callable(a) for a in arguments):
            raise RuntimeError(f"capture: {method}() of a solver with hooks cannot be captured")
        gradients = tuple(self.elements(Item(*g)) for _, g in found if g is not None)
        written = tuple(self.binding(x) for x, _ in found) if method == "update" else gradients
        values = {"solver": self.net.object_name("solver", solver), "method": method,
                  "arguments": tuple(a for a in arguments if a is not None)}
        reads = (*written, *gradients) if method == "update" else gradients
        self.emit("solver", reads, written, values)

    # ---- backward passes

    def take_pass(self, kind: str, ys: list[Any], heads: list[Any], retain: bool, graph: bool, wanted: list[Any] | None,
                  found: list[Any], gradients: list[tuple[Tensor | None, Any]]) -> None:
        """The operators of a backward pass."""
        net = self.net
        named: dict[Any, Any] = {}
        for y, head in zip(ys, heads, strict=True):
            name = self.name(y)
            if name in named:
                raise RuntimeError(f"capture: a backward pass with the head {described(str(name))} twice cannot be "
                                   f"captured; pass it once, with the sum of its gradients")
            named[name] = None if head is None else self.name(head)
        frozen = {*net.arguments, *(n for n, x in net.bindings.items() if not x.requires_grad)}
        targets = [self.name(x) for x in wanted] if wanted is not None else []
        p = backward_pass(net.operators, named, 0, net.constants, set(net.known), CAPTURE, frozen - {*targets},
                          self.sizes)
        if not p.operators:
            raise RuntimeError("capture: a backward pass whose heads are variables cannot be captured; compute the "
                               "heads from the variables")
        p = p._replace(kind=kind, retain_graph=retain, create_graph=graph, inputs=tuple(targets))
        net.add_gradients(p)
        if kind == "grad":
            for target, g in zip(targets, found, strict=True):
                if g is not None: self.set_gradient(Item(*g), gradient_name(p, target), graph)
            return
        for x, g in gradients:
            a, blob = Item(*g), "" if x is None else self.binding(x)
            old = self.current.get(blob, a.elements)        # (its memory may be that of the new one)
            if old != a.elements: self.refused[old] = "a .grad that another one has replaced, or "
            if blob: self.current[blob] = a.elements
            if blob in p.gradients: self.set_gradient(a, gradient_name(p, blob), graph)
            elif a.elements not in self.gradients: self.refused[a.elements] = ""    # (in memory of something else)


def refuse_array(a: Item, what: str = "") -> NoReturn:
    """Raise RuntimeError, because no operator of the net has computed an array."""
    raise RuntimeError(f"capture: an array of shape {a.shape} that no captured operator computed cannot be captured, "
                       f"such as {what}the .grad of a variable that the function makes; use cygrad.autograd.grad() for "
                       f"such a gradient")


def gradient_name(p: Pass, blob: str) -> str:
    if blob not in p.gradients:
        raise RuntimeError(f"capture: the gradient of {cut(blob)} cannot be captured, because the operators do not "
                           f"show how the heads depend on it")
    g = p.gradients[blob]
    if isinstance(g, tuple): raise RuntimeError(f"capture: the row-sparse gradient of {cut(blob)} cannot be captured")
    return g


def read(x: Tensor) -> Item:
    return Item(*item(x))


def address(x: Tensor) -> int:
    return read(x).address
