"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor


def functional_call(module: Any, parameters: Mapping[str, Tensor], *args: Any, **kwargs: Any) -> Any:
    """module(*args, **kwargs) with other tensors in place of parameters and buffers.

    parameters: a dict from names as in `named_parameters` and `named_buffers` to tensors; what it does not name stays.
    A tied parameter is replaced everywhere, by any of its names. The module is as before when the call returns.

    Raises ValueError for a name that the module does not have, a shape that differs, or two tensors for one tied
    parameter, and TypeError for what is not a tensor."""
    if not isinstance(parameters, dict):
        raise TypeError(f"functional_call: parameters must be a dict from names to tensors, got "
                        f"{described(parameters)}")
    own = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    new = {}
    for name, value in parameters.items():
        if name not in own:
            raise ValueError(f"functional_call: {type(module).__name__} has no parameter or buffer {described(name)}; "
                             f"see named_parameters()")
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: {name} must be a tensor, got {described(value)}")
        if value.shape != own[name].shape:
            raise ValueError(f"functional_call: {name} has shape {own[name].shape}, got {value.shape}")
        if new.setdefault(id(own[name]), value) is not value:
            raise ValueError(f"functional_call: {name} is tied to another name in parameters, whose tensor is not the "
                             f"same; give one of them, or the same tensor for both")
    replaced = []
    try:
        for part in module.modules():
            for name in (*part._parameters, *part._buffers):
                value = part.__dict__[name]
                if value is None or id(value) not in new: continue
                replaced.append((part, name, value))
                part.__dict__[name] = new[id(value)]
        return module(*args, **kwargs)
    finally:
        for part, name, value in replaced: part.__dict__[name] = value
