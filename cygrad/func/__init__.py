"""Derivatives as functions: transformations of functions of tensors. They nest to any order."""

from cygrad.core.answers import of_module
from cygrad.func.derivatives import grad, value_and_grad, vjp
from cygrad.func.flat import Flat, scipy
from cygrad.func.forward import jvp, linearize
from cygrad.func import functions  # noqa: F401 (it binds its rules)
from cygrad.func.jacobians import hessian, hvp, jacobian
from cygrad.func.mapping import vmap
from cygrad.func.modules import functional_call

__all__ = [
    "Flat", "functional_call", "grad", "hessian", "hvp", "jacobian", "jvp", "linearize", "scipy", "value_and_grad",
    "vjp", "vmap",
]


def __getattr__(name):
    raise AttributeError(of_module(name, __name__))


def __dir__(): return __all__
