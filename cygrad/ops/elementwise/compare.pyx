"""Comparisons, logic and selection, with NumPy's broadcasting. See ops/elementwise/elementwise.pyx for how an operator
is written."""

import numpy as np

from libc.stdint cimport uint64_t

from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, is_saved, saved
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor, slot_from
from cygrad.core.execute.composed cimport rename
from cygrad.core.execute.run cimport apply1, apply2, apply3
from cygrad.kernels cimport driver
from cygrad.kernels.driver cimport LoopCall
from cygrad.kernels.array cimport BOOL, MAX_NDIM, Array, Layout, is_floating, is_real
from cygrad.kernels.shapes.choose cimport choose
from cygrad.ops.elementwise.base cimport CODE, Elementwise, Truth, recorded_inputs, spread

from cygrad.core.dtypes import DTYPES


# ---- comparisons -----------------------------------------------------------------------------------------------------

cdef class Less(Truth):
    """z = x < y, a bool; no gradient"""
    operands, integers = "x y", np.less


cdef class LessEqual(Truth):
    """z = x <= y, a bool; no gradient"""
    operands, integers = "x y", np.less_equal


cdef class Equal(Truth):
    """z = x == y, a bool; no gradient"""
    operands, integers = "x y", np.equal


cdef class NotEqual(Truth):
    """z = x != y, a bool; no gradient"""
    operands, integers = "x y", np.not_equal


cdef class Greater(Truth):
    """z = x > y, a bool; no gradient"""
    operands, integers = "x y", np.greater


cdef class GreaterEqual(Truth):
    """z = x >= y, a bool; no gradient"""
    operands, integers = "x y", np.greater_equal


cdef class Isnan(Truth):
    """y = whether x is nan, a bool; no gradient"""
    integers = np.isnan


cdef class Isinf(Truth):
    """y = whether x is inf or -inf, a bool; no gradient"""
    integers = np.isinf


cdef class Isfinite(Truth):
    """y = whether x is neither nan nor infinite, a bool; no gradient"""
    integers = np.isfinite


# ---- logic -----------------------------------------------------------------------------------------------------------

cdef class LogicalAnd(Truth):
    """z = x and y, a bool; no gradient"""
    operands, integers = "x y", np.logical_and


cdef class LogicalOr(Truth):
    """z = x or y, a bool; no gradient"""
    operands, integers = "x y", np.logical_or


cdef class LogicalXor(Truth):
    """z = x xor y, a bool; no gradient"""
    operands, integers = "x y", np.logical_xor


cdef class LogicalNot(Truth):
    """y = not x, a bool; no gradient"""
    integers = np.logical_not


cdef class Bitwise(Elementwise):
    """z = x <op> y, bit by bit; no gradient. The kernels of the logical operators compute bools; NumPy computes
    integers."""

    def __cinit__(self):
        self.fused = self.differentiable = False
        self.value = driver.find(self.name.replace("bitwise", "logical"))

    cdef int infer(self, Call* c) except -1 nogil:
        if not is_floating(c.x[0].dtype): return Elementwise.infer(self, c)
        with gil: raise TypeError(f"{self.name}: wanted bools or integers, got {DTYPES[c.x[0].dtype]}; compare first, "
                                  f"as in (x > 0) & (y > 0)")

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        return c.x[0].dtype == BOOL and Elementwise.forward_loop(self, c, l)


cdef class BitwiseAnd(Bitwise):
    """z = x & y, bit by bit; no gradient"""
    operands, integers = "x y", np.bitwise_and


cdef class BitwiseOr(Bitwise):
    """z = x | y, bit by bit; no gradient"""
    operands, integers = "x y", np.bitwise_or


cdef class BitwiseXor(Bitwise):
    """z = x ^ y, bit by bit; no gradient"""
    operands, integers = "x y", np.bitwise_xor


cdef class BitwiseNot(Bitwise):
    """y = ~x, bit by bit; no gradient"""
    integers = np.bitwise_not


# ---- selection -------------------------------------------------------------------------------------------------------

cdef class Maximum(Elementwise):
    """z = x where x > y, else y        dx = g where x > y, g / 2 where equal, else 0        dy = g - dx"""
    operands, integers = "x y", np.maximum
    code, bits = "maximum_code", 2
    dx = "maximum_grad_x code g"
    dy = "maximum_grad_y code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 2 - i), 0, where(self.where_code(c, 3), 0.5 * g, g)))


cdef class Minimum(Elementwise):
    """z = x where x < y, else y        dx = g where x < y, g / 2 where equal, else 0        dy = g - dx"""
    operands, integers = "x y", np.minimum
    code, bits = "minimum_code", 2
    dx = "maximum_grad_x code g"
    dy = "maximum_grad_y code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 2 - i), 0, where(self.where_code(c, 3), 0.5 * g, g)))


cdef class Clip(Elementwise):
    """y = min(max(x, a), b)        dx = g if a <= x <= b        da = g if x < a < b        db = g if b < max(x, a)

    Backward keeps a code for each element: 1 bit if one gradient is wanted (whether it is g), else 2 (which is g)."""
    operands, integers = "x min? max?", np.clip
    code, bits = "clip_code", 2
    dx = "chosen_1 code g"
    dmin = "chosen_2 code g"
    dmax = "chosen_3 code g"

    cdef int code_bits(self, uint64_t wanted) noexcept nogil:
        return 1 if lone(wanted) else 2

    cdef const driver.Loop* coder_for(self, uint64_t wanted) noexcept nogil:
        return self.coder if not lone(wanted) else CLIP_X if wanted == 1 else CLIP_Y if wanted == 2 else CLIP_Z

    cdef const driver.Loop* derivative_for(self, int i, uint64_t wanted) noexcept nogil:
        return self.rules[0 if lone(wanted) else i].loop

    cdef object formula(self, c, int i, g):
        cdef uint64_t wanted = recorded_inputs((<Context>c).b.node)
        return c.locally_constant(where(self.where_code(c, 1 if lone(wanted) else i + 1), g, 0))


cdef inline bint lone(uint64_t wanted) noexcept nogil:
    """Whether the gradients of at most one input are wanted."""
    return wanted & (wanted - 1) == 0


cdef class Where(Elementwise):
    """z = x where c, else y        dx = g where c, else 0        dy = 0 where c, else g

    Backward keeps one bit for each element. A condition that is broadcast is kept itself: one such mask is often used
    in many calls, and the bits of all calls would take more memory."""
    operands, no_gradient = "condition x y", "condition"
    integers = None                                 # (choose() computes other dtypes)
    code = "where_code"
    dx = "where_grad_x code g"
    dy = "where_grad_y code g"

    def __cinit__(self):
        self.n_unpromoted = 1

    cdef int plan_code(self, Call* c) except -1 nogil:
        return Elementwise.plan_code(self, c) if c.x[0].layout.size == c.y[0].layout.size else 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return Operator.keeps(self, c, wanted) if c.hidden else 1

    cdef int code_source(self, const BackwardCall* b) noexcept nogil:
        return CODE if is_saved(b, CODE) else 0

    cdef Array codes(self, const BackwardCall* b) noexcept nogil:
        return Elementwise.codes(self, b) if is_saved(b, CODE) else saved(b, 0)

    cdef bint forward_loop(self, const Call* c, LoopCall* l) noexcept nogil:
        return is_real(c.y[0].dtype) and Elementwise.forward_loop(self, c, l)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Array a[4]
        cdef Layout seen[3]
        cdef Py_ssize_t strides[3][MAX_NDIM]
        if is_real(c.y[0].dtype): return Elementwise.forward(self, c)
        for i in range(3):
            a[i] = c.x[i]
            spread(&a[i], c.y[0].layout, &seen[i], strides[i])
        a[3] = c.y[0]
        choose(a)

    cdef object formula(self, c, int i, g):
        cdef Context context = <Context>c
        chosen = self.where_code(context, 1) if slot_from(context.b.node, CODE) != NULL else c.input(0)
        return c.locally_constant(where(chosen, g, 0) if i == 1 else where(chosen, 0, g))


cdef driver.Loop* CLIP_X = driver.find("clip_code_x")
cdef driver.Loop* CLIP_Y = driver.find("clip_code_y")
cdef driver.Loop* CLIP_Z = driver.find("clip_code_z")
cdef double LEAST = -np.inf, MOST = np.inf          # the bounds of clip that stand for None
cdef Operator LESS = Less(), LESS_EQUAL = LessEqual(), EQUAL = Equal(), NOT_EQUAL = NotEqual()
cdef Operator GREATER = Greater(), GREATER_EQUAL = GreaterEqual()
cdef Operator ISNAN = Isnan(), ISINF = Isinf(), ISFINITE = Isfinite()
cdef Operator LOGICAL_AND = LogicalAnd(), LOGICAL_OR = LogicalOr(), LOGICAL_XOR = LogicalXor()
cdef Operator LOGICAL_NOT = LogicalNot(), BITWISE_NOT = BitwiseNot()
cdef Operator BITWISE_AND = BitwiseAnd(), BITWISE_OR = BitwiseOr(), BITWISE_XOR = BitwiseXor()
cdef Operator MAXIMUM = Maximum(), MINIMUM = Minimum(), CLIP = Clip(), WHERE = Where()
COMPARISONS = (LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL)     # in the order of Py_LT to Py_GE
OPERATORS = {o.name: o for o in (
    *COMPARISONS, ISNAN, ISINF, ISFINITE, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, LOGICAL_NOT,
    BITWISE_AND, BITWISE_OR, BITWISE_XOR, BITWISE_NOT, MAXIMUM, MINIMUM, CLIP, WHERE)}


def less(x: Data, y: Data) -> Tensor:
    """x < y, elementwise with broadcasting: a bool tensor."""
    return apply2(LESS, x, y, None)

def less_equal(x: Data, y: Data) -> Tensor:
    """x <= y, elementwise with broadcasting: a bool tensor."""
    return apply2(LESS_EQUAL, x, y, None)

def equal(x: Data, y: Data) -> Tensor:
    """x == y, elementwise with broadcasting: a bool tensor."""
    return apply2(EQUAL, x, y, None)

def not_equal(x: Data, y: Data) -> Tensor:
    """x != y, elementwise with broadcasting: a bool tensor."""
    return apply2(NOT_EQUAL, x, y, None)

def greater(x: Data, y: Data) -> Tensor:
    """x > y, elementwise with broadcasting: a bool tensor."""
    return apply2(GREATER, x, y, None)

def greater_equal(x: Data, y: Data) -> Tensor:
    """x >= y, elementwise with broadcasting: a bool tensor."""
    return apply2(GREATER_EQUAL, x, y, None)

def isnan(x: Data) -> Tensor:
    """Whether x is nan, elementwise: a bool tensor."""
    return apply1(ISNAN, x, None)

def isinf(x: Data) -> Tensor:
    """Whether x is inf or -inf, elementwise: a bool tensor."""
    return apply1(ISINF, x, None)

def isfinite(x: Data) -> Tensor:
    """Whether x is neither nan nor infinite, elementwise: a bool tensor."""
    return apply1(ISFINITE, x, None)

def logical_and(x: Data, y: Data) -> Tensor:
    """Whether x and y are both true (not 0), elementwise with broadcasting: a bool tensor."""
    return apply2(LOGICAL_AND, x, y, None)

def logical_or(x: Data, y: Data) -> Tensor:
    """Whether x or y is true (not 0), elementwise with broadcasting: a bool tensor."""
    return apply2(LOGICAL_OR, x, y, None)

def logical_xor(x: Data, y: Data) -> Tensor:
    """Whether x or y, but not both, is true (not 0), elementwise with broadcasting: a bool tensor."""
    return apply2(LOGICAL_XOR, x, y, None)

def logical_not(x: Data) -> Tensor:
    """Whether x is false (0), elementwise: a bool tensor."""
    return apply1(LOGICAL_NOT, x, None)

def bitwise_and(x: Data, y: Data) -> Tensor:
    """x & y, bit by bit, elementwise with broadcasting. Raises TypeError for floats."""
    return apply2(BITWISE_AND, x, y, None)

def bitwise_or(x: Data, y: Data) -> Tensor:
    """x | y, bit by bit, elementwise with broadcasting. Raises TypeError for floats."""
    return apply2(BITWISE_OR, x, y, None)

def bitwise_xor(x: Data, y: Data) -> Tensor:
    """x ^ y (exclusive or), bit by bit, elementwise with broadcasting. Raises TypeError for floats."""
    return apply2(BITWISE_XOR, x, y, None)

def bitwise_not(x: Data) -> Tensor:
    """~x, bit by bit, elementwise. Raises TypeError for floats."""
    return apply1(BITWISE_NOT, x, None)

def maximum(x: Data, y: Data) -> Tensor:
    """The larger of x and y, elementwise with broadcasting; nan where either is.

    Where they are equal, each receives half of the gradient."""
    return apply2(MAXIMUM, x, y, None)

def minimum(x: Data, y: Data) -> Tensor:
    """The smaller of x and y, elementwise with broadcasting; nan where either is.

    Where they are equal, each receives half of the gradient."""
    return apply2(MINIMUM, x, y, None)

def clip(x: Data, min: Data | None = None, max: Data | None = None) -> Tensor:
    """x limited to the range from min to max (numbers or tensors; None for no bound), elementwise with broadcasting.

    Where min > max the result is max. The gradient of x passes where min <= x <= max and is 0 elsewhere."""
    cdef Tensor t = ensure_tensor(x)
    if not is_floating(t.dtype) and (min is None or max is None):     # integers cannot be infinite
        try: return minimum(t, max) if max is not None else maximum(t, min) if min is not None else t.copy()
        except (ValueError, TypeError) as e:
            rename(e, "clip")
            raise
    return apply3(CLIP, t, LEAST if min is None else min, MOST if max is None else max, None)

def where(condition: Data, x: Data, y: Data) -> Tensor:
    """x where the condition is true, else y, elementwise with broadcasting.

    A condition that is not bool counts as true where it is not 0."""
    cdef Tensor c = ensure_tensor(condition)
    if c.dtype != BOOL: c = c.astype(DTYPES[BOOL])
    if type(x) is not Tensor and type(y) is not Tensor: x = ensure_tensor(x)    # one of two numbers needs a dtype
    return apply3(WHERE, c, x, y, None)
