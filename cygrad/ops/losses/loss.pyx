"""Losses of elements: mse and bce_with_logits."""

from libc.stdint cimport uint64_t, uint8_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, is_saved, output_bit, saved
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor, slot_from
from cygrad.core.graph.trace cimport has_values
from cygrad.core.execute.composed cimport rename
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.core.source cimport warn_here
from cygrad.kernels cimport driver
from cygrad.kernels.losses cimport loss as kernels
from cygrad.kernels.array cimport Array, Layout, is_floating, is_real
from cygrad.kernels.bits cimport pack_ones, zeros_and_ones
from cygrad.kernels.by_dtype cimport number, put_number
from cygrad.kernels.codes cimport packed_bytes
from cygrad.kernels.driver cimport Loop
from cygrad.kernels.reductions.folds cimport POWERS
from cygrad.kernels.reductions.reduce cimport fold_into
from cygrad.ops.elementwise.base cimport CODE, has_code, hide_bytes, number_array, packed
from cygrad.ops.reductions.reduce cimport Spread, over, over_kept_input, scale

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.ops.elementwise.elementwise import sub
from cygrad.ops.elementwise.functions import sigmoid
from cygrad.ops.shapes.shape import astype


cdef Loop* MUL_LOOP = driver.find("mul")
cdef Loop* SQUARE_DERIVATIVE = driver.find("square_derivative")
cdef Loop* BCE_LOOP = driver.find("bce")
cdef Loop* BCE_DERIVATIVE = driver.find("bce_derivative")
cdef Loop* BCE_DERIVATIVE_HARD = driver.find("bce_derivative_hard")
cdef Loop* BCE_DERIVATIVE_T = driver.find("bce_derivative_t")


# ---- shared parts ----------------------------------------------------------------------------------------------------

cdef class Reduced(Attributes):
    """The attributes of losses: the reduction of the values of rows or elements."""

    def __cinit__(self, str reduction):
        self.reduction, self.kind = reduction, NAMES.index(reduction)


cdef tuple NAMES = ("none", "mean", "sum")          # in the order of the constants
cdef dict REDUCTIONS = {name: Reduced(name) for name in NAMES}


cdef Reduced read_reduction(str name, reduction):
    """The attributes of a loss. Raises ValueError if `reduction` is not one of the names."""
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        raise ValueError(f"{name}: reduction must be one of {', '.join(REDUCTIONS)}; got {described(reduction)}")
    return REDUCTIONS[reduction]


cdef double mean_factor(Py_ssize_t n, int reduction) noexcept nogil:
    """The factor of the gradient: 1 / n for a mean, else 1."""
    return 1.0 / n if reduction == MEAN and n else 1.0


cdef object reduced_gradient(c, g, n):
    """The gradient times mean_factor(), over tensors."""
    return g / n if c.attributes.reduction == "mean" and n else g


cdef void over_all(Spread* s, const Array* g, const Layout* x, int reduction, double* bits) noexcept nogil:
    """The gradient of a loss for each element of `x`: without a reduction g itself, else the one element of g times
    mean_factor()."""
    cdef Array one
    if reduction == NONE:
        s.array, s.layout = g[0], g.layout[0]
        s.array.layout = &s.layout
        return
    one = number_array(bits, mean_factor(x.size, reduction), g.dtype)
    put_number(g.dtype, bits, 0, number(g.dtype, g.data, 0) * number(g.dtype, bits, 0))
    over(s, &one, x, NULL)


# ---- mse -------------------------------------------------------------------------------------------------------------

cdef class Mse(Operator):
    """z = mean of (x - y)^2        dx = 2 g (x - y) / n        dy = -2 g (x - y) / n

    The operator's input is x - y, which sub computes, so that backward keeps one array and not two."""
    lanes = "reducing_elements"
    traits = "promotes promotes_to_float fused differentiable"
    row, operands, reads, functions = "mean_square", "difference", "difference", {"mse": "x y"}

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        c.y[0].layout = lay.dense_like(c.x[0].layout) if reduction == NONE else lay.incref(lay.SCALAR)
        c.y[0].dtype = c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        cdef Array a[3]
        cdef double bits
        cdef Spread y, power
        if reduction == NONE:
            a[0], a[1], a[2] = c.x[0], c.x[0], c.y[0]
            return driver.each(MUL_LOOP, a)
        a[0] = number_array(&bits, 2, c.y[0].dtype)
        over(&power, &a[0], c.x[0].layout, NULL)
        over(&y, &c.y[0], c.x[0].layout, NULL)
        fold_into(&POWERS, &c.x[0], &power.array, &y.array)
        return scale(&c.y[0], &c.y[0], c.x[0].layout.size) if reduction == MEAN else 0

    cdef tuple call_of(self, operands, arguments):
        return range(1) if len(operands) == 1 else None, None

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        over_kept_input(b)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array d = saved(b, 0)
        cdef Array a[3]
        cdef double bits
        cdef Spread wide
        over_all(&wide, &b.g[0], d.layout, (<Reduced>b.attributes).kind, &bits)
        a[0], a[1], a[2] = wide.array, d, b.dx[0]
        return driver.each(SQUARE_DERIVATIVE, a)

    cdef object formula(self, c, int i, g):
        d = c.input(0)
        return d * (2 * reduced_gradient(c, g, d.size))


# ---- bce_with_logits -------------------------------------------------------------------------------------------------

cdef class BceWithLogits(Operator):
    """y = mean of (log(1 + e^x) - t x)        dx = g (sigmoid(x) - t) / n        dt = -g x / n

    Backward keeps x and, for dx, t. If all targets are 0 or 1 and need no gradient, a bit for each replaces t (a hidden
    output). Keeping sigmoid(x) - t would suffice for dx, but the derivative of dx needs sigmoid(x) itself."""
    lanes = "reducing_elements"
    traits = "promotes promotes_to_float fused differentiable"
    operands, reads = "x targets", {"x": "x targets", "targets": "x"}

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        if not lay.same_shape(c.x[0].layout, c.x[1].layout):
            with gil: raise ValueError(f"bce_with_logits: x is {lay.shape_tuple(c.x[0].layout)} but the targets are "
                                       f"{lay.shape_tuple(c.x[1].layout)}; the shapes must be equal")
        c.y[0].layout = lay.dense_like(c.x[0].layout) if reduction == NONE else lay.incref(lay.SCALAR)
        c.y[0].dtype = c.x[0].dtype
        if c.wanted == 1 and has_values(&c.x[1]) and zeros_and_ones(&c.x[1]):
            return hide_bytes(c, packed_bytes(c.x[1].layout.size, 1))

    cdef int forward(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        cdef Array a[3]
        cdef double total
        if c.hidden: pack_ones(&c.x[1], <uint8_t*>c.y[1].data)
        if reduction == NONE:
            a[0], a[1], a[2] = c.x[0], c.x[1], c.y[0]
            return driver.each(BCE_LOOP, a)
        total = kernels.total_of(BCE_LOOP, &c.x[0], &c.x[1])
        if reduction == MEAN: total /= c.x[0].layout.size
        put_number(c.y[0].dtype, c.y[0].data, 0, total)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 1 | output_bit(1) if c.hidden else Operator.keeps(self, c, wanted)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s
        if b.want[1]: add_stage(b, 2)
        if b.want[0]:
            s = over_kept_input(b)
            s.saved = 1 | output_bit(1) if is_saved(b, CODE) else self.saved_for[0]

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array x = saved(b, 0)
        cdef Array a[4]
        cdef double bits
        cdef Spread wide
        over_all(&wide, &b.g[0], x.layout, (<Reduced>b.attributes).kind, &bits)
        a[0], a[1] = wide.array, x
        if b.stages[stage].computes == 2:
            a[2] = b.dx[1]
            return driver.each(BCE_DERIVATIVE_T, a)
        a[3] = b.dx[0]
        if is_saved(b, CODE):
            a[1], a[2] = packed(saved(b, CODE).data, x.layout, 1), x
            return driver.each_coded(BCE_DERIVATIVE_HARD, a)
        a[2] = saved(b, 1)
        return driver.each(BCE_DERIVATIVE, a)

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        g = reduced_gradient(c, g, x.size)
        if i == 1: return -g * x
        return g * (sigmoid(x) - (hard_targets(c, x) if slot_from((<Context>c).b.node, CODE) != NULL else c.input(1)))


cdef object hard_targets(Context c, Tensor x):
    """The targets that are kept as bits, with the shape and dtype of x."""
    return astype(has_code(c, x.layout, 1, 1), DTYPES[x.dtype])


cdef Operator MSE = Mse(), BCE_WITH_LOGITS = BceWithLogits()
OPERATORS = {o.name: o for o in (MSE, BCE_WITH_LOGITS)}


def mse(x: Data, y: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The squared error (x - y)^2, with broadcasting: its "mean", its "sum", or with "none" one value for each
    element."""
    cdef Reduced how = read_reduction("mse", reduction)
    cdef Tensor s = ensure_tensor(x), t = ensure_tensor(y)
    if not is_floating(s.dtype) and not is_floating(t.dtype):   # the difference of unsigned integers would wrap
        s = s.astype(DTYPES[default_dtype()])
    cdef Tensor d
    try: d = sub(s, t)
    except ValueError as e:
        rename(e, "mse")
        raise
    if d.layout.size > s.layout.size and d.layout.size > t.layout.size:
        warn_here(f"mse: x is {s.shape} and y is {t.shape}, which broadcast to {d.shape}; reshape one of them to "
                  f"compare element by element", UserWarning)
    return apply1(MSE, d, how)


def bce_with_logits(x: Data, targets: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The binary cross-entropy of the logistic function of `x` (logits) with `targets` of the same shape, from 0 to 1:
    the "mean", the "sum", or with "none" one value for each element. Computed without overflow."""
    cdef Reduced how = read_reduction("bce_with_logits", reduction)
    cdef Tensor t = ensure_tensor(x)
    return apply2(BCE_WITH_LOGITS, t, ensure_tensor(targets), how)


def mean_square(difference: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """mse() of a difference that is computed already."""
    cdef Tensor d = ensure_tensor(difference)
    if not is_real(d.dtype): raise TypeError(f"mean_square: the difference is {DTYPES[d.dtype]}; wanted floats")
    return apply1(MSE, d, read_reduction("mean_square", reduction))
