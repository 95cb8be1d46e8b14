"""NumPy's protocols on tensors, and that of the array API standard. If the left operand is an array (a + x, a < x,
a @ x), Python calls NumPy's ufunc, which calls array_ufunc(). Functions that are no ufuncs call array_function(). The
module protocols, loaded at the first call, does what they do."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.core.errors import described
from cygrad.core.graph.tensor import Tensor
from cygrad.core.late_bound import namespace

if TYPE_CHECKING:
    def cache(user_function, /): return user_function       # (functools hides the parameters)
else: from functools import cache

called: dict[Any, Any] = {}     # ufunc: cygrad's function, of plain calls made before. array + tensor is one, each time


@cache
def protocols():
    return import_module("cygrad.ops.protocols")


def array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """NumPy's protocol: called if an argument of a ufunc is a tensor."""
    if ufunc in called and method == "__call__" and out is None and not options: return called[ufunc](*inputs)
    return protocols().array_ufunc(ufunc, method, inputs, out, options)


def array_function(self, function, types, args, kwargs):
    """NumPy's protocol: called if an argument of a function that is no ufunc is a tensor, also one in a list."""
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types): return NotImplemented
    return protocols().array_function(function, args, kwargs)


# ---- the array API standard ------------------------------------------------------------------------------------------

def array_namespace(self, /, *, api_version=None):
    """The namespace of the array API standard for tensors: cygrad.array_api. Raises ValueError for another version than
    "2025.12", unless it is an older one."""
    if api_version is None or api_version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        return namespace().array_api
    raise ValueError(f"__array_namespace__: there is no version {described(api_version)} here; the newest is '2025.12'")


def device(self) -> str:
    return "cpu"


def to_device(self, device: str, *, stream: Any = None) -> Tensor:
    """This tensor: all tensors are in CPU memory. Raises ValueError for another device than "cpu", and for a stream."""
    if device == "cpu" and stream is None: return self
    raise ValueError(f"to_device: device must be \"cpu\" without a stream, got {described(device)}; all memory is the "
                     f"CPU's")
