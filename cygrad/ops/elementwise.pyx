"""Elementwise operators, with NumPy's broadcasting. Each is its formula, its kernel and a rule for each input; what
backward keeps are the inputs and outputs that the rules read."""

import numpy as np

from cython cimport final
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from cygrad.core cimport layout as lay
from cygrad.core.bridge cimport lend
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph cimport Backward, Call, Operator, Tensor, ensure_tensor
from cygrad.core.run cimport apply1, apply2
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport BOOL, FLOAT32, Array, itemsize
from cygrad.kernels.bits cimport mask
from cygrad.kernels.driver cimport gather
from cygrad.ops.base cimport G, NUMBER, OUT, X, Y, Elementwise

from cygrad.core.dtypes import DTYPES


# ---- arithmetic ------------------------------------------------------------------------------------------------------

@final
cdef class Add(Elementwise):
    """z = x + y        dx = g        dy = g"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.numpy = "add", 2, driver.find("add"), np.add
        self.slope_same(0)
        self.slope_same(1)

    def formula(self, c, int i, g):
        return g


@final
cdef class Sub(Elementwise):
    """z = x - y        dx = g        dy = -g"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.numpy = "sub", 2, driver.find("sub"), np.subtract
        self.slope_same(0)
        self.slope(1, "neg", [G])

    def formula(self, c, int i, g):
        return g if i == 0 else -g


@final
cdef class Mul(Elementwise):
    """z = x y        dx = g y        dy = g x"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.numpy = "mul", 2, driver.find("mul"), np.multiply
        self.slope(0, "mul", [G, Y])
        self.slope(1, "mul", [G, X])

    def formula(self, c, int i, g):
        return g * c.input(1 - i)


@final
cdef class Div(Elementwise):
    """z = x / y        dx = g / y        dy = -g z / y"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.floats = "div", 2, driver.find("div"), True
        self.slope(0, "div", [G, Y])
        self.slope(1, "div_grad_y", [G, Y, OUT])

    def formula(self, c, int i, g):
        return g / c.input(1) if i == 0 else -g * c.output(0) / c.input(1)


@final
cdef class Neg(Elementwise):
    """y = -x        dx = -g"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.numpy = "neg", 1, driver.find("neg"), np.negative
        self.slope(0, "neg", [G])

    def formula(self, c, int i, g):
        return -g


@final
cdef class Pow(Elementwise):
    """y = x^p, p a number        dx = g p x^(p - 1)

    With p = 1 that is g, with p = 0 it is 0: neither needs x."""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.numpy = "pow", 1, driver.find("pow"), np.power
        self.has_number = True
        self.slope(0, "pow_grad", [G, X, NUMBER])

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        return 0 if <object>c.attributes in (0, 1) else Elementwise.keeps(self, c, wanted)

    cdef int backward(self, Backward b) except -1:
        cdef Array dx
        p = <object>b.node.attributes
        if p == 1: return b.same_gradient(0, True)
        if p != 0: return Elementwise.backward(self, b)
        if not b.over_gradient(0, &dx): dx = b.make(0, b.node.layout, b.node.dtype)
        memset(dx.data, 0, dx.layout.size * itemsize(dx.dtype))
        return 0

    def formula(self, c, int i, g):
        p = c.attributes
        return g if p == 1 else g * (pow(c.input(0), p - 1) * p) if p else g * 0


# ---- exponentials ----------------------------------------------------------------------------------------------------

@final
cdef class Exp(Elementwise):
    """y = e^x        dx = g y"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.floats = "exp", 1, driver.find("exp"), True
        self.slope(0, "mul", [G, OUT])

    def formula(self, c, int i, g):
        return g * c.output(0)


@final
cdef class Log(Elementwise):
    """y = log x        dx = g / x"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.floats = "log", 1, driver.find("log"), True
        self.slope(0, "div", [G, X])

    def formula(self, c, int i, g):
        return g / c.input(0)


@final
cdef class Tanh(Elementwise):
    """y = tanh x        dx = g (1 - y^2)"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.floats = "tanh", 1, driver.find("tanh"), True
        self.slope(0, "tanh_grad", [G, OUT])

    def formula(self, c, int i, g):
        y = c.output(0)
        return g * (1 - y * y)


# ---- choices ---------------------------------------------------------------------------------------------------------

@final
cdef class Relu(Elementwise):
    """y = max(x, 0)        dx = g where y > 0, else 0"""

    def __cinit__(self):
        self.name, self.n_in, self.value, self.numpy = "relu", 1, driver.find("relu"), lambda x: np.maximum(x, 0)
        self.slope(0, "relu_grad", [G, OUT])
        self.signs = True

    cdef int backward(self, Backward b) except -1:
        cdef const uint8_t* bits = b.bits(OUT)
        cdef Array g, dx
        if bits == NULL: return Elementwise.backward(self, b)
        g = b.gradient(0)
        if not b.over_gradient(0, &dx): dx = b.make(0, b.node.layout, b.node.dtype)
        if not g.layout.dense:
            gather(dx.data, &g, 0, dx.layout.size)
            g = dx
        mask(bits, dx.dtype, dx.layout.size, g.data, dx.data)
        b.done(OUT)
        b.done_gradient(0)
        return 0

    def formula(self, c, int i, g):
        return relu_gradient(g, c.output(0))


@final
cdef class ReluGradient(Elementwise):
    """z = g where y > 0, else 0        dg = (g of z) where y > 0, else 0"""

    def __cinit__(self):
        self.name, self.n_in, self.value = "relu_gradient", 2, driver.find("relu_grad")
        self.slope(0, "relu_grad", [G, Y])

    def formula(self, c, int i, g):
        return relu_gradient(g, c.input(1)) if i == 0 else None


# ---- comparisons -----------------------------------------------------------------------------------------------------

@final
cdef class Compare(Operator):
    """z = x <op> y, a bool tensor; no gradient"""
    cdef object ufunc

    def __cinit__(self, str name, ufunc):
        self.name, self.ufunc = name, ufunc
        self.promotes = True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.broadcast(self.name, c.x[0].layout, c.x[1].layout)
        c.y[0].dtype = BOOL
        return 0

    cdef int forward(self, Call* c) except -1:
        self.ufunc(lend(&c.x[0], NULL, False), lend(&c.x[1], NULL, False), out=lend(&c.y[0], NULL, True))
        return 0


cdef Operator ADD = Add(), SUB = Sub(), MUL = Mul(), DIV = Div(), NEG = Neg(), POW = Pow()
cdef Operator EXP = Exp(), LOG = Log(), TANH = Tanh(), RELU = Relu(), RELU_GRADIENT = ReluGradient()
cdef list COMPARE = [Compare("less", np.less), Compare("less_equal", np.less_equal), Compare("equal", np.equal),
                     Compare("not_equal", np.not_equal), Compare("greater", np.greater),
                     Compare("greater_equal", np.greater_equal)]     # in the order of Python's numbers for them
OPERATORS = {o.name: o for o in (ADD, SUB, MUL, DIV, NEG, POW, EXP, LOG, TANH, RELU, RELU_GRADIENT, *COMPARE)}


def add(x, y):
    """x + y, elementwise with broadcasting."""
    return apply2(ADD, x, y, None)

def sub(x, y):
    """x - y, elementwise with broadcasting."""
    return apply2(SUB, x, y, None)

def mul(x, y):
    """x y, elementwise with broadcasting."""
    return apply2(MUL, x, y, None)

def div(x, y):
    """x / y, elementwise with broadcasting; integers give the default dtype."""
    return apply2(DIV, x, y, None)

def neg(x):
    """-x, elementwise."""
    return apply1(NEG, x, None)

def pow(x, p):
    """x to the power of the number p, elementwise.

    Raises TypeError if p is no number, ValueError for integers to a negative power."""
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise TypeError(f"pow: the exponent must be a Python number, got {type(p).__name__}")
    cdef Tensor t = ensure_tensor(x)
    if t.dtype < FLOAT32 and isinstance(p, float): t = t.astype(DTYPES[default_dtype()])
    if t.dtype < FLOAT32 and p < 0:
        raise ValueError(f"pow: {DTYPES[t.dtype]} to the power of {p} is no integer; use {float(p)}, or cast with "
                         f"astype first")
    return apply1(POW, t, p)

def exp(x):
    """e to the power of x, elementwise."""
    return apply1(EXP, x, None)

def log(x):
    """The natural logarithm, elementwise; -inf at 0, nan below."""
    return apply1(LOG, x, None)

def tanh(x):
    """The hyperbolic tangent, elementwise."""
    return apply1(TANH, x, None)

def relu(x):
    """max(x, 0), elementwise; the gradient at 0 is 0."""
    return apply1(RELU, x, None)

def relu_gradient(g, y):
    """g where y > 0, else 0: what relu's gradient is, itself differentiable in g."""
    return apply2(RELU_GRADIENT, g, y, None)


def compare(x, y, int op):
    """Python's rich comparison number `op` of x and y, elementwise with broadcasting."""
    return apply2(COMPARE[op], x, y, None)

def less(x, y):
    """x < y, elementwise with broadcasting: a bool tensor."""
    return compare(x, y, 0)

def less_equal(x, y):
    """x <= y, elementwise with broadcasting: a bool tensor."""
    return compare(x, y, 1)

def equal(x, y):
    """x == y, elementwise with broadcasting: a bool tensor."""
    return compare(x, y, 2)

def not_equal(x, y):
    """x != y, elementwise with broadcasting: a bool tensor."""
    return compare(x, y, 3)

def greater(x, y):
    """x > y, elementwise with broadcasting: a bool tensor."""
    return compare(x, y, 4)

def greater_equal(x, y):
    """x >= y, elementwise with broadcasting: a bool tensor."""
    return compare(x, y, 5)
