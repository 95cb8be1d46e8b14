"""Nets from recorded graphs: the nodes that backward would visit become operators, in the order of their recording.

A graph has the operators and their arguments, but only those values that backward needs (core/graph/symbol.pyx)."""

from collections.abc import Mapping
from typing import Any

from cygrad.core.errors import described
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.symbol import described_leaf, described_node, operands_of, place_of
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.capture import read
from cygrad.nets.definition import Blob, Operator, check_name
from cygrad.nets.state import state_of
from cygrad.ops.calls import arguments_of, operand_names
from cygrad.ops.calls import operands as operands_of_row

WHY = {"not saved": "is no variable, and backward does not need its value, so the graph does not have it",
       "written": "was written in place since, so the graph does not have its value",
       "signs": "is kept as its signs only, which is all that backward needs",
       "packed": "is packed by saved_tensors_hooks"}
Key = tuple[int, int, tuple[int, ...], tuple[int, ...]]
Place = tuple[int, int]     # (id of a node, output number)


def from_graph(cls: type, y: Any, name: str | None, names: Mapping[str, Tensor] | None) -> Any:
    """As Net.from_graph; `cls` is Net."""
    ys = list(y) if isinstance(y, (list, tuple)) else [y]
    if not ys or not all(isinstance(t, Tensor) for t in ys):
        raise TypeError(f"Net.from_graph takes a tensor or a list of tensors, got {described(y)}")
    walk = GraphVisit(cls("net" if name is None else name), names)
    ends = [walk.end(t) for t in ys]
    for node in walk.nodes(ends): walk.take(node)
    walk.net.outputs = [*dict.fromkeys(walk.blob(node, nr) for node, nr in ends)]
    walk.net.training = walk.training
    return walk.net


class GraphVisit:
    """The visit of a graph."""

    def __init__(self, net: Any, names: Mapping[str, Tensor] | None):
        self.net, self.state, self.training = net, state_of(net), False
        self.blobs: dict[Place, str] = {}           # the blobs of outputs of nodes that were visited
        self.values: dict[Key, str] = {}            # the blobs of saved values, by address
        self.wanted: dict[Place, str] = {}          # the names that the caller wants, for variables and results,
        self.data: dict[Key, str] = {}              # and for other tensors
        if not isinstance(names, Mapping | None):
            raise TypeError(f"Net.from_graph: names must be a dict from name to tensor, got {described(names)}")
        for name, x in (names or {}).items():
            check_name(name, "Net.from_graph", "each of the names")
            if not isinstance(x, Tensor):
                raise TypeError(f"Net.from_graph: names[{name!r}] must be a tensor, got {described(x)}")
            node, nr = place_of(x)
            if node is None: self.data[read(x).elements] = name
            else: self.wanted[id(node), nr] = name
        self.taken = frozenset(names or ())

    def end(self, y: Tensor) -> tuple[Any, int]:
        """The place of a result in the graph."""
        node, nr = place_of(y)
        if node is None:
            raise RuntimeError(f"Net.from_graph: {described(y)} has no graph, because no gradient flows to it; compute "
                               f"it from variables inside record(), or use Net.capture(f, *examples)")
        return node, nr

    def nodes(self, ends: list[tuple[Any, int]]) -> list[Any]:
        """All nodes on which the ends depend, in the order of recording, without the variables."""
        waiting, found = [node for node, _ in ends], dict[int, Any]()
        while waiting:
            node = waiting.pop()
            if id(node) in found or described_node(node)[0] is None: continue
            found[id(node)] = node
            waiting += [before for before, _ in node.next_functions if before is not None]
        return sorted(found.values(), key=lambda node: described_node(node)[5])

    def take(self, node: Any) -> None:
        """Add the operator of a node."""
        op, attributes, n_out, training, freed, _ = described_node(node)
        if freed:
            raise RuntimeError(f"Net.from_graph: backward has freed the graph at {op.name}; make the net before "
                               f"backward, or keep the graph with retain_graph=True")
        if not isinstance(attributes, Attributes | None):
            raise RuntimeError(f"Net.from_graph: {op.name} is an autograd.Function, whose Python code a net does not "
                               f"have; build the net with create_python_operator(f, inputs, outputs, grad_f)")
        operands = operands_of(node)
        try: type, arguments = arguments_of(op, attributes, len(operands))
        except ValueError as e:
            raise RuntimeError(f"Net.from_graph: {op.name} cannot be an operator of a net: {e}") from None
        words = operand_names(operands_of_row(type), len(operands))
        inputs = [self.operand(type, f"{k} ({words[k]})", *operand) for k, operand in enumerate(operands)]
        self.training = self.training or training
        made: list[str] = []
        for nr in range(min(n_out, len(op.outputs.split()))):
            wanted = self.wanted.get((id(node), nr))
            made.append(wanted or self.fresh(type, {*made}))
            self.blobs[id(node), nr] = made[-1]
        self.state.append(Operator(type, inputs, made, arguments), self.taken.intersection(made))

    def fresh(self, stem: str, taken: set[str]) -> Blob:
        """A name for a blob for which the caller has none."""
        return self.state.fresh(stem, self.taken | taken)

    # ---- operands

    def operand(self, type: str, which: str, kind: str, value: Any, nr: int = 0) -> str:
        """The blob of an operand, as operands_of() describes it."""
        if kind == "node": return self.blob(value, nr)
        if kind == "number": return self.state.constant_for(value)
        if kind == "value": return self.value(value)
        raise RuntimeError(f"Net.from_graph: operand {which} of {type} {WHY[kind]}; use "
                           f"Net.capture(f, *examples), or make it a variable, if it is floating, before the recording")

    def blob(self, node: Any, nr: int) -> str:
        """The blob of an output of a node, or of a variable."""
        place = id(node), nr
        if place not in self.blobs:
            shape, dtype = described_leaf(node)
            name = self.wanted.get(place) or self.fresh("parameter", set())
            self.blobs[place] = self.state.add_argument(Blob(name), shape, dtype.name)
        return self.blobs[place]

    def value(self, x: Tensor) -> str:
        """The blob of a saved value: an input if the caller has a name for it, else a constant."""
        key = read(x).elements                      # (whether it is detached does not matter)
        if key not in self.values:
            if key in self.data: self.values[key] = self.state.add_argument(Blob(self.data[key]), x.shape, x.dtype.name)
            else: self.values[key] = self.state.add_constant(x, self.fresh("constant", set()))
        return self.values[key]
