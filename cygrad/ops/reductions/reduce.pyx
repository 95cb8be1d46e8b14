"""Reductions over any axes: sum, mean, prod, any and all; and the base of the reductions in other files."""

import math

import numpy as np

from libc.math cimport NAN
from libc.stdint cimport uint32_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.operator cimport (
    BackwardCall, Call, Operator, Stage, add_stage, reads_temporary, saved, temporary,
)
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.reductions cimport folds, rows
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, UINT64, Array, Layout, is_floating, is_real, itemsize, kind_of
from cygrad.kernels.driver cimport Loop, gather, scatter
from cygrad.kernels.reductions.folds cimport Fold
from cygrad.kernels.reductions.reduce cimport fold_into
from cygrad.ops.elementwise.base cimport number_array

from cygrad.core.interop.creation import ones
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.ops.shapes.join import concat
from cygrad.ops.shapes.shape import broadcast_to, reshape, transpose


cdef Loop* MUL_LOOP = driver.find("mul")


# ---- the base of reductions ------------------------------------------------------------------------------------------

cdef class Axes(Attributes):
    """The attributes of a reduction: a bit for each reduced axis, and whether these axes are kept with size 1."""

    def __cinit__(self, uint32_t mask=0, bint keepdims=False, *more):       # more: arguments of a subclass
        self.mask, self.keepdims = mask, keepdims

    cdef dict keywords(self):
        """`axis`, an int if it is one, in place of the mask."""
        cdef tuple axes = tuple([d for d in range(32) if self.mask >> d & 1])
        rest = Attributes.keywords(self)
        del rest["mask"]
        return {"axis": axes[0] if len(axes) == 1 else axes} | rest


cdef class Reduction(Operator):
    """The base of reductions; their attributes are Axes."""
    lanes = "shifting"
    traits = "fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int d, n = 0
        for d in range(l.ndim):
            if not (<Axes>c.attributes).mask >> d & 1:
                shape[n] = l.shape[d]
                n += 1
            elif (<Axes>c.attributes).keepdims:
                shape[n] = 1
                n += 1
        c.y[0].layout = lay.dense(n, shape)
        c.y[0].dtype = c.x[0].dtype

    cdef int fold(self, Call* c, const Fold* fold, const Array* by, const Array* y) except -1 nogil:
        """y = the fold of the input; y and `by` (or NULL) have the shape of the result. NumPy computes bools and
        integers."""
        cdef Spread result, measure
        if not is_real(y.dtype):
            with gil: return fold_by_numpy(self.numpy, c, y)
        over(&result, y, c.x[0].layout, c.attributes)
        if by == NULL: return fold_into(fold, &c.x[0], NULL, &result.array)
        over(&measure, by, c.x[0].layout, c.attributes)
        return fold_into(fold, &c.x[0], &measure.array, &result.array)


cdef int fold_by_numpy(ufunc, Call* c, const Array* y) except -1:
    """y = the NumPy function of the input over the reduced axes."""
    ufunc(lend(&c.x[0], NULL, False), axes_of(c.x[0].layout, c.attributes), out=lend(y, NULL, True),
          keepdims=(<Axes>c.attributes).keepdims)


cdef void over(Spread* s, const Array* y, const Layout* x, const void* axes) noexcept nogil:
    """`y`, which has the shape of a result or no dimensions (then `axes` is not read), in the shape of the operand x,
    with stride 0 along the reduced axes."""
    cdef uint32_t mask = ~<uint32_t>0
    cdef bint keepdims = False
    cdef int d, k = 0
    if y.layout.ndim: mask, keepdims = (<Axes>axes).mask, (<Axes>axes).keepdims
    s.array = y[0]
    s.layout = x[0]
    for d in range(x.ndim):
        if mask >> d & 1:
            s.strides[d] = 0
            if keepdims: k += 1
        else:
            s.strides[d] = y.layout.strides[k]
            k += 1
    s.layout.strides = s.strides
    s.layout.dense = False
    s.layout.offset = 0
    s.array.layout = &s.layout


cdef Stage* over_kept_input(BackwardCall* b) noexcept nogil:
    """Add a stage whose gradient may overwrite the saved input."""
    cdef Stage* s = add_stage(b, 1)
    s.saved = s.donated_saved = 1
    return s


cdef int derivative(const BackwardCall* b, const Loop* loop, const Array* g, const Array* by) except -1 nogil:
    """dx = loop(g, x, by), or loop(g, x) if `by` is NULL. x is the saved input; g and `by` have the shape of the
    result."""
    cdef Spread wide_g, wide_by
    cdef Array a[4]
    cdef Array x = saved(b, 0)
    over(&wide_g, g, x.layout, b.attributes)
    a[0], a[1] = wide_g.array, x
    if by != NULL:
        over(&wide_by, by, x.layout, b.attributes)
        a[2] = wide_by.array
    a[loop.operands - 1] = b.dx[0]
    return driver.each(loop, a)


cdef tuple axes_of(const Layout* x, const void* axes):
    """The reduced axes as a tuple, for NumPy."""
    return tuple([d for d in range(x.ndim) if (<Axes>axes).mask >> d & 1])


cdef Py_ssize_t inner_of(const Layout* x, const void* axes) noexcept nogil:
    """`inner`, if x is dense and the reduced axes are adjacent, so that its shape is (outer, n, inner); else 0."""
    cdef uint32_t mask = (<Axes>axes).mask
    cdef Py_ssize_t inner = 1
    cdef int d = x.ndim
    while d > 0 and not (mask >> (d - 1)) & 1:
        inner *= x.shape[d - 1]
        d -= 1
    while d > 0 and (mask >> (d - 1)) & 1: d -= 1
    return 0 if not x.dense or mask & ((<uint32_t>1 << d) - 1) else inner


# ---- sum and mean ----------------------------------------------------------------------------------------------------

cdef Layout* repeated(const BackwardCall* b, const Layout* g) except NULL nogil:
    """`g`, which has the shape of the result, repeated along the reduced axes by strides of 0."""
    cdef const Layout* x = b.x[0]
    cdef Layout* l = lay.blank(x.ndim)
    cdef int d, k = 0
    for d in range(x.ndim):
        l.shape[d] = x.shape[d]
        if (<Axes>b.attributes).mask >> d & 1:
            l.strides[d] = 0
            if (<Axes>b.attributes).keepdims: k += 1
        else:
            l.strides[d] = g.strides[k]
            k += 1
    l.offset = g.offset
    return lay.finish(l)


cdef class Sum(Reduction):
    """y = sum of x over axes        dx = g, repeated"""
    tangent = "linear"
    traits = "fused differentiable gradient_is_view"
    integers = np.sum

    cdef int forward(self, Call* c) except -1 nogil:
        return self.fold(c, &folds.SUM, NULL, &c.y[0])

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        return repeated(b, g)

    cdef object formula(self, c, int i, g):
        return spread(c, g)


cdef class Mean(Reduction):
    """y = (sum of x over axes) / n        dx = g / n, repeated"""
    tangent = "linear"
    traits = "promotes promotes_to_float fused differentiable"

    cdef int forward(self, Call* c) except -1 nogil:
        self.fold(c, &folds.SUM, NULL, &c.y[0])
        return scale(&c.y[0], &c.y[0], count(c.x[0].layout.size, c.y[0].layout.size))

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, temporary(0))  # g / n, over g
        s.like, s.donated_gradients = b.y, 1
        s = add_stage(b, 1)
        s.gradients, s.view = reads_temporary(0), True

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return scale(&b.g[0], &b.temporaries[0], count(b.x[0].size, b.y.size))

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        return repeated(b, g)

    cdef object formula(self, c, int i, g):
        return spread(c, g / count(math.prod(c.shape(0)), (<Tensor>g).layout.size))


cdef double count(Py_ssize_t of, Py_ssize_t results) noexcept nogil:
    """The number of elements for each result; NaN for none, as in NumPy."""
    return of / <double>results if results and of else (NAN if results else 1)


cdef int scale(const Array* x, const Array* y, double n) except -1 nogil:
    """y = x / n"""
    return binary(MUL_LOOP, x, 1 / n, y)


cdef int binary(const Loop* loop, const Array* x, double number, const Array* y) except -1 nogil:
    """y = loop(x, number)"""
    cdef Array a[3]
    cdef double bits
    a[0], a[2] = x[0], y[0]
    a[1] = number_array(&bits, number, x.dtype)
    return driver.each(loop, a)


def spread(c, g):
    """g, broadcast to the shape of the input."""
    return broadcast_to(kept_axes(c, g), c.shape(0))


def kept_axes(c, t):
    """t, which has the shape of the result, with the reduced axes as dimensions of size 1."""
    cdef Axes axes = c.attributes
    if axes.keepdims: return t
    return reshape(t, tuple([1 if axes.mask >> d & 1 else n for d, n in enumerate(c.shape(0))]))


def reduced(c):
    """The reduced axes."""
    cdef Axes axes = c.attributes
    return tuple([d for d in range(len(c.shape(0))) if axes.mask >> d & 1])


cdef int check_any_elements(str name, const Layout* x, const void* axes) except -1 nogil:
    """Raise ValueError if a reduced axis has size 0, for operators without a result for no elements."""
    cdef int d
    for d in range(x.ndim):
        if not ((<Axes>axes).mask >> d & 1 and x.shape[d] == 0): continue
        with gil: raise ValueError(f"{name}: cannot reduce a tensor of shape {lay.shape_tuple(x)} over axis {d} of "
                                   f"size 0; its size must be at least 1")


# ---- prod ------------------------------------------------------------------------------------------------------------

cdef class Prod(Reduction):
    """y = product of x over axes        dx = g times the product of the other elements"""
    reads, integers = "x", np.prod

    cdef int forward(self, Call* c) except -1 nogil:
        return self.fold(c, &folds.PROD, NULL, &c.y[0])

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        if b.x[0].size and not inner_of(saved(b, 0).layout, b.attributes):      # packs one row at a time
            s.workspace_bytes = 2 * (b.x[0].size // b.y.size) * itemsize(b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array x = saved(b, 0)
        cdef Array a[3]
        cdef Py_ssize_t inner = inner_of(x.layout, b.attributes), n, row
        cdef int size = itemsize(b.dtype)
        cdef Spread wide
        cdef Layout last[2]
        cdef Py_ssize_t sizes[4 * MAX_NDIM]
        if x.layout.size == 0: return 0
        n = x.layout.size // b.y.size
        if inner:
            rows.each_row(&rows.OTHERS, x.dtype, b.y.size // inner, n, inner, x.data, NULL, b.dx[0].data)
        else:
            a[0], a[1] = x, b.dx[0]
            a[0].layout = reduced_last(&last[0], sizes, x.layout, b.attributes)
            a[1].layout = reduced_last(&last[1], sizes + 2 * MAX_NDIM, b.dx[0].layout, b.attributes)
            for row in range(b.y.size):
                gather(b.workspace, &a[0], row * n, n)
                rows.each_row(&rows.OTHERS, x.dtype, 1, n, 1, b.workspace, NULL, b.workspace + n * size)
                scatter(b.workspace + n * size, &a[1], row * n, n)
        over(&wide, &b.g[0], b.dx[0].layout, b.attributes)
        a[0], a[1], a[2] = wide.array, b.dx[0], b.dx[0]
        return driver.each(MUL_LOOP, a)

    cdef object formula(self, c, int i, g):
        """A binary tree of products, without division. Going up, a level is the product of the two halves of the level
        below; going down, the gradient of a half is the gradient of their product times the other half."""
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
        return transpose(dx, [order.index(d) for d in range(len(order))]) if order else dx


cdef Layout* reduced_last(Layout* l, Py_ssize_t* sizes, const Layout* x, const void* axes) noexcept nogil:
    """The layout of x with the reduced axes last, in `l` and `sizes`. The offset is 0: the data pointer includes it."""
    cdef int d, k = 0, turn
    l[0] = x[0]
    l.shape, l.strides, l.offset, l.dense = sizes, sizes + MAX_NDIM, 0, False
    for turn in range(2):
        for d in range(x.ndim):
            if <int>((<Axes>axes).mask >> d & 1) != turn: continue
            l.shape[k], l.strides[k] = x.shape[d], x.strides[d]
            k += 1
    return l


def extended(x):
    """A matrix with an additional column of ones."""
    return concat([x, ones((x.shape[0], 1), dtype=x.dtype)], 1)


# ---- any and all -----------------------------------------------------------------------------------------------------

cdef class AnyAll(Reduction):
    """y = whether any (all) of x over axes are not 0, a bool tensor; no gradient

    NumPy computes it for every dtype."""
    traits = ""
    cdef object ufunc

    def __cinit__(self, str name, ufunc):
        self.name, self.ufunc = name, ufunc

    cdef int infer(self, Call* c) except -1 nogil:
        Reduction.infer(self, c)
        c.y[0].dtype = BOOL

    cdef int forward_with_gil(self, Call* c) except -1:
        return fold_by_numpy(self.ufunc, c, &c.y[0])


cdef Operator SUM = Sum(), MEAN = Mean(), PROD = Prod(), ANY = AnyAll("any", np.any), ALL = AnyAll("all", np.all)
OPERATORS = {o.name: o for o in (SUM, MEAN, PROD, ANY, ALL)}


cdef Axes read_axes(Tensor x, axis, keepdims):
    """The attributes of a reduction of `x`. Raises IndexError or ValueError."""
    cdef Axes axes = Axes.__new__(Axes)
    read_into(axes, x, axis, keepdims)
    return axes


cdef int read_into(Axes axes, Tensor x, axis, keepdims) except -1:
    """Set the fields of new attributes. `axis` is an int, a tuple, or None for all axes."""
    cdef int d
    axes.keepdims = keepdims
    if axis is None: axes.mask = (<uint32_t>1 << x.layout.ndim) - 1
    else:
        for a in axis if isinstance(axis, (tuple, list)) else (axis,):
            d = lay.read_axis(a, x.layout.ndim)
            if axes.mask >> d & 1: raise ValueError(f"duplicate axis {d} in {described(axis)}")
            axes.mask |= <uint32_t>1 << d


cdef Tensor widened(x):
    """A tensor, with bools and small integers cast to int64 (unsigned ones to uint64), as in NumPy."""
    cdef Tensor t = ensure_tensor(x)
    cdef int widest = UINT64 if kind_of(t.dtype) == c"u" else INT64
    return t if t.dtype == widest or is_floating(t.dtype) else t.astype(DTYPES[widest])


def sum(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (an int, a tuple, or None for all). Bools and small integers are added as int64 or uint64."""
    cdef Tensor t = widened(x)
    return apply1(SUM, t, read_axes(t, axis, keepdims))


def mean(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` (an int, a tuple, or None for all), NaN for no elements. Integers give the default dtype."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(MEAN, t, read_axes(t, axis, keepdims))


def prod(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` (an int, a tuple, or None for all), 1 for no elements. Bools and small integers are
    multiplied as int64 or uint64. The gradient is exact for zeros too."""
    cdef Tensor t = widened(x)
    return apply1(PROD, t, read_axes(t, axis, keepdims))


def any(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element over `axis` (an int, a tuple, or None for all) is not 0: a bool tensor; False for none."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(ANY, t, read_axes(t, axis, keepdims))


def all(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over `axis` (an int, a tuple, or None for all) are not 0: a bool tensor; True for none."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(ALL, t, read_axes(t, axis, keepdims))


def sum_to(x, shape):
    """`x` summed over the dimensions that broadcasting from `shape` repeats."""
    cdef int extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple([extra + d for d, n in enumerate(shape) if n == 1 and x.shape[extra + d] != 1])
    return reshape(sum(x, axes) if axes else x, shape)
