"""Views and casts: reshape, transpose, broadcast_to, slices; writing to slices; dtypes."""

import operator

import numpy as np

from cython cimport final
from libc.string cimport memset

from cygrad.core cimport layout as lay
from cygrad.core.bridge cimport lend
from cygrad.core.graph cimport Backward, Call, Operator, Tensor, ensure_tensor
from cygrad.core.modes cimport flags
from cygrad.core.run cimport apply1, apply2, apply_inplace, check_writable
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport FLOAT32, MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reduce cimport sum_to

from cygrad.core.bridge import tensor
from cygrad.core.dtypes import DTYPES, dtype_number


cdef class View(Operator):
    """The base of operators whose output is their input's memory seen otherwise. `see` makes the layout; the gradient
    is the output's gradient seen the other way round."""

    def __cinit__(self):
        self.fused = self.differentiable = self.views = True

    cdef Layout* see(self, const Layout* x, attributes) except NULL:
        raise NotImplementedError

    cdef Layout* see_back(self, const Layout* g, const Layout* x, attributes) except NULL:
        raise NotImplementedError

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = self.see(c.x[0].layout, <object>c.attributes)
        c.y[0].dtype = c.x[0].dtype
        c.view = 0
        return 0

    cdef int forward(self, Call* c) except -1:
        return 0

    cdef int backward(self, Backward b) except -1:
        cdef Layout* l = self.see_back(b.g[0].layout, b.input_layout(0), b.node.attributes)
        b.same_gradient(0, True)
        lay.forget(b.dx[0].layout)
        b.dx[0].layout = l
        return 0


# ---- reshape ---------------------------------------------------------------------------------------------------------

cdef Layout* reshaped(const Layout* x, int ndim, const Py_ssize_t* shape) except? NULL:
    """`x` in another shape of the same size without moving anything; NULL without an error if that cannot be."""
    cdef Layout* l
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef Py_ssize_t block, step
    cdef int i = 0, j = 0, start_i, start_j, d
    cdef bint first
    if x.size == 0:
        l = lay.dense(ndim, shape)
        l.offset = x.offset
        return l
    if not x.dense:                                 # match groups of old and new dimensions of equal size
        while i < x.ndim and j < ndim:
            start_i, start_j = i, j
            block, step = x.shape[i], shape[j]
            while block != step:
                if block < step:
                    i += 1
                    block *= x.shape[i]
                else:
                    j += 1
                    step *= shape[j]
            step, block, first = 0, 0, True         # the old group must be one run of equal steps (maybe of 0)
            for d in range(i, start_i - 1, -1):
                if x.shape[d] == 1: continue
                if first: step, block, first = x.strides[d], x.strides[d] * x.shape[d], False
                elif x.strides[d] != block: return NULL
                else: block *= x.shape[d]
            for d in range(j, start_j - 1, -1):
                strides[d] = step
                step *= shape[d]
            i += 1
            j += 1
        while j < ndim:
            strides[j] = 1
            j += 1
    l = lay.blank(ndim)
    step = 1
    for d in range(ndim - 1, -1, -1):
        l.shape[d] = shape[d]
        l.strides[d] = step if x.dense else strides[d]
        step *= shape[d]
    l.offset = x.offset
    return lay.finish(l)


@final
cdef class Reshape(Operator):
    """y = x in another shape (a view where strides allow, else a copy)        dx = g in the shape of x"""

    def __cinit__(self):
        self.name, self.fused, self.differentiable, self.views = "reshape", True, True, True

    cdef int infer(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef int ndim = lay.read_shape(<object>c.attributes, shape)
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = reshaped(c.x[0].layout, ndim, shape)
        if c.y[0].layout != NULL: c.view = 0
        else: c.y[0].layout = lay.dense(ndim, shape)
        return 0

    cdef int forward(self, Call* c) except -1:
        gather(c.y[0].data, &c.x[0], 0, c.x[0].layout.size)
        return 0

    cdef int backward(self, Backward b) except -1:
        cdef const Layout* x = b.input_layout(0)
        cdef Layout* l = reshaped(b.g[0].layout, x.ndim, x.shape)
        cdef Array g
        if l != NULL:
            b.same_gradient(0, True)
            lay.forget(b.dx[0].layout)
            b.dx[0].layout = l
        else:
            g = b.gradient(0)
            gather(b.make(0, x, b.node.dtype).data, &g, 0, x.size)
        return 0

    def formula(self, c, int i, g):
        return reshape(g, c.shape(0))


# ---- transpose -------------------------------------------------------------------------------------------------------

@final
cdef class Transpose(View):
    """y = x with its axes in another order        dx = g with the axes back in theirs"""

    def __cinit__(self):
        self.name = "transpose"

    cdef Layout* see(self, const Layout* x, axes) except NULL:
        cdef Layout* l = lay.blank(x.ndim)
        cdef int d, a
        for d in range(x.ndim):
            a = axes[d]
            l.shape[d], l.strides[d] = x.shape[a], x.strides[a]
        l.offset = x.offset
        return lay.finish(l)

    cdef Layout* see_back(self, const Layout* g, const Layout* x, axes) except NULL:
        cdef Layout* l = lay.blank(g.ndim)
        cdef int d, a
        for d in range(g.ndim):
            a = axes[d]
            l.shape[a], l.strides[a] = g.shape[d], g.strides[d]
        l.offset = g.offset
        return lay.finish(l)

    def formula(self, c, int i, g):
        return transpose(g, np.argsort(c.attributes).tolist())


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
                lay.forget(both)
            except ValueError:
                pass
            if not fits:
                raise ValueError(f"broadcast_to: a tensor of shape {lay.shape_tuple(x)} cannot be repeated to shape "
                                 f"{lay.shape_tuple(target)}; each size must be equal or 1, counted from the last")
            return lay.expand(x, target)
        finally:
            lay.forget(target)

    cdef int backward(self, Backward b) except -1:
        cdef Array g = b.gradient(0), out
        if lay.same_shape(b.g[0].layout, b.input_layout(0)): return b.same_gradient(0, True)
        out = b.make(0, b.input_layout(0), b.node.dtype)
        return sum_to(&g, &out)

    def formula(self, c, int i, g):
        return g                                    # the engine sums to the input's shape


# ---- slices ----------------------------------------------------------------------------------------------------------
# An index is kept as a tuple with one entry for each dimension of x: (start, step, count), or start alone where the
# dimension goes; None for a new one.

cdef Layout* sliced(const Layout* x, tuple index) except NULL:
    cdef Layout* l
    cdef Py_ssize_t start, step, count
    cdef int n = 0, d = 0
    for entry in index:
        if type(entry) is not int: n += 1
    if n > MAX_NDIM: raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, this index would give {n}")
    l = lay.blank(n)
    l.offset = x.offset
    n = 0
    for entry in index:
        if entry is None:
            l.shape[n], l.strides[n] = 1, 0
            n += 1
            continue
        if type(entry) is int:
            start = entry
        else:
            start, step, count = entry
            l.shape[n], l.strides[n] = count, x.strides[d] * step
            n += 1
        l.offset += start * x.strides[d]
        d += 1
    return lay.finish(l)


cdef tuple read_index(index, const Layout* x):
    """Basic indexing by NumPy's rules: ints, slices, Ellipsis, None. Raises IndexError or TypeError."""
    cdef list out = []
    cdef int d = 0, given = 0
    if not isinstance(index, tuple): index = (index,)
    for entry in index:
        if entry is Ellipsis or entry is None: continue
        given += 1
    if given > x.ndim: raise IndexError(f"{given} indices for a tensor of {x.ndim} dimensions")
    if len([e for e in index if e is Ellipsis]) > 1: raise IndexError("an index has at most one Ellipsis (...)")
    if not [e for e in index if e is Ellipsis]: index = index + (Ellipsis,)
    for entry in index:
        if entry is None:
            out.append(None)
        elif entry is Ellipsis:
            for _ in range(x.ndim - given):
                out.append((0, 1, x.shape[d]))
                d += 1
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(x.shape[d])
            count = len(range(start, stop, step))
            out.append((start if count else 0, step, count))
            d += 1
        else:
            if isinstance(entry, (Tensor, np.ndarray)) and (entry.ndim or entry.dtype.kind not in "iu"):
                raise TypeError(f"an index is made of ints, slices, ... and None, got {entry.dtype} of shape "
                                f"{entry.shape}; index x.detach().numpy() with arrays, or multiply by a mask")
            try:
                if isinstance(entry, (bool, np.bool_)): raise TypeError
                i = operator.index(entry)
            except TypeError:
                raise TypeError(f"an index is made of ints, slices, ... and None, got {type(entry).__name__}") from None
            if not -x.shape[d] <= i < x.shape[d]:
                raise IndexError(f"index {i} is out of range for dimension {d} of size {x.shape[d]}")
            out.append(i + x.shape[d] if i < 0 else i)
            d += 1
    return tuple(out)


@final
cdef class GetItem(View):
    """y = x[index], a view        dx = 0, with dx[index] = g"""

    def __cinit__(self):
        self.name = "getitem"

    cdef Layout* see(self, const Layout* x, index) except NULL:
        return sliced(x, index)

    cdef int backward(self, Backward b) except -1:
        cdef Array out = b.make(0, b.input_layout(0), b.node.dtype), g = b.gradient(0)
        memset(out.data, 0, out.layout.size * itemsize(out.dtype))
        put(&out, b.node.attributes, &g)
        return 0

    def formula(self, c, int i, g):
        return put_slice(g, c.shape(0), c.attributes)


cdef int put(const Array* x, tuple index, const Array* v) except -1:
    """x[index] = v"""
    cdef Array a[2]
    cdef Layout* l = sliced(x.layout, index)
    a[0], a[1] = v[0], x[0]
    a[1].layout = l
    a[1].data += (l.offset - x.layout.offset) * itemsize(x.dtype)
    try:
        driver.each(COPY_LOOP, a)
    finally:
        lay.forget(l)
    return 0


@final
cdef class PutSlice(Operator):
    """y = 0, with y[index] = x        dx = g[index]"""

    def __cinit__(self):
        self.name, self.differentiable = "put_slice", True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.from_shape((<tuple>c.attributes)[0])
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward(self, Call* c) except -1:
        memset(c.y[0].data, 0, c.y[0].layout.size * itemsize(c.y[0].dtype))
        return put(&c.y[0], (<tuple>c.attributes)[1], &c.x[0])

    def formula(self, c, int i, g):
        return apply1(GETITEM, g, c.attributes[1])


@final
cdef class Assign(Operator):
    """y = x, with y[index] = v (in place)        dx = g, with dx[index] = 0        dv = g[index]"""

    def __cinit__(self):
        self.name, self.differentiable = "assign", True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward(self, Call* c) except -1:
        if c.x[0].data != c.y[0].data: gather(c.y[0].data, &c.x[0], 0, c.x[0].layout.size)
        cdef Layout* l = sliced(c.y[0].layout, <tuple>c.attributes)
        cdef Layout* wide = NULL
        cdef Array a[2]
        try:
            wide = lay.expand(c.x[1].layout, l)
            a[0], a[1] = c.x[1], c.y[0]
            a[0].layout, a[1].layout = wide, l
            a[1].data += (l.offset - c.y[0].layout.offset) * itemsize(a[1].dtype)
            if a[1].dtype >= FLOAT32: driver.each(COPY_LOOP, a)
            else: lend(&a[1], NULL, True)[...] = lend(&a[0], NULL, False)
        finally:
            lay.forget(l)
            if wide != NULL: lay.forget(wide)
        return 0

    def formula(self, c, int i, g):
        if i == 1: return apply1(GETITEM, g, c.attributes)
        return apply2(ASSIGN, g, tensor(0.0, DTYPES[(<Tensor>g).dtype]), c.attributes)


# ---- casts -----------------------------------------------------------------------------------------------------------

@final
cdef class Cast(Operator):
    """y = x in another dtype        dx = g in the dtype of x"""

    def __cinit__(self):
        self.name, self.differentiable = "cast", True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = <object>c.attributes
        return 0

    cdef int forward(self, Call* c) except -1:
        cdef Py_ssize_t n = c.x[0].layout.size, i
        if c.x[0].layout.dense and c.x[0].dtype >= FLOAT32 and c.y[0].dtype >= FLOAT32:
            with nogil:
                if c.x[0].dtype == FLOAT32 and c.y[0].dtype != FLOAT32:
                    for i in range(n): (<double*>c.y[0].data)[i] = (<float*>c.x[0].data)[i]
                elif c.x[0].dtype != FLOAT32 and c.y[0].dtype == FLOAT32:
                    for i in range(n): (<float*>c.y[0].data)[i] = <float>(<double*>c.x[0].data)[i]
                else:
                    gather(c.y[0].data, &c.x[0], 0, n)
        else:
            np.copyto(lend(&c.y[0], NULL, True), lend(&c.x[0], NULL, False), casting="unsafe")
        return 0

    def formula(self, c, int i, g):
        return astype(g, c.dtype(0))


cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef Operator RESHAPE = Reshape(), TRANSPOSE = Transpose(), BROADCAST_TO = BroadcastTo(), GETITEM = GetItem()
cdef Operator PUT_SLICE = PutSlice(), ASSIGN = Assign(), CAST = Cast()
OPERATORS = {o.name: o for o in (RESHAPE, TRANSPOSE, BROADCAST_TO, GETITEM, PUT_SLICE, ASSIGN, CAST)}


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


def transpose(x, *axes):
    """`x` with its axes in the order given (as a list or as numbers); without any, reversed. A view. Raises ValueError
    if the axes are no permutation."""
    cdef Tensor t = ensure_tensor(x)
    if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")): axes = axes[0]
    if not axes and axes != 0: axes = range(t.layout.ndim - 1, -1, -1)
    order = tuple([lay.read_axis(a, t.layout.ndim) for a in axes])
    if sorted(order) != list(range(t.layout.ndim)):
        raise ValueError(f"transpose: the axes {tuple(axes)} do not name each of the {t.layout.ndim} dimensions once")
    return apply1(TRANSPOSE, t, order)


def broadcast_to(x, shape):
    """`x` repeated to `shape` by NumPy's rule, as a view. Raises ValueError where it does not fit."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(BROADCAST_TO, t, tuple(lay.whole_sizes(shape)))


def getitem(x, index):
    """x[index] for ints, slices, ... and None: a view."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(GETITEM, t, read_index(index, t.layout))


def put_slice(x, shape, index):
    """Zeros of `shape` with `x` at an index as getitem keeps it."""
    return apply1(PUT_SLICE, x, (tuple(shape), index))


def setitem(Tensor x, index, value):
    """x[index] = value for ints, slices, ... and None; value is broadcast and cast to the dtype of x."""
    cdef Tensor v
    cdef Layout* l
    at = read_index(index, x.layout)
    if x.dtype >= FLOAT32 and isinstance(value, (int, float, list, tuple)):
        v = tensor(value, DTYPES[x.dtype])          # (not by way of the default dtype: 0.1 keeps its digits)
    else:
        v = ensure_tensor(value)
    check_writable(x, flags())
    if v.dtype != x.dtype:
        if v.dtype >= FLOAT32 and x.dtype < FLOAT32:
            raise TypeError(f"setitem: a {DTYPES[v.dtype]} value cannot be written into a {DTYPES[x.dtype]} tensor; "
                            f"cast it with astype")
        v = astype(v, DTYPES[x.dtype])
    l = sliced(x.layout, at)
    try:
        target = lay.shape_tuple(l)
    finally:
        lay.forget(l)
    if v.shape != target:
        extra = len(v.shape) - len(target)
        if extra > 0 and v.shape[:extra] == (1,) * extra: v = reshape(v, v.shape[extra:])
        v = broadcast_to(v, target)
    apply_inplace(ASSIGN, x, v, at)


def copy_(Tensor self, value):
    """Write `value`, broadcast and cast, over this tensor; returns it."""
    setitem(self, Ellipsis, value)
    return self


def fill_(Tensor self, value):
    """Write the number `value` everywhere; returns the tensor."""
    if not isinstance(value, (int, float)): raise TypeError(f"fill_ wants a number, got {type(value).__name__}")
    setitem(self, Ellipsis, value)
    return self


def astype(x, dtype):
    """`x` in another dtype; the same tensor if it has it already."""
    cdef Tensor t = ensure_tensor(x)
    cdef int number = dtype_number(dtype)
    return t if t.dtype == number else apply1(CAST, t, number)
