"""Nets as arguments of the operators If and While.

Such a net is a copy that nobody changes. It has no bindings: what stands for a tensor outside becomes an input, and the
operator reads a blob of the net around it that stands for the same tensor. So gradients of variables, plans and files
need nothing more than they need for other inputs."""

from collections.abc import Iterable, Mapping
from typing import Any


from cygrad.core.errors import cut, described
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.graph.tensor import Tensor
from cygrad.nets.definition import MAX_DEPTH, NETS_OF, PYTHON, Blob, NetArgument, Operator
from cygrad.nets.gradients import MOVE, SOLVER, ZERO_GRAD, backward_pass
from cygrad.nets.state import NetState, StateHolder, state_of
from cygrad.nets.versions import Versions

MOST_OPERATORS = 100_000    # of a net with those inside it
Gradients = tuple[Any, tuple[str, ...], Mapping[str, Any]]     # a net, its heads, and the gradient of each input


class Subnet(NetArgument):
    """A net that is the argument of an operator. `inputs` are matched by position with the inputs of the operator,
    without the condition of an If, and `outputs` with its outputs."""

    __slots__ = "depth", "inputs", "made", "name", "net", "outputs", "size"

    net: Any
    size: int                       # the number of operators, also of those in nets inside it,
    depth: int                      # and how many nets are inside each other
    made: dict[Any, Gradients]      # what gradients() has made

    def __init__(self, net: Any):
        self.net, self.made = net, {}
        self.name, self.inputs, self.outputs = net.name, net.inputs, net.outputs
        self.size, self.depth = extent(net)

    def gradients(self, outputs: tuple[bool, ...], inputs: tuple[bool, ...], who: str) -> Gradients:
        """A net that computes the gradients of those `inputs` that are True from those of such `outputs`. It has the
        inputs of this net, then the heads. Raises RuntimeError, which begins with `who`, for an operator without a
        gradient."""
        key = outputs, inputs
        if key not in self.made: self.made[key] = self.differentiated(outputs, inputs, who)
        return self.made[key]

    def differentiated(self, outputs: tuple[bool, ...], inputs: tuple[bool, ...], who: str) -> Gradients:
        """As gradients()."""
        net = type(self.net)(self.name)
        state = state_of(net)
        state_of(self.net).copy_to(state, share=True)
        heads: dict[str, str | None] = {y: state.fresh(f"{y}_head") for y, f in zip(self.outputs, outputs, strict=True)
                                        if f}
        frozen = {name for name, f in zip(self.inputs, inputs, strict=True) if not f}
        found = backward_pass(state.operators, heads, 0, state.constants, {*state.known, *self.inputs},
                              f"{who}: net {cut(self.name)}", frozen)
        state.add_gradients(found)
        wanted: dict[str, Any] = {name: g for name in self.inputs if (g := found.gradients.get(name)) is not None}
        return net, tuple(str(head) for head in heads.values()), wanted

    def nets(self) -> "list[Subnet]":
        """This net and those inside it, each once and after those inside it."""
        return [*nets_within(self.net.operators), self]

    def generators(self) -> list[Generator]:
        """The generators that its operators can draw from."""
        found = [default_generator]
        for inner in self.nets():
            found += [g for g in inner.net.objects.values() if isinstance(g, Generator) and g not in found]
        return found

    def __repr__(self) -> str:
        n = len(self.net.operators)
        return f"<net {cut(self.name)}: {n:,} operator{'s' * (n != 1)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subnet): return NotImplemented
        a, b = self.net, other.net
        return self is other or (
            (self.name, self.inputs, self.outputs, a.operators, a.training)
            == (other.name, other.inputs, other.outputs, b.operators, b.training)
            and a.constants.keys() == b.constants.keys()
            and all(is_same(a.constants[key], b.constants[key]) for key in a.constants))

    def __hash__(self) -> int:
        return hash((self.name, self.inputs, self.outputs))


def is_same(x: Any, y: Any) -> bool:
    """Whether two constants are the same: 1, 1.0 and True are not, and NaN is NaN."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor): return type(x) is type(y) and repr(x) == repr(y)
    if x is y: return True
    a, b = x.numpy(), y.numpy()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def nets_in(operators: Iterable[Operator]) -> list[Subnet]:
    """The nets that are arguments of operators, each once."""
    found = {id(value): value for o in operators if o.type in NETS_OF or o.of is not None and o.of.type in NETS_OF
             for value in o.arguments.values() if isinstance(value, Subnet)}
    return [*found.values()]


def nets_within(operators: Iterable[Operator]) -> list[Subnet]:
    """The same with those inside these, each once and after those inside it."""
    found: dict[int, Subnet] = {}

    def visit(inner: Iterable[Operator]) -> None:
        for net in nets_in(inner):
            if id(net) in found: continue
            visit(net.net.operators)
            found[id(net)] = net

    visit(operators)
    return [*found.values()]


def extent(net: Any) -> tuple[int, int]:
    """Subnet.size and Subnet.depth of a net."""
    inner = [n for o in net.operators for n in nets_in((o,))]
    return len(net) + sum(n.size for n in inner), 1 + max((n.depth for n in inner), default=0)


def is_python(operator: Operator) -> bool:
    """Whether an operator, or one in its nets, calls a Python function."""
    if operator.type == PYTHON: return True
    return any(o.type == PYTHON for net in nets_within((operator,)) for o in net.net.operators)


# ---- when an operator is added ---------------------------------------------------------------------------------------

def closed(arguments: Mapping[str, Any], who: str) -> tuple[dict[str, Any], list[tuple[str, Tensor]]]:
    """The arguments of an If or a While with copies of its nets, and the tensors outside that these read, with names:
    further inputs of the operator. Raises ValueError for a net that cannot be an argument."""
    nets = {key: value for key, value in arguments.items() if isinstance(value, StateHolder)}
    tensors: dict[int, tuple[str, Tensor]] = {}
    for net in nets.values():
        for name, x in state_of(net).bindings.items(): tensors.setdefault(id(x), (name, x))
    made = {key: closed_net(net, [x for _, x in tensors.values()], f"{who}: {key}") for key, net in nets.items()}
    return {**arguments, **made}, [*tensors.values()]


def closed_net(net: Any, tensors: list[Tensor], who: str) -> Subnet:
    """A copy of a net, with further inputs for `tensors` in place of its bindings."""
    refuse(net, who)
    inputs, outputs = net.inputs, net.outputs
    copy = net.clone()
    state = state_of(copy)
    names = {id(x): name for name, x in state.bindings.items()}
    more: list[Blob] = [Blob(names[id(x)]) if id(x) in names else state.take_fresh("unused") for x in tensors]
    state.bindings, state.variables = {}, set()
    state.arguments, state.assigned = (*inputs, *more), outputs
    state.edits += 1
    return Subnet(copy)


def refuse(net: Any, who: str) -> None:
    """Raise ValueError for a net that an If or a While cannot have."""
    state = state_of(net)
    size, depth = extent(net)
    if size > MOST_OPERATORS or depth > MAX_DEPTH:
        raise ValueError(f"{who}: net {cut(net.name)} has {size:,} operators, with those of the nets inside it, which "
                         f"are {depth} deep; a net of a branch or a loop can have {MOST_OPERATORS:,}, {MAX_DEPTH} deep")
    for k, o in enumerate(state.operators):
        what = ("is an operator of a backward pass" if o.is_gradient else
                "belongs to a solver" if o.type in (SOLVER, ZERO_GRAD) else
                "writes over an input" if o.type == MOVE or writes_outside(state, k) else "")
        if not what: continue
        advice = ("; differentiate the net around it" if o.is_gradient else
                  "; update variables after it" if o.type in (SOLVER, ZERO_GRAD) else
                  ", such as running statistics in train mode; write to a copy, and make it an output")
        raise ValueError(f"{who}: operator {k} of net {cut(net.name)}, {cut(repr(o))}, {what}, which a branch or a "
                         f"loop cannot do{advice}")
    for name in net.outputs:
        if name in state.constants and not isinstance(state.constants[name], Tensor):
            raise ValueError(f"{who}: the output {described(str(name))} of net {cut(net.name)} is a Python number; add "
                             f"a tensor with add_constant()")


def writes_outside(state: NetState, k: int) -> bool:
    """Whether operator k writes to memory that it shares with an input, a constant or a tensor outside."""
    o = state.operators[k]
    if not o.arguments.get("inplace") or not o.outputs or o.outputs[0] not in o.inputs: return False
    root, version = Versions(state.operators[:k]).place(o.outputs[0]).memory.root
    return version == 0
