"""Backward passes of nets, as data: the operators that they add, and what is known of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cygrad.nets.definition import Blob, GradientSlice, Operator
from cygrad.nets.versions import Version

Registered = Callable[[Operator, list[str | None]], tuple[Sequence[Operator], Sequence[Any]]]


class Pass(NamedTuple):
    """A backward pass. `operators` are those that it adds, `gradients` the gradient of each blob by name. The rest is
    for lowering.py: the operators that were differentiated, the heads as pairs of a version and the name of its
    gradient (None: ones), the version whose whole gradient each of the names is, and by their positions in `forward`
    the registered gradients that were used."""

    operators: tuple[Operator, ...]
    gradients: dict[str, Blob | GradientSlice]
    forward: tuple[Operator, ...]
    heads: tuple[tuple[Version, str | None], ...]
    whole: dict[str, Version]
    kind: str = "grad"          # "backward": the gradients go to the .grad of the variables that blobs stand for
    retain_graph: bool = False
    create_graph: bool = False
    inputs: tuple[str, ...] = ()        # only these blobs are differentiated for; none: all
    custom: dict[int, Registered] = {}      # (never written to)
    frozen: frozenset[str] = frozenset()    # blobs without a gradient, as the argument of backward_pass()


def find(operators: Sequence[Operator], p: Pass) -> int | None:
    """Where the operators of a pass begin, if neither they nor those that they differentiate were edited."""
    n, m = len(p.operators), len(p.forward)
    for k in range(len(operators) - n + 1) if n else ():
        if not all(a is b for a, b in zip(operators[k:k + n], p.operators, strict=True)): continue
        for i in range(k - m + 1):
            if all(a is b for a, b in zip(operators[i:i + m], p.forward, strict=True)): return k
    return None


def names_of(g: Any) -> tuple[str, ...]:
    """The name of a gradient, or the two of a row-sparse one."""
    return (*g,) if isinstance(g, GradientSlice) else (g,)


def gradient_names(gradients: Mapping[str, Any]) -> set[str]:
    """The names of all gradients, also those of a GradientSlice."""
    return {n for g in gradients.values() for n in names_of(g)}


def renamed_gradients(gradients: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The gradient of each blob, with other names for some blobs."""
    return {names.get(y, y): GradientSlice(*(names.get(n, n) for n in g)) if isinstance(g, GradientSlice)
            else names.get(g, g) for y, g in gradients.items()}


def renamed_pass(p: Pass, made: Mapping[int, Operator], names: Mapping[str, Any]) -> Pass:
    """A pass with other names for some blobs; `made` are its new operators by the ids of the old ones."""
    return p._replace(
        operators=tuple(made.get(id(o), o) for o in p.operators), gradients=renamed_gradients(p.gradients, names),
        forward=tuple(made.get(id(o), o) for o in p.forward), inputs=tuple(names.get(n, n) for n in p.inputs),
        heads=tuple(((names.get(y, y), version), head if head is None else names.get(head, head))
                    for (y, version), head in p.heads),
        whole={names.get(n, n): (names.get(y, y), version) for n, (y, version) in p.whole.items()},
        frozen=frozenset(names.get(n, n) for n in p.frozen))
