"""Views and casts: reshape, transpose, permute, squeeze, expand_dims, broadcast_to, flip; dtypes."""

cimport cython

import numpy as np

from libc.stdint cimport uint32_t

from cygrad.core.late_bound cimport cast_t, late_bound
from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport FLOAT32, FLOAT64, MAX_NDIM, N_DTYPES, Array, Layout
from cygrad.kernels.driver cimport Loop, copy_all
from cygrad.ops.elementwise.base cimport View

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import described
from cygrad.kernels.driver import kernel_names


# ---- reshape ---------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Shape(Attributes):
    """The attributes of an operator with a shape."""

    def __cinit__(self, tuple shape, *more):            # more: arguments of a subclass
        self.ndim = lay.read_shape(shape, self.sizes)
        self.shape = shape

    cdef dict keywords(self):
        """The shape with -1 for the size that follows from the rest: a net has other sizes there for other inputs."""
        cdef tuple shape = self.shape
        if self.free: shape = (*shape[:self.free - 1], -1, *shape[self.free:])
        return {"shape": shape, "rows": True} if self.rows else {"shape": shape}


cdef bint reshapes(const Layout* x, int ndim, const Py_ssize_t* shape) noexcept nogil:
    """Whether `x` has a view of another shape of the same size."""
    cdef Py_ssize_t strides[MAX_NDIM]
    return lay.reshape_strides(x, ndim, shape, strides)


cdef Layout* reshaped(const Layout* x, int ndim, const Py_ssize_t* shape) except? NULL nogil:
    """`x` viewed in another shape of the same size; NULL without an exception if the strides do not allow it."""
    cdef Layout* l
    cdef Py_ssize_t strides[MAX_NDIM]
    if x.size == 0:
        l = lay.dense(ndim, shape)
        l.offset = x.offset
        return l
    if not lay.reshape_strides(x, ndim, shape, strides): return NULL
    l = lay.blank(ndim)
    for d in range(ndim): l.shape[d], l.strides[d] = shape[d], strides[d]
    l.offset = x.offset
    return lay.finish(l)


cdef class Reshape(Operator):
    """y = x in another shape (a view if the strides allow it, else a copy)        dx = g in the shape of x"""
    traits = "fused differentiable views"
    in_order = may_copy = True
    lanes, tangent = "shifting", "linear"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Py_ssize_t* shape = (<Shape>c.attributes).sizes
        cdef int ndim = (<Shape>c.attributes).ndim
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = reshaped(c.x[0].layout, ndim, shape)
        if c.y[0].layout != NULL: c.view = 0
        else: c.y[0].layout = lay.dense(ndim, shape)

    cdef int forward(self, Call* c) except -1 nogil:
        copy_all(c.y[0].data, &c.x[0])

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).view = reshapes(b.g[0].layout, b.x[0].ndim, b.x[0].shape)

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        return reshaped(g, b.x[0].ndim, b.x[0].shape)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        copy_all(b.dx[0].data, &b.g[0])

    cdef object formula(self, c, int i, g):
        return reshape(g, c.shape(0))


# ---- transpose and permute -------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Permutation(Attributes):
    """The attributes of transpose and permute: dimension d of the result is dimension axes[d] of the operand."""
    cdef readonly tuple axes
    cdef int axis[MAX_NDIM]

    def __cinit__(self, tuple axes):
        cdef int d
        if len(axes) > MAX_NDIM: raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, got {len(axes)} axes")
        self.axes = axes
        for d in range(<int>len(axes)): self.axis[d] = axes[d]

    cdef Permutation inverse(self):
        cdef int axes[MAX_NDIM]
        cdef int d, n = <int>len(self.axes)
        for d in range(n): axes[self.axis[d]] = d
        return Permutation(tuple([axes[d] for d in range(n)]))


cdef void permuted(const Layout* x, const int* axes, Layout* y) noexcept nogil:
    """`x` with its axes in another order."""
    y.ndim, y.offset = x.ndim, x.offset
    for d in range(x.ndim): y.shape[d], y.strides[d] = x.shape[axes[d]], x.strides[axes[d]]
    lay.finish(y)


cdef class Reorder(View):
    """The base of transpose and permute: y = x with its axes in another order."""
    lanes = "shifting"

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        permuted(x, (<Permutation>attributes).axis, y)

    cdef int grad_layout(self, const Layout* g, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        cdef const int* axes = (<Permutation>attributes).axis
        y.ndim, y.offset = g.ndim, g.offset
        for d in range(g.ndim): y.shape[axes[d]], y.strides[axes[d]] = g.shape[d], g.strides[d]
        lay.finish(y)

    cdef object formula(self, c, int i, g):
        return apply1(self, g, (<Permutation>c.attributes).inverse())


cdef class Transpose(Reorder):
    """y = x with its axes reversed or in another order        dx = g with the axes in the order of x"""


cdef class Permute(Reorder):
    """y = x with its axes in another order        dx = g with the axes in the order of x"""


# ---- dimensions of size 1 --------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Dimensions(Attributes):
    """The attributes of squeeze, expand_dims and flip: a bit for each dimension; for expand_dims, of the result."""
    cdef readonly uint32_t mask

    def __cinit__(self, uint32_t mask):
        self.mask = mask

    cdef dict keywords(self):
        """`axis`, an int if it is one, in place of the mask."""
        cdef tuple axes = tuple([d for d in range(32) if self.mask >> d & 1])
        return {"axis": axes[0] if len(axes) == 1 else axes}


cdef void without(const Layout* x, uint32_t ones, Layout* y) noexcept nogil:
    """`x` without the dimensions `ones`, which have size 1."""
    cdef int d, n = 0
    for d in range(x.ndim):
        if (ones >> d) & 1: continue
        y.shape[n], y.strides[n] = x.shape[d], x.strides[d]
        n += 1
    y.ndim, y.offset = n, x.offset
    lay.finish(y)


cdef int with_ones(const Layout* x, uint32_t ones, Layout* y) except -1 nogil:
    """`x` with new dimensions `ones` of size 1."""
    cdef int d = 0, k, n = x.ndim
    for k in range(32): n += (ones >> k) & 1
    if n > MAX_NDIM:
        with gil: raise ValueError(f"expand_dims: a tensor has at most {MAX_NDIM} dimensions, but this would give {n}")
    for k in range(n):
        if (ones >> k) & 1: y.shape[k], y.strides[k] = 1, 0
        else:
            y.shape[k], y.strides[k] = x.shape[d], x.strides[d]
            d += 1
    y.ndim, y.offset = n, x.offset
    lay.finish(y)


cdef class Squeeze(View):
    """y = x without dimensions of size 1        dx = g with them"""
    lanes = "shifting"
    in_order = True

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        without(x, (<Dimensions>attributes).mask, y)

    cdef int grad_layout(self, const Layout* g, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        return with_ones(g, (<Dimensions>attributes).mask, y)

    cdef object formula(self, c, int i, g):
        return apply1(EXPAND_DIMS, g, c.attributes)


cdef class ExpandDims(View):
    """y = x with new dimensions of size 1        dx = g without them"""
    lanes = "shifting"
    in_order = True

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        return with_ones(x, (<Dimensions>attributes).mask, y)

    cdef int grad_layout(self, const Layout* g, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        without(g, (<Dimensions>attributes).mask, y)

    cdef object formula(self, c, int i, g):
        return apply1(SQUEEZE, g, c.attributes)


# ---- broadcast_to ----------------------------------------------------------------------------------------------------

cdef class BroadcastTo(View):
    """y = x broadcast to a shape, a view        dx = g summed over the repeated dimensions"""
    lanes = "stretching"

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        cdef const Py_ssize_t* shape = (<Shape>attributes).sizes
        cdef int ndim = (<Shape>attributes).ndim, d, i
        cdef bint same = x.ndim == ndim
        lay.decref(lay.dense(ndim, shape))          # raises for a shape with too many elements
        if x.ndim > ndim: refuse_repeat(x, ndim, shape)
        for d in range(ndim):
            i = d - ndim + x.ndim
            if i < 0 or x.shape[i] == shape[d]: continue
            if x.shape[i] != 1: refuse_repeat(x, ndim, shape)
            same = False
        for d in range(ndim):
            i = d - ndim + x.ndim
            y.shape[d] = shape[d]
            y.strides[d] = x.strides[i] if same or i >= 0 and x.shape[i] != 1 else 0
        y.ndim, y.offset = ndim, x.offset
        lay.finish(y)

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        return lay.incref(g)                        # the engine sums it to the shape of x

    cdef object formula(self, c, int i, g):
        return g                                    # the engine sums it to the shape of x


cdef int refuse_repeat(const Layout* x, int ndim, const Py_ssize_t* shape) except -1 with gil:
    raise ValueError(f"broadcast_to: a tensor of shape {lay.shape_tuple(x)} cannot be broadcast to shape "
                     f"{tuple([shape[d] for d in range(ndim)])}; from the last dimension on, sizes must be equal or 1")


# ---- flip ------------------------------------------------------------------------------------------------------------

cdef class Flip(View):
    """y = x reversed along some axes        dx = g reversed along them"""
    lanes = "shifting"

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        cdef uint32_t mask = (<Dimensions>attributes).mask
        cdef int d
        y.ndim, y.offset = x.ndim, x.offset
        for d in range(x.ndim):
            y.shape[d], y.strides[d] = x.shape[d], x.strides[d]
            if (mask >> d) & 1 and x.size:
                y.offset += (x.shape[d] - 1) * x.strides[d]
                y.strides[d] = -x.strides[d]
        lay.finish(y)

    cdef int grad_layout(self, const Layout* g, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        return self.view_layout(g, attributes, y)

    cdef object formula(self, c, int i, g):
        return apply1(FLIP, g, c.attributes)


# ---- copies and casts ------------------------------------------------------------------------------------------------

cdef class Copy(Operator):
    """y = x, copied to new memory        dx = g"""
    lanes, tangent = "leading", "linear"
    traits = "fused differentiable gradient_is_view"

    cdef int forward(self, Call* c) except -1 nogil:
        copy_all(c.y[0].data, &c.x[0])

    cdef object formula(self, c, int i, g):
        return g


@cython.no_gc
cdef class DType(Attributes):
    """The attributes of cast."""
    cdef readonly object dtype
    cdef int number

    def __cinit__(self, dtype):
        self.number = dtype_number(dtype)
        self.dtype = DTYPES[self.number]


cdef const Loop* LOOPS_TO[N_DTYPES]    # the kernels that cast to each dtype; NULL: there are none

cdef int find_casts() except -1:
    cdef int i
    for i in range(N_DTYPES):
        LOOPS_TO[i] = driver.find(f"to_{DTYPES[i]}") if f"to_{DTYPES[i]}" in kernel_names() else NULL

find_casts()


cdef class Cast(Operator):
    """y = x in another dtype        dx = g in the dtype of x"""
    lanes, tangent = "leading", "linear"
    traits = "differentiable"
    row = "astype"

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = (<DType>c.attributes).number

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Loop* loop = LOOPS_TO[c.y[0].dtype]
        cdef Array a[2]
        if not driver.has(loop, c.x[0].dtype): return Operator.forward(self, c)
        a[0], a[1] = c.x[0], c.y[0]
        return driver.each(loop, a)

    cdef int forward_with_gil(self, Call* c) except -1:
        """Bools and integers: NumPy casts, without warnings, like the kernels."""
        with np.errstate(all="ignore"):
            np.copyto(lend(&c.y[0], NULL, True), lend(&c.x[0], NULL, False), casting="unsafe")

    cdef object formula(self, c, int i, g):
        return astype(g, c.dtype(0))


cdef Operator RESHAPE = Reshape(), TRANSPOSE = Transpose(), PERMUTE = Permute(), SQUEEZE = Squeeze()
cdef Operator EXPAND_DIMS = ExpandDims(), BROADCAST_TO = BroadcastTo(), FLIP = Flip(), COPY = Copy(), CAST = Cast()
OPERATORS = {o.name: o for o in (RESHAPE, TRANSPOSE, PERMUTE, SQUEEZE, EXPAND_DIMS, BROADCAST_TO, FLIP, COPY,
                                 CAST)}


cdef list DIMENSIONS = [Dimensions(mask) for mask in range(256)]


cdef Dimensions dimensions(uint32_t mask):
    return DIMENSIONS[mask] if mask < 256 else Dimensions(mask)


cdef tuple CASTS = tuple([DType(dtype) for dtype in DTYPES])
cdef list REVERSED = [Permutation(tuple(range(n - 1, -1, -1))) for n in range(MAX_NDIM + 1)]


cdef object cast(x, int dtype):
    return apply1(CAST, x, CASTS[dtype])


late_bound.cast = <cast_t>cast


def reshape(x: Data, *shape: int | Sequence[int], rows: bool = False) -> Tensor:
    """`x` in another shape of the same size, given as a tuple or as ints; one size may be -1 and is inferred. A view if
    the strides allow it, else a copy. Raises ValueError if the sizes do not match.

    rows: whether the first size must be that of `x`. A net with `reshape(-1, 64)` would make two rows of one of 128."""
    cdef Tensor t = ensure_tensor(x)
    cdef list sizes = lay.whole_sizes(shape[0] if len(shape) == 1 else shape)
    cdef Py_ssize_t place = -1, n = 0
    known = 1
    for s in sizes:
        if s == -1 and place < 0: place = n
        elif s < 0:
            raise ValueError(f"reshape: sizes must be at least 0, except for one -1, got {tuple(sizes)}")
        else: known *= s
        n += 1
    if place >= 0 and known and t.layout.size % known == 0: sizes[place] = t.layout.size // known
    elif place >= 0 or known != t.layout.size:
        raise ValueError(f"reshape: a tensor of shape {t.shape} has {t.layout.size} elements, which do not fill shape "
                         f"{tuple(sizes)}")
    cdef Shape at = Shape(tuple(sizes))
    if rows and (t.layout.ndim == 0 or n == 0 or sizes[0] != t.layout.shape[0]):
        raise ValueError(f"reshape: a tensor of shape {t.shape} does not fit {tuple(sizes)} row by row: with rows=True "
                         f"the first size must stay the same")
    at.free, at.rows = <int>place + 1, rows
    return apply1(RESHAPE, t, at)


def keep_rows(x: Data, rest: tuple[int, ...]) -> Tensor:
    """`x` in the shape (n, *rest), where n is its first size, which a captured net takes from each x that it is given:
    as reshape with -1 in its place, but a size of `rest` may be 0. Raises ValueError if the sizes do not match."""
    cdef Tensor t = ensure_tensor(x)
    n, known = t.shape[0], 1
    for s in rest: known *= s
    return reshape(t, (-1 if known and n * known == t.layout.size else n, *rest), rows=True)


cdef Permutation read_order(str name, axes, int ndim):
    cdef tuple order = tuple([lay.read_axis(a, ndim) for a in axes])
    cdef uint32_t mask = 0
    for a in order: mask |= <uint32_t>1 << <int>a
    if len(order) != ndim or mask != (<uint32_t>1 << ndim) - 1:
        given, two = described(tuple(axes)), name == "transpose" and len(set(order)) == 2 == len(order)
        raise ValueError(f"{name}: axes {given} must contain each of the {ndim} dimensions once"
                         + (f"; swapaxes{given} exchanges two" if two else ""))
    return Permutation(order)


def transpose(x: Data, *axes: int | Sequence[int] | None) -> Tensor:
    """`x` with its axes in the given order (a list or ints), or reversed if no axes are given: a view. Raises
    ValueError if the axes are not a permutation."""
    cdef Tensor t = ensure_tensor(x)
    if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")): axes = axes[0]
    if not axes and axes != 0: return apply1(TRANSPOSE, t, REVERSED[t.layout.ndim])
    return apply1(TRANSPOSE, t, read_order("transpose", axes, t.layout.ndim))


def swapaxes(x: Data, axis1: int, axis2: int) -> Tensor:
    """`x` with two of its axes exchanged: a view. PyTorch's transpose(axis1, axis2)."""
    cdef Tensor t = ensure_tensor(x)
    cdef list order = list(range(t.layout.ndim))
    cdef int a = lay.read_axis(axis1, t.layout.ndim), b = lay.read_axis(axis2, t.layout.ndim)
    order[a], order[b] = b, a
    return apply1(TRANSPOSE, t, Permutation(tuple(order)))


def matrix_transpose(x: Data) -> Tensor:
    """x.mT: `x` with its last two axes exchanged, a view. Raises ValueError for fewer than two dimensions."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 2:
        raise ValueError(f"mT needs a tensor with at least 2 dimensions, got shape {t.shape}")
    return swapaxes(t, -2, -1)


def flatten(x: Data, start: int = 0, end: int = -1) -> Tensor:
    """`x` with its axes `start` to `end`, by default all, merged into one. A view if possible, else a copy."""
    cdef Tensor t = ensure_tensor(x)
    cdef int n = t.layout.ndim, a, b
    if n == 0: return reshape(t, 1)
    a, b = lay.read_axis(start, n), lay.read_axis(end, n)
    if a > b: raise ValueError(f"flatten: axis {start} comes after axis {end} in a tensor of shape {t.shape}")
    shape, size = t.shape, 1
    for n in shape[a:b + 1]: size *= n
    if a > 0: return keep_rows(t, (*shape[1:a], size, *shape[b + 1:]))
    return reshape(t, (-1 if t.layout.size else size, *shape[b + 1:]))


def permute(x: Data, *axes: int | Sequence[int] | None) -> Tensor:
    """`x` with its axes in the given order (a list or ints): a view. Raises ValueError unless it is a permutation."""
    cdef Tensor t = ensure_tensor(x)
    if len(axes) == 1 and hasattr(axes[0], "__iter__"): axes = axes[0]
    return apply1(PERMUTE, t, read_order("permute", axes, t.layout.ndim))


cdef uint32_t read_axes(str name, axis, int ndim) except? 0xffffffff:
    """A bit for each given axis. Raises IndexError, or ValueError for a duplicate."""
    cdef uint32_t mask = 0
    cdef int d
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        d = lay.read_axis(a, ndim)
        if (mask >> d) & 1: raise ValueError(f"{name}: duplicate axis {d} in {described(axis)}")
        mask |= <uint32_t>1 << d
    return mask


cdef Tensor with_dimensions(Tensor x, uint32_t mask):
    """A view with dimensions of size 1 at the axes of the result that have a bit in `mask`."""
    return apply1(EXPAND_DIMS, x, dimensions(mask))


cdef Tensor without_dimensions(Tensor x, uint32_t mask):
    """A view without these dimensions, whose sizes are 1."""
    return apply1(SQUEEZE, x, dimensions(mask))


def squeeze(x: Data, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` without its dimensions of size 1, or only without `axis` (an int or several): a view. Raises ValueError if
    such a dimension has another size."""
    cdef Tensor t = ensure_tensor(x)
    cdef uint32_t ones = 0
    cdef int d
    if axis is not None: ones = read_axes("squeeze", axis, t.layout.ndim)
    for d in range(t.layout.ndim):
        if axis is None and t.layout.shape[d] == 1: ones |= <uint32_t>1 << d
        if (ones >> d) & 1 and t.layout.shape[d] != 1:
            raise ValueError(f"squeeze: dimension {d} of a tensor of shape {t.shape} has size {t.layout.shape[d]}; "
                             f"only dimensions of size 1 can be removed")
    return without_dimensions(t, ones)


def expand_dims(x: Data, axis: int | Sequence[int]) -> Tensor:
    """`x` with new dimensions of size 1 at `axis` (an int or several, counted in the result): a view."""
    cdef Tensor t = ensure_tensor(x)
    cdef int more = len(axis) if isinstance(axis, (tuple, list)) else 1
    return with_dimensions(t, read_axes("expand_dims", axis, t.layout.ndim + more))


def flip(x: Data, axis: int | Sequence[int] | None = None) -> Tensor:
    """`x` reversed along `axis` (an int, several, or None for all): a view."""
    cdef Tensor t = ensure_tensor(x)
    cdef uint32_t every = (<uint32_t>1 << t.layout.ndim) - 1
    return apply1(FLIP, t, dimensions(every if axis is None else read_axes("flip", axis, t.layout.ndim)))


def broadcast_to(x: Data, shape: int | Sequence[int]) -> Tensor:
    """`x` broadcast to `shape` by NumPy's rules: a view. Raises ValueError if the shapes do not match."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(BROADCAST_TO, t, Shape(tuple(lay.whole_sizes(shape))))


def copy(x: Data) -> Tensor:
    """A dense copy of `x` in new memory. It is recorded like any operation; detach().copy() is not."""
    return apply1(COPY, x, None)


def astype(x: Data, dtype: npt.DTypeLike) -> Tensor:
    """`x` in another dtype; `x` itself if it already has that dtype."""
    cdef Tensor t = ensure_tensor(x)
    cdef int number = dtype_number(dtype)
    return t if t.dtype == number else cast(t, number)


def single(x: Data) -> Tensor:
    """This tensor as float32: astype("float32")."""
    return astype(x, DTYPES[FLOAT32])


def double(x: Data) -> Tensor:
    """This tensor as float64: astype("float64")."""
    return astype(x, DTYPES[FLOAT64])


def cpu(x: Data) -> Tensor:
    """This tensor: all tensors are in CPU memory."""
    return x
