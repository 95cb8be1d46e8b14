"""Operators of a net as data: names of blobs, arguments that a text file can hold, and how they are written as text."""

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from cygrad.core.errors import cut, described

MAX_NAME = 1000             # characters of a name
MAX_DEPTH = 16              # tuples inside each other in an argument
INTEGERS = -1 << 63, (1 << 64) - 1      # what int64 or uint64 can hold

# Control characters, separators of lines, marks that reverse text, halves of surrogate pairs: not in a line of text or
# in XML.
UNPRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
PLAIN = re.compile(r"[^\s,()='\"#]+")   # a name that is printed without quotes
PYTHON = "python"           # the type of operators that call Python functions
STOP, ZERO, NEGATE, DENSE = "stop_gradient", "zero_gradient", "negate_gradient", "ensure_dense"
IF, WHILE = "If", "While"   # the types of operators that have nets as arguments (subnets.py)
NETS_OF = {IF: ("then", "otherwise"), WHILE: ("condition", "body")}     # the names of these arguments
ALIASES = {"StopGradient": STOP, "ZeroGradient": ZERO, "NegateGradient": NEGATE, "EnsureDense": DENSE}
FIELDS = "type", "inputs", "outputs", "arguments", "name", "is_gradient", "function", "of"   # an Operator has them

NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})

Names = str | list[str] | tuple[str, ...]
Functions = tuple[Callable[..., Any], Callable[..., Any] | None]


class Blob(str):
    """The name of a blob: a str that functions of a net return and accept. It knows nothing of its net. Raises
    TypeError or ValueError for what cannot be a name."""

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        return str.__new__(cls, check_name(name, "Blob"))


def made_blob(name: str) -> Blob:
    """A name that was made from names that were checked."""
    return str.__new__(Blob, name)


class GradientSlice(NamedTuple):
    """The names of the two blobs of a row-sparse gradient: the indices of rows, and the rows."""

    indices: str
    values: str


def check_name(name: Any, who: str, what: str = "the name of a blob") -> Blob:
    """`name` as a Blob. Raises TypeError or ValueError, which say that `who` needs it."""
    if type(name) is Blob: return name
    if not isinstance(name, str):
        raise TypeError(f"{who}: {what} must be a str, got {described(name)}")
    if not name or name.strip() != name or UNPRINTED.search(name) or len(name) > MAX_NAME:
        raise ValueError(f"{who}: {what} must have from 1 to {MAX_NAME:,} characters, no control characters and no "
                         f"space at its ends, got {described(str(name))}")
    return made_blob(name)


def check_type(type: Any, who: str) -> str:
    """The type of an operator, by its first name."""
    plain = isinstance(type, str) and len(type) <= MAX_NAME and type.isascii() and type.isidentifier()
    kind = str(type if plain else check_name(type, who, "the type"))
    return ALIASES.get(kind, kind)


def check_names(names: Any, who: str, what: str) -> tuple[Blob, ...]:
    """One name, or a list or tuple of names, as a tuple of Blobs."""
    if isinstance(names, str): names = names,
    if not isinstance(names, list | tuple):
        raise TypeError(f"{who}: {what} must be a name or a list of names, got {described(names)}")
    return tuple([name if type(name) is Blob else check_name(name, who, f"each of {what}") for name in names])


def check_integer(value: int, who: str) -> int:
    """`value`, an int, if it fits 64 bits."""
    if not INTEGERS[0] <= value <= INTEGERS[1]:
        raise ValueError(f"{who} must fit int64 or uint64, got {described(value)}")
    return value


class NetArgument:
    """The base of a net as the value of an argument (subnets.py). It has as many inputs as the operator."""

    __slots__ = ()

    name: str
    inputs: tuple[Blob, ...]
    outputs: tuple[Blob, ...]

    def gradients(self, outputs: tuple[bool, ...], inputs: tuple[bool, ...], who: str) -> Any:
        """A net that computes the gradients of some inputs from those of some outputs."""
        raise NotImplementedError


def check_value(value: Any, who: str, depth: int = 0) -> Any:
    """The value of an argument, with lists as tuples, dtypes as their names and NumPy numbers as Python's. `who` begins
    the messages."""
    if value is None or value is Ellipsis or isinstance(value, bool): return value
    if isinstance(value, NetArgument) and depth == 0: return value
    if isinstance(value, np.dtype): return value.name
    if isinstance(value, np.bool_ | np.integer | np.floating): value = value.item()
    if isinstance(value, bool | float): return float(value) if isinstance(value, float) else value
    if isinstance(value, int): return check_integer(int(value), who)
    if isinstance(value, str):
        if re.search("[\ud800-\udfff]", value):
            raise ValueError(f"{who} must be valid Unicode, got {described(str(value))}")
        return str(value)
    if isinstance(value, slice): return check_slice(value, who)
    if isinstance(value, list | tuple):
        if depth == MAX_DEPTH:
            raise ValueError(f"{who} must have at most {MAX_DEPTH} tuples inside each other, got more")
        return tuple(check_value(v, who, depth + 1) for v in value)
    raise TypeError(f"{who} must be None, a bool, an int, a float, a str, a slice, Ellipsis or a tuple of these, got "
                    f"{described(value)}")


def check_slice(value: slice, who: str) -> slice:
    """A slice of ints and None."""
    parts = []
    for part in (value.start, value.stop, value.step):
        if part is not None and (isinstance(part, bool) or not hasattr(part, "__index__")):
            raise TypeError(f"{who} must be a slice of ints and None, got {described(value)}")
        parts.append(None if part is None else check_integer(part.__index__(), who))
    return slice(*parts)


def check_arguments(arguments: Any, who: str) -> dict[str, Any]:
    """The arguments of an operator, by their keywords."""
    if arguments is None or type(arguments) is dict and not arguments: return {}
    if not isinstance(arguments, Mapping):
        raise TypeError(f"{who}: the arguments must be a dict, got {described(arguments)}")
    for key in arguments:
        if not isinstance(key, str) or not key.isidentifier() or len(key) > MAX_NAME:
            raise ValueError(f"{who}: the name of an argument must be an identifier, such as 'axis', got "
                             f"{described(key)}")
    return {str(key): check_value(value, f"{who}: the argument {cut(key)}") for key, value in arguments.items()}


class Operator:
    """An operator of a net: what runs, on which blobs, with which arguments. It cannot be changed; `replace` makes
    another one.

    type         the name of a row of the operator table, or of an operator that is unknown yet; StopGradient,
                 ZeroGradient, NegateGradient and EnsureDense are other names of stop_gradient and so on
    inputs       the names of the blobs that it reads; None for an optional one that is absent
    outputs      the names of the blobs that it writes
    arguments    the other arguments by keyword: None, bool, int, float, str, slice, Ellipsis and tuples of these; of an
                 If or a While also nets
    name         a label, or ""
    is_gradient  whether a backward pass made it
    function     of type "python" the functions (f, grad_f), of all others None
    of           the operator whose gradient this one computes, or None

    A list becomes a tuple, a dtype its name and a NumPy number a Python number. Operators are equal if all of these
    are, 1, 1.0 and True being different. Raises TypeError or ValueError for anything else."""

    __slots__ = *FIELDS, "begins", "writes"

    type: str
    inputs: tuple[Blob | None, ...]
    outputs: tuple[Blob, ...]
    arguments: Mapping[str, Any]
    name: str
    is_gradient: bool
    function: Functions | None
    of: "Operator | None"
    begins: Any                     # in the first operator of a pass: (heads, number of operators); else None
    writes: Any                     # of a gradient operator as gradients.py made it: its results_of(); else None

    def __init__(self, type: str, inputs: str | Iterable[str | None] = (), outputs: str | Iterable[str] = (),
                 arguments: Mapping[str, Any] | None = None, name: str = "", is_gradient: bool = False,
                 function: Functions | None = None, of: "Operator | None" = None):
        kind = check_type(type, "Operator")
        who = f"Operator {cut(kind)}"
        for key in NETS_OF.get(kind, ()):
            if isinstance(arguments, Mapping) and hasattr(arguments.get(key), "add_operator"):
                raise TypeError(f"{who}: {key} must be the net of an operator, got a Net, which can change; add the "
                                f"operator with net.add_operator({kind!r}, inputs, outputs, {key}=net)")
        if isinstance(inputs, str): inputs = inputs,
        if not isinstance(inputs, list | tuple):
            raise TypeError(f"{who}: the inputs must be a name or a list of names, got {described(inputs)}")
        reads = tuple([i if i is None else check_name(i, who, "each of the inputs") for i in inputs])
        writes = check_names(outputs, who, "the outputs")
        if len(writes) > 1 and len({*writes}) < len(writes):
            raise ValueError(f"{who}: the outputs must have different names, got {described(list(map(str, writes)))}")
        if name != "": check_name(name, who, "its label")
        if not isinstance(is_gradient, bool):
            raise TypeError(f"{who}: is_gradient must be a bool, got {described(is_gradient)}")
        if of is not None and not isinstance(of, Operator):
            raise TypeError(f"{who}: of must be an Operator or None, got {described(of)}")
        values = (kind, reads, writes, read_only(check_arguments(arguments, who)), str(name), is_gradient,
                  check_function(kind, function), of, None, None)
        for write, value in zip(WRITE_SLOT, values, strict=True): write(self, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an Operator cannot be changed; make another one with replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("an Operator cannot be changed; make another one with replace()")

    def _values(self) -> tuple[Any, ...]:
        return (self.type, self.inputs, self.outputs, dict(self.arguments), self.name, self.is_gradient, self.function,
                self.of)

    def replace(self, **changes: Any) -> "Operator":
        """An operator with other values for the attributes in `changes`. Raises TypeError for other names."""
        return Operator(**{**dict(zip(FIELDS, self._values(), strict=True)), **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operator): return NotImplemented
        return self is other or key_of(self) == key_of(other)

    def __hash__(self) -> int:
        return hash((self.type, self.inputs, self.outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        return Operator, self._values()

    def __repr__(self) -> str:
        outputs, call = shown_outputs(self), shown_call(self)
        return f"{outputs} = {call}" if outputs else call


WRITE_SLOT = [vars(Operator)[slot].__set__ for slot in Operator.__slots__]      # (faster than object.__setattr__)


def read_only(arguments: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(arguments) if arguments else NO_ARGUMENTS


def made_operator(kind: str, inputs: tuple[Any, ...], outputs: tuple[Any, ...], name: str) -> Operator:
    """An operator without arguments, whose type and names were checked."""
    made: Operator = object.__new__(Operator)
    values = kind, inputs, outputs, NO_ARGUMENTS, name, False, None, None, None, None
    for write, value in zip(WRITE_SLOT, values, strict=True): write(made, value)
    return made


def gradient_operator(kind: str, inputs: Iterable[Any], outputs: tuple[Any, ...], arguments: dict[str, Any],
                      of: Operator, writes: Any) -> Operator:
    """The gradient operator of `of`, with fresh names for its outputs. Its arguments were checked as those of `of`."""
    made: Operator = object.__new__(Operator)
    reads = tuple([i if i is None or type(i) is Blob else check_name(i, f"Operator {cut(kind)}", "each of the inputs")
                   for i in inputs])
    values = kind, reads, outputs, read_only(arguments), "", True, None, of, None, writes
    for write, value in zip(WRITE_SLOT, values, strict=True): write(made, value)
    return made


def key_of(o: Operator) -> tuple[Any, ...]:
    """What makes operators equal. As text, NaN equals NaN, and 1, 1.0 and True differ."""
    arguments = {key: value if isinstance(value, NetArgument) else repr(value) for key, value in o.arguments.items()}
    return o.type, o.inputs, o.outputs, arguments, o.name, o.is_gradient, o.function


def check_function(kind: str, function: Any) -> Functions | None:
    """The functions (f, grad_f) of a Python operator."""
    if (function is None) != (kind != PYTHON):
        raise ValueError(f"Operator {cut(kind)}: an operator of type \"python\", and no other, has a function; add it "
                         f"with net.create_python_operator(f, inputs, outputs)")
    if function is None: return None
    if not isinstance(function, tuple) or len(function) != 2 or not callable(function[0]) or not (
            function[1] is None or callable(function[1])):
        raise TypeError(f"Operator python: function must be a tuple (f, grad_f) of functions, grad_f or None, got "
                        f"{described(function)}")
    return function


def function_name(f: Any) -> str:
    """The name of a function in a text."""
    name = getattr(f, "__name__", None)
    return name if isinstance(name, str) and not UNPRINTED.search(name) else type(f).__name__


def shown_name(name: str | None) -> str:
    """A name as text, in quotes if it could be mistaken for more than a name."""
    if name is None: return "None"
    return name if PLAIN.fullmatch(name) and name != "None" else repr(str(name))


def shown_outputs(operator: Operator) -> str:
    """What is left of the = in an operator's line: "y", "values, indices"."""
    return ", ".join(map(shown_name, operator.outputs))


def shown_arguments(operator: Operator) -> list[str]:
    """The arguments as text: ["stride=2", "padding=(1, 1)"]; of a Python operator, its functions."""
    found = [f"{key}={cut(repr(value))}" for key, value in operator.arguments.items()]
    if operator.function is not None:
        f, grad_f = operator.function
        found += [f"f={function_name(f)}"] + ([f"grad_f={function_name(grad_f)}"] if grad_f is not None else [])
    return found


def shown_call(operator: Operator) -> str:
    """What is right of the = in an operator's line: "conv2d(x, w, b, stride=2)"."""
    text = f"{shown_name(operator.type)}({', '.join([*map(shown_name, operator.inputs), *shown_arguments(operator)])})"
    return f"{text}  # {operator.name}" if operator.name else text


def written(operators: Iterable[Operator]) -> set[str]:
    """The names of the blobs that operators write."""
    return {str(name) for o in operators for name in o.outputs}
