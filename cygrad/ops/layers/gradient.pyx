"""Operators that return their input and change its gradient."""

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply_list
from cygrad.kernels cimport driver
from cygrad.ops.reductions.reduce cimport binary

from cygrad.core.errors import as_float


cdef class Factor(Attributes):
    """The attributes of scale_gradient."""
    cdef readonly double factor

    def __cinit__(self, double factor):
        self.factor = factor

    cdef dict keywords(self):
        return {"s": self.factor}


cdef class ScaleGradient(Operator):
    """y = x (a view)        dx = s g, s a number"""
    lanes = "leading"
    traits = "fused differentiable views overwrites_gradient"
    alias = in_order = True

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return binary(MUL_LOOP, &b.g[0], (<Factor>b.attributes).factor, &b.dx[0])

    cdef object formula(self, c, int i, g):
        return g * c.attributes.factor


cdef class LocallyConstant(Operator):
    """y = z (a view)        dz = g        dx = 0 for each x that z is locally constant in

    The inputs are z and a tensor for each x, of which only the position in the graph is used."""
    lanes, tangent = "leading", "first"
    traits = "differentiable views zero_derivative"
    operands = "z []xs"
    alias = in_order = True

    cdef object formula(self, c, int i, g):
        return g if i == 0 else None                # None means zeros (zero_derivative)


cdef driver.Loop* MUL_LOOP = driver.find("mul")
cdef Operator SCALE_GRADIENT = ScaleGradient(), LOCALLY_CONSTANT = LocallyConstant()
OPERATORS = {o.name: o for o in (SCALE_GRADIENT, LOCALLY_CONSTANT)}


def locally_constant(z, list xs):
    """A view of `z`, connected to each of `xs` with derivative 0. Formulas use c.locally_constant(z)."""
    return apply_list(LOCALLY_CONSTANT, [z, *xs], None) if xs else z


def scale_gradient(x: Data, s: float) -> Tensor:
    """A view of `x` whose gradient is multiplied by the number `s` in backward: 0 makes it zero, a negative number
    reverses it. Raises TypeError if s is not a number."""
    cdef Tensor t = ensure_tensor(x)
    if isinstance(s, bool) or not isinstance(s, (int, float)):
        raise TypeError(f"scale_gradient: s must be a Python number, got {type(s).__name__}")
    return apply1(SCALE_GRADIENT, t, Factor(as_float(s, "scale_gradient: s")))
