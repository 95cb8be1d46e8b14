"""Arithmetic and powers, with NumPy's broadcasting. An operator declares its formula, the rule for the gradient of each
input (see Elementwise in ops/elementwise/base.pyx) and, where integers stay integers, the NumPy function that computes
them. Backward keeps the inputs and outputs that the rules read."""

import numpy as np

from libc.stdint cimport uint64_t
from libc.string cimport memset

from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels.array cimport is_floating, itemsize
from cygrad.kernels.driver cimport LoopCall
from cygrad.ops.elementwise.base cimport Elementwise, Number, number_of

from cygrad.core.dtypes import DTYPES
from cygrad.ops.elementwise.compare import logical_and, logical_not, logical_or, where


# ---- arithmetic ------------------------------------------------------------------------------------------------------

cdef class Add(Elementwise):
    """z = x + y        dx = g        dy = g"""
    operands, integers = "x y", np.add
    dx = "g"
    dy = "g"

    cdef object formula(self, c, int i, g):
        return g


cdef class Sub(Elementwise):
    """z = x - y        dx = g        dy = -g"""
    operands, integers = "x y", np.subtract
    dx = "g"
    dy = "neg g"

    cdef object formula(self, c, int i, g):
        return g if i == 0 else -g


cdef class Mul(Elementwise):
    """z = x y        dx = g y        dy = g x"""
    operands, integers = "x y", np.multiply
    dx = "mul g y"
    dy = "mul g x"

    cdef object formula(self, c, int i, g):
        return g * c.input(1 - i)


cdef class Div(Elementwise):
    """z = x / y        dx = g / y        dy = -g z / y"""
    operands = "x y"
    result_may_change = True
    dx = "div g y"
    dy = "div_grad_y g y out"

    cdef object formula(self, c, int i, g):
        return g / c.input(1) if i == 0 else -g * c.output(0) / c.input(1)


cdef class Division(Elementwise):
    """The base of divisions that integers have. Theirs by 0 gives 0, whatever numpy.seterr says."""

    cdef int forward_with_gil(self, Call* c) except -1:
        with np.errstate(all="ignore"): return Elementwise.forward_with_gil(self, c)


cdef class FloorDivide(Division):
    """z = the largest integer <= x / y        dx = 0        dy = 0"""
    operands, integers = "x y", np.floor_divide
    dx = "zero g"
    dy = "zero g"

    cdef object formula(self, c, int i, g):
        return where(False, g, 0)


cdef class Remainder(Division):
    """z = x - y floor(x / y)        dx = g        dy = -g floor(x / y)"""
    operands, integers = "x y", np.remainder
    dx = "g"
    dy = "remainder_grad_y g x y"

    cdef object formula(self, c, int i, g):
        return g if i == 0 else -g * floor_divide(c.input(0), c.input(1))


cdef class Neg(Elementwise):
    """y = -x        dx = -g"""
    integers = np.negative
    dx = "neg g"

    cdef object formula(self, c, int i, g):
        return -g


cdef class Abs(Elementwise):
    """y = |x|        dx = g where x > 0, -g where x < 0, else 0"""
    integers = np.abs
    code, bits = "abs_code", 2
    dx = "abs_grad code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 1), g, where(self.where_code(c, 2), -g, 0)))


cdef class Sign(Elementwise):
    """y = 1 where x > 0, -1 where x < 0, else x        dx = 0"""
    integers = np.sign
    dx = "zero g"

    cdef object formula(self, c, int i, g):
        return where(False, g, 0)


cdef class Rounding(Elementwise):
    """The base of operators that round to integers. Inputs of integer dtype are unchanged."""
    integers = np.positive
    dx = "zero g"

    cdef object formula(self, c, int i, g):
        return where(False, g, 0)


cdef class Floor(Rounding):
    """y = the largest integer <= x        dx = 0"""


cdef class Ceil(Rounding):
    """y = the smallest integer >= x        dx = 0"""


cdef class Trunc(Rounding):
    """y = x without its fractional part        dx = 0"""


cdef class Round(Rounding):
    """y = the integer nearest to x, the even one of two        dx = 0"""


# ---- powers ----------------------------------------------------------------------------------------------------------

cdef class Pow(Elementwise):
    """y = x^p, p a number        dx = g p x^(p - 1)

    For p = 1 dx is g, for p = 0 it is 0; neither needs x."""
    number, integers = "p", np.power
    dx = "pow_grad g x p"

    cdef tuple call_of(self, operands, arguments):
        return range(1), Number(arguments["p"])

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef double p = (<Number>c.attributes).value
        return 0 if p == 0 or p == 1 else Operator.keeps(self, c, wanted)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef double p = (<Number>b.attributes).value
        cdef Stage* s
        if p != 0 and p != 1: return Elementwise.plan_backward(self, b)
        s = add_stage(b, 1)
        s.saved, s.view, s.donated_gradients = 0, p == 1, p == 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        if (<Number>b.attributes).value != 0: return Elementwise.run_backward(self, b, stage)
        memset(b.dx[0].data, 0, b.dx[0].layout.size * itemsize(b.dtype))

    cdef bint backward_loop(self, const BackwardCall* b, int stage, LoopCall* l) noexcept nogil:
        return (<Number>b.attributes).value != 0 and Elementwise.backward_loop(self, b, stage, l)

    cdef object formula(self, c, int i, g):
        p = c.attributes.number
        if p == 1: return c.locally_constant(g)
        return g * (pow(c.input(0), p - 1) * p) if p else where(False, g, 0)


cdef class Power(Elementwise):
    """z = x^y        dx = g y x^(y - 1), 0 where y is 0        dy = g z log x, 0 where x is 0 and y >= 0"""
    operands, integers = "x y", np.power
    dx = "power_grad_x g x y"
    dy = "power_grad_y g x out"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        if i == 0:
            y = c.input(1)
            flat = logical_and(y == 0, logical_not(abs(x) > 0))       # where y x^(y - 1) would be nan
            return where(flat, 0, g * (y * power(where(flat, 1, x), y - 1)))
        z = c.output(0)
        flat = logical_and(x == 0, logical_or(z == 0, z == 1))      # 0^y is 0 or 1 for each y >= 0
        return where(flat, 0, g * (z * where(flat, 1, x).log()))


cdef class Square(Elementwise):
    """y = x^2        dx = 2 g x"""
    integers = np.square
    dx = "square_grad g x"

    cdef object formula(self, c, int i, g):
        return g * (2 * c.input(0))


cdef class Sqrt(Elementwise):
    """y = sqrt x        dx = g / (2 y)"""
    dx = "sqrt_grad g out"

    cdef object formula(self, c, int i, g):
        return g / (2 * c.output(0))


cdef class Rsqrt(Elementwise):
    """y = 1 / sqrt x        dx = -g y^3 / 2"""
    dx = "rsqrt_grad g out"

    cdef object formula(self, c, int i, g):
        return g * (-0.5 * pow(c.output(0), 3))


cdef class Reciprocal(Elementwise):
    """y = 1 / x        dx = -g y^2"""
    dx = "reciprocal_grad g out"

    cdef object formula(self, c, int i, g):
        return -g * square(c.output(0))


cdef Operator ADD = Add(), SUB = Sub(), MUL = Mul(), DIV = Div(), NEG = Neg(), ABS = Abs(), SIGN = Sign()
cdef Operator FLOOR_DIVIDE = FloorDivide(), REMAINDER = Remainder()
cdef Operator FLOOR = Floor(), CEIL = Ceil(), TRUNC = Trunc(), ROUND = Round()
cdef Operator POW = Pow(), POWER = Power(), SQUARE = Square(), SQRT = Sqrt(), RSQRT = Rsqrt(), RECIPROCAL = Reciprocal()
OPERATORS = {o.name: o for o in (
    ADD, SUB, MUL, DIV, FLOOR_DIVIDE, REMAINDER, NEG, ABS, SIGN, FLOOR, CEIL, TRUNC, ROUND, POW, POWER, SQUARE, SQRT,
    RSQRT, RECIPROCAL)}


def add(x: Data, y: Data) -> Tensor:
    """x + y, elementwise with broadcasting."""
    return apply2(ADD, x, y, None)

def sub(x: Data, y: Data) -> Tensor:
    """x - y, elementwise with broadcasting."""
    return apply2(SUB, x, y, None)

def mul(x: Data, y: Data) -> Tensor:
    """x y, elementwise with broadcasting."""
    return apply2(MUL, x, y, None)

def div(x: Data, y: Data) -> Tensor:
    """x / y, elementwise with broadcasting; integers give the default dtype."""
    return apply2(DIV, x, y, None)

def floor_divide(x: Data, y: Data) -> Tensor:
    """The largest integer that is at most x / y, elementwise with broadcasting, in the dtype of the operands; as x // y
    in Python. Floats divided by 0 give inf or nan, integers 0. The gradients are 0."""
    return apply2(FLOOR_DIVIDE, x, y, None)

def remainder(x: Data, y: Data) -> Tensor:
    """x - y floor(x / y), elementwise with broadcasting, with the sign of y; as x % y in Python. Floats divided by 0
    give nan, integers 0."""
    return apply2(REMAINDER, x, y, None)

def neg(x: Data) -> Tensor:
    """-x, elementwise."""
    return apply1(NEG, x, None)

def abs(x: Data) -> Tensor:
    """|x|, elementwise; the gradient at 0 is 0."""
    return apply1(ABS, x, None)

def sign(x: Data) -> Tensor:
    """1 where x > 0, -1 where x < 0, else x itself (0 or nan), elementwise; the gradient is 0."""
    return apply1(SIGN, x, None)

def floor(x: Data) -> Tensor:
    """The largest integer that is at most x, elementwise; the gradient is 0."""
    return apply1(FLOOR, x, None)

def ceil(x: Data) -> Tensor:
    """The smallest integer that is at least x, elementwise; the gradient is 0."""
    return apply1(CEIL, x, None)

def trunc(x: Data) -> Tensor:
    """x without its fractional part, elementwise; the gradient is 0."""
    return apply1(TRUNC, x, None)

def round(x: Data) -> Tensor:
    """The integer nearest to x, the even one of two, elementwise; the gradient is 0."""
    return apply1(ROUND, x, None)

def pow(x: Data, p: Operand) -> Tensor:
    """x to the power of p, elementwise. A number p uses the operator pow, a tensor or an array the operator power.

    Raises TypeError for any other p, ValueError for integers to a negative power."""
    if not isinstance(p, (int, float)) or isinstance(p, bool):
        if isinstance(p, (Tensor, np.ndarray, np.generic)): return power(x, p)
        raise TypeError(f"pow: the exponent must be a Python number, a tensor or an array, got {type(p).__name__}")
    cdef Tensor t = ensure_tensor(x)
    if not is_floating(t.dtype) and isinstance(p, float): t = t.astype(DTYPES[default_dtype()])
    if not is_floating(t.dtype) and p < 0:
        raise ValueError(f"pow: {DTYPES[t.dtype]} to the power of {p} is not an integer; use {float(p)}, or cast with "
                         f"astype first")
    return apply1(POW, t, number_of(p))

def power(x: Data, y: Data) -> Tensor:
    """x to the power of y, elementwise with broadcasting; integers give integers.

    The gradient of y is 0 where x is 0 and y is not negative. Raises ValueError for integers to a negative power."""
    return apply2(POWER, x, y, None)

def square(x: Data) -> Tensor:
    """x times x, elementwise."""
    return apply1(SQUARE, x, None)

def sqrt(x: Data) -> Tensor:
    """The square root, elementwise; nan below 0. Its gradient at 0 is inf."""
    return apply1(SQRT, x, None)

def rsqrt(x: Data) -> Tensor:
    """1 over the square root, elementwise; inf at 0, nan below."""
    return apply1(RSQRT, x, None)

def reciprocal(x: Data) -> Tensor:
    """1 / x, elementwise; integers give the default dtype."""
    return apply1(RECIPROCAL, x, None)
