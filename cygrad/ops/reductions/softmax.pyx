"""softmax, log_softmax and logsumexp."""

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.reductions cimport folds, rows
from cygrad.kernels.reductions cimport softmax as kernels
from cygrad.kernels.array cimport Array, Layout, itemsize
from cygrad.kernels.driver cimport Loop, gather
from cygrad.kernels.reductions.rows cimport RowLoop
from cygrad.ops.elementwise.base cimport Axis, axis_number
from cygrad.ops.reductions.reduce cimport Reduction, derivative, inner_of, read_axes

from cygrad.ops.elementwise.functions import exp
from cygrad.ops.reductions.reduce import spread, sum
from cygrad.ops.shapes.shape import transpose


cdef Loop* ADD_LOOP = driver.find("add")
cdef Loop* LOG_LOOP = driver.find("log")
cdef Loop* FINITE_LOOP = driver.find("finite")
cdef Loop* EXP_DERIVATIVE = driver.find("exp_derivative")


# ---- softmax and log_softmax: along one axis ------------------------------------------------------------------------

cdef class ByRows(Operator):
    """The base of both: `value` computes rows from rows, `gradient` from the rows of g and the output. The attributes
    are an Axis."""
    lanes = "shifting"
    traits = "promotes promotes_to_float fused differentiable"
    reads = "y"
    cdef RowLoop* value
    cdef RowLoop* gradient

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Array y = c.y[0]
        cdef const char* x = c.x[0].data
        if y.layout.size == 0: return 0
        if not c.x[0].layout.dense:
            gather(y.data, &c.x[0], 0, y.layout.size)
            x = y.data
        along(self.value, (<Axis>c.attributes).axis, x, NULL, &y)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        if b.g[0].layout.dense: s.donated_saved, s.donated_gradients = s.saved, 1

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array y = saved(b, OWN)
        cdef const char* g = b.g[0].data
        if y.layout.size == 0: return 0
        if not b.g[0].layout.dense:                 # packed into the result
            gather(b.dx[0].data, &b.g[0], 0, y.layout.size)
            g = b.dx[0].data
        along(self.gradient, (<Axis>b.attributes).axis, g, y.data, &b.dx[0])


cdef void along(const RowLoop* loop, int axis, const char* x, const char* y, const Array* z) noexcept nogil:
    """z = loop(x) or loop(x, y) along an axis. x and y are dense and have the shape of z."""
    cdef const Layout* l = z.layout
    cdef Py_ssize_t inner = 1
    for d in range(axis + 1, l.ndim): inner *= l.shape[d]
    rows.each_row(loop, z.dtype, l.size // (l.shape[axis] * inner), l.shape[axis], inner, x, y, z.data)


cdef class LogSoftmax(ByRows):
    """y = x - log sum e^x        dx = g - e^y sum g        (along an axis)"""

    def __cinit__(self):
        self.value, self.gradient = &kernels.LOG_SOFTMAX, &kernels.LOG_SOFTMAX_GRAD

    cdef object formula(self, c, int i, g):
        return g - exp(c.output(0)) * sum(g, c.attributes.axis, True)


cdef class Softmax(ByRows):
    """y = e^x / sum e^x        dx = y (g - sum g y)        (along an axis)"""

    def __cinit__(self):
        self.value, self.gradient = &kernels.SOFTMAX, &kernels.SOFTMAX_GRAD

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        return y * (g - sum(g * y, c.attributes.axis, True))


# ---- logsumexp: along any axes ---------------------------------------------------------------------------------------

cdef class LogSumExp(Reduction):
    """y = log sum e^x        dx = g e^(x - y)"""
    called, traits = "logsumexp", "promotes promotes_to_float fused differentiable"
    reads = "x y"

    cdef int infer(self, Call* c) except -1 nogil:
        Reduction.infer(self, c)
        if not by_rows(c.x[0].layout, c.attributes):
            c.workspace_bytes = c.y[0].layout.size * itemsize(c.y[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t results = c.y[0].layout.size, inner = by_rows(c.x[0].layout, c.attributes)
        cdef Array y = c.y[0], max_ = y
        cdef Array a[3]
        if inner:
            rows.each_row(&kernels.LOGSUMEXP, y.dtype, results // inner, c.x[0].layout.size // results, inner,
                          c.x[0].data, NULL, y.data)
            return 0
        max_.data = c.workspace
        self.fold(c, &folds.MAX, NULL, &max_)
        a[0], a[1] = max_, max_
        driver.each(FINITE_LOOP, a)                 # 0 is subtracted where the maximum is not finite
        self.fold(c, &folds.EXPS, &max_, &y)
        a[0], a[1] = y, y
        driver.each(LOG_LOOP, a)
        a[0], a[1], a[2] = y, max_, y
        return driver.each(ADD_LOOP, a)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.donated_saved = 1

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array y = saved(b, OWN), x = saved(b, 0)
        cdef const Layout* g = b.g[0].layout
        if by_rows(x.layout, b.attributes) != 1 or not (g.dense or g.ndim == 1):
            return derivative(b, EXP_DERIVATIVE, &b.g[0], &y)
        kernels.logsumexp_grad(b.dtype, y.layout.size, x.layout.size // y.layout.size, b.g[0].data,
                               1 if g.dense else g.strides[0], x.data, y.data, b.dx[0].data)

    cdef object formula(self, c, int i, g):
        return spread(c, g) * exp(c.input(0) - spread(c, c.output(0)))


cdef Py_ssize_t by_rows(const Layout* x, const void* axes) noexcept nogil:
    """The same as inner_of(), but 0 also if x is empty or if there are too few columns for vectors."""
    cdef Py_ssize_t inner = inner_of(x, axes) if x.size else 0
    return inner if inner == 1 or inner >= rows.MIN_COLUMNS else 0


cdef Operator LOG_SOFTMAX = LogSoftmax(), SOFTMAX = Softmax(), LOGSUMEXP = LogSumExp()
OPERATORS = {o.name: o for o in (LOG_SOFTMAX, SOFTMAX, LOGSUMEXP)}


def log_softmax(x: Data, axis: int = -1) -> Tensor:
    """x - log sum e^x along `axis`, computed without overflow. Raises IndexError if the axis is out of range."""
    return along_axis(LOG_SOFTMAX, x, axis)


def softmax(x: Data, axis: int = -1) -> Tensor:
    """e^x / sum e^x along `axis`, computed without overflow. Raises IndexError if the axis is out of range."""
    return along_axis(SOFTMAX, x, axis)


cdef object along_axis(Operator op, x, axis):
    """Apply an operator along an axis. If the dimensions after it have too few elements for vectors, the axis is
    swapped with the last one and back."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.layout.ndim), last = t.layout.ndim - 1, d
    cdef Py_ssize_t inner = 1
    for d in range(a + 1, last + 1): inner *= t.layout.shape[d]
    if inner == 1 or inner >= rows.MIN_COLUMNS: return apply1(op, t, axis_number(a))
    order = list(range(last + 1))
    order[a], order[last] = last, a
    return transpose(apply1(op, transpose(t, order), axis_number(last)), order)


def logsumexp(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """log sum e^x over `axis` (an int, a tuple, or None for all), without overflow; -inf if there are no
    elements."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(LOGSUMEXP, t, read_axes(t, axis, keepdims))
