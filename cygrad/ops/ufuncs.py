"""NumPy's protocols on tensors. If the left operand is an array (a + x, a < x, a @ x), Python calls NumPy's ufunc,
which calls array_ufunc(). Functions that are no ufuncs call array_function(). The module protocols, loaded at the first
call, does what they do."""

from functools import cache
from importlib import import_module

import numpy as np

from cygrad.core.graph.tensor import Tensor


@cache
def protocols():
    return import_module("cygrad.ops.protocols")


def array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """NumPy's protocol: called if an argument of a ufunc is a tensor."""
    return protocols().array_ufunc(ufunc, method, inputs, out, options)


def array_function(self, function, types, args, kwargs):
    """NumPy's protocol: called if an argument of a function that is no ufunc is a tensor, also one in a list."""
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types): return NotImplemented
    return protocols().array_function(function, args, kwargs)
