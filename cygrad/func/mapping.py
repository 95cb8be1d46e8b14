"""vmap: a function of one sample, for all samples at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from cygrad.core.errors import described
from cygrad.core.interop.numpy import asarray
from cygrad.func import lanes  # noqa: F401 (it binds its rules)
from cygrad.func.levels import all_lanes, below, level
from cygrad.func.trees import flatten, parts
from cygrad.ops.shapes.rearrange import moveaxis


def axes_for(name, axes, tree):
    """The axis for each leaf of a container: `axes` is an int or None for all of it, or a container of the same form,
    of which a part may be an int or None for all of its leaves."""
    if axes is None or isinstance(axes, int) and not isinstance(axes, bool): return [axes] * len(flatten(tree)[0])
    keys, inner, _ = parts(axes) or (None, None, None)
    of = parts(tree)
    if keys is None or of is None or keys != of[0]:
        raise ValueError(f"vmap: {name} must be an axis, None, or a container like that of the arguments with an axis "
                         f"or None for each part, got {described(axes)} for {described(tree)}")
    return [a for part, x in zip(inner, of[1], strict=True) for a in axes_for(name, part, x)]


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that computes `fun` for each slice of its arguments along an axis, and stacks the results.

    in_axes     the axis of each argument: an int, None for an argument that all calls share, or a tuple with one for
                each argument, which may be a container of the form of the argument
    out_axes    the place of the new axis in each result, in the same way

    Operations run once for all slices. An operator that has no rule for this runs for one after another, and a warning
    says so once. A generator gives each slice numbers of its own if the operation reads a mapped tensor; others are the
    same for all. Values cannot decide what the function does: item(), bool() and numpy() raise RuntimeError.

    Keyword arguments are mapped along axis 0. Raises ValueError if sizes along the axes differ, or none is mapped."""

    @wraps(fun)
    def call(*args, **kwargs):
        axes = in_axes if isinstance(in_axes, (int, type(None))) else tuple(in_axes)
        if isinstance(axes, tuple) and len(axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(axes)} entries for {len(args)} positional arguments; give one "
                             f"for each")
        leaves, build = flatten((args, kwargs))
        places = axes_for("in_axes", axes, args) + [0] * len(flatten(kwargs)[0])
        xs = [x if a is None else asarray(x) for x, a in zip(leaves, places, strict=True)]
        sizes = {}
        for k, (x, a) in enumerate(zip(xs, places, strict=True)):
            if a is None: continue
            if not -x.ndim <= a < x.ndim:
                raise ValueError(f"vmap: in_axes maps axis {a} of input {k}, which has shape {x.shape}; pass None for "
                                 f"what all calls share")
            sizes.setdefault(x.shape[a], k)
        if not sizes: raise ValueError("vmap: no argument is mapped; give an axis for at least one in in_axes")
        if len(sizes) > 1:
            (n, i), (m, j) = list(sizes.items())[:2]
            raise ValueError(f"vmap: input {i} has {n} slices along its axis, and input {j} has {m}; they must agree")
        n, = sizes
        if n == 0: raise ValueError("vmap: the mapped axis has size 0; the shapes of results need at least one slice")
        with level(n) as of:
            with below(of):
                full = [moveaxis(x, a, 0) if a else x for x, a in zip(xs, places, strict=True)]
            given = [x if a is None else of.stand_in(x) for x, a in zip(full, places, strict=True)]
            args_of_one, kwargs_of_one = build(given)
            y = fun(*args_of_one, **kwargs_of_one)
            results, build_y = flatten(y)
            out = axes_for("out_axes", out_axes, y)
            with below(of):
                stacked = []
                for z, a in zip(results, out, strict=True):
                    z = asarray(z)
                    if a is None:
                        if of.has(z):
                            raise ValueError("vmap: out_axes has None for a result that differs from slice to slice; "
                                             "give the place of the new axis")
                        stacked.append(z)
                        continue
                    if not -z.ndim - 1 <= a <= z.ndim:
                        raise ValueError(f"vmap: out_axes has {a} for a result of shape {z.shape}; the new axis can be "
                                         f"at -{z.ndim + 1} to {z.ndim}")
                    stacked.append(moveaxis(all_lanes(z, of), 0, a) if a else all_lanes(z, of))
        return build_y(stacked)

    return call
