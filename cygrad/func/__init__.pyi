# Written by tools/make_stubs.py; do not edit.

from cygrad.func.flat import Flat as Flat
from cygrad.func.modules import functional_call as functional_call
from cygrad.func.derivatives import grad as grad
from cygrad.func.jacobians import hessian as hessian
from cygrad.func.jacobians import hvp as hvp
from cygrad.func.jacobians import jacobian as jacobian
from cygrad.func.forward import jvp as jvp
from cygrad.func.forward import linearize as linearize
from cygrad.func.flat import scipy as scipy
from cygrad.func.derivatives import value_and_grad as value_and_grad
from cygrad.func.derivatives import vjp as vjp
from cygrad.func.mapping import vmap as vmap
__all__ = ['Flat', 'functional_call', 'grad', 'hessian', 'hvp', 'jacobian', 'jvp', 'linearize', 'scipy', 'value_and_grad', 'vjp', 'vmap']
