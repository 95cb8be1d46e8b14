"""The types of operators that a net has beside the rows of the table, and running an operator of any type."""

from collections.abc import Callable, Mapping
from typing import Any

import cygrad.autograd as autograd
from cygrad.core.errors import described
from cygrad.core.execute.generator import default_generator
from cygrad.core.execute.inplace import writes_into
from cygrad.core.graph.gradient_slice import GradientSlice
from cygrad.core.graph.planning import is_tracing
from cygrad.core.interop.creation import ones_like, zeros
from cygrad.core.interop.numpy import asarray
from cygrad.graph.definition import PYTHON, Operator
from cygrad.graph.gradients import (
    ADD_ROWS, DENSE, DROPOUT, MOVE, NEGATE, ONES, RANDOM, SOLVER, STOP, WRITE, ZERO, ZERO_GRAD, ZEROS,
)
from cygrad.ops.calls import call
from cygrad.ops.gradient import scale_gradient
from cygrad.ops.random import dropout
from cygrad.ops.running import move_statistics
from cygrad.ops.table import ROWS

# Types that have further outputs for their formula if they are recorded: how many results they have.
RESULTS = {"lstm_layer": 3, "gru_layer": 2, "rnn_layer": 2, "rnn_relu_layer": 2}
LAWS = {"normal": 2, "uniform": 2, "bernoulli": 1}          # the numbers that each takes


def forward(operator: Operator, inputs: list[Any], objects: Mapping[str, Any]) -> Any:
    """The outputs of an operator, by eager code: a tensor, or a tuple. `objects` are the solvers and generators that
    its arguments name."""
    type, arguments = operator.type, dict(operator.arguments)
    if "generator" in arguments: arguments["generator"] = named(objects, arguments["generator"]) or default_generator
    if arguments.pop("inplace", False):
        out = operator.inputs.index(operator.outputs[0])
        if not is_tracing(): return inputs[out].copy_(call(type, inputs, arguments))
        with writes_into(inputs[out]): call(type, inputs, arguments)
        return inputs[out]
    if type == PYTHON and operator.function is not None:
        made = operator.function[0](*inputs)
        if made is None: return ()                  # (no outputs)
        return tuple(asarray(y) for y in made) if isinstance(made, (tuple, list)) else asarray(made)
    if type in OPERATORS: return OPERATORS[type](inputs, arguments, objects)
    if type not in ROWS:
        raise RuntimeError(f"no row of the table of operators has the type {described(type)}, so it cannot run; the "
                           f"types are the names of the table, and net.create_python_operator() adds a function")
    if "generator" in arguments:                    # (attention; its row takes the state of a generator instead)
        return ROWS[type].function(*inputs, seed=arguments.pop("generator"), **arguments)
    made = call(type, inputs, arguments)
    return made[:RESULTS[type]] if type in RESULTS else made


def named(objects: Mapping[str, Any], name: Any) -> Any:
    """The solver or generator of a name."""
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


def write(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """The first input, in whose memory the elements of the second are now."""
    return inputs[0].copy_(inputs[1])


def zero_grad(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    for x in inputs: x.zero_grad()
    return ()


def move(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    move_statistics(inputs[0], inputs[1], inputs[2], arguments["factor"])
    return inputs[0], inputs[1]


def random(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    law, numbers = arguments["law"], arguments["numbers"]
    if LAWS.get(law) != len(numbers):
        raise ValueError(f"random: law must be one of {', '.join(LAWS)}, with its numbers, got {described(law)} and "
                         f"{described(numbers)}")
    return getattr(arguments["generator"], law)(arguments["shape"], *numbers, dtype=arguments["dtype"])


def drop(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """Dropout in the mode of the net; a captured one, which names its generator, was in train mode."""
    if "generator" not in arguments: return dropout(*inputs, **arguments)
    with autograd.train_mode(): return dropout(*inputs, **arguments)


def solve(inputs: list[Any], arguments: Any, objects: Any) -> Any:
    """Call a method of a solver. The outputs are the inputs that it changes, which come first."""
    getattr(named(objects, arguments["solver"]), METHODS[arguments["method"]])(*arguments["arguments"])
    return inputs[:len(inputs) // 2] if arguments["method"] == "update" else inputs


METHODS = {name: name for name in ("update", "weight_decay", "clip_grad_by_norm", "clip_grad_by_global_norm",
                                   "clip_grad_by_value", "scale_grad")}
OPERATORS: dict[str, Callable[[list[Any], Any, Any], Any]] = {
    ONES: lambda inputs, arguments, objects: ones_like(inputs[0]),
    STOP: lambda inputs, arguments, objects: inputs[0].detach(),
    ZERO: lambda inputs, arguments, objects: (),
    NEGATE: lambda inputs, arguments, objects: scale_gradient(inputs[0], -1.0),
    DENSE: lambda inputs, arguments, objects: scale_gradient(inputs[0], 1.0),
    ZEROS: lambda inputs, arguments, objects: zeros(arguments["shape"], dtype=arguments["dtype"]),
    ADD_ROWS: add_rows, WRITE: write, ZERO_GRAD: zero_grad, MOVE: move, RANDOM: random, DROPOUT: drop, SOLVER: solve,
}
