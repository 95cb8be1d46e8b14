"""Log-softmax and cross-entropy."""

import numpy as np

from cython cimport final
from libc.stdint cimport int64_t, uint32_t

from cygrad.core cimport layout as lay
from cygrad.core.graph cimport OUTPUT, OWN, Backward, Call, Operator, Tensor, ensure_tensor
from cygrad.core.memory cimport EXTERNAL, WORKSPACE, Buffer, allocate, drop
from cygrad.core.run cimport apply1, apply2
from cygrad.kernels cimport rows
from cygrad.kernels.array cimport FLOAT32, INT64, Array, Layout, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reduce cimport sum_into

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError
from cygrad.ops.functions import exp
from cygrad.ops.reduce import sum
from cygrad.ops.shape import reshape, transpose


# ---- log_softmax -----------------------------------------------------------------------------------------------------

@final
cdef class LogSoftmax(Operator):
    """y = x - log sum e^x        dx = g - e^y sum g        (along the last axis)"""

    def __cinit__(self):
        self.name, self.promotes, self.floats, self.fused, self.differentiable = "log_softmax", True, True, True, True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward(self, Call* c) except -1:
        cdef const Layout* l = c.y[0].layout
        cdef Py_ssize_t columns = l.shape[l.ndim - 1]
        cdef const char* x = c.x[0].data
        if l.size == 0: return 0
        if not c.x[0].layout.dense:
            gather(c.y[0].data, &c.x[0], 0, l.size)
            x = c.y[0].data
        rows.log_softmax(c.y[0].dtype, l.size // columns, columns, x, c.y[0].data)
        return 0

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        return 1 << OUTPUT

    cdef int backward(self, Backward b) except -1:
        cdef Array g = b.gradient(0), y = b.kept(OWN), out
        cdef const Layout* l = b.node.layout
        cdef Py_ssize_t columns = l.shape[l.ndim - 1]
        cdef const char* given = g.data
        if not b.over(0, OWN, &out) and not b.over_gradient(0, &out): out = b.make(0, l, b.node.dtype)
        if l.size == 0: return 0
        if not g.layout.dense:                      # packed into the result, unless that is y's own memory
            if out.data == y.data: return self.packed(b, &g, &y, &out)
            gather(out.data, &g, 0, l.size)
            given = out.data
        rows.log_softmax_grad(b.node.dtype, l.size // columns, columns, given, y.data, out.data)
        b.done(OWN)
        b.done_gradient(0)
        return 0

    cdef int packed(self, Backward b, const Array* g, const Array* y, const Array* out) except -1:
        cdef const Layout* l = b.node.layout
        cdef Py_ssize_t columns = l.shape[l.ndim - 1]
        cdef Buffer* workspace = allocate(l.size * itemsize(b.node.dtype), WORKSPACE)
        gather(workspace.data, g, 0, l.size)
        rows.log_softmax_grad(b.node.dtype, l.size // columns, columns, workspace.data, y.data, out.data)
        drop(workspace)
        b.done_gradient(0)
        return 0

    def formula(self, c, int i, g):
        return g - exp(c.output(0)) * sum(g, -1, True)


# ---- cross_entropy ---------------------------------------------------------------------------------------------------

cdef enum:
    NONE, MEAN, SUM         # reductions


@final
cdef class CrossEntropy(Operator):
    """y = mean of (log sum e^x - x[label])        dx = g (softmax(x) - onehot(label)) / n

    Keeps x, the labels and, of every row, log sum e^x (a hidden output)."""

    def __cinit__(self):
        self.name, self.fused, self.differentiable = "cross_entropy", True, True

    cdef int infer(self, Call* c) except -1:
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* labels = c.x[1].layout
        cdef int reduction = <object>c.attributes
        if x.ndim != 2 or labels.ndim != 1 or labels.shape[0] != x.shape[0]:
            raise ValueError(f"cross_entropy: x is {lay.shape_tuple(x)} and the labels are {lay.shape_tuple(labels)}; "
                             f"wanted x (n, classes) and labels (n,); reshape what has more dimensions")
        c.n_out, c.hidden = 2, 1
        c.y[0].layout = lay.dense_like(labels) if reduction == NONE else lay.share(lay.SCALAR)
        c.y[1].layout = lay.dense_like(labels)
        c.y[0].dtype = c.y[1].dtype = c.x[0].dtype
        c.workspace_bytes = x.shape[0] * itemsize(c.x[0].dtype) if reduction != NONE else 0
        if not x.dense: c.workspace_bytes += x.size * itemsize(c.x[0].dtype)
        return 0

    cdef int forward(self, Call* c) except -1:
        cdef const Layout* l = c.x[0].layout
        cdef Py_ssize_t n = l.shape[0], bad
        cdef int reduction = <object>c.attributes, dtype = c.x[0].dtype
        cdef char* loss = c.y[0].data if reduction == NONE else c.workspace
        cdef const char* x = c.x[0].data
        cdef Array a, y
        cdef Layout whole
        cdef Py_ssize_t zero = 0
        if not l.dense:
            x = c.workspace + (n * itemsize(dtype) if reduction != NONE else 0)
            gather(<char*>x, &c.x[0], 0, l.size)
        bad = rows.cross_entropy(dtype, n, l.shape[1], x, <const int64_t*>c.x[1].data, loss, c.y[1].data)
        if bad >= 0:
            raise IndexError(f"cross_entropy: label {(<const int64_t*>c.x[1].data)[bad]} of row {bad} is no class; x "
                             f"has {l.shape[1]} classes, from 0 to {l.shape[1] - 1}")
        if reduction != NONE:
            a.data, a.layout, a.dtype = loss, c.y[1].layout, dtype
            y = c.y[0]
            whole = a.layout[0]
            whole.strides = &zero
            y.layout = &whole
            sum_into(&a, &y)
            if reduction == MEAN:
                if dtype == FLOAT32: (<float*>y.data)[0] /= n
                else: (<double*>y.data)[0] /= n
        return 0

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        return 1 | 2 | (2 << OUTPUT)

    cdef int backward(self, Backward b) except -1:
        cdef Array g = b.gradient(0), x = b.kept(0), labels = b.kept(1), lse = b.kept(OWN | 1), out
        cdef Py_ssize_t n = x.layout.shape[0]
        cdef int reduction = <object>b.node.attributes
        cdef const char* given = x.data
        cdef Py_ssize_t bad = rows.bad_label(n, x.layout.shape[1], <const int64_t*>labels.data)
        if bad >= 0:                                # written through NumPy since: versions do not see that, memory does
            raise InplaceError(f"cross_entropy: label {(<const int64_t*>labels.data)[bad]} of row {bad} was a class in "
                               f"forward and is none now; it has been written meanwhile: give a copy()")
        if not b.over(0, 0, &out): out = b.make(0, x.layout, b.node.dtype)
        if not x.layout.dense:
            gather(out.data, &x, 0, x.layout.size)
            given = out.data
        rows.cross_entropy_grad(b.node.dtype, n, x.layout.shape[1], g.data,
                                g.layout.strides[0] if reduction == NONE else 0,
                                1.0 / n if reduction == MEAN and n else 1.0, given, <const int64_t*>labels.data,
                                lse.data, out.data)
        b.done(0)
        b.done(1)
        b.done(OWN | 1)
        b.done_gradient(0)
        return 0

    def formula(self, c, int i, g):
        x, labels = c.input(0), c.input(1)
        n, classes = x.shape
        onehot = np.zeros((n, classes), x.dtype)
        onehot[np.arange(n), labels.numpy()] = 1
        if c.attributes == NONE: g = reshape(g, (n, 1))
        elif c.attributes == MEAN: g = g / n
        return (exp(log_softmax(x)) - onehot) * g


cdef Operator LOG_SOFTMAX = LogSoftmax(), CROSS_ENTROPY = CrossEntropy()
cdef dict REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}
OPERATORS = {o.name: o for o in (LOG_SOFTMAX, CROSS_ENTROPY)}


def log_softmax(x, axis=-1):
    """x - log sum e^x along `axis`, computed without overflow. Raises IndexError for an axis that x has not."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.layout.ndim), last = t.layout.ndim - 1
    if a == last: return apply1(LOG_SOFTMAX, t, None)
    order = list(range(last + 1))
    order[a], order[last] = last, a
    return transpose(apply1(LOG_SOFTMAX, transpose(t, order), None), order)


def cross_entropy(x, labels, reduction="mean"):
    """The cross-entropy of the softmax of `x` (n, classes; logits) with `labels` (n,), integers from 0 to classes - 1:
    the mean over rows, their "sum", or with "none" one value a row. Raises IndexError for a label that is no class."""
    cdef Tensor t = ensure_tensor(x), l = ensure_tensor(labels)
    if reduction not in REDUCTIONS:
        raise ValueError(f"cross_entropy: reduction is {reduction!r}; it is one of {', '.join(REDUCTIONS)}")
    if t.dtype < FLOAT32: raise TypeError(f"cross_entropy: x is {DTYPES[t.dtype]}; wanted a floating dtype")
    if l.dtype >= FLOAT32 or l.dtype == 0:
        raise TypeError(f"cross_entropy: the labels are {DTYPES[l.dtype]}; wanted integers")
    if l.dtype != INT64: l = l.astype(DTYPES[INT64])
    if not l.layout.dense or l.buffer.flags & EXTERNAL: l = l.copy()     # the caller may reuse his array of labels
    return apply2(CROSS_ENTROPY, t, l, REDUCTIONS[reduction])
