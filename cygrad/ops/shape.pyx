"""Views and casts: reshape, transpose, permute, squeeze, expand_dims, broadcast_to, flip; dtypes."""

import numpy as np

from cython cimport final

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.array cimport FLOAT32, FLOAT64, MAX_NDIM, Layout, is_real
from cygrad.kernels.driver cimport gather
from cygrad.ops.base cimport View

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import described


# ---- reshape ---------------------------------------------------------------------------------------------------------

cdef bint reshapes(const Layout* x, int ndim, const Py_ssize_t* shape) noexcept nogil:
    """Whether `x` can be seen in another shape of the same size."""
    cdef Py_ssize_t strides[MAX_NDIM]
    return lay.reshape_strides(x, ndim, shape, strides)


cdef Layout* reshaped(const Layout* x, int ndim, const Py_ssize_t* shape) except? NULL:
    """`x` in another shape of the same size without moving anything; NULL without an error if that cannot be."""
    cdef Layout* l
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef int d
    if x.size == 0:
        l = lay.dense(ndim, shape)
        l.offset = x.offset
        return l
    if not lay.reshape_strides(x, ndim, shape, strides): return NULL
    l = lay.blank(ndim)
    for d in range(ndim): l.shape[d], l.strides[d] = shape[d], strides[d]
    l.offset = x.offset
    return lay.finish(l)


@final
cdef class Reshape(Operator):
    """y = x in another shape (a view where strides allow, else a copy)        dx = g in the shape of x"""

    def __cinit__(self):
        self.name, self.fused, self.differentiable, self.views = "reshape", True, True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef int ndim = lay.read_shape(<object>c.attributes, shape)
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = reshaped(c.x[0].layout, ndim, shape)
        if c.y[0].layout != NULL: c.view = 0
        else: c.y[0].layout = lay.dense(ndim, shape)
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        gather(c.y[0].data, &c.x[0], 0, c.x[0].layout.size)
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).view = reshapes(b.g[0].layout, b.x[0].ndim, b.x[0].shape)
        return 0

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        return reshaped(g, b.x[0].ndim, b.x[0].shape)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        gather(b.dx[0].data, &b.g[0], 0, b.x[0].size)
        return 0

    cdef object formula(self, c, int i, g):
        return reshape(g, c.shape(0))


# ---- transpose -------------------------------------------------------------------------------------------------------


# ---- axes in another order -------------------------------------------------------------------------------------------

cdef Layout* permuted(const Layout* x, tuple axes) except NULL:
    """`x` with its axes in another order."""
    cdef Layout* l = lay.blank(x.ndim)
    cdef int d, a
    for d in range(x.ndim):
        a = axes[d]
        l.shape[d], l.strides[d] = x.shape[a], x.strides[a]
    l.offset = x.offset
    return lay.finish(l)


cdef class Reorder(View):
    """The base of transpose and permute: y = x with its axes in another order."""

    cdef Layout* see(self, const Layout* x, axes) except NULL:
        return permuted(x, axes)

    cdef Layout* see_back(self, const Layout* g, const Layout* x, axes) except NULL:
        cdef Layout* l = lay.blank(g.ndim)
        cdef int d, a
        for d in range(g.ndim):
            a = axes[d]
            l.shape[a], l.strides[a] = g.shape[d], g.strides[d]
        l.offset = g.offset
        return lay.finish(l)

    cdef object formula(self, c, int i, g):
        return apply1(self, g, tuple(np.argsort(c.attributes).tolist()))


@final
cdef class Transpose(Reorder):
    """y = x with its axes reversed or in another order        dx = g with the axes back in theirs"""

    def __cinit__(self):
        self.name = "transpose"


@final
cdef class Permute(Reorder):
    """y = x with its axes in another order        dx = g with the axes back in theirs"""

    def __cinit__(self):
        self.name = "permute"


# ---- dimensions of size 1 --------------------------------------------------------------------------------------------
# The attributes of both: a bit for each dimension of size 1, of the tensor that has them.

cdef Layout* without(const Layout* x, unsigned int ones) except NULL:
    """`x` without those dimensions."""
    cdef Layout* l
    cdef int d, n = 0
    for d in range(x.ndim): n += not (ones >> d) & 1
    l = lay.blank(n)
    l.offset = x.offset
    n = 0
    for d in range(x.ndim):
        if (ones >> d) & 1: continue
        l.shape[n], l.strides[n] = x.shape[d], x.strides[d]
        n += 1
    return lay.finish(l)


cdef Layout* with_ones(const Layout* x, unsigned int ones) except NULL:
    """`x` with more dimensions: those, of size 1."""
    cdef Layout* l
    cdef int d = 0, k, n = x.ndim
    for k in range(32): n += (ones >> k) & 1
    if n > MAX_NDIM: raise ValueError(f"expand_dims: a tensor has at most {MAX_NDIM} dimensions, this would give {n}")
    l = lay.blank(n)
    l.offset = x.offset
    for k in range(n):
        if (ones >> k) & 1:
            l.shape[k], l.strides[k] = 1, 0
        else:
            l.shape[k], l.strides[k] = x.shape[d], x.strides[d]
            d += 1
    return lay.finish(l)


@final
cdef class Squeeze(View):
    """y = x without dimensions of size 1        dx = g with them"""

    def __cinit__(self):
        self.name = "squeeze"

    cdef Layout* see(self, const Layout* x, ones) except NULL:
        return without(x, ones)

    cdef Layout* see_back(self, const Layout* g, const Layout* x, ones) except NULL:
        return with_ones(g, ones)

    cdef object formula(self, c, int i, g):
        return apply1(EXPAND_DIMS, g, c.attributes)


@final
cdef class ExpandDims(View):
    """y = x with more dimensions, of size 1        dx = g without them"""

    def __cinit__(self):
        self.name = "expand_dims"

    cdef Layout* see(self, const Layout* x, ones) except NULL:
        return with_ones(x, ones)

    cdef Layout* see_back(self, const Layout* g, const Layout* x, ones) except NULL:
        return without(g, ones)

    cdef object formula(self, c, int i, g):
        return apply1(SQUEEZE, g, c.attributes)


# ---- broadcast_to ----------------------------------------------------------------------------------------------------

@final
cdef class BroadcastTo(View):
    """y = x, repeated to a shape without copying        dx = g summed over what is repeated"""

    def __cinit__(self):
        self.name = "broadcast_to"

    cdef Layout* see(self, const Layout* x, shape) except NULL:
        cdef Layout* target = lay.from_shape(shape)
        cdef Layout* both = NULL
        cdef bint fits = False
        try:
            try:
                both = lay.broadcast("broadcast_to", x, target)
                fits = lay.same_shape(both, target)
                lay.decref(both)
            except ValueError:
                pass
            if not fits:
                raise ValueError(f"broadcast_to: a tensor of shape {lay.shape_tuple(x)} cannot be repeated to shape "
                                 f"{lay.shape_tuple(target)}; each size must be equal or 1, counted from the last")
            return lay.expand(x, target)
        finally:
            lay.decref(target)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).view = True
        return 0

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        return lay.incref(g)                         # (which the engine sums to the shape of x)

    cdef object formula(self, c, int i, g):
        return g                                    # the engine sums to the input's shape


# ---- flip ------------------------------------------------------------------------------------------------------------

@final
cdef class Flip(View):
    """y = x backwards along some axes        dx = g backwards along them"""

    def __cinit__(self):
        self.name = "flip"

    cdef Layout* see(self, const Layout* x, axes) except NULL:
        cdef unsigned int mask = axes
        cdef Layout* l = lay.blank(x.ndim)
        cdef int d
        l.offset = x.offset
        for d in range(x.ndim):
            l.shape[d], l.strides[d] = x.shape[d], x.strides[d]
            if (mask >> d) & 1 and x.size:
                l.offset += (x.shape[d] - 1) * x.strides[d]
                l.strides[d] = -x.strides[d]
        return lay.finish(l)

    cdef Layout* see_back(self, const Layout* g, const Layout* x, axes) except NULL:
        return self.see(g, axes)

    cdef object formula(self, c, int i, g):
        return apply1(FLIP, g, c.attributes)


# ---- casts -----------------------------------------------------------------------------------------------------------

@final
cdef class Copy(Operator):
    """y = x in memory of its own        dx = g"""

    def __cinit__(self):
        self.name, self.fused, self.differentiable = "copy", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        gather(c.y[0].data, &c.x[0], 0, c.x[0].layout.size)
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).view = True
        return 0

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        return lay.incref(g)

    cdef object formula(self, c, int i, g):
        return g


@final
cdef class Cast(Operator):
    """y = x in another dtype        dx = g in the dtype of x"""

    def __cinit__(self):
        self.name, self.differentiable = "cast", True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = <object>c.attributes
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t n = c.x[0].layout.size, i
        if c.x[0].layout.dense and is_real(c.x[0].dtype) and is_real(c.y[0].dtype):
            with nogil:
                if c.x[0].dtype == FLOAT32 and c.y[0].dtype != FLOAT32:
                    for i in range(n): (<double*>c.y[0].data)[i] = (<float*>c.x[0].data)[i]
                elif c.x[0].dtype != FLOAT32 and c.y[0].dtype == FLOAT32:
                    for i in range(n): (<float*>c.y[0].data)[i] = <float>(<double*>c.x[0].data)[i]
                else:
                    gather(c.y[0].data, &c.x[0], 0, n)
        else:
            with np.errstate(all="ignore"):         # as quiet as the loops above
                np.copyto(lend(&c.y[0], NULL, True), lend(&c.x[0], NULL, False), casting="unsafe")
        return 0

    cdef object formula(self, c, int i, g):
        return astype(g, c.dtype(0))


cdef Operator RESHAPE = Reshape(), TRANSPOSE = Transpose(), PERMUTE = Permute(), SQUEEZE = Squeeze()
cdef Operator EXPAND_DIMS = ExpandDims(), BROADCAST_TO = BroadcastTo(), FLIP = Flip(), COPY = Copy(), CAST = Cast()
OPERATORS = {o.name: o for o in (RESHAPE, TRANSPOSE, PERMUTE, SQUEEZE, EXPAND_DIMS, BROADCAST_TO, FLIP, COPY,
                                 CAST)}


def reshape(x, *shape):
    """`x` in another shape of the same size, given as a tuple or as numbers; one size may be -1 and is worked out. A
    view where the strides allow, else a copy. Raises ValueError where the sizes do not fit."""
    cdef Tensor t = ensure_tensor(x)
    if len(shape) == 1: shape = shape[0]
    sizes = lay.whole_sizes(shape)
    known = 1
    for s in sizes: known *= s if s != -1 else 1
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise ValueError(f"reshape: a shape has sizes of 0 and more and at most one -1, got {tuple(sizes)}")
    if -1 in sizes and known and t.layout.size % known == 0: sizes[sizes.index(-1)] = t.layout.size // known
    elif -1 in sizes or known != t.layout.size:
        raise ValueError(f"reshape: a tensor of shape {t.shape} has {t.layout.size} elements, which do not fill shape "
                         f"{tuple(sizes)}")
    return apply1(RESHAPE, t, tuple(sizes))


cdef tuple read_order(str name, axes, int ndim):
    order = tuple([lay.read_axis(a, ndim) for a in axes])
    if sorted(order) != list(range(ndim)):
        said, two = described(tuple(axes)), name == "transpose" and len(set(order)) == 2 == len(order)
        raise ValueError(f"{name}: the axes {said} do not name each of the {ndim} dimensions once"
                         + (f"; swapaxes{said} exchanges two" if two else ""))
    return order


def transpose(x, *axes):
    """`x` with its axes in the order given (as a list or as numbers); without any, reversed. A view. Raises ValueError
    if the axes are no permutation."""
    cdef Tensor t = ensure_tensor(x)
    if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")): axes = axes[0]
    if not axes and axes != 0: axes = range(t.layout.ndim - 1, -1, -1)
    return apply1(TRANSPOSE, t, read_order("transpose", axes, t.layout.ndim))


def swapaxes(x, axis1, axis2):
    """`x` with two of its axes exchanged: a view. PyTorch's transpose(axis1, axis2)."""
    cdef Tensor t = ensure_tensor(x)
    order = list(range(t.layout.ndim))
    a, b = lay.read_axis(axis1, t.layout.ndim), lay.read_axis(axis2, t.layout.ndim)
    order[a], order[b] = b, a
    return apply1(TRANSPOSE, t, tuple(order))


def matrix_transpose(x):
    """`x`, a matrix or a stack of them, with the last two axes exchanged: a view, x.mT. Raises ValueError for fewer
    dimensions."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 2:
        raise ValueError(f"mT wants a matrix or a stack of them, got a tensor of shape {t.shape}")
    return swapaxes(t, -2, -1)


def flatten(x, start=0, end=-1):
    """`x` with its axes from `start` to `end` made one: all of them, if neither is given. A view where the strides
    allow, else a copy."""
    cdef Tensor t = ensure_tensor(x)
    cdef int n = t.layout.ndim, a, b
    if n == 0: return reshape(t, 1)
    a, b = lay.read_axis(start, n), lay.read_axis(end, n)
    if a > b: raise ValueError(f"flatten: axis {start} comes after axis {end} in a tensor of shape {t.shape}")
    shape, size = t.shape, 1
    for n in shape[a:b + 1]: size *= n
    return reshape(t, (*shape[:a], size, *shape[b + 1:]))


def permute(x, *axes):
    """`x` with its axes in the order given, as a list or as numbers: a view. Raises ValueError if they are no
    permutation of all axes."""
    cdef Tensor t = ensure_tensor(x)
    if len(axes) == 1 and hasattr(axes[0], "__iter__"): axes = axes[0]
    return apply1(PERMUTE, t, read_order("permute", axes, t.layout.ndim))


cdef unsigned int read_axes(str name, axis, int ndim) except? 0xffffffff:
    """An axis or several as a bit each. Raises IndexError, or ValueError where one stands twice."""
    cdef unsigned int mask = 0
    cdef int d
    for a in axis if isinstance(axis, (tuple, list)) else (axis,):
        d = lay.read_axis(a, ndim)
        if (mask >> d) & 1: raise ValueError(f"{name}: axis {d} stands twice in {described(axis)}")
        mask |= <unsigned int>1 << d
    return mask


def squeeze(x, axis=None):
    """`x` without its dimensions of size 1, or (`axis`: an int or several) without those: a view. Raises ValueError for
    a dimension of another size."""
    cdef Tensor t = ensure_tensor(x)
    cdef unsigned int ones = 0
    cdef int d
    if axis is not None: ones = read_axes("squeeze", axis, t.layout.ndim)
    for d in range(t.layout.ndim):
        if axis is None and t.layout.shape[d] == 1: ones |= <unsigned int>1 << d
        if (ones >> d) & 1 and t.layout.shape[d] != 1:
            raise ValueError(f"squeeze: dimension {d} of a tensor of shape {t.shape} has size {t.layout.shape[d]}; "
                             f"only those of size 1 can go")
    return apply1(SQUEEZE, t, ones)


def expand_dims(x, axis):
    """`x` with new dimensions of size 1 at `axis` (an int or several, counted in the result): a view."""
    cdef Tensor t = ensure_tensor(x)
    cdef int more = len(axis) if isinstance(axis, (tuple, list)) else 1
    return apply1(EXPAND_DIMS, t, read_axes("expand_dims", axis, t.layout.ndim + more))


def flip(x, axis=None):
    """`x` backwards along `axis` (an int, several, or None for all): a view."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(FLIP, t, (1 << t.layout.ndim) - 1 if axis is None else read_axes("flip", axis, t.layout.ndim))


def broadcast_to(x, shape):
    """`x` repeated to `shape` by NumPy's rule, as a view. Raises ValueError where it does not fit."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(BROADCAST_TO, t, tuple(lay.whole_sizes(shape)))


def copy(x):
    """`x` in memory of its own, dense; recorded as any operation is: detach().copy() is out of the graph."""
    return apply1(COPY, x, None)


def astype(x, dtype):
    """`x` in another dtype; the same tensor if it has it already."""
    cdef Tensor t = ensure_tensor(x)
    cdef int number = dtype_number(dtype)
    return t if t.dtype == number else apply1(CAST, t, number)


def single(x):
    """This tensor as float32: astype("float32")."""
    return astype(x, DTYPES[FLOAT32])


def double(x):
    """This tensor as float64: astype("float64")."""
    return astype(x, DTYPES[FLOAT64])


def cpu(x):
    """This tensor: all memory is the CPU's."""
    return x
