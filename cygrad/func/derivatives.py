"""Reverse mode: grad, value_and_grad and vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from cygrad.autograd.modes import record
from cygrad.core.errors import described
from cygrad.core.graph.lifts import depth
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.creation import ones_like, zeros_like
from cygrad.core.interop.numpy import asarray
from cygrad.core.thread_state import is_recording
from cygrad.func.levels import entering, pull, without_graph
from cygrad.func.trees import flatten, named, paths


def numbered(name, argnums, n):
    """The positions of the arguments to differentiate, from 0."""
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not given or not all(isinstance(k, int) and not isinstance(k, bool) for k in given):
        raise TypeError(f"{name}: argnums must be the position of an argument, or a tuple of some, got "
                        f"{described(argnums)}")
    for k in given:
        if not -n <= k < n:
            raise ValueError(f"{name}: argnums has {k}, but the function was called with {n} positional "
                             f"argument{'s' * (n != 1)}; they are numbered from 0")
    places = [k % n for k in given]
    if len(set(places)) < len(places): raise ValueError(f"{name}: argnums {argnums} names an argument twice")
    return places


def floats(name, tree, what):
    """(tensors, build) of a container whose leaves must be tensors of floats; Python floats become tensors."""
    leaves, build = flatten(tree)
    tensors = [asarray(x) for x in leaves]
    for k, t in enumerate(tensors):
        if t.dtype.kind != "f":
            raise TypeError(f"{name}: {what}{named(paths(tree)[k])} is {t.dtype}, and only floats have derivatives; "
                            f"cast it with astype(\"float32\"), or differentiate another argument")
    return tensors, build


def outputs_of(name, tree):
    """floats() of a result."""
    refuse_arrays(name, tree)
    return floats(name, tree, "the result")


def refuse_arrays(name, tree):
    """Raise TypeError for a result with an array of NumPy: what was written into it has lost its gradient."""
    for k, x in enumerate(flatten(tree)[0]):
        if isinstance(x, np.ndarray):
            raise TypeError(f"{name}: the result{named(paths(tree)[k])} is a NumPy array, through which no gradient "
                            f"flows; make a tensor of the parts, as numpy.stack does of tensors, or write them into "
                            f"numpy.zeros_like(x) of a tensor x")


def results_of(name, y, has_aux):
    """(result, auxiliary data) of a function."""
    if not has_aux: return y, None
    if not isinstance(y, tuple) or len(y) != 2:
        raise TypeError(f"{name}: with has_aux the function must return a pair (result, auxiliary data), got "
                        f"{described(y)}")
    return y


def leaving(tree):
    """A container of results without the graph of the transformation, unless a graph around it is being recorded."""
    leaves, build = flatten(tree)
    if is_recording(): return tree
    return build([without_graph(x) if isinstance(x, Tensor) else x for x in leaves])


class Recorded:
    """A function recorded at given arguments, from which gradients are pulled back."""

    def __init__(self, name, f, args, kwargs, argnums, has_aux):
        self.name, self.args = name, args
        self.places = numbered(name, argnums, len(args))
        self.create_graph, self.built = is_recording(), depth()
        inputs, builds = [], []
        for k in self.places:
            xs, build = floats(name, args[k], f"argument {k}")
            inputs.append([entering(x) for x in xs])
            builds.append(build)
        self.inputs, self.builds = inputs, builds
        given = list(args)
        for k, xs, build in zip(self.places, inputs, builds, strict=True): given[k] = build(xs)
        with record(train_mode=None):
            self.value, self.aux = results_of(name, f(*given, **kwargs), has_aux)

    def pull(self, outputs, heads, retain=False):
        """The gradients, one container for each place."""
        flat = [x for xs in self.inputs for x in xs]
        gradients = pull(outputs, heads, flat, self.create_graph, retain, self.built)
        found = iter([zeros_like(x) if g is None else g for x, g in zip(flat, gradients, strict=True)])
        return [build([next(found) for _ in xs]) for xs, build in zip(self.inputs, self.builds, strict=True)]


def scalar(name, y):
    if not isinstance(y, Tensor):
        raise TypeError(f"{name}: the function must return a tensor of one number, got {described(y)}"
                        + ("; for a pair with auxiliary data pass has_aux=True" if isinstance(y, tuple) else ""))
    if y.ndim or y.dtype.kind != "f":
        raise ValueError(f"{name}: the function must return a number (a tensor of floats of shape ()), got {y.dtype} "
                         f"of shape {y.shape}; sum it, or use jacobian() or vjp()")
    return y


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns (value, gradients) of `fun`, which returns a tensor of shape ().

    argnums     the position of the argument to differentiate, or a tuple of some: then the gradients are a tuple
    has_aux     whether fun returns (value, auxiliary data): the result is then ((value, auxiliary data), gradients)

    An argument may be a tensor, an array or a number, or a container of these: lists, tuples, dicts, dataclasses and
    Modules, nested. Its gradient is a container of the same form. The call needs no record(), and no .grad changes.
    """
    return differentiated("value_and_grad", fun, argnums, has_aux)


def differentiated(name, fun, argnums, has_aux):
    """value_and_grad(), as the function `name` of error messages."""
    @wraps(fun)
    def call(*args, **kwargs):
        p = Recorded(name, fun, args, kwargs, argnums, has_aux)
        y = scalar(name, p.value)
        found = p.pull([y], [ones_like(y)])
        gradients = tuple(found) if isinstance(argnums, (tuple, list)) else found[0]
        value = leaving(y)
        return ((value, leaving(p.aux)) if has_aux else value), gradients

    return call


def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradients of `fun`, which returns a tensor of shape (). With has_aux, fun returns
    (value, auxiliary data), and the result is (gradients, auxiliary data). argnums is that of value_and_grad()."""
    return gradient("grad", fun, argnums, has_aux)


def gradient(name, fun, argnums, has_aux):
    """grad(), as the function `name` of error messages."""
    both = differentiated(name, fun, argnums, has_aux)

    @wraps(fun)
    def call(*args, **kwargs):
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return call


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(results, pullback) of `fun` at `primals`: pullback(cotangents) returns a tuple with the gradient of
    sum(cotangents * results) for each primal. It may be called again.

    With has_aux, fun returns (results, auxiliary data), and vjp (results, pullback, auxiliary data).
    Results and primals may be containers, as for grad(); the cotangents are one of the form of the results."""
    p = Recorded("vjp", fun, primals, {}, tuple(range(len(primals))), has_aux)
    outputs, places = outputs_of("vjp", p.value)[0], paths(p.value)

    def pullback(cotangents):
        heads = leaves_like("vjp", cotangents, outputs, places, "cotangent", "result")
        return tuple(p.pull(outputs, heads, retain=True))

    results = leaving(p.value)
    return (results, pullback, leaving(p.aux)) if has_aux else (results, pullback)


def leaves_like(name, tree, like, places, what, of):
    """The tensors of a container of a `what` for each `of`, which are `like`, at the paths `places`. Raises ValueError
    if the form, a shape or a dtype differs."""
    given, found = [asarray(t) for t in flatten(tree)[0]], paths(tree)
    if len(given) != len(like):
        raise ValueError(f"{name}: got {len(given)} {what}s for {len(like)} {of}s; give one of the same form for each")
    for k, (t, x) in enumerate(zip(given, like, strict=True)):
        if found[k] != places[k]:
            raise ValueError(f"{name}: {what} {k} is at {named(found[k]) or 'no path'}, and its {of} at "
                             f"{named(places[k]) or 'no path'}; give a container of the same form")
        if t.shape != x.shape or t.dtype != x.dtype:
            raise ValueError(f"{name}: {what} {k} is {t.dtype} of shape {t.shape}, and its {of} {x.dtype} of shape "
                             f"{x.shape}; they must agree")
    return given
