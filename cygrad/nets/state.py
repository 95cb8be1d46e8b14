"""The state of a net: its operators, and the names, constants, tensors and objects that they use.

NetState owns it. Net, which users have, reads and changes it by the methods here. Other modules of this package that
need more than the public interface of a net take its NetState from state_of()."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple

from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor
from cygrad.nets.checks import check_operator
from cygrad.nets.definition import (
    PYTHON, Blob, GradientSlice, Operator, check_arguments, check_integer, check_name, check_names, check_type,
    made_blob,
)
from cygrad.nets.gradients import completed_pass
from cygrad.nets.immediate import is_immediate, run_added
from cygrad.nets.passes import Pass, find, gradient_names, renamed_gradients, renamed_pass
from cygrad.nets.turns import Lock

Numbers = dict[str, tuple[Blob, Any]]       # the text of a number: the name of its constant, and the number


class Use(NamedTuple):
    """Who uses the blobs of a net: the positions of operators by the name of the blob. `absent` are the inputs of the
    operators that the net does not have, but whose gradient operators it has."""

    inputs: tuple[Blob, ...]
    absent: tuple[Blob, ...]
    blobs: tuple[Blob, ...]
    writers: dict[str, tuple[int, ...]]
    readers: dict[str, tuple[int, ...]]


class NetState:
    """A list of operators, with all that belongs to it. `edits` counts the changes.

    known       the names of all blobs, and `given` those that were given, not made
    numbers     by the text of a Python number, the name of its constant
    assigned    the outputs that were assigned, or None
    gradients   what Net.add_gradient_operators returned, or None
    bindings    the tensors outside that blobs stand for, and `variables` those that were variables at the capture
    objects     the solvers and generators that operators name
    arguments   the inputs of a captured function
    shared      the blobs that are kept although others may share memory, or None
    lock        the lock of a run
    workspaces  those in which calls of the net run, by the shapes and dtypes of the inputs, the last used last"""

    new_workspace: Any              # the class Workspace, which sets it, because it imports Net

    def __init__(self, name: Any):
        self.name = str(check_name(name, "Net", "the name"))
        self.training: bool | None = None
        self.operators: list[Operator] = []
        self.constants: dict[str, int | float | Tensor] = {}
        self.numbers: dict[str, Blob] = {}
        self.known: set[str] = set()
        self.given: set[str] = set()
        self.next: dict[str, int] = {}              # the next number of a fresh name
        self.assigned: tuple[Blob, ...] | None = None
        self.passes: tuple[Pass, ...] = ()
        self.gradients: dict[str, Blob | GradientSlice] | None = None
        self.bindings: dict[str, Tensor] = {}
        self.variables: set[str] = set()
        self.objects: dict[str, Any] = {}
        self.arguments: tuple[Blob, ...] = ()
        self.shared: frozenset[str] | None = None
        self.shapes: dict[str, tuple[tuple[int, ...], str]] = {}
        self.edits = 0
        self.used: tuple[int, Use] | None = None    # (edits, what follows from the list then)
        self.lock: Lock = {}
        self.workspaces: dict[Any, Any] = {}

    def copy_to(self, other: "NetState", share: bool = False) -> None:
        """Fill the state of an empty net with a copy; the tensors of constants are copied, too, or shared."""
        other.operators = [*self.operators]         # (operators cannot change)
        other.constants = {key: tensor(value) if isinstance(value, Tensor) and not share else value
                           for key, value in self.constants.items()}
        other.numbers, other.known, other.next = dict(self.numbers), set(self.known), dict(self.next)
        other.given = self.given | gradient_names(self.gradients or {})
        other.objects, other.arguments, other.variables = dict(self.objects), self.arguments, set(self.variables)
        other.passes, other.bindings, other.shared = self.passes, dict(self.bindings), self.shared
        other.assigned, other.training, other.shapes = self.assigned, self.training, dict(self.shapes)

    # ---- blobs -------------------------------------------------------------------------------------------------------

    def use(self) -> Use:
        """Who uses the blobs. It is computed again after an edit."""
        if self.used is not None and self.used[0] == self.edits: return self.used[1]
        inputs: dict[Blob, None] = dict.fromkeys(self.arguments)
        absent: dict[Blob, None] = {}
        blobs: dict[Blob, None] = {}
        seen: set[int] = set()                      # the operators so far, by their ids
        writers: dict[str, list[int]] = {}
        readers: dict[str, list[int]] = {}
        for k, operator in enumerate(self.operators):
            if operator.of is not None and id(operator.of) not in seen:
                absent |= {name: None for name in operator.of.inputs if name is not None and name not in writers}
            seen.add(id(operator))
            for name in operator.inputs:
                if name is None: continue
                if name not in blobs:
                    blobs[name] = None
                    if name not in self.constants and name not in self.bindings: inputs[name] = None
                if name not in readers: readers[name] = [k]
                elif readers[name][-1] != k: readers[name].append(k)
            for name in operator.outputs:
                blobs[name] = None
                if name in writers: writers[name].append(k)
                else: writers[name] = [k]
        for constant in self.constants: blobs[made_blob(constant)] = None
        use = Use(tuple(inputs), tuple(absent), tuple(blobs), {name: tuple(found) for name, found in writers.items()},
                  {name: tuple(found) for name, found in readers.items()})     # (the collector skips tuples of ints)
        self.used = self.edits, use
        return use

    def need(self, blob: Any, who: str) -> Blob:
        """`blob` as a Blob of this net. Raises ValueError if there is none of this name."""
        name = check_name(blob, who)
        if name not in self.known:
            raise ValueError(f"{who}: net {cut(self.name)} has no blob {described(str(name))}; it has "
                             f"{cut(', '.join(self.use().blobs)) or 'none'}")
        return name

    def fresh(self, stem: str, taken: frozenset[str] | set[str] = frozenset()) -> Blob:
        """A name that no blob has and that is not in `taken`: the stem, or the stem with a number."""
        k = self.next.get(stem, 0)
        while True:
            name = made_blob(f"{stem}_{k}" if k else stem)
            if name not in self.known and name not in taken and name not in self.constants: return name
            k += 1
            self.next[stem] = k

    def take_fresh(self, stem: str) -> Blob:
        """A fresh name, which is that of a blob from now on."""
        name = self.fresh(stem)
        self.known.add(name)
        return name

    def rename(self, old: Blob, new: Blob) -> None:
        """Give a blob another name, everywhere."""
        names: dict[str, Any] = {old: new}

        def renamed(before: Any) -> Any: return tuple(names.get(name, name) for name in before)

        made: dict[int, Operator] = {}              # by the ids of the operators before
        for k, o in enumerate(self.operators):
            if old in o.inputs or old in o.outputs or id(o.of) in made:
                made[id(o)] = self.operators[k] = o.replace(inputs=renamed(o.inputs), outputs=renamed(o.outputs),
                                                            of=made.get(id(o.of), o.of))
        self.passes = tuple(renamed_pass(p, made, names) for p in self.passes)
        if self.gradients is not None: self.gradients = renamed_gradients(self.gradients, names)
        self.known, self.given, self.variables = ({*renamed(s)} for s in (self.known, self.given, self.variables))
        if self.shared is not None: self.shared = frozenset(renamed(self.shared))
        if self.assigned is not None: self.assigned = renamed(self.assigned)
        self.arguments = renamed(self.arguments)
        self.bindings = {names.get(name, name): x for name, x in self.bindings.items()}
        self.constants = {names.get(name, name): value for name, value in self.constants.items()}
        self.numbers = {text: names.get(name, name) for text, name in self.numbers.items()}
        if old in self.shapes: self.shapes[new] = self.shapes.pop(old)
        self.edits += 1

    def add_argument(self, name: Blob, shape: tuple[int, ...], dtype: str) -> Blob:
        """Add an input, also if no operator will read it, and return its name."""
        self.known.add(name)
        self.arguments += name,
        self.shapes[name] = tuple(shape), dtype
        return name

    def set_arguments(self, names: tuple[Blob, ...]) -> None:
        """As Net.inputs, when it is assigned."""
        use = self.use()
        if len({*names}) < len(names):
            raise ValueError(f"Net.inputs: each input must be named once, got {described(list(map(str, names)))}")
        for name in names:
            what = ("a constant" if name in self.constants else "a tensor outside" if name in self.bindings else
                    "written before it is read" if name in use.writers and name not in use.inputs else "")
            if what: raise ValueError(f"Net.inputs: {described(str(name))} is {what}; name blobs that are fed")
        heads = {head for p in self.passes for _, head in p.heads}
        self.arguments = *names, *(name for name in self.arguments if name in heads and name not in names)
        self.edits += 1
        self.known = self.names_with(self.operators)

    def bind(self, stem: str, x: Tensor) -> Blob:
        """A new blob, which stands for a tensor from outside."""
        name = self.take_fresh(stem)
        self.bindings[name] = x
        if x.requires_grad: self.variables.add(name)
        return name

    def bound(self, stem: str, x: Tensor) -> Blob:
        """The blob that stands for a tensor from outside; a new one if none does."""
        found = next((name for name, known in self.bindings.items() if known is x), None)
        return self.bind(stem, x) if found is None else made_blob(found)

    def unbind(self, name: str) -> None:
        """Undo bind()."""
        del self.bindings[name]
        self.known.discard(name)
        self.variables.discard(name)

    def constant_for(self, value: int | float) -> Blob:
        """The constant of a Python number."""
        text = repr(value)
        return self.numbers[text] if text in self.numbers else self.add_constant(value)

    def add_constant(self, value: Any, name: Any = None) -> Blob:
        """As Net.add_constant."""
        who = "Net.add_constant"
        if name is None: blob = self.fresh("constant")
        else:
            blob = check_name(name, who)
            if blob in self.constants or blob in self.use().writers:
                what = "a constant" if blob in self.constants else "an output of an operator"
                raise ValueError(f"{who}: {described(str(blob))} is {what} already; choose another name")
        kept: int | float | Tensor
        if isinstance(value, bool | int | float) and type(value) in (bool, int, float):
            kept = value if isinstance(value, float) else check_integer(value, f"{who}: the value")
            self.numbers.setdefault(repr(value), blob)
        else:
            try:
                kept = tensor(value.detach() if isinstance(value, Tensor) else value)
            except (BufferError, TypeError, ValueError, RuntimeError) as e:
                raise type(e)(f"{who}: the value must be a number, an array or a tensor: {e}") from None
        self.constants[blob] = kept
        self.known.add(blob)
        self.edits += 1
        return blob

    def object_name(self, stem: str, value: Any) -> str:
        """The name of a solver, a generator, or None, the default generator."""
        for name, known in self.objects.items():
            if known is value: return name
        name = stem if stem not in self.objects else f"{stem}_{len(self.objects)}"
        self.objects[name] = value
        return name

    # ---- operators ---------------------------------------------------------------------------------------------------

    def define(self, operators: Sequence[Operator], constants: Mapping[str, Any]) -> None:
        """Fill the state of an empty net with operators and constants that were checked."""
        self.operators, self.constants = [*operators], dict(constants)
        self.given = {name for o in operators if not o.is_gradient for name in o.outputs}
        self.known = self.names_with(operators)
        for name, value in constants.items():
            if isinstance(value, int | float): self.numbers.setdefault(repr(value), Blob(name))
        self.edits += 1

    def names_with(self, operators: Iterable[Operator]) -> set[str]:
        """The names of all blobs if the operators were these."""
        names = {name for o in operators for name in (*o.inputs, *o.outputs) if name is not None}
        return names | {*self.constants, *self.arguments, *self.bindings}

    def append(self, operator: Operator, given: Iterable[str] = ()) -> None:
        """Add an operator at the end. `given`: the outputs whose names were given."""
        self.insert("Net.add_operator", len(self.operators), operator, {})
        self.given |= {*given}

    def append_made(self, operator: Operator) -> None:
        """Add an operator that the execution of one has shown, so that it has the inputs that it takes."""
        if is_immediate(): return self.append(operator)
        self.operators.append(operator)
        self.known.update(operator.outputs)
        self.known.update(name for name in operator.inputs if name is not None)
        self.edits += 1

    def add(self, who: str, index: int, type: Any, inputs: Any, outputs: Any, arguments: dict[str, Any],
            function: Any = None, tensors: Iterable[tuple[str, Tensor]] = ()) -> Any:
        """Add an operator at `index`, as Net.insert_operator. `tensors`: further inputs, tensors from outside with
        names. Nothing has changed if this raises."""
        operator, numbers = type, Numbers()
        if isinstance(type, Operator):
            if inputs != () or outputs is not None or arguments:
                raise TypeError(f"{who}: an Operator has its inputs, outputs and arguments; pass it alone, or change "
                                f"it with replace()")
        else:
            kind = check_type(type, who)
            if kind == PYTHON and function is None:
                raise ValueError(f"{who}: add an operator of type \"python\" with create_python_operator(f, inputs, "
                                 f"outputs)")
            reads = self.operands(inputs, outputs, who, numbers)
            writes = self.results(kind, outputs, who, {*filter(None, reads), *(name for name, _ in numbers.values())})
            operator = Operator(kind, reads, writes, check_arguments(arguments, who), function=function)
        bound = {*self.bindings}
        try:
            if tensors: operator = operator.replace(inputs=[*operator.inputs, *starmap(self.bound, tensors)])
            self.insert(who, index, operator, numbers)
        except BaseException:
            for name in {*self.bindings} - bound: self.unbind(name)
            raise
        if operator is type or isinstance(outputs, str | list | tuple): self.given |= {*operator.outputs}
        if operator is type and operator.is_gradient: self.complete_pass()
        return operator.outputs[0] if len(operator.outputs) == 1 else operator.outputs

    def insert(self, who: str, index: int, operator: Operator, numbers: Numbers) -> None:
        """Add an operator at `index`, and new constants. Nothing has changed if this raises."""
        check_operator(operator, who)
        new = {name for name, _ in numbers.values()}
        for name in operator.outputs:
            if name in self.constants or name in new:
                raise ValueError(f"{who}: {described(str(name))} is a constant, which no operator can write; choose "
                                 f"another output")
        for text, (name, value) in numbers.items():
            self.constants[name], self.numbers[text] = value, name
        try:
            if index < len(self.operators):
                self.refuse_breaking([*self.operators[:index], operator, *self.operators[index:]], who)
            run_added(self, (operator,))
        except BaseException:
            for text, (name, _) in numbers.items(): del self.constants[name], self.numbers[text]
            raise
        self.operators.insert(index, operator)
        self.known |= {*filter(None, operator.inputs), *operator.outputs}
        self.edits += 1

    def operands(self, inputs: Any, outputs: Any, who: str, numbers: Numbers) -> tuple[Blob | None, ...]:
        """The names of the inputs. New numbers are added to `numbers`, which is not yet a part of the net. Their names
        are not those of the other inputs and of the outputs."""
        if inputs is None or isinstance(inputs, str | bool | int | float): inputs = inputs,
        if not isinstance(inputs, list | tuple):
            raise TypeError(f"{who}: the inputs must be a name, a number, None or a list of them, got "
                            f"{described(inputs)}")
        written = outputs if isinstance(outputs, list | tuple) else (outputs,)
        taken = {name for name in (*inputs, *written) if isinstance(name, str)}
        names: list[Blob | None] = []
        for value in inputs:
            if value is None or isinstance(value, str):
                names.append(None if value is None else check_name(value, who, "each input that is a str"))
                continue
            if type(value) not in (bool, int, float):
                raise TypeError(f"{who}: each input must be the name of a blob, a Python number or None, got "
                                f"{described(value)}; name an array or tensor with add_constant(value)")
            if type(value) is int: check_integer(value, f"{who}: each input that is an int")
            text = repr(value)                      # 1, 1.0 and True differ, and NaN is equal to itself
            if text in self.numbers: names.append(self.numbers[text])
            else:
                if text not in numbers:
                    numbers[text] = self.fresh("constant", taken), value
                    taken.add(numbers[text][0])
                names.append(numbers[text][0])
        return tuple(names)

    def results(self, kind: str, outputs: Any, who: str, taken: set[str]) -> tuple[Blob, ...]:
        """The names of the outputs: the given ones, or as many fresh ones; `taken` are the names of the inputs."""
        if outputs is None: outputs = 1
        if isinstance(outputs, bool) or not isinstance(outputs, int | str | list | tuple):
            raise TypeError(f"{who}: the outputs must be a name, a list of names, a number of fresh names or None, got "
                            f"{described(outputs)}")
        if not isinstance(outputs, int): return check_names(outputs, who, "the outputs")
        if not 0 <= outputs <= 10_000:
            raise ValueError(f"{who}: the number of outputs must be from 0 to 10,000, got {described(outputs)}")
        names: list[Blob] = []
        for _ in range(outputs): names.append(self.fresh(kind, taken.union(names)))
        return tuple(names)

    def replace(self, operators: list[Operator]) -> None:
        """Set the operators to those that are left after a removal."""
        self.operators, self.known = operators, self.names_with(operators)
        self.given &= self.known
        self.edits += 1

    # ---- backward passes ---------------------------------------------------------------------------------------------

    def add_gradients(self, p: Pass) -> None:
        """Add the operators of a backward pass at the end."""
        self.operators += p.operators
        self.known |= {name for o in p.operators for name in (*filter(None, o.inputs), *o.outputs)}
        self.add_pass(p)
        self.edits += 1

    def add_pass(self, p: Pass) -> None:
        """Add a pass whose operators the net has. Its heads are inputs, also those that no operator reads."""
        heads = dict.fromkeys(head for _, head in p.heads if head is not None and head not in self.known)
        self.arguments += tuple(map(Blob, heads))
        self.known |= {*heads}
        self.passes += p,

    def complete_pass(self) -> None:
        """If the last operators are all of get_backward_pass, they are a pass of this net."""
        found = completed_pass(self.operators)
        if found is None: return
        self.add_pass(found)
        self.given -= {name for o in found.operators for name in o.outputs if name not in found.whole}
        self.given |= gradient_names(found.gradients)

    def refuse_breaking(self, operators: Sequence[Operator], who: str) -> None:
        """Raise RuntimeError if the operators of the net became these and a pass that writes .grad would be broken: its
        operators, run one by one, would not write there."""
        now, new = tuple(self.operators), tuple(operators)
        for p in self.passes:
            if p.kind != "backward" or (at := find(now, p)) is None or find(new, p) is not None: continue
            raise RuntimeError(f"{who}: the backward pass that begins at operator {at} of net {cut(self.name)} writes "
                               f".grad, and is for all operators before it as they are; change the function and "
                               f"capture it again, or change the net before add_gradient_operators()")


class StateHolder:
    """The base of Net, which has a NetState."""

    def __init__(self, name: str = "net"):
        self._state = NetState(name)


# The state of a net, for the modules of this package. (Each run asks for it, and an attrgetter takes half the time of a
# function.)
state_of: Callable[[StateHolder], NetState] = attrgetter("_state")
