"""Operators on how numbers are represented: shifts of integers, signs, and the next floating-point number. NumPy
computes them, on the memory of the tensors."""

import numpy as np

from cygrad.core.execute.run cimport apply1, apply2
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.interop.numpy cimport lend
from cygrad.kernels.array cimport BOOL, is_floating
from cygrad.kernels.driver cimport LoopCall
from cygrad.ops.elementwise.base cimport Elementwise, Truth

from cygrad.core.dtypes import DTYPES
from cygrad.ops.elementwise.compare import where


cdef class Shift(Elementwise):
    """z = x <op> y, of integers; no gradient"""

    def __cinit__(self):
        self.fused = self.differentiable = False

    cdef int infer(self, Call* c) except -1 nogil:
        if not is_floating(c.x[0].dtype) and c.x[0].dtype != BOOL: return Elementwise.infer(self, c)
        with gil: raise TypeError(f"{self.name}: wanted integers, got {DTYPES[c.x[0].dtype]}; cast with "
                                  f"astype(\"int64\")")

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        return False


cdef class BitwiseLeftShift(Shift):
    """z = x << y, of integers; no gradient"""
    operands, integers = "x y", np.left_shift


cdef class BitwiseRightShift(Shift):
    """z = x >> y, of integers; no gradient"""
    operands, integers = "x y", np.right_shift


cdef class Signbit(Truth):
    """y = whether the sign of x is negative, a bool; no gradient"""
    integers = np.signbit

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        return False


cdef class Nextafter(Elementwise):
    """z = the floating-point number next to x towards y        dx = g        dy = 0"""
    operands = "x y"
    dx = "g"
    dy = "zero g"

    cdef object formula(self, c, int i, g):
        return g if i == 0 else where(False, g, 0)

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        return False

    cdef int forward_with_gil(self, Call* c) except -1:
        with np.errstate(all="ignore"):
            np.nextafter(lend(&c.x[0], NULL, False), lend(&c.x[1], NULL, False), out=lend(&c.y[0], NULL, True))


cdef Operator LEFT = BitwiseLeftShift(), RIGHT = BitwiseRightShift(), SIGNBIT = Signbit(), NEXTAFTER = Nextafter()
OPERATORS = {o.name: o for o in (LEFT, RIGHT, SIGNBIT, NEXTAFTER)}


def bitwise_left_shift(x: Data, y: Data) -> Tensor:
    """x << y, elementwise with broadcasting: the bits of x moved up by y places, which is x 2^y without overflow.
    Raises TypeError unless both are integers. For y below 0, or not below the number of bits, see numpy.left_shift."""
    return apply2(LEFT, x, y, None)

def bitwise_right_shift(x: Data, y: Data) -> Tensor:
    """x >> y, elementwise with broadcasting: the bits of x moved down by y places, which is floor(x / 2^y). Raises
    TypeError unless both are integers. For y below 0, or not below the number of bits, see numpy.right_shift."""
    return apply2(RIGHT, x, y, None)

def signbit(x: Data) -> Tensor:
    """Whether the sign of x is negative, also of -0.0 and NaN, elementwise: a bool tensor."""
    return apply1(SIGNBIT, x, None)

def nextafter(x: Data, y: Data) -> Tensor:
    """The floating-point number next to x in the direction of y, elementwise with broadcasting. The gradient of x is
    that of the result, the gradient of y is 0."""
    return apply2(NEXTAFTER, x, y, None)
