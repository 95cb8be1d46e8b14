"""Nets as functions: net(x) runs it in a workspace of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import cygrad.autograd as autograd
from cygrad.core.errors import cut, described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import asarray, tensor
from cygrad.nets.state import NetState, state_of

if TYPE_CHECKING:
    from cygrad.nets.net import Net

KEPT = 8        # workspaces of a net, each for other shapes


def called(net: "Net", arrays: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """As Net.__call__."""
    values = {name: fitting(net, name, value) for name, value in given(net, arrays, named).items()}
    if autograd.is_recording():
        for name, x in (*values.items(), *net.bindings.items()):
            if x.requires_grad:
                raise RuntimeError(f"net {cut(net.name)}: runs of a net are not recorded, so the gradient of "
                                   f"{described(str(name))} would be lost; call it outside of record(), or train it by "
                                   f"net.head()")
    known = state_of(net).workspaces
    key = tuple((name, x.shape, np.dtype(x.dtype).name) for name, x in values.items())
    workspace = known.pop(key, None) or NetState.new_workspace()
    known[key] = workspace
    while len(known) > KEPT: known.pop(next(iter(known)), None)
    for name, x in values.items(): workspace.feed(name, x)
    workspace.run(net)
    found = tuple(workspace.fetch(name) for name in net.outputs)
    return found[0] if len(found) == 1 else found


def given(net: "Net", arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each input, by name, in their order."""
    names, who = [*map(str, net.inputs)], f"net {cut(net.name)}"
    if len(arrays) > len(names):
        raise TypeError(f"{who} takes {len(names)} input{'s' * (len(names) != 1)}, {cut(', '.join(names)) or 'none'}, "
                        f"got {len(arrays)}")
    found = dict(zip(names, arrays, strict=False))
    for name, value in named.items():
        if name not in names:
            raise TypeError(f"{who} has no input {described(name)}; its inputs are {cut(', '.join(names)) or 'none'}")
        if name in found: raise TypeError(f"{who}: the input {described(name)} is given twice; pass it once")
        found[name] = value
    for name in names:
        if name not in found:
            raise TypeError(f"{who}: the input {described(name)} is missing; its inputs are {cut(', '.join(names))}")
    return {name: found[name] for name in names}


def fitting(net: "Net", name: str, value: Any) -> Tensor:
    """The value of an input as a tensor, which has the dtype and the axes of its example."""
    who = f"net {cut(net.name)}: the input {described(name)}"
    example, dtype = net.shapes.get(name, (None, None))
    try: x = asarray(value) if dtype is None or hasattr(value, "dtype") else tensor(value, dtype)
    except (TypeError, ValueError) as e:
        raise type(e)(f"{who} must be a number, an array or a tensor: {e}") from None
    if dtype is not None and x.dtype != dtype:
        raise TypeError(f"{who} must be {dtype}, as its example, got {x.dtype}; cast it with astype({dtype!r})")
    if example is not None and x.ndim != len(example):
        raise ValueError(f"{who} must have {len(example)} axes, as its example of shape {tuple(example)}, got shape "
                         f"{x.shape}")
    return x
