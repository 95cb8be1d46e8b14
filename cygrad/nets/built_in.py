"""The types of operators that a net has beside the rows of the table, and running an operator of any type."""

from collections.abc import Callable, Mapping
from typing import Any

import cygrad.autograd as autograd
from cygrad.autograd.variables import remove_grad
from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator
from cygrad.core.execute.inplace import writes_into
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.planning import is_tracing, item
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import head_ones, zeros, zeros_like
from cygrad.core.interop.numpy import asarray
from cygrad.nets.definition import DENSE, NEGATE, PYTHON, STOP, ZERO, Operator
from cygrad.nets.gradients import ADD_ROWS, DEDUPLICATE, MOVE, ONES, RANDOM, SOLVER, ZERO_GRAD, ZEROS, ZEROS_LIKE
from cygrad.nets.versions import DROPOUT
from cygrad.ops.calls import call, results
from cygrad.ops.layers.gradient import scale_gradient
from cygrad.ops.layers.random import dropout
from cygrad.ops.layers.running import move_statistics
from cygrad.ops.table import ROWS

REQUIRED = {"zeros": ("shape", "dtype"), "random": ("law", "shape", "numbers", "dtype"),
            "solver": ("solver", "method", "arguments"), "move_running": ("factor",)}
DEFAULT = "default"         # the name of the default generator
LAWS = {"normal": 2, "uniform": 2, "bernoulli": 1}          # the numbers that each takes


def forward(operator: Operator, inputs: list[Any], objects: Mapping[str, Any], writes: bool = True) -> Any:
    """The outputs of an operator, by eager code: a tensor, or a tuple. `objects` are the solvers and generators that
    its arguments name. Without `writes`, the result of an operator in place goes to new memory."""
    type, arguments = operator.type, dict(operator.arguments)
    if not arguments and type in ROWS and type not in OPERATORS: return wanted(type, call(type, inputs, arguments))
    arguments.pop("recorded", None)                 # (lowering.py does not record it)
    if "generator" in arguments: arguments["generator"] = named(objects, arguments["generator"])
    if arguments.pop("inplace", False) and writes:
        out = operator.inputs.index(operator.outputs[0])
        if not is_tracing():                        # (a formula may save the old value, so it reads a copy)
            old = apart(inputs, inputs[out]) if autograd.is_recording() else inputs
            return inputs[out].copy_(call(type, old, arguments))
        with writes_into(inputs[out]): call(type, inputs, arguments)
        return inputs[out]
    if type == PYTHON and operator.function is not None:
        made = operator.function[0](*inputs)
        if made is None: return ()                  # (no outputs)
        return tuple(asarray(y) for y in made) if isinstance(made, (tuple, list)) else asarray(made)
    if type in OPERATORS:
        for name in REQUIRED.get(type, ()):
            if name not in arguments: raise TypeError(f"{type}: the argument {name!r} is missing")
        made = OPERATORS[type](inputs, arguments, objects)
        return made[:len(operator.outputs)] if type == SOLVER else made
    if type not in ROWS:
        raise RuntimeError(f"no row of the table of operators has the type {described(type)}, so it cannot run; the "
                           f"types are the names of the table, and net.create_python_operator() adds a function")
    if "generator" in arguments:                    # (attention; its row takes the state of a generator instead)
        return ROWS[type].function(*inputs, seed=arguments.pop("generator"), **arguments)
    return wanted(type, call(type, inputs, arguments))


def wanted(type: str, made: Any) -> Any:
    """The results of a row, without those that are for its formula."""
    n = results(type) if isinstance(made, tuple) else None
    return made[:n] if n else made


def apart(inputs: list[Any], target: Any) -> list[Any]:
    """The inputs, with copies in place of those that share the memory of `target`."""
    buffer = item(target)[7]
    return [x.copy() if isinstance(x, Tensor) and item(x)[7] == buffer else x for x in inputs]


def named(objects: Mapping[str, Any], name: Any) -> Any:
    """The solver or generator of a name."""
    if name == DEFAULT: return default_generator
    if name not in objects:
        raise RuntimeError(f"the net has no {described(name)}: a file of a net holds no solvers and generators; "
                           f"capture the function again")
    return objects[name]


def add_rows(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """The sum of a dense gradient and the rows of a sparse one, in either order."""
    first = inputs[0].dtype.kind == "f"
    dense, (indices, values) = inputs[0 if first else 2], inputs[1:] if first else inputs[:2]
    rows: Any = GradientSlice                      # (its stub has no constructor)
    return dense + rows(indices, values, dense.shape).to_dense()


def deduplicate(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """The indices and the values of a GradientSlice, each index once."""
    rows: Any = GradientSlice
    found = rows(*inputs).deduplicate(arguments.get("op", "sum"))
    return found.indices, found.values


def zero_grad(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    if "solver" in arguments: named(objects, arguments["solver"]).zero_grad()       # its parameters are those of now
    for x in () if "solver" in arguments else inputs:
        if arguments.get("to") == "none": x.grad = None
        elif arguments.get("to") == "removed": remove_grad(x)
        else: x.zero_grad()
    return ()


def move(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    move_statistics(inputs[0], inputs[1], inputs[2], arguments["factor"])
    return inputs[0], inputs[1]


def make_zeros(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """Zeros, with the size of an axis of the input, if there is one, in place of -1."""
    shape = arguments["shape"]
    if inputs:
        axis, sizes = arguments.get("axis", 0), inputs[0].shape
        if type(axis) is not int or not 0 <= axis < len(sizes):
            raise ValueError(f"zeros: axis must be one of the {len(sizes)} axes of the input, got {described(axis)}")
        shape = tuple(sizes[axis] if n == -1 else n for n in shape)
    return zeros(shape, dtype=arguments["dtype"])


def random(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    law, numbers = arguments["law"], arguments["numbers"]
    if LAWS.get(law) != len(numbers):
        raise ValueError(f"random: law must be one of {', '.join(LAWS)}, with its numbers, got {described(law)} and "
                         f"{described(numbers)}")
    draw = getattr(arguments.get("generator", default_generator), law)
    return draw(arguments["shape"], *numbers, dtype=arguments["dtype"])


def drop(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """Dropout in the mode of the net; a captured one, which names its generator, was in train mode."""
    if "generator" not in arguments: return dropout(*inputs, **arguments)
    with autograd.train_mode(): return dropout(*inputs, **arguments)


def solve(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """Call a method of a solver. The outputs are the inputs that it changes, which come first. (Others are gradients,
    without those that are rows.)"""
    getattr(named(objects, arguments["solver"]), METHODS[arguments["method"]])(*arguments["arguments"])
    return inputs


METHODS = {name: name for name in ("update", "weight_decay", "clip_grad_by_norm", "clip_grad_by_global_norm",
                                   "clip_grad_by_value", "scale_grad", "_drop_decay")}
OPERATORS: dict[str, Callable[[list[Any], Any, Any], Any]] = {
    ONES: lambda inputs, arguments, objects: head_ones(inputs[0]),
    ZEROS_LIKE: lambda inputs, arguments, objects: zeros_like(inputs[0]),
    STOP: lambda inputs, arguments, objects: inputs[0].detach(),
    ZERO: lambda inputs, arguments, objects: (),
    NEGATE: lambda inputs, arguments, objects: scale_gradient(inputs[0], -1.0),
    DENSE: lambda inputs, arguments, objects: scale_gradient(inputs[0], 1.0),
    ZEROS: make_zeros, ADD_ROWS: add_rows, DEDUPLICATE: deduplicate, ZERO_GRAD: zero_grad, MOVE: move, RANDOM: random,
    DROPOUT: drop, SOLVER: solve,
}
