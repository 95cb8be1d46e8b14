"""autograd.Function at the levels of cg.func.

Its forward is Python code, of which nothing is known, and its backward may be another derivative than that of forward.
So lanes run one by one, and a tangent follows from backward: the gradient that it computes is linear in the gradient of
the result (func/forward)."""

import warnings

from cygrad.core.errors import PerformanceWarning, described
from cygrad.core.graph.lifts import depth
from cygrad.core.graph.tensor import Tensor
from cygrad.core.late_bound import bind
from cygrad.func.forward import by_double_reverse
from cygrad.func.lanes import warned
from cygrad.func.levels import below, state
from cygrad.ops.shapes.join import stack


def function_at_levels(cls, inputs):
    """cls.apply(*inputs), if at least one input has a lift at a level that operations see."""
    top = next(level for level in reversed(state.levels[:depth()])
               if any(isinstance(x, Tensor) and level.has(x) for x in inputs))
    lifted = [top.value(x) if isinstance(x, Tensor) else None for x in inputs]
    apply = for_lanes if top.lanes else with_tangents
    with below(top): return apply(cls, inputs, lifted, top)


def for_lanes(cls, inputs, lanes, level):
    """The outputs, lane by lane."""
    if cls.__name__ not in warned:
        warned.add(cls.__name__)
        warnings.warn(f"vmap: {cls.__name__}, an autograd.Function, runs lane by lane", PerformanceWarning, 2)
    results = [cls.apply(*[x if of is None else of[k] for x, of in zip(inputs, lanes, strict=True)])
               for k in range(level.lanes)]
    if not isinstance(results[0], tuple): return joined(cls, results, level)
    return tuple([joined(cls, parts, level) for parts in zip(*results, strict=True)])


def joined(cls, parts, level):
    """One output of all lanes."""
    if isinstance(parts[0], Tensor): return level.stand_in(stack(list(parts)))
    if any(part != parts[0] for part in parts):
        raise RuntimeError(f"vmap: {cls.__name__}.forward returned {described(parts[0])} for one slice and another "
                           f"value for others; return a tensor")
    return parts[0]


def with_tangents(cls, inputs, tangents, level):
    """The outputs, with tangents at the level."""
    y = cls.apply(*inputs)
    results = y if isinstance(y, tuple) else (y,)
    for i, x in enumerate(inputs):
        if any(z is x for z in results if isinstance(x, Tensor)):
            raise RuntimeError(f"jvp: {cls.__name__}.forward wrote in place to input {i} of shape {x.shape}, whose "
                               f"tangent would not follow; write to a copy()")
    for z, tangent in zip(results, by_double_reverse(cls.apply, inputs, tangents, results), strict=True):
        if tangent is not None: level.give(z, tangent)
    return y


bind(function_at_levels=function_at_levels)
