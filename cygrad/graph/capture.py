"""Nets from eager code: a function is traced, and what it called becomes operators.

The trace lists operators, backward passes, updates of solvers and random draws, with the addresses of the arrays that
they read and wrote (core/graph/calls.pyx). Here each array gets the name of a blob. Arrays from outside become
bindings: the net uses their memory."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import cygrad.autograd as autograd
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import cut, described
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.execute.program import Program
from cygrad.core.graph.planning import item
from cygrad.core.graph.tensor import Tensor
from cygrad.graph.built_in import RESULTS
from cygrad.graph.definition import Operator
from cygrad.graph.gradients import STOP, Pass, backward_pass
from cygrad.graph.net import Net
from cygrad.ops.calls import arguments_of

Item = tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, int] | None, Tensor | None]
Key = tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, int] | None]


def capture(f: Callable[..., Any], examples: tuple[Any, ...], name: str | None, names: Mapping[str, Tensor] | None,
            named: Mapping[str, Any]) -> Net:
    """As Net.capture."""
    if not callable(f): raise TypeError(f"Net.capture takes a function and its arguments, got {described(f)}")
    calls: list[Any] = []
    given: list[Tensor] = []
    found: list[Any] = []

    def run(*xs: Tensor) -> None:
        given.extend(xs)
        inputs.extend(item(x) for x in xs)
        with autograd.record(train_mode=None) if recording else nullcontext(): result = f(*xs, **named)
        found.extend(item(y) for y in results(result))

    inputs: list[Item] = []
    recording = autograd.is_recording()             # (a trace begins without)
    Program(run, *examples, _calls=calls)
    net = Net(name or getattr(f, "__name__", type(f).__name__).replace("<lambda>", "net"))
    reader = Reader(net, calls, names or {})
    reader.take_inputs(f, inputs, examples)
    for call in calls: reader.take(call)
    net.outputs = [*dict.fromkeys(reader.name(y) for y in found)]
    net.training = reader.training
    return net


def results(result: Any) -> list[Tensor]:
    """The tensors in what a function returned."""
    if result is None: return []
    if isinstance(result, Tensor): return [result]
    if isinstance(result, Mapping): result = list(result.values())
    if isinstance(result, (tuple, list)): return [y for part in result for y in results(part)]
    raise TypeError(f"Net.capture: a captured function returns tensors, or tuples, lists or dicts of them, or None; "
                    f"this one returned {described(result)}")


class Reader:
    """Turns the calls of a trace into operators of a net."""

    def __init__(self, net: Net, calls: list[Any], names: Mapping[str, Tensor]):
        self.net, self.blobs = net, dict[Key, str]()
        self.arrays: dict[tuple[Any, ...], tuple[str, bool]] = {}       # the last blob with these elements
        self.generators = {id(call[2]): call[1] for call in calls if call[0] == "draw"}
        self.records = any(call[0] in ("backward", "grad") or call[0] == "operator" and call[6] for call in calls)
        self.wanted: dict[int, str] = {}            # the names that the caller wants, by address
        for name, x in names.items():
            if not isinstance(x, Tensor):
                raise TypeError(f"Net.capture: names[{name!r}] must be a tensor, got {described(x)}")
            self.wanted[address(x)] = name
        self.training = False

    def take_inputs(self, f: Any, items: list[Item], examples: tuple[Any, ...]) -> None:
        """Name the arguments by the parameters of the function."""
        try: words = [p.name for p in inspect.signature(f).parameters.values() if p.kind in (
            p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        except (TypeError, ValueError): words = []
        for k, given in enumerate(items):
            name = self.net._fresh(words[k] if k < len(words) else "x")
            self.net._known.add(name)
            self.net._arguments += name,
            self.set_name(given, name)
            self.net.shapes[name] = given[2], DTYPES[given[1]].name

    def take(self, call: tuple[Any, ...]) -> None:
        kind = call[0]
        if kind == "operator": self.take_operator(*call[1:])
        elif kind in ("backward", "grad"): self.take_pass(kind, *call[1:])
        elif kind == "zeros": self.add("zeros", (), (call[1],), {"shape": call[1][2], "dtype": DTYPES[call[1][1]].name})
        elif kind == "zero_grad": self.add("zero_grad", (self.binding(call[1]),), ())
        elif kind == "solver": self.take_solver(*call[1:])
        elif kind == "random": self.take_random(*call[1:])
        elif kind == "running statistics":
            average, var, stats, factor = call[1:]
            self.add("move_running", (average, var, stats), (average, var), {"factor": factor}, again=True)

    # ---- names

    def name(self, item: Any) -> Any:
        """The blob of an array or a number."""
        if not isinstance(item, tuple): return self.net._constant_for(item)
        key = key_of(item)
        if key in self.blobs: return self.blobs[key]
        known = self.arrays.get(key[:4])
        if known is not None:                       # the same elements, at another place in the graph
            blob, recorded = known
            if key[4] is None and recorded: blob = self.emit(STOP, (blob,), 1)[0]       # a detach()
            self.blobs[key] = blob
        elif item[5] is None:
            raise RuntimeError(f"capture: an array of shape {item[2]} that no operator computed cannot be captured")
        else: self.set_name(item, self.bind(item[5]))
        return self.blobs[key]

    def set_name(self, item: Item, name: str) -> None:
        """Name an array."""
        key = key_of(item)
        self.blobs[key] = name
        self.arrays[key[:4]] = name, key[4] is not None

    def binding(self, x: Tensor) -> str:
        """The blob of a tensor from outside."""
        return self.name(item(x))

    def bind(self, x: Tensor) -> str:
        """A new blob that stands for a tensor from outside."""
        name = self.net._fresh(self.wanted.get(address(x), "parameter" if x.requires_grad else "tensor"))
        self.net._bindings[name] = x
        self.net._known.add(name)
        return name

    # ---- operators

    def emit(self, type: str, inputs: tuple[Any, ...], outputs: int | tuple[str, ...],
             arguments: Mapping[str, Any] | None = None, within: str | None = None) -> tuple[str, ...]:
        """Add an operator; a number of outputs means fresh names."""
        made: list[str] = []
        if isinstance(outputs, int):
            for _ in range(outputs): made.append(self.net._fresh(type, set(made)))
        else: made += outputs
        self.net.add_operator(Operator(type, inputs, made, arguments, within or ""))
        self.net._given -= set(made)
        return tuple(made)

    def add(self, type: str, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
            arguments: Mapping[str, Any] | None = None, again: bool = False) -> None:
        """Add an operator on arrays. With `again`, the outputs are blobs that exist."""
        reads = tuple(x if isinstance(x, str) else self.name(x) for x in inputs)
        if again: self.emit(type, reads, tuple(self.name(y) for y in outputs), arguments)
        else:
            for y, name in zip(outputs, self.emit(type, reads, len(outputs), arguments), strict=True):
                self.set_name(y, name)

    def take_operator(self, op: Any, attributes: Any, inputs: list[Any], outputs: list[Item], into: bool,
                      recorded: bool, tracked: bool, within: str | None, training: bool) -> None:
        self.training = self.training or training
        type, arguments = self.call_of(op, attributes, len(inputs))
        reads = tuple(self.name(x) for x in inputs)
        if into:                                    # (views of the target see what it writes)
            self.emit(type, reads, reads[:1], arguments | {"inplace": True}, within)
            self.set_name(outputs[0], reads[0])
            return
        outputs = outputs[:RESULTS.get(type, len(outputs))]
        names = self.emit(type, reads, len(outputs), arguments, within)
        if self.records and tracked and not recorded and op.differentiable:
            names = tuple(self.emit(STOP, (name,), 1)[0] for name in names)
        for y, name in zip(outputs, names, strict=True):
            self.set_name(y, name)

    def call_of(self, op: Any, attributes: Any, n: int) -> tuple[str, dict[str, Any]]:
        """The type and the arguments of an execution. Random operators name their generator."""
        try: type, arguments = arguments_of(op, attributes, n)
        except ValueError as e: raise RuntimeError(f"capture: {op.name} cannot be captured: {e}") from None
        generator = self.generators.get(id(attributes))
        if generator is None: return type, arguments
        self.training = True
        kept = {key: value for key, value in arguments.items() if key not in ("key", "seed", "counter")}
        return {"dropout_with": "dropout"}.get(type, type), kept | self.generator(generator)

    def generator(self, g: Generator) -> dict[str, Any]:
        """The argument that names a generator."""
        return {"generator": self.net._object("generator", None if g is default_generator else g)}

    def take_random(self, g: Generator, law: str, a: float, b: float, c: float, y: Item) -> None:
        dtype = DTYPES[y[1]].name
        numbers = {"normal": (a, b), "uniform": (a, c), "bernoulli": (a,)}[law]
        arguments = {"law": law, "shape": y[2], "numbers": numbers, "dtype": dtype}
        self.add("random", (), (y,), arguments | self.generator(g))

    def take_solver(self, solver: Any, method: str, arguments: tuple[Any, ...],
                    found: list[tuple[Tensor, Item | None]]) -> None:
        """One operator for a method of a solver, which changes parameters or gradients."""
        if any(callable(a) for a in arguments):
            raise RuntimeError(f"capture: {method}() of a solver with hooks cannot be captured")
        gradients = tuple(self.name(g) for _, g in found if g is not None)
        written = tuple(self.binding(x) for x, _ in found) if method == "update" else gradients
        values = {"solver": self.net._object("solver", solver), "method": method,
                  "arguments": tuple(a for a in arguments if a is not None)}
        reads = (*written, *gradients) if method == "update" else gradients
        self.emit("solver", reads, written, values)

    # ---- backward passes

    def take_pass(self, kind: str, ys: list[Item], heads: list[Any], retain: bool, graph: bool,
                  wanted: list[Item] | None, found: list[Item | None], gradients: list[tuple[Tensor, Item]]) -> None:
        """The operators of a backward pass."""
        net = self.net
        named: dict[Any, Any] = {}
        for y, head in zip(ys, heads, strict=True):
            if head is not None and not isinstance(head, tuple):
                raise RuntimeError("capture: a backward pass whose head gradient is a number cannot be captured; pass "
                                   "a tensor")
            named[self.name(y)] = None if head is None else self.name(head)
        frozen = {*net._arguments, *(n for n, x in net.bindings.items() if not x.requires_grad)}
        targets = [self.name(x) for x in wanted] if wanted is not None else []
        p = backward_pass(net._operators, named, 0, net.constants, set(net._known), "capture", frozen - {*targets})
        p = p._replace(kind=kind, retain_graph=retain, create_graph=graph, inputs=tuple(targets))
        net._operators += p.operators
        net._known |= {n for o in p.operators for n in (*filter(None, o.inputs), *o.outputs)}
        net._passes += p,
        net._edits += 1
        if kind == "grad":
            for target, g in zip(targets, found, strict=True):
                if g is not None: self.set_name(g, gradient_name(p, target))
            return
        for x, g in gradients:
            blob = self.binding(x)
            if blob in p.gradients: self.set_name(g, gradient_name(p, blob))


def gradient_name(p: Pass, blob: str) -> str:
    g = p.gradients[blob]
    if isinstance(g, tuple): raise RuntimeError(f"capture: the row-sparse gradient of {cut(blob)} cannot be captured")
    return g


def key_of(item: Item) -> Key:
    """What identifies an array. Strides of dimensions of size 1 do not matter."""
    strides = tuple(s if n != 1 else 0 for n, s in zip(item[2], item[3], strict=True))
    return item[0], item[1], item[2], strides, item[4]


def address(x: Tensor) -> int:
    return item(x)[0]
