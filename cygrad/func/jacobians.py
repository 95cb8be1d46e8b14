"""Jacobians, Hessians and their products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any, Literal

from cygrad.core.errors import described
from cygrad.core.graph.lifts import depth
from cygrad.core.interop.creation import eye, zeros
from cygrad.core.interop.numpy import asarray
from cygrad.func.derivatives import Recorded, floats, gradient, leaving, numbered, outputs_of, results_of
from cygrad.func.forward import jvp
from cygrad.func.mapping import vmap
from cygrad.func.trees import flatten
from cygrad.ops.shapes.rearrange import moveaxis
from cygrad.ops.shapes.shape import reshape

MODES = None, "forward", "reverse"


def units(like):
    """Tensors with one more axis, the first, that runs over all elements of all of `like`: at each place 1 in one
    element, and 0 in the others."""
    n, at, out = sum(prod(x.shape) for x in like), 0, []
    for x in like:
        out.append(reshape(eye(n, dtype=x.dtype)[:, at:at + prod(x.shape)], (n, *x.shape)))
        at += prod(x.shape)
    return out


def none_of(x):
    """No tensors like `x`, along a new first axis."""
    return zeros((0, *x.shape), dtype=x.dtype)


def split(x, like):
    """The parts of `x` along its first axis that belong to each of `like`, in their shapes."""
    out, at = [], 0
    for y in like:
        n = prod(y.shape)
        out.append(reshape(x[at:at + n], (*y.shape, *x.shape[1:])))
        at += n
    return out


def jacobian(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
             mode: Literal["forward", "reverse"] | None = None) -> Callable[..., Any]:
    """A function that returns the Jacobian of `fun`: for a result of shape s and an argument of shape t, a tensor of
    shape (*s, *t). If results or arguments are containers, so is the Jacobian: a container of the form of the results,
    with one of the form of the argument in place of each. argnums and has_aux are those of grad().

    mode: "reverse", which costs a gradient for each element of the results; "forward", which costs a tangent for each
    element of the arguments; None: the one with fewer. Both compute all of them at once. The Jacobian of a result or by
    an argument without elements has none either."""
    if mode not in MODES:
        raise ValueError(f"jacobian: mode must be \"forward\", \"reverse\" or None, got {described(mode)}")

    @wraps(fun)
    def call(*args, **kwargs):
        if mode == "forward": return forward(fun, args, kwargs, argnums, has_aux)
        p = Recorded("jacobian", fun, args, kwargs, argnums, has_aux)
        outputs, build = outputs_of("jacobian", p.value)
        inputs = [x for xs in p.inputs for x in xs]
        if mode is None and sum(x.size for x in inputs) < sum(y.size for y in outputs):
            del p
            return forward(fun, args, kwargs, argnums, has_aux)
        if any(y.size for y in outputs):
            rows = vmap(lambda heads: p.pull(outputs, heads, retain=True))(units(outputs))
        else: rows = [build([none_of(x) for x in xs]) for xs, build in zip(p.inputs, p.builds, strict=True)]
        one = not isinstance(argnums, (tuple, list))
        leaves, build_rows = flatten(rows[0] if one else tuple(rows))
        parts = zip(*[split(x, outputs) for x in leaves], strict=True)
        jacobians = build([build_rows(list(of)) for of in parts])
        return (jacobians, leaving(p.aux)) if has_aux else jacobians

    return call


def forward(fun, args, kwargs, argnums, has_aux):
    """The Jacobian in forward mode."""
    places = numbered("jacobian", argnums, len(args))
    found = [floats("jacobian", args[k], f"argument {k}") for k in places]
    inputs = [x for xs, _ in found for x in xs]
    kept = []

    def of_inputs(*xs):
        given, rest = list(args), iter(xs)
        for k, (own, build) in zip(places, found, strict=True): given[k] = build([next(rest) for _ in own])
        y, aux = results_of("jacobian", fun(*given, **kwargs), has_aux)
        outputs_of("jacobian", y)
        return y, aux

    def columns(*tangents):
        y, t, aux = jvp(of_inputs, tuple(inputs), tangents, has_aux=True)
        kept.append((y, aux))
        return t

    if any(x.size for x in inputs):
        leaves, build_y = flatten(vmap(columns)(*units(inputs)))
        y, aux = kept[0]
    else:
        y, aux = of_inputs(*inputs)
        leaves, build_y = flatten(y)
        leaves = [none_of(asarray(x)) for x in leaves]
    one = not isinstance(argnums, (tuple, list))
    out = []
    for x in leaves:                                # (all inputs, *the shape of the result)
        parts = iter(split_last(x, inputs))
        of = tuple([build([next(parts) for _ in own]) for own, build in found])
        out.append(of[0] if one else of)
    return (build_y(out), aux) if has_aux else build_y(out)


def split_last(x, like):
    """As split(), with the axes of `like` at the end."""
    return [moveaxis(part, list(range(y.ndim)), list(range(-y.ndim, 0))) if y.ndim else part
            for y, part in zip(like, split(x, like), strict=True)]


def hessian(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the Hessian of `fun`, which returns a tensor of shape (): the Jacobian of its gradient,
    in its form. argnums and has_aux are those of grad()."""
    of = gradient("hessian", fun, argnums, has_aux)

    @wraps(fun)
    def call(*args, **kwargs):
        # (All lanes are pulled back at once only below all levels: see pull().)
        return jacobian(of, argnums, has_aux, "forward" if depth() else "reverse")(*args, **kwargs)

    return call


def hvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The product of the Hessian of `fun` at `primals`, a tuple of arguments, and `tangents`, which have their form,
    without the Hessian: a tuple with a product for each argument. It costs about two gradients."""
    everything = tuple(range(len(primals)))
    return jvp(gradient("hvp", fun, everything, False), primals, tangents)[1]
