"""Forward mode: jvp and linearize, and the tangents of operations.

A gradient of an operation is linear in the gradient g of its result: dx = J' g. So the derivative of dx by g, applied
to a tangent t of x, is J t, whatever the operator is. An operator that has no rule for tangents is differentiated so,
twice in reverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cygrad.autograd.modes import record
from cygrad.core.execute.run import apply
from cygrad.core.graph.lifts import depth
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import zeros, zeros_like
from cygrad.core.interop.numpy import asarray
from cygrad.core.late_bound import bind
from cygrad.core.thread_state import is_recording
from cygrad.func.derivatives import (
    Recorded, floats, leaves_like, leaving, outputs_of, refuse_arrays, results_of,
)
from cygrad.func.levels import entering, level, pull
from cygrad.func.trees import flatten, paths
from cygrad.ops.shapes.shape import broadcast_to


def tangents_of(op, operands, tangents, attributes, results):
    """The tangents of the results of an operation; None for one of zeros."""
    rule = RULES.get(op.tangent)                    # ("diagonal" is compiled: core/execute/lifting)
    found = NotImplemented if rule is None else rule(op, operands, tangents, attributes, results)
    if found is not NotImplemented: return found
    return by_double_reverse(lambda *xs: apply(op, *xs, attributes=attributes), operands, tangents, results)


def by_double_reverse(f, operands, tangents, results):
    """The tangents of `results`, which are f(*operands)."""
    graph, built = is_recording(), depth()
    with record(train_mode=None):
        given = [x if t is None else entering(x) for x, t in zip(operands, tangents, strict=True)]
        y = f(*given)
        outputs = [z for z in (y if isinstance(y, tuple) else (y,)) if is_floating(z)]
        heads = [entering(zeros(z.shape, z.dtype)) for z in outputs]
        pairs = [(x, t) for x, t in zip(given, tangents, strict=True) if t is not None]
        gradients = pull(outputs, heads, [x for x, _ in pairs], True, True, built)
        found = [(g, t) for g, (_, t) in zip(gradients, pairs, strict=True) if g is not None]
    out = iter(pull(*zip(*found, strict=True), heads, graph, False, built) if found else [None] * len(outputs))
    return [next(out) if is_floating(z) else None for z in results]


def is_floating(z): return isinstance(z, Tensor) and z.dtype.kind == "f"


def linear(op, operands, tangents, attributes, results):
    """For operators that are linear in all of their tensors together, but for those that never have a gradient."""
    given = [t if t is not None else zeros_like(x) if isinstance(x, Tensor) and (
        x.dtype.kind == "f" or not op.no_gradient) else x for x, t in zip(operands, tangents, strict=True)]
    y = apply(op, *given, attributes=attributes)
    return list(y) if isinstance(y, tuple) else [y]


def first(op, operands, tangents, attributes, results):
    """For an operator that returns its first operand."""
    return [tangents[0]]


def bilinear(op, operands, tangents, attributes, results):
    """For operators that are linear in each of two tensors."""
    (x, y), (dx, dy) = operands, tangents
    parts = [apply(op, *pair, attributes=attributes) for pair, t in (((dx, y), dx), ((x, dy), dy)) if t is not None]
    return [parts[0] if len(parts) == 1 else parts[0] + parts[1]]


def affine(op, operands, tangents, attributes, results):
    """For operators that are linear in each of two tensors, plus a third. An activation follows a rule of its own."""
    if attributes.activation is not None: return NotImplemented
    (x, w, *_), (dx, dw, *db) = operands, tangents
    parts = [] if dx is None else [apply(op, dx, w, attributes=attributes)]
    db = [t for t in db if t is not None]
    if dw is not None or db:
        parts.append(apply(op, x, zeros_like(w) if dw is None else dw, *db, attributes=attributes))
    return [parts[0] if len(parts) == 1 else parts[0] + parts[1]]


RULES = {"affine": affine, "first": first, "linear": linear, "bilinear": bilinear}


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> tuple[Any, ...]:
    """(results, tangents of the results) of `fun` at `primals`, a tuple of arguments, in the direction `tangents`,
    which have the form, shapes and dtypes of the primals. It costs about as much as two evaluations, and memory does
    not grow with their number of operations.

    With has_aux, fun returns (results, auxiliary data), and jvp (results, tangents, auxiliary data)."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: primals and tangents must be tuples, one entry for each argument of the function; for "
                        "one argument write (x,)")
    xs, build = floats("jvp", tuple(primals), "the primal ")
    ts = leaves_like("jvp", tuple(tangents), xs, paths(tuple(primals)), "tangent", "primal")
    with level() as of:
        given = []
        for x, t in zip(xs, ts, strict=True):
            given.append(broadcast_to(x, x.shape))
            of.give(given[-1], t)
        y, aux = results_of("jvp", fun(*build(given)), has_aux)
        refuse_arrays("jvp", y)
        leaves, build_y = flatten(y)
        values = [asarray(z) for z in leaves]
        out = [of.value(z) for z in values]
    out = [zeros_like(z) if t is None else t for z, t in zip(values, out, strict=True)]
    return (build_y(values), build_y(out), aux) if has_aux else (build_y(values), build_y(out))


def linearize(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(results, tangent map) of `fun` at `primals`: tangent_map(*tangents) returns the tangents of the results. The
    function is evaluated once; each call of the map then costs about as much as a gradient."""
    built, graph = depth(), is_recording()
    with record(train_mode=None):
        p = Recorded("linearize", fun, primals, {}, tuple(range(len(primals))), False)
        outputs, build = outputs_of("linearize", p.value)
        flat, places = [x for xs in p.inputs for x in xs], paths(primals)
        heads = [entering(zeros(y.shape, y.dtype)) for y in outputs]
        gradients = pull(outputs, heads, flat, True, True, built)

    def tangent_map(*tangents):
        ts = leaves_like("linearize", tangents, flat, places, "tangent", "primal")
        found = [(g, t) for g, t in zip(gradients, ts, strict=True) if g is not None]
        out = pull(*zip(*found, strict=True), heads, graph, True, built) if found else [None] * len(outputs)
        return build([zeros_like(y) if t is None else t for y, t in zip(outputs, out, strict=True)])

    return leaving(p.value), tangent_map


bind(tangents_of=tangents_of, zeros_like=zeros_like, broadcast_to=broadcast_to)
