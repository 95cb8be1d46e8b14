"""Indexing: take, gather, scatter_add and their inverses; argwhere; one_hot.

Indices are int64 and have no gradient. An operator that writes in place checks all indices first; otherwise the kernel
checks them while it writes. An index in external memory is copied, because a write there raises no version. Another
thread can write an index while a kernel reads it. So an operator whose kernel did not finish raises an error."""

cimport cython

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from cygrad.core.store cimport layout as lay
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport (
    BackwardCall, Call, Operator, Stage, add_stage, hide, output_bit, reads_temporary, saved, temporary,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.buffer cimport EXTERNAL
from cygrad.core.execute.run cimport apply1, apply2, apply_list
from cygrad.ops.elementwise.base cimport Axis, axis_number
from cygrad.kernels.shapes cimport choose
from cygrad.kernels.shapes cimport index as kernel
from cygrad.kernels.array cimport (
    BOOL, INT64, MAX_NDIM, UINT16, UINT32, UINT64, UINT8, Array, Layout, is_floating, itemsize,
)
from cygrad.kernels.driver cimport STRIP, strip_of

from cygrad.core.interop.creation import zeros
from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import InplaceError, described
from cygrad.core.store.layout import check_size
from cygrad.ops.shapes.shape import astype, broadcast_to, reshape


# ---- attributes and checks -------------------------------------------------------------------------------------------

@cython.no_gc
cdef class Indexed(Attributes):
    """The attributes of take and add_at: `count` index arrays select from as many dimensions, from `axis` on."""

    def __cinit__(self, int axis, int count):
        self.axis, self.count = axis, count


cdef int check_indices(str name, const Array* x, int axis, int n, const Array* index) except -1 nogil:
    """Raise IndexError if an index is out of range; array k of `n` indexes dimension axis + k of x. `name` is the
    function's name and ": ", or "" for an index in brackets."""
    cdef int k
    cdef int64_t bad
    for k in range(n):
        if kernel.bad_index(&index[k], x.layout.shape[axis + k], &bad):
            with gil:
                raise IndexError(f"{name}index {bad} is out of range for a dimension of size "
                                 f"{x.layout.shape[axis + k]}")


cdef int refuse_indices(str name, const kernel.Places* p, const Array* x, int axis, int n,
                        const Array* index) except -1 nogil:
    """After a kernel that did not finish: raise an error, unless the grid was empty and no index is out of range."""
    check_indices(name, x, axis, n, index)
    return refuse_changed(name) if p.count * p.row else 0


cdef int refuse_changed(str name) except -1 with gil:
    raise InplaceError(f"{name}an index was out of range and is not now; another thread modified it; pass a copy()")


cdef int check_again(Operator op, const BackwardCall* b, int axis, int n, const Array* index) except -1 nogil:
    """The same in backward: NumPy may have changed an index without raising its version."""
    cdef int k
    cdef int64_t bad
    for k in range(n):
        if kernel.bad_index(&index[k], b.x[0].shape[axis + k], &bad):
            with gil:
                raise InplaceError(f"{op.name}: index {bad} is out of range for a dimension of size "
                                   f"{b.x[0].shape[axis + k]}; it was modified since forward; pass a copy()")


cdef int add_again(Operator op, const BackwardCall* b, int axis, int n, const Array* index,
                   const kernel.Places* p) except -1 nogil:
    """dx[i] += g in backward, with the check of check_again()."""
    check_again(op, b, axis, n, index)
    clear(&b.dx[0])
    if kernel.add(p) or p.count * p.row == 0: return 0
    check_again(op, b, axis, n, index)
    with gil: return refuse_changed(f"{op.name}: ")


cdef Tensor own(Tensor t, Tensor written):
    """An index or mask `t`, copied if its memory is external or is that of `written` (or None)."""
    if t.buffer.flags & EXTERNAL or written is not None and t.buffer == written.buffer: return t.copy()
    return t


cdef Tensor index_tensor(v, Tensor written):
    """An int64 tensor of indices from data. Raises TypeError for dtypes other than integers, and IndexError for a
    uint64 beyond int64, which the cast would make negative."""
    if isinstance(v, (list, tuple)) and len(v) == 0: v = np.zeros(0, np.int64)
    cdef Tensor t = ensure_tensor(v)
    if is_floating(t.dtype) or t.dtype == BOOL:
        raise TypeError(f"indices must be integers, got a {DTYPES[t.dtype]} tensor of shape {t.shape}")
    if t.dtype == UINT64 and t.layout.size:
        largest = t.detach().numpy().max()
        if largest > np.iinfo(np.int64).max: raise IndexError(f"index {largest} is out of range for any dimension")
    return own(t, written) if t.dtype == INT64 else t.astype(DTYPES[INT64])


cdef Tensor zero_like(Tensor g, tuple shape):
    """Zeros of a shape: one element, broadcast."""
    return broadcast_to(zeros((), DTYPES[g.dtype]), shape)


cdef void copy_input(Call* c) noexcept nogil:
    """y = x, unless the operation writes in place."""
    if c.x[0].data != c.y[0].data: kernel.copy(&c.x[0], &c.y[0])


cdef void clear(const Array* dx) noexcept nogil:
    """dx = 0"""
    memset(dx.data, 0, dx.layout.size * itemsize(dx.dtype))


# ---- take ------------------------------------------------------------------------------------------------------------

cdef Layout* taken(str name, const Array* x, int axis, int n, const Array* index) except NULL nogil:
    """The dense layout of x with the dimensions axis .. axis + n - 1 replaced by those of the index arrays."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef Layout* both = lay.incref(index[0].layout)
    cdef Layout* wider
    cdef int k, d, ndim
    try:
        for k in range(1, n):
            wider = lay.broadcast(name, both, index[k].layout)
            lay.decref(both)
            both = wider
        ndim = x.layout.ndim - n + both.ndim
        if ndim > MAX_NDIM: refuse_dimensions(name, ndim)
        for d in range(axis): shape[d] = x.layout.shape[d]
        for d in range(both.ndim): shape[axis + d] = both.shape[d]
        for d in range(axis + n, x.layout.ndim): shape[d - n + both.ndim] = x.layout.shape[d]
        return lay.dense(ndim, shape)
    finally:
        lay.decref(both)


cdef int refuse_dimensions(str name, int ndim) except -1 with gil:
    raise ValueError(f"{name}: a tensor has at most {MAX_NDIM} dimensions, but this index would give {ndim}")


cdef class Take(Operator):
    """y = x[.., i, ..]        dx = 0, with dx[.., i, ..] += g

    The inputs are x and index arrays that broadcast, for adjacent dimensions. Saves the indices."""
    lanes, tangent = "taking", "linear"
    traits = "fused differentiable"
    row, operands, functions = "take_at", "x *indices", {"take": "x indices"}
    no_gradient, reads = "indices", {"x": "indices"}

    cdef tuple row_of(self, attributes):
        return "take" if attributes.count == 1 else "take_at", attributes.arguments()

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = taken("take", &c.x[0], (<Indexed>c.attributes).axis, c.n_in - 1, &c.x[1])
        c.y[0].dtype = c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        cdef int axis = (<Indexed>c.attributes).axis
        kernel.aim(&p, &c.x[0], &c.y[0], axis, c.n_in - 1, &c.x[1])
        if not kernel.take(&p): refuse_indices("", &p, &c.x[0], axis, c.n_in - 1, &c.x[1])

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array index[MAX_NDIM]
        cdef int axis = (<Indexed>b.attributes).axis, k, n = b.n_in - 1
        for k in range(n): index[k] = saved(b, k + 1)
        kernel.aim(&p, &b.dx[0], &b.g[0], axis, n, index)
        return add_again(self, b, axis, n, index, &p)

    cdef object formula(self, c, int i, g):
        if i > 0: return None
        indices = [c.input(k + 1) for k in range(c.attributes.count)]
        return apply_list(ADD_AT, [zero_like(g, c.shape(0)), g, *indices], c.attributes)


cdef int check_values(str name, const Array* v, Layout* wanted) except -1 nogil:
    """Raise ValueError if v does not have the shape of `wanted`. Steals the reference to `wanted`."""
    if not lay.same_shape(v.layout, wanted): refuse_values(name, v, wanted)
    lay.decref(wanted)


cdef int refuse_values(str name, const Array* v, Layout* wanted) except -1 with gil:
    shape = lay.shape_tuple(wanted)
    lay.decref(wanted)
    raise ValueError(f"{name}: v has shape {lay.shape_tuple(v.layout)}, but the index selects {shape}")


cdef class AddAt(Operator):
    """y = x, with y[.., i, ..] += v        dx = g        dv = g[.., i, ..]

    The inputs are x, v and the index arrays of take(); v has the shape that take() would give."""
    lanes, tangent, traits = "adding_at", "linear", "differentiable"
    operands, no_gradient, reads = "x v *indices", "indices", {"v": "indices"}

    cdef int infer(self, Call* c) except -1 nogil:
        check_values("add_at", &c.x[1], taken("add_at", &c.x[0], (<Indexed>c.attributes).axis, c.n_in - 2, &c.x[2]))
        Operator.infer(self, c)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        cdef int axis = (<Indexed>c.attributes).axis
        if c.x[0].data == c.y[0].data: check_indices("", &c.x[0], axis, c.n_in - 2, &c.x[2])
        copy_input(c)
        kernel.aim(&p, &c.y[0], &c.x[1], axis, c.n_in - 2, &c.x[2])
        if not kernel.add(&p): refuse_indices("", &p, &c.x[0], axis, c.n_in - 2, &c.x[2])

    cdef object formula(self, c, int i, g):
        if i == 0: return g
        if i > 1: return None
        return apply_list(TAKE, [g, *[c.input(k + 2) for k in range(c.attributes.count)]], c.attributes)


# ---- gather ----------------------------------------------------------------------------------------------------------

cdef int check_along(str name, const Array* x, int axis, const Array* index) except -1 nogil:
    """Raise ValueError unless the index has as many dimensions as x, none larger than in x except `axis`."""
    cdef const Layout* a = x.layout
    cdef const Layout* l = index.layout
    cdef bint fits = a.ndim == l.ndim
    for d in range(a.ndim):
        if fits and d != axis and l.shape[d] > a.shape[d]: fits = False
    if not fits:
        with gil:
            raise ValueError(f"{name}: x is {lay.shape_tuple(a)} and the index is {lay.shape_tuple(l)}; they must have "
                             f"as many dimensions, and only dimension {axis} of the index may be larger than in x")


cdef class Gathering(Operator):
    """The base of both: elements of x by an index, along an axis. Saves the index."""
    lanes, tangent = "shifting", "linear"
    called, traits = "gather", "fused differentiable"
    operands, no_gradient, reads = "x index", "index", {"x": "index"}

    cdef int infer(self, Call* c) except -1 nogil:
        check_along("gather", &c.x[0], (<Axis>c.attributes).axis, &c.x[1])
        c.y[0].layout = lay.dense_like(c.x[1].layout)
        c.y[0].dtype = c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        cdef int axis = (<Axis>c.attributes).axis
        kernel.aim_along(&p, &c.x[0], &c.y[0], axis, &c.x[1])
        if not kernel.take(&p): refuse_indices("gather: ", &p, &c.x[0], axis, 1, &c.x[1])

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array index = saved(b, 1)
        cdef int axis = (<Axis>b.attributes).axis
        kernel.aim_along(&p, &b.dx[0], &b.g[0], axis, &index)
        return add_again(self, b, axis, 1, &index, &p)

    cdef object formula(self, c, int i, g):
        return scatter_add(zero_like(g, c.shape(0)), c.attributes.axis, c.input(1), g) if i == 0 else None


cdef class Gather(Gathering):
    """y = x[index] along an axis        dx = 0, with dx[index] += g along it

    y[i, j, k] = x[i, index[i, j, k], k] for axis 1 of three."""


cdef class GatherRanked(Gathering):
    """The same with an index from the order of x, so that the derivative depends on x, but is locally constant.

    Saves a copy of the index, which is never negative, in the smallest dtype that can hold it (a hidden output)."""
    row, hidden, reads = "gather_ranked", "places", {"x": "places"}

    cdef int infer(self, Call* c) except -1 nogil:
        Gathering.infer(self, c)
        if not c.wanted: return 0
        hide(c, lay.incref(c.y[0].layout), place_dtype(c.x[0].layout.shape[(<Axis>c.attributes).axis]))

    cdef int forward(self, Call* c) except -1 nogil:
        Gathering.forward(self, c)
        if c.hidden: cast_down(&c.x[1], &c.y[1])

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s
        if not b.want[0]: return 0
        s = add_stage(b, temporary(0))              # the index as int64; then the saved places can be freed
        s.saved, s.gradients, s.like, s.temporary_dtype = output_bit(1), 0, b.y, INT64
        s = add_stage(b, 1)
        s.saved, s.gradients = 0, s.gradients | reads_temporary(0)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array places
        if stage == 0:
            places = saved(b, OWN | 1)
            widen(&places, <int64_t*>b.temporaries[0].data)
            return 0
        clear(&b.dx[0])
        kernel.aim_along(&p, &b.dx[0], &b.g[0], (<Axis>b.attributes).axis, &b.temporaries[0])
        kernel.add(&p)

    cdef object formula(self, c, int i, g):
        if i > 0: return None
        index = wide_places(<Context>c)
        return c.locally_constant(scatter_add(zero_like(g, c.shape(0)), c.attributes.axis, index, g))


cdef int place_dtype(Py_ssize_t n) noexcept nogil:
    """The smallest dtype that can hold the numbers 0 to n - 1."""
    return UINT8 if n <= 1 << 8 else UINT16 if n <= 1 << 16 else UINT32 if n <= <Py_ssize_t>1 << 32 else INT64


cdef void cast_down(const Array* wide, const Array* places) noexcept nogil:
    """places = wide, cast to a smaller dtype that can hold the numbers; `places` is dense."""
    cdef int64_t scratch[STRIP]
    cdef const int64_t* at
    cdef Py_ssize_t n = places.layout.size, start = 0, count, k
    while start < n:
        count = n - start if n - start < STRIP else STRIP
        at = <const int64_t*>strip_of(wide, start, count, <char*>scratch)
        if places.dtype == UINT8:
            for k in range(count): (<uint8_t*>places.data)[start + k] = <uint8_t>at[k]
        elif places.dtype == UINT16:
            for k in range(count): (<uint16_t*>places.data)[start + k] = <uint16_t>at[k]
        elif places.dtype == UINT32:
            for k in range(count): (<uint32_t*>places.data)[start + k] = <uint32_t>at[k]
        else:
            for k in range(count): (<int64_t*>places.data)[start + k] = at[k]
        start += count


cdef void widen(const Array* places, int64_t* wide) noexcept nogil:
    """wide = places, cast to int64; `places` is dense."""
    cdef Py_ssize_t n = places.layout.size, k
    if places.dtype == UINT8:
        for k in range(n): wide[k] = (<const uint8_t*>places.data)[k]
    elif places.dtype == UINT16:
        for k in range(n): wide[k] = (<const uint16_t*>places.data)[k]
    elif places.dtype == UINT32:
        for k in range(n): wide[k] = (<const uint32_t*>places.data)[k]
    else:
        for k in range(n): wide[k] = (<const int64_t*>places.data)[k]


cdef object wide_places(Context c):
    """The saved places as an int64 tensor, for a formula."""
    return astype(c.output(1).detach(), DTYPES[INT64])


cdef class ScatterAdd(Operator):
    """y = x, with y[index] += s along an axis        dx = g        ds = g[index] along it

    The inputs are x, the index and s, which has the shape of the index. Saves the index."""
    lanes, tangent = "shifting", "linear"
    traits = "differentiable"
    operands, no_gradient, reads = "x index src", "index", {"src": "index"}

    cdef int infer(self, Call* c) except -1 nogil:
        check_along("scatter_add", &c.x[0], (<Axis>c.attributes).axis, &c.x[1])
        Operator.infer(self, c)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        cdef int axis = (<Axis>c.attributes).axis
        if c.x[0].data == c.y[0].data: check_indices("scatter_add: ", &c.x[0], axis, 1, &c.x[1])
        copy_input(c)
        kernel.aim_along(&p, &c.y[0], &c.x[2], axis, &c.x[1])
        if not kernel.add(&p): refuse_indices("scatter_add: ", &p, &c.x[0], axis, 1, &c.x[1])

    cdef object formula(self, c, int i, g):
        return g if i == 0 else apply2(GATHER, g, c.input(1), c.attributes) if i == 2 else None


# ---- argwhere --------------------------------------------------------------------------------------------------------

cdef class Argwhere(Operator):
    """y = the indices where x is not zero, a row each        no gradient

    infer() reads values: it counts the rows, without the GIL."""
    traits = "data_dependent_shape"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[2]
        shape[0] = choose.count_nonzero(&c.x[0])
        shape[1] = c.x[0].layout.ndim
        c.y[0].layout = lay.dense(2, shape)
        c.y[0].dtype = INT64

    cdef int forward(self, Call* c) except -1 nogil:
        if choose.argwhere(&c.x[0], <int64_t*>c.y[0].data, c.y[0].layout.shape[0]) == c.y[0].layout.shape[0]: return 0
        with gil:
            raise InplaceError(f"argwhere: x had {c.y[0].layout.shape[0]} elements that are not 0 at first and another "
                               f"number later; another thread modified it; pass a copy()")


# ---- one_hot ---------------------------------------------------------------------------------------------------------

cdef tuple ONES = tuple([np.ones((), dtype).tobytes() for dtype in DTYPES])


@cython.no_gc
cdef class Classes(Attributes):
    """The attributes of one_hot."""
    cdef readonly Py_ssize_t classes
    cdef readonly object dtype
    cdef int number
    cdef char one[8]                                # the bytes of 1 in that dtype

    def __cinit__(self, Py_ssize_t classes, dtype):
        cdef bytes one
        self.classes, self.number = classes, dtype_number(dtype)
        self.dtype, one = DTYPES[self.number], ONES[self.number]
        memcpy(self.one, <const char*>one, len(one))


cdef class OneHot(Operator):
    """y = 0, with y[i, label[i]] = 1        no gradient"""
    lanes = "leading"
    operands = "labels"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        if l.ndim == MAX_NDIM:
            with gil:
                raise ValueError(f"one_hot: the labels have {MAX_NDIM} dimensions, the maximum; reshape them")
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[l.ndim], c.y[0].dtype = (<Classes>c.attributes).classes, (<Classes>c.attributes).number
        c.y[0].layout = lay.dense(l.ndim + 1, shape)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t classes = (<Classes>c.attributes).classes
        cdef int64_t bad = 0
        if not choose.one_hot(&c.x[0], classes, c.y[0].data, itemsize(c.y[0].dtype), (<Classes>c.attributes).one, &bad):
            with gil: raise IndexError(f"one_hot: label {bad} is not a class; the classes are 0 to {classes - 1}")


cdef Operator TAKE = Take(), ADD_AT = AddAt(), GATHER = Gather(), SCATTER_ADD = ScatterAdd()
cdef Operator GATHER_RANKED = GatherRanked(), ARGWHERE = Argwhere(), ONE_HOT = OneHot()
OPERATORS = {o.name: o for o in (TAKE, ADD_AT, GATHER, SCATTER_ADD, ARGWHERE, ONE_HOT)}
OPERATORS["gather_ranked"] = GATHER_RANKED          # (its name in errors is that of gather)


def take(x: Data, indices: Data, axis: int | None = None) -> Tensor:
    """The elements or slices of `x` at `indices` (integers of any shape; negative ones count from the end) along
    `axis`, or of the flattened `x` if `axis` is None. Raises IndexError for an index out of range."""
    cdef Tensor t = ensure_tensor(x)
    if axis is None:
        t = reshape(t, (t.layout.size,))
        axis = 0
    return apply2(TAKE, t, index_tensor(indices, None), Indexed(lay.read_axis(axis, t.layout.ndim), 1))


cdef Indexed read_indexed(str name, Tensor x, axis, tuple indices):
    """The attributes for index arrays of adjacent dimensions. Raises IndexError if x does not have these."""
    if not indices or not isinstance(axis, int) or not 0 <= axis <= x.layout.ndim - len(indices):
        raise IndexError(f"{name}: {len(indices)} index arrays from axis {described(axis)} on do not fit x of shape "
                         f"{x.shape}")
    return Indexed(axis, len(indices))


cdef int check_dtype(str name, Tensor x, Tensor v) except -1:
    """Raise TypeError unless v, which is written into a copy of x, has its dtype."""
    if v.dtype == x.dtype: return 0
    raise TypeError(f"{name}: x is {DTYPES[x.dtype]} and v is {DTYPES[v.dtype]}; they must have the same dtype; "
                    f"convert with astype")


def take_at(x: Data, axis: int, *indices: Data) -> Tensor:
    """The elements of `x` at index arrays that broadcast, for adjacent dimensions from `axis` on."""
    cdef Tensor t = ensure_tensor(x)
    cdef Indexed at = read_indexed("take_at", t, axis, indices)
    return apply_list(TAKE, [t, *[index_tensor(i, None) for i in indices]], at)


def add_at(x: Data, axis: int, v: Data, *indices: Data) -> Tensor:
    """`x` with `v` added where take() would read, at index arrays for adjacent dimensions from `axis` on."""
    cdef Tensor t = ensure_tensor(x), u = ensure_tensor(v)
    cdef Indexed at = read_indexed("add_at", t, axis, indices)
    check_dtype("add_at", t, u)
    return apply_list(ADD_AT, [t, u, *[index_tensor(i, None) for i in indices]], at)


def gather(x: Data, axis: int, index: Data) -> Tensor:
    """The elements of `x` at `index` along `axis`: y[i, j] = x[i, index[i, j]] for axis 1. The index has as many
    dimensions as x. Raises ValueError if its shape does not fit, IndexError for an index out of range."""
    cdef Tensor t = ensure_tensor(x)
    return apply2(GATHER, t, index_tensor(index, None), axis_number(lay.read_axis(axis, t.layout.ndim)))


def gather_ranked(x, axis, index):
    """gather() with an index from the order of the elements of `x`, for the values of topk."""
    cdef Tensor t = ensure_tensor(x)
    return apply2(GATHER_RANKED, t, index_tensor(index, None), axis_number(lay.read_axis(axis, t.layout.ndim)))


def scatter_add(x: Data, axis: int, index: Data, src: Data) -> Tensor:
    """`x` with the elements of `src` added at `index` along `axis`: y[i, index[i, j]] += src[i, j] for axis 1. Repeated
    indices accumulate. `src` may be larger than the index; the rest of it is not used."""
    cdef Tensor t = ensure_tensor(x), i = index_tensor(index, None), s = ensure_tensor(src)
    if t.dtype != s.dtype or t.dtype == BOOL:
        raise TypeError(f"scatter_add: x is {DTYPES[t.dtype]} and src is {DTYPES[s.dtype]}; they must have the same "
                        f"dtype, not bool; convert with astype")
    if s.shape != i.shape:
        if s.layout.ndim != i.layout.ndim or any([n > m for n, m in zip(i.shape, s.shape)]):
            raise ValueError(f"scatter_add: the index is {i.shape} but src is {s.shape}; src must be at least as large "
                             f"in each dimension")
        s = s[tuple([slice(0, n) for n in i.shape])]
    return apply_list(SCATTER_ADD, [t, i, s], axis_number(lay.read_axis(axis, t.layout.ndim)))


def argwhere(x: Data) -> Tensor:
    """The indices at which `x` is not zero (or is true), in row-major order: an int64 tensor (elements, dimensions). A
    net cannot plan it, because its shape depends on values."""
    return apply1(ARGWHERE, x, None)


def one_hot(labels: Data, classes: int, dtype: npt.DTypeLike | None = None) -> Tensor:
    """A row of `classes` numbers for each of the integer `labels`: 1 at the label, 0 elsewhere. dtype None is the
    default dtype. Raises IndexError for a label that is not a class."""
    cdef Tensor l = index_tensor(labels, None)
    classes = lay.read_integer("one_hot", "classes", classes, 0)
    check_size(l.layout.size * classes, f"one_hot: {l.layout.size} labels of {classes} classes each are "
                                        f"{l.layout.size * classes} numbers")
    check_size(classes, f"one_hot: the number of classes is {classes}")
    return apply1(ONE_HOT, l, Classes(classes, DTYPES[default_dtype()] if dtype is None else dtype))
