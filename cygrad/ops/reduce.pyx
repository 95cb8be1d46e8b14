"""Reductions along any axes: sums, means, products, any and all; and what reductions of other files share."""

import math

import numpy as np

from cython cimport final
from libc.stdint cimport uint32_t

from cygrad.core cimport layout as lay
from cygrad.core.bridge cimport lend
from cygrad.core.graph cimport Backward, Call, Gradient, Operator, Tensor, ensure_tensor
from cygrad.core.memory cimport WORKSPACE, Buffer, allocate, drop
from cygrad.core.run cimport apply1
from cygrad.kernels cimport driver, folds, rows
from cygrad.kernels.array cimport BOOL, FLOAT32, INT64, MAX_NDIM, UINT8, UINT64, Array, Layout, itemsize
from cygrad.kernels.driver cimport Loop, gather, scatter
from cygrad.kernels.folds cimport Fold
from cygrad.kernels.reduce cimport fold_into

from cygrad.core.bridge import ones
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.ops.join import concat
from cygrad.ops.shape import broadcast_to, reshape, transpose


cdef Loop* MUL_LOOP = driver.find("mul")


# ---- what reductions share -------------------------------------------------------------------------------------------

cdef class Reduction(Operator):
    """The attributes of a reduction are (a bit for each axis that is reduced, keepdims, what else there is)."""

    def __cinit__(self):
        self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int d, n = 0
        cdef uint32_t mask = (<tuple>c.attributes)[0]
        cdef bint keepdims = (<tuple>c.attributes)[1]
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

    cdef int fold(self, Call* c, const Fold* fold, const Array* by, const Array* y) except -1:
        """y = the fold of the input; y and `by` (or NULL) have the shape of the result. Bools and integers are NumPy's
        work."""
        cdef Spread result, measure
        if y.dtype < FLOAT32:
            axes = axes_of(c.x[0].layout, <tuple>c.attributes)
            self.numpy(lend(&c.x[0], NULL, False), axes, out=lend(y, NULL, True), keepdims=(<tuple>c.attributes)[1])
            return 0
        over(&result, y, c.x[0].layout, <tuple>c.attributes)
        if by == NULL: return fold_into(fold, &c.x[0], NULL, &result.array)
        over(&measure, by, c.x[0].layout, <tuple>c.attributes)
        return fold_into(fold, &c.x[0], &measure.array, &result.array)


cdef void over(Spread* s, const Array* y, const Layout* x, attributes) noexcept:
    """`y`, which has the shape of a result or no dimensions (then attributes are not looked at), seen in the shape of
    the operand, with strides of 0 along the reduced axes."""
    cdef uint32_t axes = ~<uint32_t>0
    cdef bint keepdims = False
    cdef int d, k = 0
    if y.layout.ndim: axes, keepdims = (<tuple>attributes)[0], (<tuple>attributes)[1]
    s.array = y[0]
    s.layout = x[0]
    for d in range(x.ndim):
        if (axes >> d) & 1:
            s.strides[d] = 0
            if keepdims: k += 1
        else:
            s.strides[d] = y.layout.strides[k]
            k += 1
    s.layout.strides = s.strides
    s.layout.dense = False
    s.layout.offset = 0
    s.array.layout = &s.layout


cdef int slope(Backward b, const Loop* loop, const Array* g, const Array* by) except -1:
    """dx = loop(g, x, by) over all of the kept input x, written over x where nobody else holds it; g and `by` (NULL:
    loop(g, x)) have the shape of the result."""
    cdef Spread wide_g, wide_by
    cdef Array a[4]
    cdef Array x = b.kept(0)
    over(&wide_g, g, x.layout, b.node.attributes)
    a[0], a[1] = wide_g.array, x
    if by != NULL:
        over(&wide_by, by, x.layout, b.node.attributes)
        a[2] = wide_by.array
    if not b.over(0, 0, &x): x = b.make(0, x.layout, b.node.dtype)
    a[loop.operands - 1] = x
    driver.each(loop, a)
    b.done(0)
    return 0


cdef tuple axes_of(const Layout* x, attributes):
    """The reduced axes as NumPy wants them."""
    return tuple([d for d in range(x.ndim) if (<object>(<tuple>attributes)[0] >> d) & 1])


cdef Py_ssize_t inner_of(const Layout* x, attributes):
    """The elements for each place of the reduced axes, where these are neighbours in dense memory, which is (outer, n,
    inner) then; 0 where not."""
    cdef uint32_t mask = (<tuple>attributes)[0]
    cdef Py_ssize_t inner = 1
    cdef int d = x.ndim
    while d > 0 and not (mask >> (d - 1)) & 1:
        inner *= x.shape[d - 1]
        d -= 1
    while d > 0 and (mask >> (d - 1)) & 1: d -= 1
    return 0 if not x.dense or mask & ((<uint32_t>1 << d) - 1) else inner


# ---- sum and mean ----------------------------------------------------------------------------------------------------

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
        self.name, self.numpy = "sum", np.sum

    cdef int forward(self, Call* c) except -1:
        return self.fold(c, &folds.SUM, NULL, &c.y[0])

    cdef int backward(self, Backward b) except -1:
        return expand_gradient(b, &b.g[0])

    cdef object formula(self, c, int i, g):
        return spread(c, g)


@final
cdef class Mean(Reduction):
    """y = (sum of x over axes) / n        dx = g / n, repeated"""

    def __cinit__(self):
        self.name, self.floats, self.promotes = "mean", True, True

    cdef int forward(self, Call* c) except -1:
        self.fold(c, &folds.SUM, NULL, &c.y[0])
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

    cdef object formula(self, c, int i, g):
        return spread(c, g / count(math.prod(c.shape(0)), (<Tensor>g).layout.size))


cdef double count(Py_ssize_t of, Py_ssize_t results) noexcept:
    """How many elements went into each result (nan for none, as in NumPy)."""
    return of / <double>results if results and of else (float("nan") if results else 1)


cdef int scale(const Array* x, const Array* y, double n) except -1:
    """y = x / n"""
    return binary(MUL_LOOP, x, 1 / n, y)


cdef int binary(const Loop* loop, const Array* x, double number, const Array* y) except -1:
    """y = loop(x, number)"""
    cdef Array a[3]
    cdef double bits
    a[0], a[2] = x[0], y[0]
    a[1] = number_array(&bits, number, x.dtype)
    return driver.each(loop, a)


cdef Array number_array(double* bits, double number, int dtype) noexcept:
    """An array of one element in memory of the caller's."""
    cdef Array a
    if dtype == FLOAT32: (<float*>bits)[0] = <float>number
    else: bits[0] = number
    a.data, a.layout, a.dtype = <char*>bits, lay.SCALAR, dtype
    return a


def spread(c, g):
    """The gradient of a reduction as a tensor: reduced axes put back with size 1, then repeated."""
    return broadcast_to(kept_axes(c, g), c.shape(0))


def kept_axes(c, t):
    """A tensor of the shape of the result, with the reduced axes put back with size 1."""
    axes, keepdims = c.attributes[:2]
    if keepdims: return t
    return reshape(t, tuple([1 if (axes >> d) & 1 else n for d, n in enumerate(c.shape(0))]))


def reduced(c):
    """The reduced axes."""
    return tuple([d for d in range(len(c.shape(0))) if (c.attributes[0] >> d) & 1])


cdef int refuse_nothing(str name, const Layout* x, attributes) except -1:
    """The largest of no elements is no number."""
    cdef uint32_t mask = (<tuple>attributes)[0]
    cdef int d
    for d in range(x.ndim):
        if (mask >> d) & 1 and x.shape[d] == 0:
            shape = lay.shape_tuple(x)
            raise ValueError(f"{name}: a tensor of shape {shape} has nothing along axis {d} to choose from; its size "
                             f"there must be 1 at least")
    return 0


# ---- prod ------------------------------------------------------------------------------------------------------------

@final
cdef class Prod(Reduction):
    """y = product of x over axes        dx = g times the product of all others"""

    def __cinit__(self):
        self.name, self.numpy = "prod", np.prod

    cdef int forward(self, Call* c) except -1:
        return self.fold(c, &folds.PROD, NULL, &c.y[0])

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        return 1

    cdef int backward(self, Backward b) except -1:
        cdef Array g = b.gradient(0), x = b.kept(0), dx = b.make(0, x.layout, b.node.dtype)
        cdef Array a[3]
        cdef Py_ssize_t results = b.node.layout.size, inner = inner_of(x.layout, b.node.attributes), n, row
        cdef int size = itemsize(b.node.dtype)
        cdef Spread wide
        cdef Buffer* workspace
        if x.layout.size == 0: return 0
        n = x.layout.size // results
        if inner:
            rows.each_row(&rows.OTHERS, x.dtype, results // inner, n, inner, x.data, NULL, dx.data)
        else:                                       # row by row, packed
            workspace = allocate(2 * n * size, WORKSPACE)
            a[0], a[1] = x, dx
            a[0].layout = a[1].layout = NULL
            try:
                a[0].layout, a[1].layout = reduced_last(x.layout, b), reduced_last(dx.layout, b)
                for row in range(results):
                    gather(workspace.data, &a[0], row * n, n)
                    rows.each_row(&rows.OTHERS, x.dtype, 1, n, 1, workspace.data, NULL, workspace.data + n * size)
                    scatter(workspace.data + n * size, &a[1], row * n, n)
            finally:
                drop(workspace)
                if a[0].layout != NULL: lay.forget(a[0].layout)
                if a[1].layout != NULL: lay.forget(a[1].layout)
        b.done(0)
        over(&wide, &g, dx.layout, b.node.attributes)
        a[0], a[1], a[2] = wide.array, dx, dx
        driver.each(MUL_LOOP, a)
        b.done_gradient(0)
        return 0

    cdef object formula(self, c, int i, g):
        """The products of all others by a tree, which needs no division: upwards the products of the two halves, down
        again each half with what the other half gave."""
        shape, axes = c.shape(0), reduced(c)
        order = [d for d in range(len(shape)) if d not in axes] + list(axes)
        n, results = math.prod([shape[d] for d in axes]), (<Tensor>g).layout.size
        if n * results == 0: return c.locally_constant(broadcast_to(reshape(sum(g) * 0, (1,) * len(shape)), shape))
        level = reshape(transpose(c.input(0), order) if order else c.input(0), (results, n))
        levels = []
        while n > 1:
            if n % 2: level = extended(level)
            n = (n + 1) // 2
            levels.append(reshape(level, (results, 2, n)))
            level = levels[-1][:, 0] * levels[-1][:, 1]
        dx = reshape(g, (results, 1))
        for level in reversed(levels):
            n = level.shape[2]
            dx = reshape(level[:, ::-1] * reshape(dx[:, :n], (results, 1, n)), (results, 2 * n))
        dx = reshape(dx[:, :math.prod([shape[d] for d in axes])], tuple([shape[d] for d in order]))
        return transpose(dx, np.argsort(order).tolist()) if order else dx


cdef Layout* reduced_last(const Layout* x, Backward b) except NULL:
    """`x` with the reduced axes behind the others; the offset is in the data already."""
    cdef uint32_t mask = (<tuple>b.node.attributes)[0]
    cdef Layout* l = lay.blank(x.ndim)
    cdef int d, k = 0, turn
    for turn in range(2):
        for d in range(x.ndim):
            if (mask >> d) & 1 != <uint32_t>turn: continue
            l.shape[k], l.strides[k] = x.shape[d], x.strides[d]
            k += 1
    return lay.finish(l)


def extended(x):
    """A matrix with a column of ones more."""
    return concat([x, ones((x.shape[0], 1), dtype=x.dtype)], 1)


# ---- any and all -----------------------------------------------------------------------------------------------------

@final
cdef class AnyAll(Reduction):
    """y = whether any (all) of x over axes are not 0, a bool tensor; no gradient"""
    cdef object ufunc

    def __cinit__(self, str name, ufunc):
        self.name, self.ufunc = name, ufunc
        self.fused = self.differentiable = False

    cdef int infer(self, Call* c) except -1:
        Reduction.infer(self, c)
        c.y[0].dtype = BOOL
        return 0

    cdef int forward(self, Call* c) except -1:
        self.ufunc(lend(&c.x[0], NULL, False), axes_of(c.x[0].layout, <tuple>c.attributes), lend(&c.y[0], NULL, True),
                   (<tuple>c.attributes)[1])
        return 0


cdef Operator SUM = Sum(), MEAN = Mean(), PROD = Prod(), ANY = AnyAll("any", np.any), ALL = AnyAll("all", np.all)
OPERATORS = {o.name: o for o in (SUM, MEAN, PROD, ANY, ALL)}


cdef tuple read_axes(Tensor x, axis, keepdims):
    """The attributes: None is all axes, an int or a tuple those. Raises IndexError or ValueError."""
    cdef uint32_t mask = 0
    cdef int d
    if axis is None: return (1 << x.layout.ndim) - 1, bool(keepdims)
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        d = lay.read_axis(a, x.layout.ndim)
        if (mask >> d) & 1: raise ValueError(f"axis {d} stands twice in {described(axis)}")
        mask |= <uint32_t>1 << d
    return mask, bool(keepdims)


cdef Tensor widened(x):
    """What is summed or multiplied: bools and small integers as int64 (uint64), as in NumPy."""
    cdef Tensor t = ensure_tensor(x)
    if t.dtype < UINT8: return t if t.dtype == INT64 else t.astype(DTYPES[INT64])
    return t.astype(DTYPES[UINT64]) if t.dtype < UINT64 else t


def sum(x, axis=None, keepdims=False):
    """The sum over `axis` (an int, a tuple, or None for all); bools and small integers are summed as int64 (uint64)."""
    cdef Tensor t = widened(x)
    return apply1(SUM, t, read_axes(t, axis, keepdims))


def mean(x, axis=None, keepdims=False):
    """The mean over `axis` (an int, a tuple, or None for all); nan of nothing. Integers give the default dtype."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(MEAN, t, read_axes(t, axis, keepdims))


def prod(x, axis=None, keepdims=False):
    """The product over `axis` (an int, a tuple, or None for all), 1 of nothing; bools and small integers are multiplied
    as int64 (uint64). Zeros are no matter to the gradient."""
    cdef Tensor t = widened(x)
    return apply1(PROD, t, read_axes(t, axis, keepdims))


def any(x, axis=None, keepdims=False):
    """Whether any element over `axis` (an int, a tuple, or None for all) is not 0: a bool tensor, False of nothing."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(ANY, t, read_axes(t, axis, keepdims))


def all(x, axis=None, keepdims=False):
    """Whether all elements over `axis` (an int, a tuple, or None for all) are not 0: a bool tensor, True of nothing."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(ALL, t, read_axes(t, axis, keepdims))


def sum_to(x, shape):
    """`x` summed over what broadcasting `shape` to its shape had repeated."""
    cdef int extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple([extra + d for d, n in enumerate(shape) if n == 1 and x.shape[extra + d] != 1])
    return reshape(sum(x, axes) if axes else x, shape)
