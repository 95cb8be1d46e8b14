"""Joining and cutting: concat, stack, split, pad; triangles."""

import operator
import sys

import numpy as np

from cython cimport final
from libc.stdint cimport int64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.operator cimport EVERY_INPUT, BackwardCall, Call, Operator, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.buffer cimport OTHER
from cygrad.core.execute.run cimport apply1, apply_list
from cygrad.core.graph.construct cimport fresh
from cygrad.kernels cimport index as kernel
from cygrad.kernels.array cimport INT64, MAX_NDIM, Array, Layout, itemsize
from cygrad.ops.base cimport Part

from cygrad.core.errors import described
from cygrad.core.store.layout import check_size
from cygrad.ops.index import take
from cygrad.ops.shape import reshape


cdef Layout* section(const Layout* x, int axis, Py_ssize_t start, Py_ssize_t count) except NULL:
    """`x` from `start` on, `count` long, along an axis."""
    cdef Layout* l = lay.blank(x.ndim)
    cdef int d
    for d in range(x.ndim): l.shape[d], l.strides[d] = x.shape[d], x.strides[d]
    l.shape[axis] = count
    l.offset = x.offset + (start * x.strides[axis] if count else 0)
    return lay.finish(l)


cdef Array seen(const Array* a, const Layout* part) noexcept:
    """The part of `a` that a layout made from its own shows."""
    cdef Array y = a[0]
    y.layout = part
    y.data += (part.offset - a.layout.offset) * itemsize(a.dtype)
    return y


# ---- concat and stack ------------------------------------------------------------------------------------------------

cdef class Join(Operator):
    """The base of operators that put their inputs side by side along an axis. The attributes are the axis and where the
    parts begin and end. The gradients are the parts of the output's gradient: views of it. Nothing is kept."""

    def __cinit__(self):
        self.promotes = self.fused = self.differentiable = True

    cdef Layout* part(self, const Layout* y, int i, tuple attributes) except NULL:
        """The place of input i in the output."""
        raise NotImplementedError

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Layout* l
        cdef Array y
        cdef int i
        for i in range(c.n_in):
            l = self.part(c.y[0].layout, i, <tuple>c.attributes)
            y = seen(&c.y[0], l)
            with nogil: kernel.copy(&c.x[i], &y)
            lay.decref(l)
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, EVERY_INPUT).view = True
        return 0

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        return self.part(g, i, <tuple>b.attributes)

    cdef object formula(self, c, int i, g):
        axis, starts = c.attributes
        return reshape(apply1(SPLIT, g, (axis, starts[i], starts[i + 1] - starts[i])), c.shape(i))


@final
cdef class Concat(Join):
    """y = x, .., z side by side along an axis        dx, .., dz = the parts of g"""

    def __cinit__(self):
        self.name = "concat"

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int axis = (<tuple>c.attributes)[0], d
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[axis] = (<tuple>c.attributes)[1][c.n_in]
        c.y[0].layout = lay.dense(l.ndim, shape)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef Layout* part(self, const Layout* y, int i, tuple attributes) except NULL:
        starts = attributes[1]
        return section(y, attributes[0], starts[i], starts[i + 1] - starts[i])


@final
cdef class Stack(Join):
    """y = x, .., z side by side along a new axis        dx, .., dz = the parts of g"""

    def __cinit__(self):
        self.name = "stack"

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int axis = (<tuple>c.attributes)[0], d
        if l.ndim == MAX_NDIM:
            raise ValueError(f"stack: the tensors have {MAX_NDIM} dimensions, which is the most; use concat()")
        for d in range(l.ndim): shape[d + (d >= axis)] = l.shape[d]
        shape[axis] = c.n_in
        c.y[0].layout = lay.dense(l.ndim + 1, shape)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef Layout* part(self, const Layout* y, int i, tuple attributes) except NULL:
        cdef Layout* l = lay.blank(y.ndim - 1)
        cdef int axis = attributes[0], d
        for d in range(l.ndim): l.shape[d], l.strides[d] = y.shape[d + (d >= axis)], y.strides[d + (d >= axis)]
        l.offset = y.offset + i * y.strides[axis]
        return lay.finish(l)


# ---- split -----------------------------------------------------------------------------------------------------------

@final
cdef class Split(Part):
    """y = a part of x along an axis, a view        dx = 0, with that part = g

    The attributes are (axis, start, count)."""

    def __cinit__(self):
        self.name = "split"

    cdef Layout* see(self, const Layout* x, part) except NULL:
        return section(x, part[0], part[1], part[2])

    cdef object formula(self, c, int i, g):
        axis, start, count = c.attributes
        shape = c.shape(0)
        widths = [(0, 0)] * len(shape)
        widths[axis] = (start, shape[axis] - start - count)
        return apply1(PAD, g, (tuple(widths), 0))


# ---- pad -------------------------------------------------------------------------------------------------------------

cdef Layout* inner(const Layout* y, tuple widths) except NULL:
    """`y` without so many before and after in each dimension."""
    cdef Layout* l = lay.blank(y.ndim)
    cdef Py_ssize_t before, after
    cdef int d
    l.offset = y.offset
    for d in range(y.ndim):
        before, after = widths[d]
        l.shape[d], l.strides[d] = y.shape[d] - before - after, y.strides[d]
        l.offset += before * y.strides[d]
    lay.finish(l)
    if l.size == 0: l.offset = y.offset
    return l


@final
cdef class Pad(Operator):
    """y = x with a number around it        dx = g without its margins, a view

    The attributes are (a pair of widths for each dimension, the number)."""

    def __cinit__(self):
        self.name, self.fused, self.differentiable = "pad", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef int d
        widths = (<tuple>c.attributes)[0]
        for d in range(c.x[0].layout.ndim): shape[d] = c.x[0].layout.shape[d] + widths[d][0] + widths[d][1]
        c.y[0].layout = lay.dense(c.x[0].layout.ndim, shape)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Layout* l = inner(c.y[0].layout, (<tuple>c.attributes)[0])
        cdef Array y = seen(&c.y[0], l)
        value = (<tuple>c.attributes)[1]
        try:
            if value:
                with np.errstate(all="ignore"): lend(&c.y[0], NULL, True)[...] = value
            else: memset(c.y[0].data, 0, c.y[0].layout.size * itemsize(c.y[0].dtype))
            with nogil: kernel.copy(&c.x[0], &y)
        finally:
            lay.decref(l)
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).view = True
        return 0

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL:
        return inner(g, (<tuple>b.attributes)[0])

    cdef object formula(self, c, int i, g):
        for d, ((before, _), n) in enumerate(zip(c.attributes[0], c.shape(0))):
            if n != (<Tensor>g).layout.shape[d]: g = apply1(SPLIT, g, (d, before, n))
        return g


# ---- triangles -------------------------------------------------------------------------------------------------------

cdef class Triangle(Operator):
    """The base of tril and triu: y = x, with zeros on one side of diagonal k, the attribute."""
    cdef bint upper                                 # the side that is cleared

    def __cinit__(self):
        self.fused = self.differentiable = True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        kernel.copy(&c.x[0], &c.y[0])
        kernel.wipe(&c.y[0], <object>c.attributes, self.upper)
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).donated_gradients = 1
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef int k
        with gil: k = <object>b.attributes
        if b.dx[0].data != b.g[0].data: kernel.copy(&b.g[0], &b.dx[0])
        kernel.wipe(&b.dx[0], k, self.upper)
        return 0

    cdef object formula(self, c, int i, g):
        return apply1(self, g, c.attributes)


@final
cdef class TriL(Triangle):
    """y = x, with zeros above diagonal k        dx = g, with zeros there"""

    def __cinit__(self):
        self.name, self.upper = "tril", True


@final
cdef class TriU(Triangle):
    """y = x, with zeros below diagonal k        dx = g, with zeros there"""

    def __cinit__(self):
        self.name = "triu"


cdef Operator CONCAT = Concat(), STACK = Stack(), SPLIT = Split(), PAD = Pad(), TRIL = TriL(), TRIU = TriU()
OPERATORS = {o.name: o for o in (CONCAT, STACK, SPLIT, PAD, TRIL, TRIU)}


cdef list read_tensors(str name, xs):
    """One tensor at least, of a list."""
    cdef list tensors = [ensure_tensor(x) for x in xs]
    if not tensors: raise ValueError(f"{name} wants at least one tensor, got none")
    return tensors


def concat(xs, axis=0):
    """The tensors of the list `xs` side by side along `axis` (None: each flattened first), in their common dtype.
    Raises ValueError if their other sizes differ."""
    cdef list tensors = read_tensors("concat", xs), starts = [0]
    cdef Tensor t, first
    cdef int a, d
    cdef bint fits
    if axis is None:
        tensors = [reshape(t, (t.layout.size,)) for t in tensors]
        axis = 0
    first = tensors[0]
    a = lay.read_axis(axis, first.layout.ndim)
    for i, t in enumerate(tensors):
        fits = t.layout.ndim == first.layout.ndim
        for d in range(first.layout.ndim):
            if fits and d != a and t.layout.shape[d] != first.layout.shape[d]: fits = False
        if not fits:
            raise ValueError(f"concat: tensor 0 has shape {first.shape} but tensor {i} has {t.shape}; only the sizes "
                             f"of dimension {a} may differ")
        starts.append(starts[i] + t.layout.shape[a])
    check_size(starts[-1], f"concat: the sizes of dimension {a} add up to {starts[-1]}")
    return apply_list(CONCAT, tensors, (a, tuple(starts)))


def stack(xs, axis=0):
    """The tensors of the list `xs`, of one shape, side by side along a new `axis`, in their common dtype. Raises
    ValueError if their shapes differ."""
    cdef list tensors = read_tensors("stack", xs)
    cdef Tensor t, first = tensors[0]
    for i, t in enumerate(tensors):
        if not lay.same_shape(t.layout, first.layout):
            raise ValueError(f"stack: tensor 0 has shape {first.shape} but tensor {i} has {t.shape}; all must be equal")
    return apply_list(STACK, tensors, (lay.read_axis(axis, first.layout.ndim + 1), range(len(tensors) + 1)))


def split(x, sections, axis=0):
    """A tuple of the parts of `x` along `axis`, views of it, as numpy.split cuts: `sections` equal ones, or, where it
    is a list, cut at those places. Raises ValueError if a number of sections does not divide the size."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.layout.ndim)
    cdef Py_ssize_t n = t.layout.shape[a]
    if isinstance(sections, (list, tuple)):
        cuts = [0, *[slice(operator.index(i)).indices(n)[1] for i in sections], n]
    else:
        count = operator.index(sections)
        if count < 1 or n % count:
            raise ValueError(f"split: dimension {a} of size {n} cannot be cut into {count} equal parts; give the "
                             f"places to cut at as a list")
        cuts = [i * (n // count) for i in range(count + 1)]
    return tuple([apply1(SPLIT, t, (a, start, max(stop - start, 0))) for start, stop in zip(cuts, cuts[1:])])


def pad(x, widths, mode="constant", value=0):
    """`x` with margins, as numpy.pad: `widths` is a number, a pair (before, after) for every dimension, or a list of a
    pair for each. The margins are `value`, or, by `mode`, elements of x: "edge", "reflect", "symmetric", "wrap"."""
    cdef Tensor t = ensure_tensor(x)
    cdef int d
    pairs = read_widths(widths, t.layout.ndim)
    for d, (before, after) in enumerate(pairs):
        n = t.layout.shape[d]
        check_size(n + before + after, f"pad: dimension {d} of size {n} with margins of {before} and {after} would "
                                       f"have size {n + before + after}")
    if mode == "constant": return apply1(PAD, t, (pairs, value))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"pad: mode is {described(mode)}; it is one of constant, edge, reflect, symmetric, wrap")
    for d, pair in enumerate(pairs):
        if pair == (0, 0): continue
        if t.layout.shape[d] == 0:
            raise ValueError(f"pad: dimension {d} has size 0, so there is nothing for mode {mode!r} to repeat; use "
                             f"mode 'constant'")
        t = take(t, reflected(t.layout.shape[d], pair, mode), d)
    return t


cdef Tensor reflected(Py_ssize_t n, tuple pair, str mode):
    """For each place of a dimension of `n` elements with margins, the element that goes there."""
    cdef Py_ssize_t before = pair[0], size = before + n + <Py_ssize_t>pair[1], i, at
    cdef Py_ssize_t period = n if mode == "wrap" else 2 * n if mode == "symmetric" else 2 * n - 2
    cdef bint clamped = mode == "edge" or period == 0   # (one element has nothing to reflect)
    cdef Tensor index = fresh(lay.dense(1, &size), INT64, OTHER)
    cdef int64_t* y = <int64_t*>index.buffer.data
    for i in range(size):
        at = i - before
        if clamped: at = min(max(at, 0), n - 1)
        else:
            at = (at % period + period) % period
            if at >= n: at = period - at - (mode == "symmetric")
        y[i] = at
    return index


cdef tuple read_widths(widths, int ndim):
    """A pair for each dimension. Raises ValueError or TypeError."""
    try:
        pairs = np.broadcast_to(np.asarray(widths), (ndim, 2))
        if pairs.dtype.kind == "O": [operator.index(n) for n in pairs.flat]     # (Python's own, of more than 64 bits)
        elif pairs.dtype.kind not in "iu": pairs = None
    except (TypeError, ValueError):
        pairs = None
    if pairs is None or pairs.size and pairs.min() < 0:
        raise ValueError(f"pad: widths is {described(widths)}; wanted whole numbers of at least 0: one, a pair, or a "
                         f"list of {ndim} pairs")
    return tuple([(int(a), int(b)) for a, b in pairs])


cdef Tensor matrices(str name, x):
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 2:
        raise ValueError(f"{name} wants a matrix or a stack of them, got a tensor of shape {t.shape}")
    return t


cdef object read_diagonal(k):
    """A diagonal's number; one beyond any matrix is as good as the next."""
    return max(-sys.maxsize // 2, min(operator.index(k), sys.maxsize // 2))


def tril(x, k=0):
    """The lower triangles of the matrices in the last two dimensions of `x`: zeros above diagonal `k`."""
    return apply1(TRIL, matrices("tril", x), read_diagonal(k))


def triu(x, k=0):
    """The upper triangles of the matrices in the last two dimensions of `x`: zeros below diagonal `k`."""
    return apply1(TRIU, matrices("triu", x), read_diagonal(k))
