"""Parameter, which makes the variables of modules."""

from __future__ import annotations

from typing import Any

from cygrad.core.graph.tensor import Tensor
from cygrad.core.interop.numpy import tensor
from cygrad.nn.call import kind_of


class AnyVariable(type):
    """The metaclass of Parameter."""

    def __instancecheck__(cls, x):
        return kind_of(x) in ("variable", "frozen")


class Parameter(metaclass=AnyVariable):
    """A variable for a module: its .grad is None until the first backward, and then accumulates. A tensor that is not a
    recorded result becomes the variable itself; other data is copied. With requires_grad=False it is a frozen
    parameter. Raises TypeError unless its dtype is float32 or float64.

    The result is a Tensor. isinstance(x, Parameter) is True for every variable and every frozen parameter, which are
    what a module registers when it is assigned to an attribute. There are no subclasses."""

    def __new__(cls, data: Any, requires_grad: bool = True) -> Tensor:  # type: ignore[misc]
        x = data if isinstance(data, Tensor) and data.is_leaf else tensor(data)
        if kind_of(x) != "variable": x.requires_grad_()
        if not requires_grad: x.drop_grad()
        return x

    def __init_subclass__(cls):
        raise TypeError(f"{cls.__name__}: nn.Parameter has no subclasses, because a parameter is a Tensor; keep what "
                        f"belongs to it in an attribute of the module")
