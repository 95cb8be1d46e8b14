"""Losses: cross_entropy, nll, mse and bce_with_logits."""

from cython cimport final
from libc.stdint cimport int64_t, uint64_t, uint8_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, is_saved, output_bit, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor, slot_from
from cygrad.core.store.buffer cimport EXTERNAL
from cygrad.core.thread_state cimport flags
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.core.source cimport warn_here
from cygrad.kernels cimport driver, loss as kernels, softmax as softmax_kernels
from cygrad.kernels.array cimport BOOL, FLOAT32, INT64, Array, Layout, is_floating, itemsize
from cygrad.kernels.bits cimport pack_ones, zeros_and_ones
from cygrad.kernels.codes cimport packed_bytes
from cygrad.kernels.driver cimport Loop, gather
from cygrad.kernels.folds cimport POWERS
from cygrad.kernels.reduce cimport fold_into, sum_into
from cygrad.ops.base cimport CODE, has_code, hide_bytes, packed
from cygrad.ops.reduce cimport Spread, number_array, over, over_kept_input, scale

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError, described
from cygrad.ops.elementwise import sub
from cygrad.ops.functions import sigmoid
from cygrad.ops.index import one_hot
from cygrad.ops.shape import astype, reshape
from cygrad.ops.softmax import softmax


cdef Loop* MUL_LOOP = driver.find("mul")
cdef Loop* SQUARE_DERIVATIVE = driver.find("square_derivative")
cdef Loop* BCE_LOOP = driver.find("bce")
cdef Loop* BCE_DERIVATIVE = driver.find("bce_derivative")
cdef Loop* BCE_DERIVATIVE_HARD = driver.find("bce_derivative_hard")
cdef Loop* BCE_DERIVATIVE_T = driver.find("bce_derivative_t")


# ---- shared parts ----------------------------------------------------------------------------------------------------

cdef enum:
    NONE, MEAN, SUM         # Reduced.kind

cdef class Reduced(Attributes):
    """The attributes of losses: the reduction of the values of rows or elements."""
    cdef readonly str reduction
    cdef int kind           # the same, for kernels

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
    one = number_array(bits, (<float*>g.data)[0] if g.dtype == FLOAT32 else (<double*>g.data)[0], g.dtype)
    if g.dtype == FLOAT32: (<float*>bits)[0] *= <float>mean_factor(x.size, reduction)
    else: bits[0] *= mean_factor(x.size, reduction)
    over(s, &one, x, NULL)


cdef object labels_of(str name, str what, Tensor x, labels):
    """The labels, as a tensor that the operator may save. `what` is the name of x in messages."""
    cdef Tensor l = ensure_tensor(labels)
    if not is_floating(x.dtype): raise TypeError(f"{name}: {what} is {DTYPES[x.dtype]}; wanted a floating dtype")
    if is_floating(l.dtype) or l.dtype == BOOL:
        raise TypeError(f"{name}: the labels are {DTYPES[l.dtype]}; wanted integers")
    if x.layout.ndim != 2 or l.layout.ndim != 1 or l.layout.shape[0] != x.layout.shape[0]:
        raise ValueError(f"{name}: {what} is {x.shape} and the labels are {l.shape}; wanted {what} (n, classes) and "
                         f"labels (n,); reshape inputs with more dimensions")
    if l.dtype != INT64: l = l.astype(DTYPES[INT64])
    if not l.layout.dense or l.buffer.flags & EXTERNAL: l = l.copy()     # (the caller may overwrite external memory)
    return l


cdef int check_labels(Operator op, const Array* labels, Py_ssize_t classes, bint kept) except -1 nogil:
    """Raise an error for a label that is not a class: IndexError in forward, InplaceError in backward (kept)."""
    cdef const int64_t* l = <const int64_t*>labels.data
    cdef Py_ssize_t bad = softmax_kernels.bad_label(labels.layout.size, classes, l)
    if bad < 0: return 0
    with gil:
        if kept:                                    # (written since through NumPy, which changes no version)
            raise InplaceError(f"{op.name}: label {l[bad]} of row {bad} was a class in forward but is not one now: the "
                               f"labels were modified since; pass a copy()")
        raise IndexError(f"{op.name}: label {l[bad]} of row {bad} is not a class; there are {classes} classes, from "
                         f"0 to {classes - 1}")


cdef object onehot(labels, shape, dtype):
    """A matrix of zeros with a one at the label of each row."""
    return one_hot(labels, shape[1], dtype)


cdef class LabelLoss(Operator):
    """The base of losses of a matrix (n, classes) and labels (n,): one value for each row, then their mean or sum."""

    def __cinit__(self):
        self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        c.y[0].layout = lay.dense_like(c.x[1].layout) if reduction == NONE else lay.incref(lay.SCALAR)
        c.y[0].dtype = c.x[0].dtype
        c.workspace_bytes = c.x[1].layout.size * itemsize(c.x[0].dtype) if reduction != NONE else 0
        return 0

    cdef int reduce(self, Call* c, const Layout* l) except -1 nogil:
        """Reduce the values of the rows, which are in the workspace unless the reduction is none."""
        cdef int reduction = (<Reduced>c.attributes).kind
        cdef Array values
        cdef Spread y
        if reduction == NONE: return 0
        values.data, values.layout, values.dtype = c.workspace, l, c.y[0].dtype
        over(&y, &c.y[0], l, NULL)
        sum_into(&values, &y.array)
        return scale(&c.y[0], &c.y[0], l.size) if reduction == MEAN else 0


# ---- cross_entropy ---------------------------------------------------------------------------------------------------

@final
cdef class CrossEntropy(LabelLoss):
    """y = mean of (log sum e^x - x[label])        dx = g (softmax(x) - onehot(label)) / n

    Backward keeps x, the labels and log sum e^(x - max) of each row (a hidden output)."""

    def __cinit__(self):
        self.name = "cross_entropy"

    cdef int infer(self, Call* c) except -1 nogil:
        LabelLoss.infer(self, c)
        c.n_out, c.hidden = 2, 1
        c.y[1].layout, c.y[1].dtype = lay.dense_like(c.x[1].layout), c.x[0].dtype
        if not c.x[0].layout.dense: c.workspace_bytes += c.x[0].layout.size * itemsize(c.x[0].dtype)
        return 0

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* l = c.x[0].layout
        cdef Py_ssize_t n = l.shape[0]
        cdef int reduction = (<Reduced>c.attributes).kind, dtype = c.x[0].dtype
        cdef const char* x = c.x[0].data
        if not l.dense:
            x = c.workspace + (n * itemsize(dtype) if reduction != NONE else 0)
            gather(<char*>x, &c.x[0], 0, l.size)
        check_labels(self, &c.x[1], l.shape[1], False)
        softmax_kernels.cross_entropy(dtype, n, l.shape[1], x, <const int64_t*>c.x[1].data,
                                      c.y[0].data if reduction == NONE else c.workspace, c.y[1].data)
        return self.reduce(c, c.x[1].layout)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 1 | 2 | output_bit(1)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.saved, s.donated_saved = 3 | output_bit(1), 1
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array x = saved(b, 0), labels = saved(b, 1)
        cdef Py_ssize_t n = x.layout.shape[0]
        cdef int reduction = (<Reduced>b.attributes).kind
        cdef const char* given = x.data
        check_labels(self, &labels, x.layout.shape[1], True)
        if not x.layout.dense:
            gather(b.dx[0].data, &x, 0, x.layout.size)
            given = b.dx[0].data
        softmax_kernels.cross_entropy_grad(
            b.dtype, n, x.layout.shape[1], b.g[0].data, b.g[0].layout.strides[0] if reduction == NONE else 0,
            mean_factor(n, reduction), given, <const int64_t*>labels.data, saved(b, OWN | 1).data, b.dx[0].data)
        return 0

    cdef object formula(self, c, int i, g):
        x, labels = c.input(0), c.input(1)
        if c.attributes.reduction == "none": g = reshape(g, (x.shape[0], 1))
        return (softmax(x) - onehot(labels, x.shape, x.dtype)) * reduced_gradient(c, g, x.shape[0])


# ---- nll -------------------------------------------------------------------------------------------------------------

@final
cdef class Nll(LabelLoss):
    """y = mean of -x[label]        dx = -g onehot(label) / n"""

    def __cinit__(self):
        self.name = "nll"

    cdef int forward(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        check_labels(self, &c.x[1], c.x[0].layout.shape[1], False)
        kernels.pick(&c.x[0], <const int64_t*>c.x[1].data, c.y[0].data if reduction == NONE else c.workspace)
        return self.reduce(c, c.x[1].layout)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 2

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).saved = 2
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const Layout* x = b.x[0]
        cdef Array labels = saved(b, 1)
        cdef int reduction = (<Reduced>b.attributes).kind
        check_labels(self, &labels, x.shape[1], True)
        kernels.place(b.dtype, x.shape[0], x.shape[1], b.g[0].data,
                      b.g[0].layout.strides[0] if reduction == NONE else 0, mean_factor(x.shape[0], reduction),
                      <const int64_t*>labels.data, b.dx[0].data)
        return 0

    cdef object formula(self, c, int i, g):
        shape = c.shape(0)
        if c.attributes.reduction == "none": g = reshape(g, (shape[0], 1))
        return c.locally_constant(-reduced_gradient(c, g, shape[0]) * onehot(c.input(1), shape, g.dtype))


# ---- mse -------------------------------------------------------------------------------------------------------------

@final
cdef class Mse(Operator):
    """z = mean of (x - y)^2        dx = 2 g (x - y) / n        dy = -2 g (x - y) / n

    The operator's input is x - y, which sub computes, so that backward keeps one array and not two."""

    def __cinit__(self):
        self.name = "mse"
        self.promotes_to_float = self.promotes = self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        c.y[0].layout = lay.dense_like(c.x[0].layout) if reduction == NONE else lay.incref(lay.SCALAR)
        c.y[0].dtype = c.x[0].dtype
        return 0

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

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 1

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        over_kept_input(b)
        return 0

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

@final
cdef class BceWithLogits(Operator):
    """y = mean of (log(1 + e^x) - t x)        dx = g (sigmoid(x) - t) / n        dt = -g x / n

    Backward keeps x and, for dx, t. If all targets are 0 or 1 and need no gradient, a bit for each replaces t (a hidden
    output). Keeping sigmoid(x) - t would suffice for dx, but the derivative of dx needs sigmoid(x) itself."""

    def __cinit__(self):
        self.name = "bce_with_logits"
        self.promotes_to_float = self.promotes = self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int reduction = (<Reduced>c.attributes).kind
        if not lay.same_shape(c.x[0].layout, c.x[1].layout):
            with gil: raise ValueError(f"bce_with_logits: x is {lay.shape_tuple(c.x[0].layout)} but the targets are "
                                       f"{lay.shape_tuple(c.x[1].layout)}; the shapes must be equal")
        c.y[0].layout = lay.dense_like(c.x[0].layout) if reduction == NONE else lay.incref(lay.SCALAR)
        c.y[0].dtype = c.x[0].dtype
        if c.wanted == 1 and flags().capture == NULL and zeros_and_ones(&c.x[1]):    # (a replay may change t)
            return hide_bytes(c, packed_bytes(c.x[1].layout.size, 1))
        return 0

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
        if c.y[0].dtype == FLOAT32: (<float*>c.y[0].data)[0] = <float>total
        else: (<double*>c.y[0].data)[0] = total
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 1 | output_bit(1) if c.hidden else 3 if wanted & 1 else 1

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s
        if b.want[1]: add_stage(b, 2).saved = 1
        if b.want[0]:
            s = over_kept_input(b)
            s.saved |= output_bit(1) if is_saved(b, CODE) else 2
        return 0

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


cdef Operator CROSS_ENTROPY = CrossEntropy(), NLL = Nll(), MSE = Mse(), BCE_WITH_LOGITS = BceWithLogits()
OPERATORS = {o.name: o for o in (CROSS_ENTROPY, NLL, MSE, BCE_WITH_LOGITS)}


def cross_entropy(x: Data, labels: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The cross-entropy of the softmax of `x` (n, classes; logits) with `labels` (n,), integers from 0 to classes - 1:
    the "mean" or "sum" over rows, or with "none" one value for each row. Raises IndexError for a label that is not a
    class."""
    cdef Reduced how = read_reduction("cross_entropy", reduction)
    cdef Tensor t = ensure_tensor(x)
    return apply2(CROSS_ENTROPY, t, labels_of("cross_entropy", "x", t, labels), how)


def nll(log_probabilities: Data, labels: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The negative log-likelihood of `labels` (n,), integers from 0 to classes - 1, under `log_probabilities` (n,
    classes): the "mean" or "sum" over rows, or with "none" one value for each row. Raises IndexError for a label that
    is not a class."""
    cdef Reduced how = read_reduction("nll", reduction)
    cdef Tensor t = ensure_tensor(log_probabilities)
    return apply2(NLL, t, labels_of("nll", "log_probabilities", t, labels), how)


def mse(x: Data, y: Data, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """The squared error (x - y)^2, with broadcasting: its "mean", its "sum", or with "none" one value for each
    element."""
    cdef Reduced how = read_reduction("mse", reduction)
    cdef Tensor s = ensure_tensor(x), t = ensure_tensor(y)
    if not is_floating(s.dtype) and not is_floating(t.dtype):   # the difference of unsigned integers would wrap
        s = s.astype(DTYPES[default_dtype()])
    cdef Tensor d = sub(s, t)
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
