"""Sums and means along any axes."""

import math

from cython cimport final
from libc.stdint cimport uint32_t

from cygrad.core cimport layout as lay
from cygrad.core.bridge cimport lend
from cygrad.core.graph cimport Backward, Call, Gradient, Operator, Tensor, ensure_tensor
from cygrad.core.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport FLOAT32, INT64, MAX_NDIM, UINT8, UINT64, Array, Layout
from cygrad.kernels.reduce cimport sum_into

from cygrad.core.dtypes import DTYPES
from cygrad.ops.shape import broadcast_to, reshape


cdef driver.Loop* MUL_LOOP = driver.find("mul")


cdef class Reduction(Operator):
    """The attributes of a reduction are (a bit for each axis that is reduced, keepdims)."""

    def __cinit__(self):
        self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int d, n = 0
        axes, keepdims = <tuple>c.attributes
        cdef uint32_t mask = axes
        for d in range(l.ndim):
            if not (mask >> d) & 1:
                shape[n] = l.shape[d]
                n += 1
            elif keepdims:
                shape[n] = 1
                n += 1
        c.y[0].layout = lay.dense(n, shape)
        c.y[0].dtype = c.x[0].dtype
        return 0


cdef void along(const Layout* x, uint32_t axes, Layout* seen, Py_ssize_t* strides) noexcept:
    """A dense result seen in the shape of `x`, with strides of 0 along the reduced axes."""
    cdef Py_ssize_t step = 1
    cdef int d
    seen[0] = x[0]
    seen.strides = strides
    for d in range(x.ndim - 1, -1, -1):
        if (axes >> d) & 1:
            strides[d] = 0
        else:
            strides[d] = step
            step *= x.shape[d]
    seen.dense = False
    seen.offset = 0


cdef int sum_forward(Call* c) except -1:
    cdef Layout seen
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Array y = c.y[0]
    along(c.x[0].layout, (<tuple>c.attributes)[0], &seen, strides)
    y.layout = &seen
    if y.dtype >= FLOAT32: return sum_into(&c.x[0], &y)
    axes = tuple([d for d in range(c.x[0].layout.ndim) if ((<tuple>c.attributes)[0] >> d) & 1])
    lend(&c.y[0], NULL, True)[...] = lend(&c.x[0], NULL, False).sum(axes).reshape(lay.shape_tuple(c.y[0].layout))
    return 0


cdef int expand_gradient(Backward b, const Gradient* g) except -1:
    """dx = g, repeated along the reduced axes: a view with strides of 0."""
    cdef const Layout* x = b.input_layout(0)
    cdef Layout* l = lay.blank(x.ndim)
    cdef uint32_t axes = (<tuple>b.node.attributes)[0]
    cdef bint keepdims = (<tuple>b.node.attributes)[1]
    cdef int d, k = 0
    for d in range(x.ndim):
        l.shape[d] = x.shape[d]
        if (axes >> d) & 1:
            l.strides[d] = 0
            if keepdims: k += 1
        else:
            l.strides[d] = g.layout.strides[k]
            k += 1
    l.offset = g.layout.offset
    lay.finish(l)
    b.same_gradient(0, True)
    lay.forget(b.dx[0].layout)
    b.dx[0].layout = l
    return 0


@final
cdef class Sum(Reduction):
    """y = sum of x over axes        dx = g, repeated"""

    def __cinit__(self):
        self.name = "sum"

    cdef int forward(self, Call* c) except -1:
        return sum_forward(c)

    cdef int backward(self, Backward b) except -1:
        return expand_gradient(b, &b.g[0])

    def formula(self, c, int i, g):
        return spread(c, g)


@final
cdef class Mean(Reduction):
    """y = (sum of x over axes) / n        dx = g / n, repeated"""

    def __cinit__(self):
        self.name, self.floats, self.promotes = "mean", True, True

    cdef int forward(self, Call* c) except -1:
        sum_forward(c)
        return scale(&c.y[0], &c.y[0], count(c.x[0].layout.size, c.y[0].layout.size))

    cdef int backward(self, Backward b) except -1:
        cdef Array g = b.gradient(0), out
        cdef double n = count(b.input_layout(0).size, b.node.layout.size)
        if not b.over_gradient(0, &out): out = b.make(0, b.node.layout, b.node.dtype)
        scale(&g, &out, n)
        b.done_gradient(0)
        b.g[0] = b.dx[0]
        b.dx[0].buffer = NULL
        return expand_gradient(b, &b.g[0])

    def formula(self, c, int i, g):
        return spread(c, g / count(math.prod(c.shape(0)), (<Tensor>g).layout.size))


cdef double count(Py_ssize_t of, Py_ssize_t results):
    """How many elements went into each result (nan for none, as in NumPy)."""
    return of / <double>results if results and of else (float("nan") if results else 1)


cdef int scale(const Array* x, const Array* y, double n) except -1:
    """y = x / n"""
    cdef Array a[3]
    cdef double bits
    a[0], a[2] = x[0], y[0]
    if x.dtype == FLOAT32: (<float*>&bits)[0] = <float>(1 / n)
    else: bits = 1 / n
    a[1].data, a[1].layout, a[1].dtype = <char*>&bits, lay.SCALAR, x.dtype
    return driver.each(MUL_LOOP, a)


def spread(c, g):
    """The gradient of a reduction as a tensor: reduced axes put back with size 1, then repeated."""
    axes, keepdims = c.attributes
    shape = c.shape(0)
    if not keepdims: g = reshape(g, tuple([1 if (axes >> d) & 1 else n for d, n in enumerate(shape)]))
    return broadcast_to(g, shape)


cdef Operator SUM = Sum(), MEAN = Mean()
OPERATORS = {o.name: o for o in (SUM, MEAN)}


cdef tuple read_axes(Tensor x, axis, keepdims):
    """The attributes: None is all axes, an int or a tuple those. Raises IndexError or ValueError."""
    cdef uint32_t mask = 0
    cdef int d
    if axis is None: return (1 << x.layout.ndim) - 1, bool(keepdims)
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        d = lay.read_axis(a, x.layout.ndim)
        if (mask >> d) & 1: raise ValueError(f"axis {d} stands twice in {axis}")
        mask |= <uint32_t>1 << d
    return mask, bool(keepdims)


def sum(x, axis=None, keepdims=False):
    """The sum over `axis` (an int, a tuple, or None for all); bools and small integers are summed as int64 (uint64)."""
    cdef Tensor t = ensure_tensor(x)
    if t.dtype < UINT8: t = t if t.dtype == INT64 else t.astype(DTYPES[INT64])
    elif t.dtype < UINT64: t = t.astype(DTYPES[UINT64])
    return apply1(SUM, t, read_axes(t, axis, keepdims))


def mean(x, axis=None, keepdims=False):
    """The mean over `axis` (an int, a tuple, or None for all); nan of nothing. Integers give the default dtype."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(MEAN, t, read_axes(t, axis, keepdims))


def sum_to(x, shape):
    """`x` summed over what broadcasting `shape` to its shape had repeated."""
    cdef int extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple([extra + d for d, n in enumerate(shape) if n == 1 and x.shape[extra + d] != 1])
    return reshape(sum(x, axes) if axes else x, shape)
