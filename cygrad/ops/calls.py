"""Operator calls as data: a type (the name of a row of the table), the inputs and the arguments.

Nets store operations in this form, and files of nets hold it as text. call() runs the row's function, which checks
everything, so a call may come from a file of unknown origin. arguments_of() is the way back, from an execution."""

from inspect import Parameter, signature
from types import NoneType
from typing import TYPE_CHECKING

from cygrad.core.errors import described
from cygrad.core.graph.attributes import MAX_DEPTH, plain
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.table import ROWS

if TYPE_CHECKING:
    def cache(user_function, /): return user_function       # (functools hides the parameters)
else: from functools import cache


@cache
def operands(type):
    """The names of the tensors that the row `type` takes, in the order of its operator. A name ends with "?" if the
    operand may be missing, and begins with "*" or "[]" if it stands for all inputs that remain."""
    operator = row_of(type).operator
    return tuple(operator.functions.get(type, operator.operands).split())


@cache
def bare_operands(type):
    """The same names without marks; None if one stands for a list."""
    names = operands(type)
    return None if any(name[0] in "*[" for name in names) else tuple([name.strip("?") for name in names])


@cache
def results(type):
    """How many results the row `type` has, if its function runs the operator of the row alone; else None. The operator
    can give more, for its formula."""
    operator = row_of(type).operator
    return len(operator.outputs.split()) if operator.row == type else None


@cache
def operand_names(names, n):
    """The name of the operand that each of `n` inputs is, of operands() with these names; "" for more than these."""
    names = list(names)
    at = next((i for i, name in enumerate(names) if name[0] in "*["), None)
    if at is not None: names[at:at + 1] = [names[at]] * (n - len(names) + 1)
    return tuple([name.strip("?*[]") for name in (*names, *[""] * (n - len(names)))[:n]])


def kept(type, inputs, arguments, wanted):
    """What a call of the row `type` keeps for the gradients of the inputs `wanted`, which are positions: (positions of
    inputs, numbers of outputs), as Operator.kept. All inputs if the row does not take these inputs and arguments."""
    given = operand_names(operands(type), len(inputs))
    if None in inputs:
        given = [name if x is not None else None for name, x in zip(given, inputs, strict=True)]
        while given and given[-1] is None: given.pop()
    if not arguments: return kept_of(type, tuple(given), (), tuple(wanted))
    return kept_of.__wrapped__(type, tuple(given), arguments, wanted)


@cache
def kept_of(type, given, arguments, wanted):
    """As kept(), of operands with these names."""
    try: return row_of(type).operator.kept(given, dict(arguments), wanted)
    except (LookupError, TypeError, ValueError): return [i for i, name in enumerate(given) if name is not None], []


def row_of(type):
    """The row of that name. Raises TypeError or ValueError if there is none."""
    if not isinstance(type, str): raise TypeError(f"call: the type must be a string, got {described(type)}")
    if type in ROWS: return ROWS[type]
    raise ValueError(f"call: there is no operator {described(type)}; the types are the names of the table of operators")


@cache
def parameters(type):
    return signature(ROWS[type].function).parameters


def call(type, inputs, arguments):
    """Call the function of the row `type`.

    inputs       tensors and Python numbers in the order of operands(type), None for an operand that is missing. Missing
                 ones at the end can be left out, except after a list
    arguments    a dict of the other arguments by name; plain values (attributes.py)

    Raises ValueError for an unknown type or another number of inputs, TypeError for other inputs or arguments than the
    function has, and the errors of the function."""
    row = row_of(type)
    if arguments == {} and isinstance(inputs, (list, tuple)) and len(inputs) in plain_counts(type):
        if all_tensors(inputs): return row.function(**dict(zip(bare_operands(type), inputs, strict=False)))
    given = bind(type, inputs)
    if not isinstance(arguments, dict):
        raise TypeError(f"{type}: the arguments must be a dict, got {described(arguments)}")
    if arguments: check_names(type, arguments)
    for name, value in arguments.items(): given[name] = plain(value)
    for name in arguments_taken(type)[0]:
        if name not in given: raise TypeError(f"{type}: the argument {name!r} is missing")
    return run(type, given)


def all_tensors(inputs):
    for x in inputs:
        if not isinstance(x, Tensor): return False
    return True


@cache
def plain_counts(type):
    """With how many tensors and no arguments the function of the row `type` can be called by name."""
    if bare_operands(type) is None or by_position(type) or arguments_taken(type)[0]: return ()
    return tuple([n for n in range(len(operands(type)) + 1) if fits(operands(type), n)])


@cache
def other_parameters(type):
    """The parameters that are no operands, by name."""
    names = {name.strip("?*[]") for name in operands(type)}
    return {name: p for name, p in parameters(type).items() if name not in names}


def check_names(type, arguments):
    """Raise TypeError for an argument that the row `type` does not have."""
    known = other_parameters(type)
    for name in arguments:
        if name in known: continue
        names = [name.strip("?*[]") for name in operands(type)]
        if Parameter.VAR_KEYWORD not in [p.kind for p in known.values()] or name in names:
            raise TypeError(f"{type}: there is no argument {described(name)}; {listed('the arguments are', known)}")


@cache
def by_position(type):
    """The parameters that are passed by position: those before *args, and it; none without it."""
    kinds = [p.kind for p in parameters(type).values()]
    return [*parameters(type)][:kinds.index(Parameter.VAR_POSITIONAL) + 1 if Parameter.VAR_POSITIONAL in kinds else 0]


def run(type, given):
    """The function with its arguments by name. Those before *args are passed by position."""
    if not by_position(type): return ROWS[type].function(**given)
    *before, args = by_position(type)
    rest = given.pop(args, ())
    if not isinstance(rest, tuple): rest = rest,
    return ROWS[type].function(*[given.pop(name) for name in before], *rest, **given)


def bind(type, inputs):
    """The operands by name."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"{type}: the inputs must be a list, got {described(inputs)}")
    check_count(type, len(inputs))
    bare = bare_operands(type)
    if bare is not None and all(isinstance(x, Tensor) for x in inputs): return dict(zip(bare, inputs, strict=False))
    names, bound = operands(type), {}
    at = next((i for i, name in enumerate(names) if name[0] in "*["), len(names))
    if at < len(names):
        end = len(inputs) - (len(names) - at - 1)   # (the operands after a list)
        rest = inputs[at:end]
        inputs = [*inputs[:at], tuple(rest) if names[at][0] == "*" else list(rest), *inputs[end:]]
    for name, x in zip(names, inputs, strict=False):
        bare = name.strip("?*[]")
        for value in x if name[0] in "*[" else (x,):
            if value is None and name[-1] == "?" or isinstance(value, (Tensor, bool, int, float)): continue
            raise TypeError(f"{type}: {bare} must be a tensor or a Python number, got {described(value)}")
        bound[bare] = x
    return bound


@cache
def fits(names, n):
    """Whether `n` inputs can be the operands of these names."""
    rest = [name for name in names if name[0] in "*["]
    if not rest: least = len([name for name in names if name[-1] != "?"])
    else: least = len(names) if names[-1] not in rest else len(names) - 1
    return n >= least and (bool(rest) or n <= len(names))


def check_count(type, n):
    """Raise ValueError unless the row `type` takes `n` inputs."""
    if fits(operands(type), n): return
    raise ValueError(f"{type}: got {n} input{'s' * (n != 1)}; {listed('wanted', in_words(operands(type)))}")


@cache
def arguments_taken(type):
    """The arguments that the row `type` needs, and the others, None for any."""
    known = other_parameters(type)
    needed = [name for name, p in known.items() if p.default is p.empty and p.kind not in (
        p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if Parameter.VAR_KEYWORD in [p.kind for p in known.values()]: return tuple(needed), None
    return tuple(needed), tuple([name for name in known if name not in needed])


def in_words(names):
    """Operands for people."""
    return [f"{name[:-1]} (optional)" if name[-1] == "?" else f"any number of {name.strip('*[]')}"
            if name[0] in "*[" else name for name in names]


def described_row(type):
    """The operands of a row and its other arguments with their defaults, in words."""
    known = other_parameters(type)
    lines = f"Inputs: {', '.join(in_words(operands(type))) or 'none'}."
    shown = [name if p.default is p.empty else f"{name}={p.default!r}" for name, p in known.items()]
    return f"{lines} Arguments: {', '.join(shown) or 'none'}."


def listed(start, names):
    return f"{start} {', '.join(names)}" if names else "it has none"


def arguments_of(operator, attributes, n_inputs):
    """(type, arguments) of an execution of `operator` with `attributes` (or None) and `n_inputs` operands: the name of
    a row, and the arguments with which call() executes the same, in the order of the function. Raises ValueError for an
    operator without a row, or another number of operands than it takes."""
    type, given = operator.as_row(attributes)
    if not is_of_row(operator, type):
        raise ValueError(f"arguments_of: the operator {operator.name} is not in the table of operators, so no net can "
                         f"name it")
    check_count(type, n_inputs)
    if not given: return type, {}
    return type, {name: plain(given[name]) for name in parameters(type) if name in given}


@cache
def is_of_row(operator, type):
    """Whether the row `type` exists and its module has the operator."""
    return type in ROWS and operator in ROWS[type].module.OPERATORS.values()


# ---- arguments as text -----------------------------------------------------------------------------------------------

def encode(arguments):
    """The arguments as an object that JSON holds without loss: tuples become lists, and a slice, `...` and a float that
    is no number become objects, such as {"slice": [0, null, 2]}, {"ellipsis": null} and {"float": "-inf"}."""
    return {name: encoded(plain(value)) for name, value in arguments.items()}


def encoded(value):
    if isinstance(value, tuple): return [encoded(v) for v in value]
    if isinstance(value, slice): return {"slice": [encoded(v) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis: return {"ellipsis": None}
    if isinstance(value, float) and not abs(value) < float("inf"): return {"float": repr(value)}
    return value


def decode(json):
    """The arguments from what encode() returned, read from JSON. Raises ValueError for anything that it never
    returns."""
    if type(json) is not dict or any(type(name) is not str or not name.isidentifier() for name in json):
        raise ValueError(f"decode: the arguments must be a JSON object whose names are identifiers, got {shown(json)}")
    return {name: decoded(name, value, 0) for name, value in json.items()}


def decoded(name, value, depth):
    if value is None or type(value) in (bool, int, str): return value
    if type(value) is float and abs(value) < float("inf"): return value
    if type(value) is list and depth < MAX_DEPTH: return tuple([decoded(name, v, depth + 1) for v in value])
    if type(value) is dict and len(value) == 1:
        (kind, inner), = value.items()
        if kind == "ellipsis" and inner is None: return Ellipsis
        if kind == "float" and type(inner) is str and inner in ("nan", "inf", "-inf"): return float(inner)
        if kind == "slice" and type(inner) is list and len(inner) == 3 and {*map(type, inner)} <= {int, NoneType}:
            return slice(*inner)
    raise ValueError(f"decode: the argument {name!r} is {shown(value)}; wanted null, true, false, a number, a string, "
                     f"a list of these of at most {MAX_DEPTH} levels, or an object that encode() makes")


def shown(value):
    """A description that does not descend into a nested value."""
    if type(value) in (list, dict): return f"a {type(value).__name__} of {len(value)} values"
    return described(value)
