"""Unary functions: exponentials, logarithms, trigonometry and activations. See ops/elementwise/elementwise.pyx for how
an operator is written. Integers are cast to the default dtype first, except by relu."""

import numpy as np

from libc.stdint cimport uint8_t

from cygrad.core.graph.operator cimport BackwardCall, Operator, saved_bits
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels.array cimport Array
from cygrad.kernels.bits cimport mask
from cygrad.kernels.driver cimport Loop, LoopCall, find, gather
from cygrad.ops.elementwise.base cimport OUT, Elementwise, number_of, set_coded

from cygrad.core.errors import as_float, described
from cygrad.ops.elementwise.compare import where
from cygrad.ops.elementwise.elementwise import rsqrt, square

cdef double ROOT_HALF = 0.70710678118654752440      # sqrt(1 / 2)
cdef double ROOT_2_PI = 0.39894228040143267794      # 1 / sqrt(2 pi)
cdef double TWO_ROOT_PI = 1.12837916709551257390    # 2 / sqrt(pi)
cdef double ROOT_TWO_PI = 0.79788456080286535588    # sqrt(2 / pi)
cdef double CUBIC = 0.044715
cdef Loop* CHOSEN = find("chosen_1")


# ---- exponentials and logarithms -------------------------------------------------------------------------------------

cdef class Exp(Elementwise):
    """y = e^x        dx = g y"""
    dx = "mul g out"

    cdef object formula(self, c, int i, g):
        return g * c.output(0)


cdef class Expm1(Elementwise):
    """y = e^x - 1        dx = g (y + 1)"""
    dx = "expm1_grad g out"

    cdef object formula(self, c, int i, g):
        return g * (c.output(0) + 1)


cdef class Log(Elementwise):
    """y = log x        dx = g / x"""
    dx = "div g x"

    cdef object formula(self, c, int i, g):
        return g / c.input(0)


cdef class Log1p(Elementwise):
    """y = log(1 + x)        dx = g / (1 + x)"""
    dx = "log1p_grad g x"

    cdef object formula(self, c, int i, g):
        return g / (c.input(0) + 1)


# ---- trigonometry ----------------------------------------------------------------------------------------------------

cdef class Sin(Elementwise):
    """y = sin x        dx = g cos x"""
    dx = "sin_grad g x"

    cdef object formula(self, c, int i, g):
        return g * cos(c.input(0))


cdef class Cos(Elementwise):
    """y = cos x        dx = -g sin x"""
    dx = "cos_grad g x"

    cdef object formula(self, c, int i, g):
        return -g * sin(c.input(0))


cdef class Tan(Elementwise):
    """y = tan x        dx = g (1 + y^2)"""
    dx = "tan_grad g out"

    cdef object formula(self, c, int i, g):
        return g * (1 + square(c.output(0)))


cdef class Asin(Elementwise):
    """y = asin x        dx = g / sqrt(1 - x^2)"""
    dx = "asin_grad g x"

    cdef object formula(self, c, int i, g):
        return g * rsqrt(1 - square(c.input(0)))


cdef class Acos(Elementwise):
    """y = acos x        dx = -g / sqrt(1 - x^2)"""
    dx = "acos_grad g x"

    cdef object formula(self, c, int i, g):
        return -g * rsqrt(1 - square(c.input(0)))


cdef class Atan(Elementwise):
    """y = atan x        dx = g / (1 + x^2)"""
    dx = "atan_grad g x"

    cdef object formula(self, c, int i, g):
        return g / (1 + square(c.input(0)))


# ---- hyperbolic functions --------------------------------------------------------------------------------------------

cdef class Sinh(Elementwise):
    """y = sinh x        dx = g cosh x"""
    dx = "sinh_grad g x"

    cdef object formula(self, c, int i, g):
        return g * cosh(c.input(0))


cdef class Cosh(Elementwise):
    """y = cosh x        dx = g sinh x"""
    dx = "cosh_grad g x"

    cdef object formula(self, c, int i, g):
        return g * sinh(c.input(0))


cdef class Tanh(Elementwise):
    """y = tanh x        dx = g (1 - y^2)"""
    dx = "tanh_grad g out"

    cdef object formula(self, c, int i, g):
        return g * (1 - square(c.output(0)))


cdef class Asinh(Elementwise):
    """y = asinh x        dx = g / sqrt(x^2 + 1)"""
    dx = "asinh_grad g x"

    cdef object formula(self, c, int i, g):
        return g * rsqrt(square(c.input(0)) + 1)


cdef class Acosh(Elementwise):
    """y = acosh x        dx = g / sqrt(x^2 - 1)"""
    dx = "acosh_grad g x"

    cdef object formula(self, c, int i, g):
        return g * rsqrt(square(c.input(0)) - 1)


cdef class Atanh(Elementwise):
    """y = atanh x        dx = g / (1 - x^2)"""
    dx = "atanh_grad g x"

    cdef object formula(self, c, int i, g):
        return g / (1 - square(c.input(0)))


# ---- erf and activations ---------------------------------------------------------------------------------------------

cdef class Erf(Elementwise):
    """y = 2 / sqrt(pi) (integral of e^(-t^2) from 0 to x)        dx = g 2 / sqrt(pi) e^(-x^2)"""
    dx = "erf_grad g x"

    cdef object formula(self, c, int i, g):
        return g * (TWO_ROOT_PI * exp(-square(c.input(0))))


cdef class Sigmoid(Elementwise):
    """y = 1 / (1 + e^-x)        dx = g y (1 - y)"""
    dx = "sigmoid_grad g out"

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        return g * (y * (1 - y))


cdef class Softplus(Elementwise):
    """y = log(1 + e^(p x)) / p, p a number        dx = g (1 - e^(-p y))"""
    number = "beta"
    result_may_change = True
    dx = "softplus_grad g out p"

    cdef object formula(self, c, int i, g):
        return -g * expm1(c.output(0) * -c.attributes.number)


cdef class Silu(Elementwise):
    """y = x s, s = sigmoid(x)        dx = g s (1 + x (1 - s))"""
    dx = "silu_grad g x"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        s = sigmoid(x)
        return g * (s * (1 + x * (1 - s)))


cdef class Gelu(Elementwise):
    """y = x P, P = (1 + erf(x / sqrt 2)) / 2        dx = g (P + x e^(-x^2 / 2) / sqrt(2 pi))"""
    dx = "gelu_grad g x"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        return g * (0.5 * (1 + erf(x * ROOT_HALF)) + x * (ROOT_2_PI * exp(-0.5 * square(x))))


cdef class GeluTanh(Elementwise):
    """y = x (1 + t) / 2, t = tanh u        dx = g ((1 + t) + x (1 - t^2) u') / 2

    with u = sqrt(2 / pi) (x + 0.044715 x^3); Hendrycks and Gimpel, https://arxiv.org/abs/1606.08415"""
    dx = "gelu_tanh_grad g x"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        x2 = square(x)
        t = tanh(ROOT_TWO_PI * (x + CUBIC * x * x2))
        return g * (0.5 * (1 + t) + 0.5 * x * ((1 - square(t)) * (ROOT_TWO_PI * (1 + 3 * CUBIC * x2))))


cdef class Relu(Elementwise):
    """y = max(x, 0)        dx = g where y > 0, else 0"""
    traits = "signs"
    integers = staticmethod(lambda x, **into: np.maximum(x, x.dtype.type(0), **into))
    dx = "relu_gradient g out"

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const uint8_t* bits = saved_bits(b, OUT)
        cdef Array dx = b.dx[0], g = b.g[0]
        if bits == NULL: return Elementwise.run_backward(self, b, stage)
        if not g.layout.dense:
            gather(dx.data, &g, 0, dx.layout.size)
            g = dx
        mask(bits, dx.dtype, dx.layout.size, g.data, dx.data)

    cdef bint backward_loop(self, const BackwardCall* b, int stage, LoopCall* l) noexcept nogil:
        cdef const uint8_t* bits = saved_bits(b, OUT)
        if bits == NULL: return Elementwise.backward_loop(self, b, stage, l)
        set_coded(l, CHOSEN, bits, b)               # (as mask(), which is faster alone)
        return True

    cdef object formula(self, c, int i, g):
        return c.locally_constant(relu_gradient(g, c.output(0).detach()))


cdef class ReluGradient(Elementwise):
    """z = g where y > 0, else 0        dg = dz where y > 0, else 0        dy = 0"""
    operands, integers = "g y", None
    code = "relu_gradient_code"
    dg = "chosen_1 code g"
    dy = "zero g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 1) if i == 0 else False, g, 0))


cdef Operator EXP = Exp(), EXPM1 = Expm1(), LOG = Log(), LOG1P = Log1p()
cdef Operator SIN = Sin(), COS = Cos(), TAN = Tan(), ASIN = Asin(), ACOS = Acos(), ATAN = Atan()
cdef Operator SINH = Sinh(), COSH = Cosh(), TANH = Tanh(), ASINH = Asinh(), ACOSH = Acosh(), ATANH = Atanh()
cdef Operator ERF = Erf(), SIGMOID = Sigmoid(), SOFTPLUS = Softplus(), SILU = Silu()
cdef Operator GELU = Gelu(), GELU_TANH = GeluTanh()
cdef Operator RELU = Relu(), RELU_GRADIENT = ReluGradient()
OPERATORS = {o.name: o for o in (
    EXP, EXPM1, LOG, LOG1P, SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, TANH, ASINH, ACOSH, ATANH,
    ERF, SIGMOID, SOFTPLUS, SILU, GELU, GELU_TANH, RELU, RELU_GRADIENT)}


def exp(x: Data) -> Tensor:
    """e to the power of x, elementwise."""
    return apply1(EXP, x, None)

def expm1(x: Data) -> Tensor:
    """e to the power of x, minus 1, elementwise; accurate near x = 0 too."""
    return apply1(EXPM1, x, None)

def log(x: Data) -> Tensor:
    """The natural logarithm, elementwise; -inf at 0, nan below."""
    return apply1(LOG, x, None)

def log1p(x: Data) -> Tensor:
    """The natural logarithm of 1 + x, elementwise; accurate near x = 0 too; -inf at -1, nan below."""
    return apply1(LOG1P, x, None)

def sin(x: Data) -> Tensor:
    """The sine of x in radians, elementwise."""
    return apply1(SIN, x, None)

def cos(x: Data) -> Tensor:
    """The cosine of x in radians, elementwise."""
    return apply1(COS, x, None)

def tan(x: Data) -> Tensor:
    """The tangent of x in radians, elementwise."""
    return apply1(TAN, x, None)

def asin(x: Data) -> Tensor:
    """The angle from -pi/2 to pi/2 whose sine is x, elementwise; nan outside [-1, 1]."""
    return apply1(ASIN, x, None)

def acos(x: Data) -> Tensor:
    """The angle from 0 to pi whose cosine is x, elementwise; nan outside [-1, 1]."""
    return apply1(ACOS, x, None)

def atan(x: Data) -> Tensor:
    """The angle from -pi/2 to pi/2 whose tangent is x, elementwise."""
    return apply1(ATAN, x, None)

def sinh(x: Data) -> Tensor:
    """The hyperbolic sine, elementwise."""
    return apply1(SINH, x, None)

def cosh(x: Data) -> Tensor:
    """The hyperbolic cosine, elementwise."""
    return apply1(COSH, x, None)

def tanh(x: Data) -> Tensor:
    """The hyperbolic tangent, elementwise."""
    return apply1(TANH, x, None)

def asinh(x: Data) -> Tensor:
    """The number whose hyperbolic sine is x, elementwise."""
    return apply1(ASINH, x, None)

def acosh(x: Data) -> Tensor:
    """The nonnegative number whose hyperbolic cosine is x, elementwise; nan below 1."""
    return apply1(ACOSH, x, None)

def atanh(x: Data) -> Tensor:
    """The number whose hyperbolic tangent is x, elementwise; -inf at -1, inf at 1, nan beyond."""
    return apply1(ATANH, x, None)

def erf(x: Data) -> Tensor:
    """The error function, elementwise."""
    return apply1(ERF, x, None)

def sigmoid(x: Data) -> Tensor:
    """1 / (1 + e^-x), elementwise, without overflow."""
    return apply1(SIGMOID, x, None)

def softplus(x: Data, beta: float = 1.0) -> Tensor:
    """log(1 + e^(beta x)) / beta, elementwise, without a threshold for large x.

    Raises TypeError if beta is not a Python number, ValueError if it is 0."""
    if isinstance(beta, bool) or not isinstance(beta, (int, float)):
        raise TypeError(f"softplus: beta must be a Python number, got {type(beta).__name__}")
    if isinstance(beta, int): as_float(beta, "softplus: beta")
    if beta == 0: raise ValueError("softplus: beta must not be 0, because the result is divided by it")
    return apply1(SOFTPLUS, x, number_of(beta))

def silu(x: Data) -> Tensor:
    """x sigmoid(x), elementwise."""
    return apply1(SILU, x, None)

def gelu(x: Data, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """x times the standard normal CDF at x, elementwise.

    approximate="tanh" uses the formula of gelu_tanh, which differs by up to 0.0005. Raises ValueError for another
    value."""
    if approximate == "none": return apply1(GELU, x, None)
    if approximate == "tanh": return gelu_tanh(x)
    raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {described(approximate)}")

def gelu_tanh(x: Data) -> Tensor:
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, elementwise: gelu(x, approximate="tanh")."""
    return apply1(GELU_TANH, x, None)

def relu(x: Data) -> Tensor:
    """max(x, 0), elementwise; the gradient at 0 is 0."""
    return apply1(RELU, x, None)

def relu_gradient(g: Data, y: Data) -> Tensor:
    """g where y > 0, else 0: the gradient of relu, which is differentiable in g."""
    return apply2(RELU_GRADIENT, g, y, None)
