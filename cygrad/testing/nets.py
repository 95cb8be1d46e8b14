"""check_gradients and compare_nets: the gradient operators of nets against finite differences, and nets against each
other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.execute.generator import Generator, default_generator
from cygrad.core.graph.gradient_slice import GradientSlice, ensure_dense
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor

if TYPE_CHECKING:
    from cygrad.nets import Net, Operator

Values = dict[str, np.ndarray[Any, Any]]
REFUSED = "solver", "zero_grad"     # types of operators that change what is outside


# ---- what both share -------------------------------------------------------------------------------------------------

def arrays(given: Any, who: str) -> Values:
    """The values of blobs as arrays, which are copies."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{who}: the inputs must be a dict from blob to array, got {described(given)}")
    found = {}
    for name, x in given.items():
        x = np.array(x.detach().numpy() if isinstance(x, Tensor) else x)
        if x.dtype.kind not in "biuf":
            raise TypeError(f"{who}: the value of the blob {described(name)} must be numbers, got "
                            f"{described(given[name])}")
        found[str(name)] = x
    return found


def listed(names: Any, net: "Net", who: str, what: str) -> list[str]:
    """Names of blobs of a net: one name, or a list of them without repetitions."""
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise TypeError(f"{who}: {what} must be a list of names of blobs, got {described(names)}")
    for name in names:
        if name not in net:
            raise ValueError(f"{who}: net {cut(net.name)} has no blob {described(str(name))}; it has "
                             f"{cut(', '.join(net.blobs)) or 'none'}")
    return list(dict.fromkeys(map(str, names)))


@contextmanager
def same_draws(nets: Iterable[Any]) -> Iterator[Callable[[], None]]:
    """A function that sets the default generator, and those of the nets, to the states that they have now. The end of
    the scope does so too."""
    generators = [default_generator] + [g for net in nets for g in getattr(net, "objects", {}).values()
                                        if isinstance(g, Generator)]
    states = [g.__reduce__()[1] for g in generators]

    def restore() -> None:
        for g, state in zip(generators, states, strict=True): g.__setstate__(state)

    try: yield restore
    finally: restore()


def weights(shape: tuple[int, ...], random: np.random.Generator) -> Any:
    """Random head gradients of an output: numbers from 0.5 to 1.5 and their negatives, as in gradcheck."""
    return random.uniform(0.5, 1.5, shape) * random.choice([-1.0, 1.0], shape)


def values_of(workspace: Any, names: Iterable[str]) -> Values:
    """Copies of blobs of a workspace."""
    return {str(name): np.array(workspace.fetch(name).numpy()) for name in names}


def gradient_of(workspace: Any, g: Any, x: Any) -> Any:
    """The gradient in the blob or GradientSlice `g` of an input with the value `x`, zeros if there is none."""
    if isinstance(g, tuple) and g[0] in workspace:
        rows: Any = GradientSlice
        return np.array(rows(workspace.fetch(g[0]), workspace.fetch(g[1]), x.shape).to_dense().numpy())
    return np.array(workspace.fetch(g).numpy()) if isinstance(g, str) and g in workspace else np.zeros_like(x)


def parts(gradients: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The blobs of the gradients of `names`: one, or the two of a GradientSlice."""
    found = [gradients[name] for name in names if name in gradients]
    return [str(b) for g in found for b in (g if isinstance(g, tuple) else (g,))]


# ---- finite differences ----------------------------------------------------------------------------------------------

def check_gradients(net: "Net | Operator", inputs: Mapping[str, Any], outputs: str | Sequence[str] | None = None, *,
                    wrt: str | Sequence[str] | None = None, head: Mapping[str, Any] | None = None, eps: float = 1e-6,
                    atol: float = 1e-7, rtol: float = 1e-5, seed: int = 0) -> Literal[True]:
    """Check the gradient operators of a net against central finite differences. Returns True.

        net = cg.graph.Net()
        net.matmul(["x", "w"], "y")
        cg.testing.check_gradients(net, {"x": x, "w": w})

    net: a Net, or an Operator, which becomes a net of its own. Without gradient operators a clone gets them. With them,
    they are checked as they are, on the heads that they were made for: ones, or the blob of a head, at its value for
    these inputs. The net does not change.
    inputs: a dict from blob to array. Floating ones are copied as float64, and so are floating constants; all others
    stay as they are. Bindings become inputs whose default values are those of their tensors.
    outputs: the blobs whose gradients begin the pass, by default the floating outputs of the net. The loss is the sum
    of head * output over all their elements. head: a dict from output to array; other heads are random, by the seed.
    wrt: the blobs to check, by default all floating inputs. One without a gradient is checked against zeros.
    eps: the step; it is multiplied by |x| where |x| > 1, and each element of each input costs two runs. rtol, atol: the
    relative and absolute tolerance. Random operators draw the same numbers in each run, and generators are as before
    afterwards.

    Raises AssertionError with the blob, the element and both numbers if a gradient is wrong; ValueError or TypeError
    for unknown blobs, missing values and an eps that is not positive; RuntimeError if no output depends on an input,
    and for a net that updates parameters or writes to the .grad of variables."""
    from cygrad.nets import Net, Operator

    who = "check_gradients"
    if isinstance(net, Operator): net = net_of(net)
    if not isinstance(net, Net): raise TypeError(f"{who} takes a Net or an Operator, got {described(net)}")
    for operator in net.operators:
        if operator.type in REFUSED or any(p.kind == "backward" for p in net.passes):
            raise RuntimeError(f"{who}: net {cut(net.name)} updates variables; check a net of the forward pass alone")
    if isinstance(eps, bool) or not isinstance(eps, (int, float)) or not eps > 0:
        raise ValueError(f"{who}: eps must be a positive number, got {described(eps)}")
    given = arrays(inputs, who)
    with same_draws([net]) as restore:
        checked = Checked(net, given, restore)
        checked.choose(outputs, head, np.random.default_rng(seed))
        checked.compare(wrt, eps, atol, rtol)
    return True


def net_of(operator: "Operator") -> "Net":
    """A net of one operator."""
    from cygrad.nets import Net

    net = Net(operator.type)
    net.add_operator(operator)
    return net


def as_float64(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind == "f" else x


class Checked:
    """A net whose gradients are checked: `forward` computes the outputs, `backward` computes the gradients too."""

    who = "check_gradients"

    def __init__(self, net: "Net", given: Values, restore: Callable[[], None]):
        from cygrad.nets import Workspace

        self.net, self.restore, self.workspace = net, restore, Workspace()
        self.forward = self.copied()
        self.given = {name: as_float64(np.array(x.detach().numpy())) for name, x in net.bindings.items()}
        for name, x in given.items():
            if name not in net:
                raise ValueError(f"{self.who}: net {cut(net.name)} has no blob {described(name)}; its inputs are "
                                 f"{cut(', '.join(self.forward.inputs)) or 'none'}")
            self.given[name] = as_float64(x)

    def copied(self) -> Any:
        """A clone in float64, whose bindings are inputs."""
        from cygrad.nets.state import state_of

        net = self.net.clone()
        state = state_of(net)
        state.bindings = {}
        state.edits += 1
        for name, value in net.constants.items():
            if isinstance(value, Tensor) and value.dtype.kind == "f":
                state.constants[name] = tensor(value, dtype="float64")
        return net

    def run(self, net: "Net") -> None:
        """Run a net on the inputs. Heads that are inputs have values too."""
        self.restore()
        for name in net.inputs:
            if name not in self.given:
                raise ValueError(f"{self.who}: the input {described(str(name))} of net {cut(net.name)} has no value; "
                                 f"add it to the inputs")
            self.workspace.feed(name, self.given[name])
        self.workspace.run(net)

    def choose(self, outputs: Any, head: Any, random: np.random.Generator) -> None:
        """Set the outputs, their heads and the gradients, and compute the gradients."""
        from cygrad.nets.state import state_of

        self.backward = self.copied()
        net: Any = self.net
        made, heads = state_of(net).gradients, arrays(head or {}, f"{self.who}, head")
        if made is None: names = listed(net.outputs if outputs is None else outputs, net, self.who, "outputs")
        else:
            if outputs is not None or heads:
                raise ValueError(f"{self.who}: net {cut(net.name)} has gradient operators, which have their outputs "
                                 f"and heads; leave out outputs and head, or check a net without gradient operators")
            begun = [(str(name), h) for (name, _), h in net.passes[-1].heads]
            names = [name for name, _ in begun]
        for name in heads:
            if name not in names:
                raise ValueError(f"{self.who}: head has {described(name)}, which is no output; they are "
                                 f"{', '.join(names)}")
        self.forward.outputs = names
        if made is not None: self.forward.outputs = [*dict.fromkeys([*names, *(h for _, h in begun if h is not None)])]
        self.run(self.forward)
        values = values_of(self.workspace, self.forward.outputs)
        floating = [name for name in names if values[name].dtype.kind == "f"]
        if made is not None: self.heads = {n: np.ones(values[n].shape) if h is None else values[h] for n, h in begun}
        else:
            self.heads = {n: as_float64(heads[n]) if n in heads else weights(values[n].shape, random) for n in floating}
            for name, h in self.heads.items():
                if h.shape != values[name].shape:
                    raise ValueError(f"{self.who}: the head of {described(name)} must have its shape, "
                                     f"{values[name].shape}, got {h.shape}")
            named = {name: state_of(self.backward).take_fresh(f"{name}_head") for name in self.heads}
            self.given |= {str(named[name]): h for name, h in self.heads.items()}
            made = self.backward.add_gradient_operators({str(n): str(h) for n, h in named.items()})
        self.forward.outputs, self.made = [*self.heads], made
        self.check_values(values)

    def check_values(self, values: Values) -> None:
        """Raise AssertionError if the outputs are not the same in a second run, or nan."""
        self.run(self.forward)
        for name in self.heads:
            if not np.isfinite(values[name]).all():
                raise AssertionError(f"{self.who}: the output {described(name)} is not finite at the inputs; choose "
                                     f"them inside the domain of the net")
            if not np.array_equal(self.workspace.fetch(name).numpy(), values[name]):
                raise AssertionError(f"{self.who}: the output {described(name)} has different values when the net runs "
                                     f"again with the same inputs")

    def gradients(self, names: list[str]) -> dict[str, Any]:
        """The gradients that the net computes, zeros where there is none."""
        blobs = parts(self.made, names)
        self.backward.outputs = [*dict.fromkeys([*self.heads, *blobs])]
        self.run(self.backward)
        return {name: gradient_of(self.workspace, self.made.get(name), self.given[name]) for name in names}

    def loss(self) -> float:
        self.run(self.forward)
        return sum(float((h * self.workspace.fetch(name).numpy()).sum()) for name, h in self.heads.items())

    def compare(self, wrt: Any, eps: float, atol: float, rtol: float) -> None:
        """Compare each gradient with finite differences."""
        inputs = [str(name) for name in self.forward.inputs]
        names = inputs if wrt is None else listed(wrt, self.net, self.who, "wrt")
        for name in names if wrt is not None else ():
            if name not in inputs or self.given[name].dtype.kind != "f":
                raise ValueError(f"{self.who}: {described(name)} is no floating input of net {cut(self.net.name)}, so "
                                 f"it has no finite differences")
        names = [name for name in names if self.given[name].dtype.kind == "f"]
        if not any(name in self.made for name in names):
            raise RuntimeError(f"{self.who}: no output of net {cut(self.net.name)} depends on a floating input through "
                               f"operators that have gradients")
        for name, g in self.gradients(names).items():
            elements = self.given[name]
            for at in np.ndindex(elements.shape):
                here = elements[at]
                step = eps * max(1.0, abs(here))
                elements[at] = here + step
                above, high = self.loss(), elements[at]
                elements[at] = here - step
                below, low = self.loss(), elements[at]
                elements[at] = here
                measured = (above - below) / float(high - low)
                if abs(g[at] - measured) <= atol + rtol * abs(measured): continue
                raise AssertionError(f"{self.who}: the gradient of {described(name)}, of shape {elements.shape}, is "
                                     f"wrong at element {at}: net {cut(self.net.name)} gives {g[at]:.10g}, finite "
                                     f"differences give {measured:.10g}; at a kink or a step, as of relu at 0, choose "
                                     f"other inputs")


# ---- nets against each other -----------------------------------------------------------------------------------------

def compare_nets(nets: Sequence[Any], inputs: Mapping[str, Any], outputs: Sequence[Any], *,
                 gradients_of: Sequence[str] | None = None, atol: float = 0.0, rtol: float = 0.0,
                 seed: int = 0) -> Literal[True]:
    """Check that nets compute the same outputs from the same inputs, and the same gradients. Returns True.

    nets: two or more Nets, or functions of the inputs as keyword arguments that return a tensor or a tuple. inputs: a
    dict from blob to array, whose dtypes stay; a net uses those that it reads. outputs: a list of names, or for each
    net a list of the same length; of a function they only name its results.
    gradients_of: inputs whose gradients are compared too. The loss is the sum of head * output over the floating
    outputs, with random heads by the seed. Clones of the nets are differentiated; to compare gradient operators that a
    net has already, list their blobs in outputs.
    atol, rtol: the tolerances; without them the dtypes and all bits must be equal, 0.0 and -0.0 being different. With
    them nan equals nan. Each net begins with the same states of the generators.

    Raises AssertionError with the output, the element and both numbers where a net differs from the first one;
    TypeError or ValueError for arguments that do not fit."""
    from cygrad.nets import Net

    who = "compare_nets"
    if not isinstance(nets, (list, tuple)) or len(nets) < 2:
        raise TypeError(f"{who}: nets must be a list of two or more nets or functions, got {described(nets)}")
    for net in nets:
        if not isinstance(net, Net) and not callable(net):
            raise TypeError(f"{who}: each of the nets must be a Net or a function, got {described(net)}")
    given, names = arrays(inputs, who), output_lists(nets, outputs)
    wanted = [gradients_of] if isinstance(gradients_of, str) else [*(gradients_of or ())]
    for name in wanted:
        if name not in given or given[name].dtype.kind != "f":
            raise ValueError(f"{who}: gradients_of has {described(name)}, which is no floating input; they are "
                             f"{', '.join(n for n, x in given.items() if x.dtype.kind == 'f') or 'none'}")
    with same_draws(nets) as restore:
        first: list[Any] = []
        for k, net in enumerate(nets):
            restore()
            run = run_net if isinstance(net, Net) else run_function
            found = run(net, given, names[k], wanted, seed, restore)
            labels = [f"output {cut(repr(n))}" for n in names[k]] + [f"gradient of {cut(repr(n))}" for n in wanted]
            if not k: first = found
            for label, a, b in zip(labels, first, found, strict=True):
                same(label, f"net {k} ({cut(name_of(net))})", f"net 0 ({cut(name_of(nets[0]))})", b, a, atol, rtol)
    return True


def name_of(net: Any) -> str:
    return str(getattr(net, "name", None) or getattr(net, "__name__", type(net).__name__))


def output_lists(nets: Sequence[Any], outputs: Any) -> list[list[str]]:
    """The names of the outputs of each net."""
    who = "compare_nets"
    if isinstance(outputs, str): outputs = [outputs]
    if not isinstance(outputs, (list, tuple)) or not outputs:
        raise TypeError(f"{who}: outputs must be a list of names, or for each net a list of names, got "
                        f"{described(outputs)}")
    lists = [outputs] * len(nets) if isinstance(outputs[0], str) else list(outputs)
    if len(lists) != len(nets) or not all(isinstance(names, (list, tuple)) for names in lists):
        raise ValueError(f"{who}: outputs must be one list of names, or one for each of the {len(nets)} nets, got "
                         f"{described(outputs)}")
    if len({len(names) for names in lists}) > 1:
        raise ValueError(f"{who}: the lists of outputs must have the same length, got "
                         f"{', '.join(str(len(names)) for names in lists)}")
    return [listed(names, net, who, "outputs") if hasattr(net, "blobs") else [str(n) for n in names]
            for net, names in zip(nets, lists, strict=True)]


def run_net(net: Any, given: Values, names: list[str], wanted: list[str], seed: int,
            restore: Callable[[], None]) -> list[Any]:
    """The outputs of a net, then the gradients of `wanted`."""
    from cygrad.nets import Workspace
    from cygrad.nets.state import state_of

    who, workspace = "compare_nets", Workspace()
    clone: Any = net.clone()
    for name in net.inputs:
        if name not in given:
            raise ValueError(f"{who}: the input {described(str(name))} of net {cut(net.name)} has no value; add it to "
                             f"the inputs")
        workspace.feed(name, given[name])
    clone.outputs = list(names)
    workspace.run(clone)
    found = [*values_of(workspace, names).values()]
    if not wanted: return found
    if state_of(net).gradients is not None:
        raise ValueError(f"{who}: net {cut(net.name)} has gradient operators; list their blobs in outputs, and leave "
                         f"out gradients_of")
    random = np.random.default_rng(seed)
    heads: dict[str, str | None] = {}
    for name, y in zip(names, found, strict=True):
        if y.dtype.kind != "f": continue
        head = state_of(clone).take_fresh(f"{name}_head")
        workspace.feed(head, weights(y.shape, random).astype(y.dtype))
        heads[name] = str(head)
    made = clone.add_gradient_operators(heads)
    for name in clone.inputs:
        if name in given: workspace.feed(name, given[name])         # (which the first run may have overwritten)
    blobs = parts(made, wanted)
    clone.outputs = [*dict.fromkeys([*names, *blobs])]
    restore()
    workspace.run(clone)
    found += [gradient_of(workspace, made.get(name), given[name]) for name in wanted]
    return found


def run_function(f: Callable[..., Any], given: Values, names: list[str], wanted: list[str], seed: int,
                 restore: Callable[[], None]) -> list[Any]:
    """The results of a function of tensors, then the gradients of `wanted`."""
    xs = {name: tensor(x) for name, x in given.items()}
    for name in wanted: xs[name].requires_grad_()
    with autograd.enable_grad(): ys = f(**xs)
    ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
    if len(ys) != len(names) or not all(isinstance(y, Tensor) for y in ys):
        raise TypeError(f"compare_nets: the function {cut(name_of(f))} must return {len(names)} tensors, as many as "
                        f"there are outputs, got {described(ys)}")
    found = [np.array(y.detach().numpy()) for y in ys]
    if not wanted: return found
    random = np.random.default_rng(seed)
    heads = [tensor(weights(y.shape, random).astype(y.dtype)) if y.dtype.kind == "f" else None for y in ys]
    pairs = [(y, h) for y, h in zip(ys, heads, strict=True) if y.requires_grad]
    gradients = autograd.grad([y for y, _ in pairs], [xs[n] for n in wanted], [h for _, h in pairs],
                              allow_unused=True) if pairs else [None] * len(wanted)
    for name, g in zip(wanted, gradients, strict=True):
        dense = ensure_dense(g)
        found.append(np.zeros_like(given[name]) if dense is None else np.array(dense.detach().numpy()))
    return found


def same(label: str, one: str, other: str, b: Any, a: Any, atol: float, rtol: float) -> None:
    """Raise AssertionError if b, of the net `one`, differs from a, of the net `other`."""
    what = f"compare_nets: the {label} of {one} differs from that of {other}"
    if a.shape != b.shape: raise AssertionError(f"{what}: its shape is {b.shape}, not {a.shape}")
    if not atol and not rtol:
        if a.dtype != b.dtype: raise AssertionError(f"{what}: its dtype is {b.dtype}, not {a.dtype}")
        bits = f"u{a.dtype.itemsize}"
        wrong = a.view(bits) != b.view(bits)
    else:
        with np.errstate(invalid="ignore"):
            wrong = ~((np.abs(b - a) <= atol + rtol * np.abs(a)) | (a == b) | ((a != a) & (b != b)))
    if not wrong.any(): return
    at = tuple(map(int, np.argwhere(wrong)[0]))
    raise AssertionError(f"{what} at {int(wrong.sum())} of {wrong.size} elements, first at {at}: {b[at]!s} and "
                         f"{a[at]!s}")
