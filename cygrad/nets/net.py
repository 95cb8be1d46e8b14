"""Net: a list of operators on named blobs, with its constants, inputs and outputs. Nothing here runs an operator."""

from collections.abc import Callable, Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.nets import printing
from cygrad.nets.capture import capture
from cygrad.nets.definition import NETS_OF, PYTHON, Blob, GradientSlice, Names, Operator, check_names
from cygrad.nets.edits import Edits
from cygrad.nets.files import load as load_net, save
from cygrad.nets.gradients import BUILT_IN, DEDUPLICATE, backward_pass
from cygrad.nets.head import Head, head
from cygrad.nets.immediate import is_immediate, run_added
from cygrad.nets.passes import names_of
from cygrad.nets.plan import Plan, inferred, planned
from cygrad.nets.recorded import from_graph
from cygrad.nets.state import state_of
from cygrad.nets.subnets import closed
from cygrad.ops.calls import described_row
from cygrad.ops.table import ROWS

Operands = str | int | float | None | list[str | int | float | None] | tuple[str | int | float | None, ...]

MOST_DRAWN = 200            # operators in the drawing that Jupyter shows; more are a text


class Net(Edits):
    """A list of operators on named blobs. Each operator of the table can be added by its name, on names of blobs:

        net = cg.graph.Net("mlp")
        h = net.linear(["x", "w", "b"])
        y = net.mul([net.relu(h), 0.5], "y")
        net.add_operator("sum", y, "loss", axis=1)

    A builder call, such as net.linear(inputs, outputs=None, **arguments), is add_operator("linear", ...). Blobs that
    are read before any operator writes them are the inputs of the net. A blob can be written again, which raises its
    version: an operator reads what was written last before it. print(net) lists the operators.

    `name` is the name of the net. `training` is the mode that it runs in: True, False, or None for that of the thread.
    `shapes` is a dict from blob to (shape, name of the dtype), which is printed and saved, and the default of plan()
    and infer(). `edits` grows with every change of the definition. Raises TypeError or ValueError for a name that is no
    name."""

    # ---- building ----------------------------------------------------------------------------------------------------

    def add_operator(self, type: str | Operator, inputs: Operands = (), outputs: Names | int | None = None,
                     **arguments: Any) -> Any:
        """Add an operator at the end and return its output, a Blob, or a tuple of Blobs if there are several.

        type: the name of a row of the operator table. Another one can be added too; running or differentiating it is
        an error. inputs: a name or a list of names; a Python number in it becomes a constant of the net, None is an
        absent operand. outputs: a name or a list of names; a number of fresh names, which begin with the type; None
        for one. arguments: the other arguments of the operator by keyword.

        Two types have nets as arguments, of which copies are kept:

            net.add_operator("If", [condition, *inputs], outputs, then=net_1, otherwise=net_2)
            net.add_operator("While", inputs, outputs, condition=net_1, body=net_2, turns=N)

        If runs `then` if the condition, a blob of one element, is not zero, else `otherwise`. Each takes the inputs by
        position, in the order of its own `inputs`, which can be assigned, and gives the outputs. While runs `body` as
        long as the output of the net `condition` is not zero. Both take all inputs. The outputs of the body replace the
        first inputs for the next turn; shapes and dtypes stay. turns=N bounds the turns, which a gradient needs: it
        keeps N times the values that a turn begins with. More turns are a RuntimeError of the run. Tensors that the
        nets bind become bindings of this net. The nets cannot write to their inputs, and gradients of both have none.

        `type` can also be an Operator, which is added as it is, without further arguments. Raises TypeError or
        ValueError for what cannot be part of a definition, for another number of inputs or other arguments than the
        type has, if it is known, and for an output that is a constant."""
        return self._add("Net.add_operator", len(self), type, inputs, outputs, arguments)

    def insert_operator(self, index: int, type: str | Operator, inputs: Operands = (),
                        outputs: Names | int | None = None, **arguments: Any) -> Any:
        """As add_operator, before the operator of this index. Raises ValueError for an index that is negative or larger
        than the number of operators."""
        who, s = "Net.insert_operator", self._state
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"{who}: the index must be an int, got {described(index)}")
        if not 0 <= index <= len(s.operators):
            raise ValueError(f"{who}: the index must be from 0 to {len(s.operators)}, the number of operators, got "
                             f"{described(index)}")
        return self._add(who, index, type, inputs, outputs, arguments)

    def _add(self, who: str, index: int, type: Any, inputs: Any, outputs: Any, arguments: dict[str, Any]) -> Any:
        """Add an operator at `index`."""
        tensors: list[tuple[str, Tensor]] = []
        if isinstance(type, str) and type in NETS_OF: arguments, tensors = closed(arguments, who)
        return self._state.add(who, index, type, inputs, outputs, arguments, tensors=tensors)

    def create_python_operator(self, f: Callable[..., Any], inputs: Operands, outputs: Names | int | None = None,
                               grad_f: Callable[..., Any] | None = None) -> Any:
        """Add an operator of type "python", which calls f, and grad_f for its gradient; outputs as in add_operator.
        A net with such an operator cannot be saved. Raises TypeError if f or grad_f is no function."""
        who, s = "Net.create_python_operator", self._state
        if not callable(f): raise TypeError(f"{who}: f must be a function, got {described(f)}")
        if grad_f is not None and not callable(grad_f):
            raise TypeError(f"{who}: grad_f must be a function or None, got {described(grad_f)}")
        return s.add(who, len(s.operators), PYTHON, inputs, outputs, {}, (f, grad_f))

    def add_constant(self, value: int | float | npt.ArrayLike | Tensor, name: str | None = None) -> Blob:
        """Add a constant and return its name: the given one, or a fresh one. A Python number is kept as it is, anything
        else as a tensor with a copy. An input can become a constant. Raises ValueError if the name is that of a
        constant or of a blob that an operator writes."""
        return self._state.add_constant(value, name)

    @staticmethod
    def capture(f: Callable[..., Any], *examples: Any, name: str | None = None,
                names: Mapping[str, Tensor] | None = None, **arguments: Any) -> "Net":
        """The net of what f(*examples, **arguments) does: operators, backward passes, updates of solvers, random draws,
        writes in place. f is traced, so nothing is computed and nothing changes.

            net = Net.capture(step, x, t, names=model.state_dict())
            workspace.feed("x", x); workspace.feed("t", t)
            workspace.run(net)

        examples: tensors, arrays or pairs (shape, dtype). They are the inputs of the net, named by the parameters of
        f; f gets them without values. `arguments` go to f as they are and are no inputs. Tensors that f uses from
        outside are bindings: each run reads and writes their memory, the .grad of variables, the states of solvers
        and generators, so training goes on in eager code or in the net. The net uses the tensors that f used when it
        was captured: load_state_dict() writes to these, but a new Parameter in place of an old one is not seen. Layers
        that wait for their sizes get them from the examples, and draw their parameters, as in a first call.
        names: names for tensors from outside; for a module by default those of its parameters and buffers. What f
        returns are the outputs. Python code in f, forward hooks of modules included, runs once, and Python numbers,
        also sizes such as x.shape[0], are constants. In runs of other shapes a size is free where f writes -1, takes a
        whole axis, or leaves it to operators. In record(), f is traced in train mode, and no gradient flows through
        what it does in no_grad().

        A run does what f does in eager code at that moment: core/graph/around lists what it follows.

        Raises RuntimeError, which names it, for what a run would not repeat: item(), bool() and numpy() of a tensor,
        shapes that depend on values, hooks in f or on variables that it differentiates (runs call hooks that are
        registered later), an autograd.Function, attach_grad(), an assignment to .grad other than None, a pass that
        frees a graph recorded outside, setting the state of a generator, changing the parameters, groups or states of a
        solver, an update before the pass whose gradients it reads, and reading a .grad that no captured pass has
        written."""
        return capture(Net, f, examples, name, names, arguments)

    @staticmethod
    def from_graph(y: Tensor | list[Tensor] | tuple[Tensor, ...], name: str | None = None,
                   names: Mapping[str, Tensor] | None = None) -> "Net":
        """The net of the recorded graph of `y`, a tensor or a list of tensors: of the operations on which their
        gradients depend. Its outputs are the blobs of y.

            with cg.record(): loss = cg.cross_entropy(model(x), t)
            net = Net.from_graph(loss, names={"x": x, **dict(model.named_parameters())})

        Variables become inputs, called parameter, parameter_1 and so on in the order of their use; feed their values.
        Other operands become constants, with copies of what the graph has saved for backward. names: names for
        variables, for results, and for operands that then become inputs. Random operators repeat their draws. A net of
        all that a function does, which trains the variables themselves, is made by capture().

        Raises RuntimeError for what the graph does not have: an operand that is no variable and that backward does not
        need, a graph that backward has freed, an autograd.Function. These errors name the operator and the operand."""
        return from_graph(Net, y, name, names)

    # ---- gradients ---------------------------------------------------------------------------------------------------

    def head(self, blob: str | None = None) -> Head:
        """A blob as the loss of a trainers.Updater; the output of the net by default. See Head.

            with cg.record(): net = Net.capture(loss, x, t)
            updater = cg.trainers.Updater(solver, net.head(), data_feeder)

        Raises ValueError for an unknown blob, or if there is not one output; RuntimeError if the net has gradient
        operators."""
        return head(self, blob)

    def add_gradient_operators(self, ys: list[str] | Mapping[str, str | None], skip: int = 0,
                               bind: bool = False) -> dict[str, Blob | GradientSlice]:
        """Add operators that compute the gradients of `ys` for the blobs that they depend on. Returns a dict from the
        name of each blob to that of its gradient, or to a GradientSlice.

        ys: a list of blobs, whose head gradients are ones, or a dict from blob to the blob that is its head gradient,
        None for ones. The head of a blob that others depend on is added to the gradient that flows into it. skip: the
        first operators, this many, are not differentiated; what they write counts as an input. A head gradient that
        nothing writes is an input of the net. bind=True: the gradients
        go to the .grad of the variables that blobs stand for, by their grad_req, as backward() in eager code, and only
        these blobs are in the result.

        Blobs that reach no head, integers, labels and constants have no gradient. (For labels that are probabilities,
        soft_cross_entropy has one.) A blob that was written several times has that of its first version. Raises
        TypeError for other kinds of ys, ValueError for unknown blobs and a negative skip; RuntimeError for a second
        call (differentiate a clone()), for an operator without a gradient, and where an operator needs a version of a
        blob that was overwritten since; with bind=True also for a net that binds no variable. Then nothing has
        changed."""
        who, s = "Net.add_gradient_operators", self._state
        if s.gradients is not None:
            raise RuntimeError(f"{who}: net {cut(s.name)} has gradient operators already; differentiate again on "
                               f"clone(), or by GradientRegistry.get_backward_pass(net.operators, ys)")
        fixed = dict.fromkeys([*s.constants, *(self._without_gradient(who) if bind else ())])
        found = backward_pass(s.operators, ys, skip, fixed, set(s.known), who)
        if bind: found = found._replace(kind="backward", gradients={
            name: g for name, g in found.gradients.items() if name in s.bindings})
        run_added(self, found.operators)
        s.add_gradients(found)
        s.gradients = dict(found.gradients)
        return dict(found.gradients)

    def _without_gradient(self, who: str) -> set[str]:
        """The inputs, and the bindings that are no variables."""
        s = self._state
        if is_immediate():
            raise RuntimeError(f"{who}: with bind=True, gradients go to variables in one backward pass, which "
                               f"immediate mode does not run; leave its scope first")
        found = {str(name) for name, x in s.bindings.items() if not x.requires_grad}
        if len(found) == len(s.bindings):
            raise RuntimeError(f"{who}: with bind=True, gradients go to variables, but net {cut(s.name)} binds "
                               f"none; capture a function that uses variables")
        return found | {str(name) for name in self.inputs}

    @property
    def gradients(self) -> Mapping[str, Blob | GradientSlice]:
        """What add_gradient_operators returned. Raises RuntimeError before that."""
        s = self._state
        if s.gradients is None:
            raise RuntimeError(f"Net.gradients: net {cut(s.name)} has no gradient operators; call "
                               f"add_gradient_operators(ys) first")
        return MappingProxyType(s.gradients)

    @property
    def param_to_grad(self) -> dict[str, Blob | GradientSlice]:
        """The gradients of the inputs of the net. Raises RuntimeError before add_gradient_operators."""
        gradients = self.gradients
        return {name: gradients[name] for name in self.inputs if name in gradients}

    def deduplicate(self, gradient: GradientSlice, op: str = "sum") -> GradientSlice:
        """Add an operator of type "deduplicate", which makes each index of a row-sparse gradient occur once, in
        ascending order, with the sum or the mean of its rows, and return its outputs as a GradientSlice. The number of
        rows depends on the indices, so a net with this operator has no plan. Raises TypeError unless `gradient` is a
        GradientSlice, ValueError unless `op` is "sum" or "mean"."""
        who = "Net.deduplicate"
        if not isinstance(gradient, GradientSlice):
            raise TypeError(f"{who} takes a GradientSlice, got {described(gradient)}; a dense gradient has each row "
                            f"once")
        if op not in ("sum", "mean"): raise ValueError(f"{who}: op must be \"sum\" or \"mean\", got {described(op)}")
        names = tuple(self._state.fresh(f"{name}_unique") for name in gradient)
        return GradientSlice(*self.add_operator(DEDUPLICATE, [*gradient], names, op=op))

    # ---- memory ------------------------------------------------------------------------------------------------------

    def share_blobs(self, dont_share_blobs: Names = ()) -> None:
        """Let the blobs share memory: after a run only the outputs, the blobs that were differentiated (as a loss),
        the gradients of the inputs and `dont_share_blobs` have values. Without this call all gradients and each blob
        that was given a name keep their values (nnabla: persistent). Raises ValueError for unknown blobs."""
        s = self._state
        names = check_names(dont_share_blobs, "Net.share_blobs", "dont_share_blobs")
        s.shared = frozenset(s.need(name, "Net.share_blobs") for name in names)
        s.edits += 1

    @property
    def kept(self) -> frozenset[str]:
        """The blobs that have values after a run, beside the inputs."""
        s = self._state
        written = s.use().writers
        kept = {str(name) for name in self.outputs if name in written}
        kept |= {y for p in s.passes for (y, _), _ in p.heads}
        if s.gradients is not None:
            wanted = s.use().inputs if s.shared is not None else s.gradients
            for name in wanted: kept |= {*names_of(s.gradients[name])} if name in s.gradients else set()
        kept |= {name for name in written if name in (s.given if s.shared is None else s.shared)}
        return frozenset((kept & {*written}) - {*s.bindings})

    def plan(self, shapes: Mapping[str, Any] | None = None, budget: int | str | None = None) -> Plan:
        """The memory of a run before it runs; see Plan. shapes: for each input a shape (float32), a pair (shape,
        dtype), or a tensor or array. budget: the most bytes that the plan may have, an int or a string such as
        "16MiB". Steps run again where values do not fit until they are read, with the same bits; plan.recomputed says
        what that costs. Raises ValueError if a shape is missing, MemoryLimitError for a budget that is too small, with
        the least that is enough, and the errors of operators for shapes that do not fit, with the operator and its
        blobs."""
        return planned(self, shapes, budget)

    def infer(self, shapes: Mapping[str, Any] | None = None) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shape and the name of the dtype of each blob, for `shapes` as in plan()."""
        return inferred(self, shapes)

    # ---- running -----------------------------------------------------------------------------------------------------

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        """The outputs for arrays, tensors or numbers, which are given in the order of `inputs` or by name: a tensor, or
        a tuple if there are several.

            net = cg.graph.load("net.cg")
            y = net(x)
            y = net(x=x)

        The net runs in a workspace of its own for each set of shapes; the last 8 stay, with their plans and memory.
        Nothing is recorded, and the results are copies. An input that has an example in `shapes` has its dtype and as
        many axes; sizes are free where the operators allow it. If they do not, the error has a note with the operator
        and the constant that fix a size. Raises TypeError or ValueError for an input that is missing, unknown or does
        not fit, RuntimeError in record() if gradients would flow to an input or a variable, and as Workspace.run."""
        from cygrad.nets.calling import called

        return called(self, arrays, named)

    # ---- copies, text, files, drawings -------------------------------------------------------------------------------

    def clone(self, name: str | None = None) -> "Net":
        """An independent copy, with another name if one is given. The tensors of constants are copied; Python operators
        call the same functions."""
        other = Net(self.name if name is None else name)
        self._state.copy_to(state_of(other))
        return other

    __copy__ = clone

    def text(self) -> str:
        """The net as text: its name and mode, its inputs, constants and outputs, and a line for each operator."""
        return printing.text(self)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """The drawing and the text, for Jupyter; of a net with many operators only the text."""
        from cygrad.core.notebook import block, scrolled, titled

        drawing = scrolled(self.to_svg()) if len(self) <= MOST_DRAWN else ""
        return titled("Net", self.name, drawing + block(self.text()))

    def save(self, path: str | PathLike[str], weights: bool = False) -> None:
        """Write the net to a file that ends with .cg or .safetensors, of the format safetensors: the constants that are
        tensors, and in its metadata the definitions as JSON. With weights=True the tensors outside that operators read,
        such as parameters, are constants of the file under their names, so the loaded net computes the outputs from
        the inputs alone. Else it has inputs in place of its bindings. Solvers and generators are not in the file, and
        a loaded net cannot run operators that name one. The file is replaced atomically, as cygrad.save does. Raises
        ValueError for another suffix, for a net with Python operators and, with weights=True, for an operator that
        writes a tensor outside or its .grad, and OSError if the file cannot be written."""
        save(self, path, weights)

    @staticmethod
    def load(path: str | PathLike[str]) -> "Net":
        """The net that `save` wrote. The whole file is checked before memory is taken for its tensors, and nothing in
        it is run. Raises ValueError for a file that is malformed, with the operator and the field, and OSError if it
        cannot be read."""
        return load_net(Net, path)

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """Write the net as an ONNX model (opset 20), to a file that ends with .onnx, which ONNX Runtime and other
        programs run. Constants and the tensors outside, such as parameters, are its initializers under their names.
        Sizes of the inputs, of which `shapes` has examples, are free where the net runs with others. Needs the package
        onnx, `pip install 'cygrad[onnx]'`. Raises ValueError for operators that ONNX does not have, with their names,
        before anything is written, and OSError if the file cannot be written."""
        from cygrad.nets.onnx_export import to_onnx

        to_onnx(self, path)

    def to_dot(self) -> str:
        """The net in the language of Graphviz, which draws it with `dot -Tsvg`."""
        from cygrad.nets.drawing import to_dot

        return to_dot(self)

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """A drawing of the net as SVG, which is also written to `path` if one is given. Operators are boxes, their
        outputs are below them, and those of a backward pass have another colour. Raises OSError if the file cannot be
        written."""
        from cygrad.nets.drawing import to_svg

        return to_svg(self, path)

    def draw(self, path: str | PathLike[str]) -> None:
        """Write a drawing to a file that ends with .svg (`to_svg`) or .dot (`to_dot`). Raises ValueError for another
        suffix and OSError if the file cannot be written."""
        from cygrad.nets.drawing import draw

        draw(self, path)

    # ---- builder calls -----------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ROWS and name not in BUILT_IN:
            advice = "" if name.startswith("__") else f"; add an operator of an unknown type with add_operator(" \
                                                      f"{described(name)}, inputs, outputs)"
            raise AttributeError(f"Net has no attribute and the operator table has no row {described(name)}{advice}")

        def build(inputs: Operands = (), outputs: Names | int | None = None, *more: Any, **arguments: Any) -> Any:
            if more:
                raise TypeError(f"Net.{name} takes the inputs as one list: net.{name}([\"x\", \"y\"], outputs), got "
                                f"{len(more) + 2} arguments")
            return self._add(f"Net.{name}", len(self), name, inputs, outputs, arguments)

        build.__name__, build.__qualname__ = name, f"Net.{name}"
        build.__doc__ = f"add_operator({name!r}, inputs, outputs, **arguments)"
        if name in ROWS: build.__doc__ += f". {described_row(name)}"
        return build

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *ROWS, *BUILT_IN})


def load(path: str | PathLike[str]) -> Net:
    """The net that `Net.save` wrote, as Net.load. With weights in the file, it can be called:

        net = cg.graph.load("net.cg")
        y = net(x)
    """
    return load_net(Net, path)
