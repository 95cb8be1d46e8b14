"""Special functions, elementwise: logarithms and powers of other bases, the gamma function, sinc, angles, and choices
that NumPy has beside maximum and minimum. Integers are cast to the default dtype first."""

from cygrad.core.execute.run cimport apply1, apply2
from cygrad.core.graph.operator cimport Operator
from cygrad.core.store cimport layout as lay
from cygrad.ops.elementwise.base cimport Elementwise, number_of

import cygrad.kernels.elementwise.special  # no-cython-lint: registers its loops
from cygrad.ops.elementwise.compare import equal, isinf, isnan, less_equal, logical_and, logical_not, where
from cygrad.ops.elementwise.elementwise import neg, square
from cygrad.ops.elementwise.functions import exp, log, sigmoid

cdef double LN_2 = 0.69314718055994530942
cdef double LN_10 = 2.30258509299404568402
cdef double TWO_ROOT_PI = 1.12837916709551257390    # 2 / sqrt(pi)


# ---- logarithms and powers -------------------------------------------------------------------------------------------

cdef class Log2(Elementwise):
    """y = log x / log 2        dx = g / (x log 2)"""
    dx = "log2_grad g x"

    cdef object formula(self, c, int i, g):
        return g / (c.input(0) * LN_2)


cdef class Log10(Elementwise):
    """y = log x / log 10        dx = g / (x log 10)"""
    dx = "log10_grad g x"

    cdef object formula(self, c, int i, g):
        return g / (c.input(0) * LN_10)


cdef class Exp2(Elementwise):
    """y = 2^x        dx = g y log 2"""
    dx = "exp2_grad g out"

    cdef object formula(self, c, int i, g):
        return g * (c.output(0) * LN_2)


cdef class Cbrt(Elementwise):
    """y = the real cube root of x        dx = g / (3 y^2)"""
    dx = "cbrt_grad g out"

    cdef object formula(self, c, int i, g):
        return g / (3 * square(c.output(0)))


cdef class Logaddexp(Elementwise):
    """z = log(e^x + e^y)        dx = g e^x / (e^x + e^y)        dy = g - dx"""
    operands = "x y"
    dx = "logaddexp_grad_x g x y"
    dy = "logaddexp_grad_y g x y"

    cdef object formula(self, c, int i, g):
        x, y = c.input(i), c.input(1 - i)
        same = logical_and(equal(x, y), isinf(x))               # where x - y is NaN
        return g * sigmoid(where(same, 0, x - y))


cdef class Xlogy(Elementwise):
    """z = x log y, 0 where x is 0        dx = g log y        dy = g x / y        (each 0 where x is 0 and y is)"""
    operands = "x y"
    dx = "xlogy_grad_x g x y"
    dy = "xlogy_grad_y g x y"

    cdef object formula(self, c, int i, g):
        x, y = c.input(0), c.input(1)
        if i == 0:
            flat = logical_and(equal(x, 0), less_equal(y, 0))
            return where(flat, 0, g * log(where(flat, 1, y)))
        flat = logical_and(equal(x, 0), logical_not(isnan(y)))
        return where(flat, 0 * x, 1) * g * x / where(logical_and(flat, equal(y, 0)), 1, y)


# ---- the error function and the gamma function -----------------------------------------------------------------------

cdef class Erfc(Elementwise):
    """y = 1 - erf x        dx = -2 g e^(-x^2) / sqrt(pi)"""
    dx = "erfc_grad g x"

    cdef object formula(self, c, int i, g):
        return g * (-TWO_ROOT_PI * exp(neg(square(c.input(0)))))


cdef class Erfinv(Elementwise):
    """erf y = x, infinite for -1 and 1        dx = g e^(y^2) sqrt(pi) / 2"""
    dx = "erfinv_grad g out"

    cdef object formula(self, c, int i, g):
        return g * (exp(square(c.output(0))) * (1 / TWO_ROOT_PI))


cdef class Lgamma(Elementwise):
    """y = log |gamma(x)|        dx = g digamma(x)"""
    dx = "lgamma_grad g x"

    cdef object formula(self, c, int i, g):
        return g * digamma(c.input(0))


cdef class Digamma(Elementwise):
    """y = d/dx log gamma(x)        dx = g polygamma(1, x)"""
    dx = "digamma_grad g x"

    cdef object formula(self, c, int i, g):
        return g * polygamma(1, c.input(0))


cdef class Polygamma(Elementwise):
    """y = the derivative of order n of digamma at x        dx = g polygamma(n + 1, x)"""
    number = "n"
    dx = "polygamma_grad g x p"

    cdef object formula(self, c, int i, g):
        return g * polygamma(c.attributes.number + 1, c.input(0))


# ---- sinc and angles -------------------------------------------------------------------------------------------------

cdef class Sinc(Elementwise):
    """y = sin(pi x) / (pi x), 1 at 0        dx = g (cos(pi x) - y) / x, 0 at 0"""
    dx = "sinc_grad g x"

    cdef object formula(self, c, int i, g):
        return g * sinc_derivative(c.input(0), 1)


cdef class SincDerivative(Elementwise):
    """y = the derivative of order n of sinc        dx = g times that of order n + 1"""
    number = "n"
    dx = "sinc_derivative_grad g x p"

    cdef object formula(self, c, int i, g):
        return g * sinc_derivative(c.input(0), c.attributes.number + 1)


cdef class Atan2(Elementwise):
    """z = the angle of the point (y, x)        dx = g y / (x^2 + y^2)        dy = -g x / (x^2 + y^2)

    The first argument, the ordinate, is x in this formula. Both gradients are 0 at the origin."""
    operands = "x y"
    dx = "atan2_grad_y g x y"
    dy = "atan2_grad_x g x y"

    cdef object formula(self, c, int i, g):
        y, x = c.input(0), c.input(1)
        r = square(x) + square(y)
        origin = equal(r, 0)
        return where(origin, 0, g * (x if i == 0 else neg(y)) / where(origin, 1, r))


cdef class Hypot(Elementwise):
    """z = sqrt(x^2 + y^2)        dx = g x / z        dy = g y / z        (0 at the origin)"""
    operands = "x y"
    dx = "hypot_grad g x out"
    dy = "hypot_grad g y out"

    cdef object formula(self, c, int i, g):
        z = c.output(0)
        origin = equal(z, 0)
        return where(origin, 0, g * c.input(i) / where(origin, 1, z))


# ---- choices ---------------------------------------------------------------------------------------------------------

cdef class Copysign(Elementwise):
    """z = |x| with the sign of y        dx = g where x has that sign, -g where not, 0 where x is 0        dy = 0"""
    operands = "x y"
    code, bits = "copysign_code", 2
    dx = "abs_grad code g"
    dy = "zero g"

    cdef object formula(self, c, int i, g):
        if i == 1: return where(False, g, 0)
        return c.locally_constant(where(self.where_code(c, 1), g, where(self.where_code(c, 2), -g, 0)))


cdef class Fmax(Elementwise):
    """z = the larger of x and y, no NaN        dx = g where z is x, g / 2 where equal, else 0        dy = g - dx"""
    operands = "x y"
    code, bits = "fmax_code", 2
    dx = "maximum_grad_x code g"
    dy = "maximum_grad_y code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 2 - i), 0, where(self.where_code(c, 3), 0.5 * g, g)))


cdef class Fmin(Elementwise):
    """z = the smaller of x and y, no NaN        dx = g where z is x, g / 2 where equal, else 0        dy = g - dx"""
    operands = "x y"
    code, bits = "fmin_code", 2
    dx = "maximum_grad_x code g"
    dy = "maximum_grad_y code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 2 - i), 0, where(self.where_code(c, 3), 0.5 * g, g)))


cdef Operator LOG2 = Log2(), LOG10 = Log10(), EXP2 = Exp2(), CBRT = Cbrt(), LOGADDEXP = Logaddexp(), XLOGY = Xlogy()
cdef Operator ERFC = Erfc(), ERFINV = Erfinv(), LGAMMA = Lgamma(), DIGAMMA = Digamma(), POLYGAMMA = Polygamma()
cdef Operator SINC = Sinc(), SINC_DERIVATIVE = SincDerivative(), ATAN2 = Atan2(), HYPOT = Hypot()
cdef Operator COPYSIGN = Copysign(), FMAX = Fmax(), FMIN = Fmin()
OPERATORS = {o.name: o for o in (
    LOG2, LOG10, EXP2, CBRT, LOGADDEXP, XLOGY, ERFC, ERFINV, LGAMMA, DIGAMMA, POLYGAMMA, SINC, SINC_DERIVATIVE, ATAN2,
    HYPOT, COPYSIGN, FMAX, FMIN)}


def log2(x: Data) -> Tensor:
    """The logarithm to base 2, elementwise; -inf at 0, NaN below."""
    return apply1(LOG2, x, None)

def log10(x: Data) -> Tensor:
    """The logarithm to base 10, elementwise; -inf at 0, NaN below."""
    return apply1(LOG10, x, None)

def exp2(x: Data) -> Tensor:
    """2 to the power of x, elementwise."""
    return apply1(EXP2, x, None)

def cbrt(x: Data) -> Tensor:
    """The real cube root, elementwise, negative below 0. Its gradient at 0 is inf."""
    return apply1(CBRT, x, None)

def logaddexp(x: Data, y: Data) -> Tensor:
    """log(e^x + e^y), elementwise with broadcasting, without overflow."""
    return apply2(LOGADDEXP, x, y, None)

def xlogy(x: Data, y: Data) -> Tensor:
    """x log y, elementwise with broadcasting; 0 where x is 0, unless y is NaN."""
    return apply2(XLOGY, x, y, None)

def erfc(x: Data) -> Tensor:
    """1 - erf(x), elementwise, accurate where that is small."""
    return apply1(ERFC, x, None)

def erfinv(x: Data) -> Tensor:
    """The inverse of erf, elementwise, for x from -1 to 1, where it is infinite; NaN outside. Source of the first
    approximation: M. Giles, Approximating the erfinv function (2012)."""
    return apply1(ERFINV, x, None)

def lgamma(x: Data) -> Tensor:
    """The logarithm of the absolute value of the gamma function, elementwise; inf at 0 and the negative integers."""
    return apply1(LGAMMA, x, None)

def digamma(x: Data) -> Tensor:
    """The derivative of the logarithm of the gamma function, elementwise; NaN at the negative integers."""
    return apply1(DIGAMMA, x, None)

def polygamma(n: int, x: Data) -> Tensor:
    """The derivative of order n of digamma at x, elementwise, for an integer n of at least 0. At 0 and the negative
    integers it is inf for odd n and NaN for even n. Below -1e6 it is NaN. Raises TypeError or ValueError for another
    n."""
    order = lay.read_integer("polygamma", "n", n)
    if not 0 <= order <= 100: raise ValueError(f"polygamma: n is {order}; it must be from 0 to 100")
    return apply1(POLYGAMMA, x, number_of(order))

def sinc(x: Data) -> Tensor:
    """sin(pi x) / (pi x), elementwise; 1 at 0."""
    return apply1(SINC, x, None)

def sinc_derivative(x: Data, n: int) -> Tensor:
    """The derivative of order `n` of sinc, elementwise."""
    return apply1(SINC_DERIVATIVE, x, number_of(n))

def atan2(x: Data, y: Data) -> Tensor:
    """The angle of the point with ordinate x and abscissa y, from -pi to pi, elementwise with broadcasting. As in
    numpy.arctan2(x, y). The gradients at the origin are 0."""
    return apply2(ATAN2, x, y, None)

def hypot(x: Data, y: Data) -> Tensor:
    """The length sqrt(x^2 + y^2), elementwise with broadcasting, without overflow. The gradients at the origin are
    0."""
    return apply2(HYPOT, x, y, None)

def copysign(x: Data, y: Data) -> Tensor:
    """|x| with the sign of y, elementwise with broadcasting; the gradient of y is 0."""
    return apply2(COPYSIGN, x, y, None)

def fmax(x: Data, y: Data) -> Tensor:
    """The larger of x and y, elementwise with broadcasting; where one is NaN, the other. Equal elements share the
    gradient."""
    return apply2(FMAX, x, y, None)

def fmin(x: Data, y: Data) -> Tensor:
    """The smaller of x and y, elementwise with broadcasting; where one is NaN, the other. Equal elements share the
    gradient."""
    return apply2(FMIN, x, y, None)
