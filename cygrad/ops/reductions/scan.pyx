"""Cumulative sums, products, maxima and minima along an axis."""

import numpy as np

from libc.stdint cimport int64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, saved
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels.reductions cimport scan as kernels
from cygrad.kernels.array cimport BOOL, INT64, UINT8, Array, Layout, is_real, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.ops.reductions.reduce cimport widened

from cygrad.core.dtypes import DTYPES
from cygrad.core.interop.creation import ones, zeros
from cygrad.ops.shapes.index import gather_ranked
from cygrad.ops.shapes.join import concat
from cygrad.ops.shapes.shape import reshape


cdef class Scan(Attributes):
    """The attributes of a scan: the axis, and whether it runs from the last element to the first."""
    cdef readonly int axis
    cdef readonly bint reverse

    def __cinit__(self, int axis=0, bint reverse=False):
        self.axis, self.reverse = axis, reverse


cdef class Cumsum(Operator):
    """y_k = sum of x_i, i up to k        dx_k = sum of g_i, i from k on"""
    lanes, tangent = "shifting", "linear"
    functions, integers = {"cumsum_reversed": "x"}, np.cumsum
    traits = "fused differentiable overwrites_gradient"

    cdef tuple row_of(self, attributes):
        return "cumsum_reversed" if attributes.reverse else "cumsum", attributes.arguments()

    cdef int forward(self, Call* c) except -1 nogil:
        if not is_real(c.y[0].dtype):
            with gil: return self.forward_with_gil(c)
        return run_sums(&c.x[0], &c.y[0], (<Scan>c.attributes).axis, (<Scan>c.attributes).reverse)

    cdef int forward_with_gil(self, Call* c) except -1:
        """Sum integers with NumPy. They have no gradients, so `reverse` is never set."""
        np.cumsum(lend(&c.x[0], NULL, False), (<Scan>c.attributes).axis, out=lend(&c.y[0], NULL, True))

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return run_sums(&b.g[0], &b.dx[0], (<Scan>b.attributes).axis, not (<Scan>b.attributes).reverse)

    cdef object formula(self, c, int i, g):
        return apply1(CUMSUM, g, scan_along(c.attributes.axis, not c.attributes.reverse))


cdef Scan scan_along(int axis, bint reverse):
    cdef Scan scan = Scan.__new__(Scan)
    scan.axis, scan.reverse = axis, reverse
    return scan


cdef int run_sums(const Array* x, const Array* y, int axis, bint reverse) except -1 nogil:
    """y = the cumulative sums of x; x may be y."""
    cdef const Layout* l = y.layout
    cdef Py_ssize_t inner = 1
    cdef const char* given = x.data
    if l.size == 0: return 0
    for d in range(axis + 1, l.ndim): inner *= l.shape[d]
    if not x.layout.dense:
        gather(y.data, x, 0, l.size)
        given = y.data
    kernels.cumsum(y.dtype, l.size // (l.shape[axis] * inner), l.shape[axis], inner, given, y.data, reverse)


# ---- products --------------------------------------------------------------------------------------------------------

cdef Py_ssize_t inner_of(const Layout* l, int axis) noexcept nogil:
    """The number of elements of the dimensions after `axis`."""
    cdef Py_ssize_t inner = 1
    for d in range(axis + 1, l.ndim): inner *= l.shape[d]
    return inner


cdef int each_slab(const Array* x, const Array* a, const Array* y, const void* attributes, bint products,
                   char* scratch) except -1 nogil:
    """y = the recurrence of x with a; or, with `products`, the gradient of cumprod of a for the gradient x. x may be y.
    `scratch` has cumprod_room() for that, and then room for one slab of a unless a is dense."""
    cdef const Layout* l = y.layout
    cdef int axis = (<Scan>attributes).axis, size = itemsize(y.dtype)
    cdef bint reverse = (<Scan>attributes).reverse
    cdef Py_ssize_t n, inner, slab, i, k
    cdef const char* source = x.data
    cdef const char* factors
    cdef char* packed
    if l.size == 0: return 0
    n, inner = l.shape[axis], inner_of(l, axis)
    slab = n * inner
    packed = scratch + (kernels.cumprod_room(n, inner) if products else 0)
    if not x.layout.dense:
        gather(y.data, x, 0, l.size)
        source = y.data
    for k in range(l.size // slab):
        i = k * slab * size
        factors = a.data + i
        if not a.layout.dense:
            gather(packed, a, k * slab, slab)
            factors = packed
        if products: kernels.cumprod_grad(y.dtype, n, inner, source + i, factors, y.data + i, scratch)
        else:        kernels.recurrence(y.dtype, n, inner, source + i, factors, y.data + i, reverse)


cdef size_t slab_bytes(const Layout* l, int axis, int dtype) noexcept nogil:
    """Room for a slab of factors of this layout, unless they are dense."""
    return 0 if l.dense else l.shape[axis] * inner_of(l, axis) * itemsize(dtype)


cdef class Cumprod(Operator):
    """y_k = product of x_i, i up to k        dx_k = (product of x_i, i < k) s_k, s_k = g_k + x_k+1 s_k+1

    Nothing is divided, so the gradient is exact for zeros too. It takes two passes and keeps x alone."""
    lanes = "shifting"
    reads, integers = "x", np.cumprod
    traits = "fused differentiable"

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* l = c.y[0].layout
        cdef int axis = (<Scan>c.attributes).axis
        cdef Py_ssize_t inner
        cdef const char* source = c.x[0].data
        if not is_real(c.y[0].dtype):
            with gil: return self.forward_with_gil(c)
        if l.size == 0: return 0
        inner = inner_of(l, axis)
        if not c.x[0].layout.dense:
            gather(c.y[0].data, &c.x[0], 0, l.size)
            source = c.y[0].data
        kernels.cumprod(c.y[0].dtype, l.size // (l.shape[axis] * inner), l.shape[axis], inner, source, c.y[0].data)

    cdef int forward_with_gil(self, Call* c) except -1:
        np.cumprod(lend(&c.x[0], NULL, False), (<Scan>c.attributes).axis, out=lend(&c.y[0], NULL, True))

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        cdef int axis = (<Scan>b.attributes).axis
        s.donated_gradients = 1
        if b.x[0].size:
            s.workspace_bytes = kernels.cumprod_room(b.x[0].shape[axis], inner_of(b.x[0], axis)) \
                + slab_bytes(saved(b, 0).layout, axis, b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array x = saved(b, 0)
        return each_slab(&b.g[0], &x, &b.dx[0], b.attributes, True, b.workspace)

    cdef object formula(self, c, int i, g):
        x, axis = c.input(0), c.attributes.axis
        if x.size <= 1: return g                    # as in PyTorch: nothing depends on x
        before = (slice(None),) * axis
        one = ones(tuple([min(n, 1) if d == axis else n for d, n in enumerate(x.shape)]), dtype=x.dtype)
        earlier = concat([one, cumprod(x[(*before, slice(None, -1))], axis)], axis)
        return earlier * apply2(RECURRENCE, g, x, scan_along(axis, True))


cdef class Recurrence(Operator):
    """y_k = x_k + a_k y_k-1        dx_k = g_k + a_k+1 dx_k+1        da_k = dx_k y_k-1

    In reverse y_k = x_k + a_k+1 y_k+1, which is the transposed matrix, with da_k = dx_k-1 y_k. The first a is not used.
    The gradient of cumprod is made of it."""
    lanes = "shifting"
    traits = "differentiable"
    operands, reads = "x a", {"x": "a", "a": "a y"}

    cdef int infer(self, Call* c) except -1 nogil:
        Operator.infer(self, c)
        if c.x[0].layout.size:
            c.workspace_bytes = slab_bytes(c.x[1].layout, (<Scan>c.attributes).axis, c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        return each_slab(&c.x[0], &c.x[1], &c.y[0], c.attributes, False, c.workspace)

    cdef object formula(self, c, int i, g):
        axis, reverse = c.attributes.axis, c.attributes.reverse
        dx = apply2(RECURRENCE, g, c.input(1), scan_along(axis, not reverse))
        if i == 0: return dx
        before = (slice(None),) * axis
        later, earlier = (*before, slice(1, None)), (*before, slice(None, -1))
        da = dx[earlier] * c.output(0)[later] if reverse else dx[later] * c.output(0)[earlier]
        first = zeros(tuple([min(n, 1) if d == axis else n for d, n in enumerate(g.shape)]), dtype=g.dtype)
        return concat([first, da], axis)


# ---- maxima and minima -----------------------------------------------------------------------------------------------

cdef class ExtremePlaces(Operator):
    """y_k = the last index of the largest (smallest) x_i, i up to k        no gradient

    cummax() and cummin() gather the values with these indices; their gradient is that of gather."""
    lanes = "shifting"
    selects = True
    cdef bint least

    def __cinit__(self, str name, bint least):
        self.name, self.least = name, least

    @property
    def row(self):
        return self.name + "_places"

    @property
    def functions(self):
        return {self.name: "x"}

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = INT64
        if not c.x[0].layout.dense: c.workspace_bytes = c.x[0].layout.size * itemsize(c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* l = c.x[0].layout
        cdef int axis = (<Scan>c.attributes).axis
        cdef Py_ssize_t slab
        cdef const char* x = c.x[0].data
        if l.size == 0: return 0
        slab = l.shape[axis] * inner_of(l, axis)
        if not l.dense:
            gather(c.workspace, &c.x[0], 0, l.size)
            x = c.workspace
        kernels.extreme_places(c.x[0].dtype, l.size // slab, l.shape[axis], inner_of(l, axis), x,
                               <int64_t*>c.y[0].data, self.least)


cdef Operator CUMSUM = Cumsum(), CUMPROD = Cumprod(), RECURRENCE = Recurrence()
cdef Operator CUMMAX = ExtremePlaces("cummax", False), CUMMIN = ExtremePlaces("cummin", True)
OPERATORS = {o.name: o for o in (CUMSUM, CUMPROD, RECURRENCE, CUMMAX, CUMMIN)}


cdef tuple flat_or_along(Tensor t, axis):
    """(`t`, axis), or of None (t in one dimension, 0)."""
    if axis is not None: return t, lay.read_axis(axis, t.layout.ndim)
    return t if t.layout.ndim == 1 else reshape(t, (t.layout.size,)), 0


def cumsum(x: Data, axis: int | None = None) -> Tensor:
    """The cumulative sums along `axis`, or with None of all elements in row-major order, as one dimension. Bools and
    small integers are summed as int64 (uint64)."""
    t, along = flat_or_along(widened(x), axis)
    return apply1(CUMSUM, t, scan_along(along, False))


def cumprod(x: Data, axis: int | None = None) -> Tensor:
    """The cumulative products along `axis`, or with None of all elements in row-major order, as one dimension. Bools
    and small integers are multiplied as int64 (uint64). The gradient is exact for zeros too."""
    t, along = flat_or_along(widened(x), axis)
    return apply1(CUMPROD, t, scan_along(along, False))


def recurrence(x: Data, a: Data, axis: int, reverse: bool = False) -> Tensor:
    """y_k = x_k + a_k y_k-1 along `axis`, or with `reverse` y_k = x_k + a_k+1 y_k+1. x and a have the same shape and a
    floating-point dtype."""
    cdef Tensor t = ensure_tensor(x), f = ensure_tensor(a)
    if t.shape != f.shape or t.dtype != f.dtype or not is_real(t.dtype):
        raise ValueError(f"recurrence: x is {DTYPES[t.dtype]} of shape {t.shape} and a is {DTYPES[f.dtype]} of shape "
                         f"{f.shape}; they must have the same shape and floating-point dtype")
    return apply2(RECURRENCE, t, f, scan_along(lay.read_axis(axis, t.layout.ndim), bool(reverse)))


def cummax(x: Data, axis: int | None = None) -> tuple[Tensor, Tensor]:
    """The largest element so far along `axis`, or with None of all elements in row-major order, as one dimension; and
    its index: a tuple (values, indices), as in torch.cummax. Of equal elements the index is that of the last. From the
    first NaN on, values are NaN. The gradient goes to the elements at the indices."""
    return running(CUMMAX, x, axis)


def cummin(x: Data, axis: int | None = None) -> tuple[Tensor, Tensor]:
    """The smallest element so far along `axis`, and its index: a tuple (values, indices). See cummax()."""
    return running(CUMMIN, x, axis)


cdef tuple running(Operator op, x, axis):
    t, along = flat_or_along(ensure_tensor(x), axis)
    indices = places(op, t, along)
    return gather_ranked(t, along, indices), indices


cdef object places(Operator op, Tensor t, int axis):
    """The indices of cummax() or cummin()."""
    number = t.astype(DTYPES[UINT8]) if t.dtype == BOOL else t
    return apply1(op, number, scan_along(axis, False))


def cummax_places(x: Data, axis: int) -> Tensor:
    """The indices of cummax()."""
    cdef Tensor t = ensure_tensor(x)
    return places(CUMMAX, t, lay.read_axis(axis, t.layout.ndim))


def cummin_places(x: Data, axis: int) -> Tensor:
    """The indices of cummin()."""
    cdef Tensor t = ensure_tensor(x)
    return places(CUMMIN, t, lay.read_axis(axis, t.layout.ndim))


def cumsum_reversed(x: Data, axis: int) -> Tensor:
    """The cumulative sums along `axis` from the last element to the first: the gradient of cumsum()."""
    cdef Tensor t = widened(x)
    return apply1(CUMSUM, t, scan_along(lay.read_axis(axis, t.layout.ndim), True))
