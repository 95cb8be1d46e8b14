"""Joining and splitting: concat, stack, split, pad; tril and triu."""

cimport cython

import operator

import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport EVERY_INPUT, BackwardCall, Call, Operator, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.buffer cimport OTHER
from cygrad.core.execute.run cimport apply1, apply_list
from cygrad.core.graph.construct cimport fresh
from cygrad.kernels.shapes cimport index as kernel
from cygrad.kernels.array cimport INT64, MAX_NDIM, Array, Layout, is_floating, is_real, itemsize
from cygrad.kernels.by_dtype cimport put_number
from cygrad.ops.elementwise.base cimport Axis, Part, axis_number

from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import as_float, described
from cygrad.core.store.layout import check_size
from cygrad.ops.shapes.index import take
from cygrad.ops.shapes.shape import reshape


cdef Layout* section(const Layout* x, int axis, Py_ssize_t start, Py_ssize_t count, Layout* y) noexcept nogil:
    """Write the layout of elements start to start + count - 1 of `x` along an axis to y, and return y."""
    y.ndim = x.ndim
    for d in range(x.ndim): y.shape[d], y.strides[d] = x.shape[d], x.strides[d]
    y.shape[axis] = count
    y.offset = x.offset + (start * x.strides[axis] if count else 0)
    return lay.finish(y)


cdef Array part_of(const Array* a, const Layout* part) noexcept nogil:
    """The part of `a` that `part`, a layout derived from that of `a`, describes."""
    cdef Array y = a[0]
    y.layout = part
    y.data += (part.offset - a.layout.offset) * itemsize(a.dtype)
    return y


# ---- concat and stack ------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Parts(Attributes):
    """The attributes of concat: input i is at starts[i] .. starts[i + 1] - 1 along an axis of the result."""
    cdef readonly int axis
    cdef readonly tuple starts
    cdef Py_ssize_t* start

    def __cinit__(self, int axis, tuple starts):
        cdef Py_ssize_t i, n = len(starts)
        self.start = <Py_ssize_t*>PyMem_Malloc(n * sizeof(Py_ssize_t))
        if self.start == NULL: raise MemoryError("no memory for the positions of the inputs of concat")
        for i in range(n): self.start[i] = starts[i]
        self.axis, self.starts = axis, starts

    def __dealloc__(self):
        PyMem_Free(self.start)


cdef class Join(Operator):
    """The base of operators that join their inputs along an axis. The gradients are views of the output's gradient, and
    nothing is saved."""
    lanes, tangent = "shifting", "linear"
    traits = "promotes fused differentiable"
    operands = "[]xs"

    cdef Layout* part(self, const Layout* y, int i, const void* attributes, Layout* l) noexcept nogil:
        """Write the layout of the part of the output that is input i to l, and return l."""
        return l

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        cdef Array y
        for i in range(c.n_in):
            y = part_of(&c.y[0], self.part(c.y[0].layout, i, c.attributes, lay.local(&l)))
            kernel.copy(&c.x[i], &y)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, EVERY_INPUT).view = True

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        cdef LocalLayout l
        return lay.counted(self.part(g, i, b.attributes, lay.local(&l)))


cdef class Concat(Join):
    """y = x, .., z joined along an axis        dx, .., dz = the parts of g"""

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[(<Parts>c.attributes).axis] = (<Parts>c.attributes).start[c.n_in]
        c.y[0].layout = lay.dense(l.ndim, shape)
        c.y[0].dtype = c.x[0].dtype

    cdef Layout* part(self, const Layout* y, int i, const void* attributes, Layout* l) noexcept nogil:
        cdef const Py_ssize_t* start = (<Parts>attributes).start + i
        return section(y, (<Parts>attributes).axis, start[0], start[1] - start[0], l)

    cdef object formula(self, c, int i, g):
        cdef Parts parts = c.attributes
        return apply1(SPLIT, g, Section(parts.axis, parts.start[i], parts.start[i + 1] - parts.start[i]))


cdef class Stack(Join):
    """y = x, .., z joined along a new axis        dx, .., dz = the parts of g"""

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int axis = (<Axis>c.attributes).axis, d
        if l.ndim == MAX_NDIM:
            with gil:
                raise ValueError(f"stack: the tensors have {MAX_NDIM} dimensions, the maximum; use concat()")
        for d in range(l.ndim): shape[d + (d >= axis)] = l.shape[d]
        shape[axis] = c.n_in
        c.y[0].layout = lay.dense(l.ndim + 1, shape)
        c.y[0].dtype = c.x[0].dtype

    cdef Layout* part(self, const Layout* y, int i, const void* attributes, Layout* l) noexcept nogil:
        cdef int axis = (<Axis>attributes).axis, d
        l.ndim, l.offset = y.ndim - 1, y.offset + i * y.strides[axis]
        for d in range(l.ndim): l.shape[d], l.strides[d] = y.shape[d + (d >= axis)], y.strides[d + (d >= axis)]
        return lay.finish(l)

    cdef object formula(self, c, int i, g):
        return reshape(apply1(SPLIT, g, Section(c.attributes.axis, i, 1)), c.shape(i))


# ---- split -----------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Section(Attributes):
    """The attributes of split: the axis, and the start and size of the part."""
    cdef readonly int axis
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t count

    def __cinit__(self, int axis, Py_ssize_t start, Py_ssize_t count):
        self.axis, self.start, self.count = axis, start, count


cdef class Split(Part):
    """y = a part of x along an axis, a view        dx = 0, with that part = g"""
    row, functions = "split_part", {"split": "x"}
    lanes = "shifting"

    cdef int view_layout(self, const Layout* x, const void* attributes, Layout* y) except -1 nogil:
        section(x, (<Section>attributes).axis, (<Section>attributes).start, (<Section>attributes).count, y)

    cdef object formula(self, c, int i, g):
        cdef Section part = c.attributes
        shape = c.shape(0)
        widths = [(0, 0)] * len(shape)
        widths[part.axis] = (part.start, shape[part.axis] - part.start - part.count)
        return apply1(PAD, g, Margins(tuple(widths), 0, g.dtype))


# ---- pad -------------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Margins(Attributes):
    """The attributes of pad: widths (before, after) for each dimension, and the value and dtype of the margins."""
    cdef readonly tuple widths
    cdef readonly object value
    cdef readonly object dtype
    cdef Py_ssize_t before[MAX_NDIM]
    cdef Py_ssize_t after[MAX_NDIM]
    cdef bint zero
    cdef char element[8]                            # the bytes of the value in that dtype

    def __cinit__(self, tuple widths, value, dtype):
        cdef bytes element
        if len(widths) > MAX_NDIM: raise ValueError(f"a tensor has at most {MAX_NDIM} dimensions, got {len(widths)}")
        for d in range(<int>len(widths)): self.before[d], self.after[d] = <tuple>widths[d]
        self.zero = not value
        if self.zero: value = 0
        elif is_real(dtype_number(dtype)) and isinstance(value, (int, float)):
            put_number(dtype_number(dtype), self.element, 0, value)
        else:
            cast = np.zeros(1, dtype)
            try:
                with np.errstate(all="ignore"): cast[...] = value
            except OverflowError:
                raise OverflowError(f"pad: value is {described(value)}; it must fit {dtype}") from None
            value, element = cast[0].item(), cast.tobytes()
            memcpy(self.element, <const char*>element, len(element))
        self.widths, self.value, self.dtype = widths, value, dtype

    cdef dict keywords(self):
        """The dtype is that of x. pad() takes no empty list of pairs."""
        return {"widths": self.widths or 0, "value": self.value}


cdef Layout* inner(const Layout* y, const void* margins, Layout* l) noexcept nogil:
    """Write the layout of `y` without its margins to l, and return l."""
    cdef const Py_ssize_t* before = (<Margins>margins).before
    cdef const Py_ssize_t* after = (<Margins>margins).after
    l.ndim, l.offset = y.ndim, y.offset
    for d in range(y.ndim):
        l.shape[d], l.strides[d] = y.shape[d] - before[d] - after[d], y.strides[d]
        l.offset += before[d] * y.strides[d]
    lay.finish(l)
    if l.size == 0: l.offset = y.offset
    return l


cdef void fill(const Array* y, const char* element) noexcept nogil:
    """Set all elements of y, which is dense, to one element. Each copy doubles the filled part."""
    cdef size_t size = itemsize(y.dtype), nbytes = y.layout.size * size, done = size
    if not nbytes: return
    memcpy(y.data, element, size)
    while done < nbytes:
        memcpy(y.data + done, y.data, done if done < nbytes - done else nbytes - done)
        done *= 2


cdef class Pad(Operator):
    """y = x with margins of a number        dx = g without its margins, a view"""
    lanes = "shifting"
    traits = "fused differentiable gradient_is_view"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        for d in range(l.ndim):
            shape[d] = l.shape[d] + (<Margins>c.attributes).before[d] + (<Margins>c.attributes).after[d]
        c.y[0].layout = lay.dense(l.ndim, shape)
        c.y[0].dtype = c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        cdef Array y = part_of(&c.y[0], inner(c.y[0].layout, c.attributes, lay.local(&l)))
        if (<Margins>c.attributes).zero: memset(c.y[0].data, 0, c.y[0].layout.size * itemsize(c.y[0].dtype))
        else: fill(&c.y[0], (<Margins>c.attributes).element)
        kernel.copy(&c.x[0], &y)

    cdef Layout* gradient_view(self, const BackwardCall* b, int i, const Layout* g) except NULL nogil:
        cdef LocalLayout l
        return lay.counted(inner(g, b.attributes, lay.local(&l)))

    cdef object formula(self, c, int i, g):
        for d, ((before, _), n) in enumerate(zip(c.attributes.widths, c.shape(0))):
            if n != (<Tensor>g).layout.shape[d]: g = apply1(SPLIT, g, Section(d, before, n))
        return g


# ---- triangles -------------------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Diagonal(Attributes):
    """The attributes of tril and triu: the number of a diagonal; 0 is the main diagonal, positive numbers are above."""
    cdef readonly Py_ssize_t k

    def __cinit__(self, Py_ssize_t k):
        self.k = k


cdef class Triangle(Operator):
    """The base of tril and triu: y = x, with zeros on one side of a diagonal."""
    lanes, tangent = "leading", "linear"
    traits = "fused differentiable overwrites_gradient"
    cdef bint upper                                 # whether the upper side is cleared

    cdef int forward(self, Call* c) except -1 nogil:
        kernel.copy(&c.x[0], &c.y[0])
        kernel.wipe(&c.y[0], (<Diagonal>c.attributes).k, self.upper)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        if b.dx[0].data != b.g[0].data: kernel.copy(&b.g[0], &b.dx[0])
        kernel.wipe(&b.dx[0], (<Diagonal>b.attributes).k, self.upper)

    cdef object formula(self, c, int i, g):
        return apply1(self, g, c.attributes)


cdef class Tril(Triangle):
    """y = x, with zeros above diagonal k        dx = g, with zeros there"""

    def __cinit__(self):
        self.upper = True


cdef class Triu(Triangle):
    """y = x, with zeros below diagonal k        dx = g, with zeros there"""


cdef Operator CONCAT = Concat(), STACK = Stack(), SPLIT = Split(), PAD = Pad(), TRIL = Tril(), TRIU = Triu()
OPERATORS = {o.name: o for o in (CONCAT, STACK, SPLIT, PAD, TRIL, TRIU)}


cdef list read_tensors(str name, xs):
    """A list of at least one tensor."""
    cdef list tensors
    if not hasattr(xs, "__iter__"): raise TypeError(f"{name} takes a list of tensors, got {described(xs)}")
    tensors = [ensure_tensor(x) for x in xs]
    if not tensors: raise ValueError(f"{name} needs at least one tensor, got none")
    return tensors


def concat(xs: Iterable[Data], axis: int | None = 0) -> Tensor:
    """The tensors of the list `xs` joined along `axis` (None: flattened first), in their common dtype. Raises
    ValueError if their sizes differ in another dimension."""
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
    return apply_list(CONCAT, tensors, Parts(a, tuple(starts)))


def stack(xs: Iterable[Data], axis: int = 0) -> Tensor:
    """The tensors of the list `xs`, which have the same shape, joined along a new `axis`, in their common dtype. Raises
    ValueError if their shapes differ."""
    cdef list tensors = read_tensors("stack", xs)
    cdef Tensor t, first = tensors[0]
    for i, t in enumerate(tensors):
        if not lay.same_shape(t.layout, first.layout):
            raise ValueError(f"stack: tensor 0 has shape {first.shape} but tensor {i} has {t.shape}; all must be equal")
    return apply_list(STACK, tensors, axis_number(lay.read_axis(axis, first.layout.ndim + 1)))


def split(x: Data, sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """A tuple of views of the parts of `x` along `axis`, as in numpy.split: `sections` is a number of equal parts, or a
    list of the indices to split at. Raises ValueError if a number does not divide the size."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.layout.ndim)
    cdef Py_ssize_t n = t.layout.shape[a]
    if isinstance(sections, (list, tuple)):
        cuts = [0, *[slice(lay.read_integer("split", "an index", i)).indices(n)[1] for i in sections], n]
    else:
        count = lay.read_integer("split", "sections", sections)
        if count < 1 or n % count or count > INT_MAX:
            raise ValueError(f"split: dimension {a} of size {n} cannot be split into {described(count)} equal parts; "
                             f"pass a list of the indices to split at")
        cuts = [i * (n // count) for i in range(count + 1)]
    return tuple([apply1(SPLIT, t, Section(a, start, max(stop - start, 0))) for start, stop in zip(cuts, cuts[1:])])


def split_part(x: Data, axis: int, start: int, count: int) -> Tensor:
    """The `count` elements from `start` on along `axis`: one of the views that split() returns."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.layout.ndim)
    start = lay.read_integer("split_part", "start", start, 0, t.layout.shape[a])
    count = lay.read_integer("split_part", "count", count, 0, t.layout.shape[a] - start)
    return apply1(SPLIT, t, Section(a, start, count))


def pad(x: Data, widths: int | Sequence[int] | Sequence[Sequence[int]],
        mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant", value: float = 0) -> Tensor:
    """`x` with margins, as in numpy.pad. `widths` is a number, a pair (before, after) for all dimensions, or a list of
    one pair for each. The margins are `value` or, for mode "edge", "reflect", "symmetric" or "wrap", elements of x."""
    cdef Tensor t = ensure_tensor(x)
    cdef int d
    pairs = read_widths(widths, t.layout.ndim)
    for d, (before, after) in enumerate(pairs):
        n = t.layout.shape[d]
        check_size(n + before + after, f"pad: dimension {d} of size {n} with margins of {before} and {after} would "
                                       f"have size {n + before + after}")
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        raise TypeError(f"pad: value must be a number, got {described(value)}")
    if isinstance(value, int) and is_floating(t.dtype): as_float(value, "pad: value")
    if mode == "constant": return apply1(PAD, t, Margins(pairs, value, DTYPES[t.dtype]))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"pad: mode is {described(mode)}; it must be constant, edge, reflect, symmetric or wrap")
    for d, pair in enumerate(pairs):
        if pair == (0, 0): continue
        if t.layout.shape[d] == 0:
            raise ValueError(f"pad: dimension {d} has size 0, so mode {mode!r} has no element to repeat; use mode "
                             f"'constant'")
        t = take(t, reflected(t.layout.shape[d], pair, mode), d)
    return t


cdef Tensor reflected(Py_ssize_t n, tuple pair, str mode):
    """The index of the element of x for each position in a dimension of `n` elements with margins."""
    cdef Py_ssize_t before = pair[0], size = before + n + <Py_ssize_t>pair[1], i, at
    cdef Py_ssize_t period = n if mode == "wrap" else 2 * n if mode == "symmetric" else 2 * n - 2
    cdef bint clamped = mode == "edge" or period == 0   # one element is reflected into itself
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
        pairs = np.asarray(widths)
        if pairs.dtype.kind == "O":                 # integers of other types, or of more than 64 bits
            pairs = np.array([operator.index(n) for n in pairs.flat], object).reshape(pairs.shape)
        elif pairs.dtype.kind not in "iu": pairs = None
        if pairs is not None: pairs = np.broadcast_to(pairs, (ndim, 2))
    except (TypeError, ValueError):
        pairs = None
    if pairs is None or pairs.size and pairs.min() < 0:
        raise ValueError(f"pad: widths is {described(widths)}; it must be an integer of at least 0, a pair, or a list "
                         f"of {ndim} pairs")
    return tuple([(int(a), int(b)) for a, b in pairs])


cdef Tensor matrices(str name, x):
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 2:
        raise ValueError(f"{name} needs a tensor with at least 2 dimensions, got shape {t.shape}")
    return t


def tril(x: Data, k: int = 0) -> Tensor:
    """The lower triangles of the matrices in the last two dimensions of `x`, with zeros above diagonal `k`."""
    return apply1(TRIL, matrices("tril", x), Diagonal(lay.read_diagonal("tril", "k", k)))


def triu(x: Data, k: int = 0) -> Tensor:
    """The upper triangles of the matrices in the last two dimensions of `x`, with zeros below diagonal `k`."""
    return apply1(TRIU, matrices("triu", x), Diagonal(lay.read_diagonal("triu", "k", k)))
