"""Indexing: take, gather, scatter_add and their inverses; argwhere; one_hot.

Index tensors are int64. They are checked before existing memory is written; kernels check them while they write new
memory. An index over the caller's memory is copied, because later writes there are not counted as versions."""

import operator

import numpy as np

from cython cimport final
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.dtypes cimport default_dtype
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, output_bit, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.buffer cimport EXTERNAL
from cygrad.core.execute.run cimport apply1, apply2, apply_list
from cygrad.kernels cimport choose, index as kernel
from cygrad.kernels.array cimport (
    BOOL, INT64, MAX_NDIM, UINT16, UINT32, UINT64, UINT8, Array, Layout, is_floating, itemsize,
)

from cygrad.core.interop.creation import zeros
from cygrad.core.dtypes import DTYPES, dtype_number
from cygrad.core.errors import InplaceError, described
from cygrad.core.store.layout import check_size
from cygrad.ops.shape import astype, broadcast_to, reshape


# ---- what these share ------------------------------------------------------------------------------------------------

cdef int check_indices(str name, const Array* x, int axis, int n, const Array* index) except -1:
    """Raises IndexError unless each of `n` index arrays is in range of its dimension of x, from `axis` on."""
    cdef int k
    cdef int64_t bad
    for k in range(n):
        if kernel.bad_index(&index[k], x.layout.shape[axis + k], &bad):
            raise IndexError(f"{name}index {bad} is out of range for a dimension of size {x.layout.shape[axis + k]}")
    return 0


cdef int check_again(Operator op, const BackwardCall* b, int axis, int n, const Array* index) except -1 nogil:
    """The same in backward: a write through NumPy is one that versions do not see, and memory would."""
    cdef int k
    cdef int64_t bad
    for k in range(n):
        if kernel.bad_index(&index[k], b.x[0].shape[axis + k], &bad):
            with gil:
                raise InplaceError(f"{op.name}: index {bad} was in range in forward and is not now, for a dimension of "
                                   f"size {b.x[0].shape[axis + k]}; it has been written meanwhile: give a copy()")
    return 0


cdef Tensor own(Tensor t, Tensor written):
    """An index or mask that nobody else writes unseen; `written` (or None) is what the operation itself writes."""
    if t.buffer.flags & EXTERNAL or written is not None and t.buffer == written.buffer: return t.copy()
    return t


cdef Tensor index_tensor(v, Tensor written):
    """`v` as an int64 tensor. Raises TypeError if it has no integers, IndexError for a uint64 above 2^63 - 1."""
    if isinstance(v, (list, tuple)) and len(v) == 0: v = np.zeros(0, np.int64)
    cdef Tensor t = ensure_tensor(v)
    if is_floating(t.dtype) or t.dtype == BOOL:
        raise TypeError(f"indices are integers, got a {DTYPES[t.dtype]} tensor of shape {t.shape}")
    if t.dtype == UINT64 and t.layout.size:
        largest = t.detach().numpy().max()
        if largest > np.iinfo(np.int64).max: raise IndexError(f"index {largest} is out of range for any dimension")
    return own(t, written) if t.dtype == INT64 else t.astype(DTYPES[INT64])


cdef Tensor zero_like(Tensor g, tuple shape):
    """Zeros of a shape that take the memory of one."""
    return broadcast_to(zeros((), DTYPES[g.dtype]), shape)


cdef void copy_input(Call* c) noexcept:
    """y = x, unless the operation writes in place."""
    if c.x[0].data != c.y[0].data: kernel.copy(&c.x[0], &c.y[0])


cdef void clear(const Array* dx) noexcept nogil:
    """dx = 0"""
    memset(dx.data, 0, dx.layout.size * itemsize(dx.dtype))


cdef Layout* like_input(const Array* x) except NULL:
    return lay.dense_like(x.layout)


# ---- take ------------------------------------------------------------------------------------------------------------

cdef Layout* taken(str name, const Array* x, int axis, int n, const Array* index) except NULL:
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
        if ndim > MAX_NDIM:
            raise ValueError(f"{name}: a tensor has at most {MAX_NDIM} dimensions, this index would give {ndim}")
        for d in range(axis): shape[d] = x.layout.shape[d]
        for d in range(both.ndim): shape[axis + d] = both.shape[d]
        for d in range(axis + n, x.layout.ndim): shape[d - n + both.ndim] = x.layout.shape[d]
        return lay.dense(ndim, shape)
    finally:
        lay.decref(both)


@final
cdef class Take(Operator):
    """y = x[.., i, ..]        dx = 0, with dx[.., i, ..] += g

    The inputs are x and index arrays, for neighbouring dimensions, that broadcast; the attributes are the first of
    those dimensions and their number. Keeps the indices."""

    def __cinit__(self):
        self.name, self.fused, self.differentiable = "take", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = taken("take", &c.x[0], (<tuple>c.attributes)[0], c.n_in - 1, &c.x[1])
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef kernel.Places p
        cdef int axis = (<tuple>c.attributes)[0]
        cdef bint good
        kernel.aim(&p, &c.x[0], &c.y[0], axis, c.n_in - 1, &c.x[1])
        with nogil: good = kernel.take(&p)
        if not good: check_indices("", &c.x[0], axis, c.n_in - 1, &c.x[1])
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return ((<uint64_t>1 << c.n_in) - 2) if wanted & 1 else 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        if b.want[0]: add_stage(b, 1).saved = (<uint64_t>1 << b.n_in) - 2
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array index[MAX_NDIM]
        cdef int axis, k, n = b.n_in - 1
        with gil: axis = (<tuple>b.attributes)[0]
        for k in range(n): index[k] = saved(b, k + 1)
        check_again(self, b, axis, n, index)
        clear(&b.dx[0])
        kernel.aim(&p, &b.dx[0], &b.g[0], axis, n, index)
        kernel.add(&p)
        return 0

    cdef object formula(self, c, int i, g):
        if i > 0: return None
        indices = [c.input(k + 1) for k in range(c.attributes[1])]
        return apply_list(ADD_AT, [zero_like(g, c.shape(0)), g, *indices], c.attributes)


cdef int check_values(str name, const Array* v, Layout* wanted) except -1:
    """That v has the shape `wanted`, of which this takes over the count."""
    cdef bint fits = lay.same_shape(v.layout, wanted)
    shape = lay.shape_tuple(wanted)
    lay.decref(wanted)
    if not fits: raise ValueError(f"{name}: v is {lay.shape_tuple(v.layout)}; wanted {shape}, that of the places")
    return 0


@final
cdef class AddAt(Operator):
    """y = x, with y[.., i, ..] += v        dx = g        dv = g[.., i, ..]

    The inputs are x, v and the index arrays as take() has them; v has the shape that take() would give."""

    def __cinit__(self):
        self.name, self.differentiable = "add_at", True

    cdef int infer_with_gil(self, Call* c) except -1:
        check_values("add_at", &c.x[1], taken("add_at", &c.x[0], (<tuple>c.attributes)[0], c.n_in - 2, &c.x[2]))
        c.y[0].layout = like_input(&c.x[0])
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef kernel.Places p
        cdef int axis = (<tuple>c.attributes)[0]
        cdef bint good
        if c.x[0].data == c.y[0].data: check_indices("", &c.x[0], axis, c.n_in - 2, &c.x[2])
        copy_input(c)
        kernel.aim(&p, &c.y[0], &c.x[1], axis, c.n_in - 2, &c.x[2])
        with nogil: good = kernel.add(&p)
        if not good: check_indices("", &c.x[0], axis, c.n_in - 2, &c.x[2])
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return ((<uint64_t>1 << c.n_in) - 4) if wanted & 2 else 0

    cdef object formula(self, c, int i, g):
        if i == 0: return g
        if i > 1: return None
        return apply_list(TAKE, [g, *[c.input(k + 2) for k in range(c.attributes[1])]], c.attributes)


# ---- gather ----------------------------------------------------------------------------------------------------------

cdef int check_along(str name, const Array* x, int axis, const Array* index) except -1:
    """That index may be gathered from x along `axis`: as many dimensions, none of the others larger."""
    cdef const Layout* a = x.layout
    cdef const Layout* l = index.layout
    cdef int d
    cdef bint fits = a.ndim == l.ndim
    for d in range(a.ndim):
        if fits and d != axis and l.shape[d] > a.shape[d]: fits = False
    if not fits:
        raise ValueError(f"{name}: x is {lay.shape_tuple(a)} and the index is {lay.shape_tuple(l)}; wanted as many "
                         f"dimensions, and none of the index larger than that of x but dimension {axis}")
    return 0


cdef class Gathering(Operator):
    """The base of both: elements of x by an index, along an axis. Keeps the index."""

    def __cinit__(self):
        self.name, self.fused, self.differentiable = "gather", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        check_along("gather", &c.x[0], <object>c.attributes, &c.x[1])
        c.y[0].layout = like_input(&c.x[1])
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef kernel.Places p
        cdef int axis = <object>c.attributes
        cdef bint good
        kernel.aim_along(&p, &c.x[0], &c.y[0], axis, &c.x[1])
        with nogil: good = kernel.take(&p)
        if not good: check_indices("gather: ", &c.x[0], axis, 1, &c.x[1])
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 2 if wanted & 1 else 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        if b.want[0]: add_stage(b, 1).saved = 2
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array index = saved(b, 1)
        cdef int axis
        with gil: axis = <object>b.attributes
        check_again(self, b, axis, 1, &index)
        clear(&b.dx[0])
        kernel.aim_along(&p, &b.dx[0], &b.g[0], axis, &index)
        kernel.add(&p)
        return 0

    cdef object formula(self, c, int i, g):
        return scatter_add(zero_like(g, c.shape(0)), c.attributes, c.input(1), g) if i == 0 else None


@final
cdef class Gather(Gathering):
    """y = x[index] along an axis        dx = 0, with dx[index] += g along it

    y[i, j, k] = x[i, index[i, j, k], k] for axis 1 of three."""


@final
cdef class GatherRanked(Gathering):
    """The same with an index that the order of x gave: the derivative depends on x, and is locally constant.

    Keeps a copy of the index (a hidden output) in the smallest dtype that has room for it: no index is negative."""

    cdef int infer_with_gil(self, Call* c) except -1:
        Gathering.infer_with_gil(self, c)
        if not c.wanted: return 0
        c.y[1].layout = lay.incref(c.y[0].layout)
        c.y[1].dtype = place_dtype(c.x[0].layout.shape[<int><object>c.attributes])
        c.n_out, c.hidden = 2, 1
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        Gathering.forward_with_gil(self, c)
        if c.hidden: lend(&c.y[1], NULL, True)[...] = lend(&c.x[1], NULL, False)
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return output_bit(1)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s
        if not b.want[0]: return 0
        s = add_stage(b, 1)
        s.saved, s.workspace_bytes = output_bit(1), b.y.size * sizeof(int64_t)
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array index = saved(b, OWN | 1)
        cdef int axis
        with gil: axis = <object>b.attributes
        widen(&index, <int64_t*>b.workspace)
        index.data, index.dtype = b.workspace, INT64
        clear(&b.dx[0])
        kernel.aim_along(&p, &b.dx[0], &b.g[0], axis, &index)
        kernel.add(&p)
        return 0

    cdef object formula(self, c, int i, g):
        if i > 0: return None
        index = wide_places(<Context>c)
        return c.locally_constant(scatter_add(zero_like(g, c.shape(0)), c.attributes, index, g))


cdef int place_dtype(Py_ssize_t n) noexcept nogil:
    """The smallest dtype that has room for the numbers below n."""
    return UINT8 if n <= 1 << 8 else UINT16 if n <= 1 << 16 else UINT32 if n <= <Py_ssize_t>1 << 32 else INT64


cdef void widen(const Array* places, int64_t* wide) noexcept nogil:
    """Kept places, which are dense, as int64."""
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
    """The same for a formula."""
    return astype(c.output(1).detach(), DTYPES[INT64])


@final
cdef class ScatterAdd(Operator):
    """y = x, with y[index] += s along an axis        dx = g        ds = g[index] along it

    The inputs are x, the index and s, of the shape of the index. Keeps the index."""

    def __cinit__(self):
        self.name, self.differentiable = "scatter_add", True

    cdef int infer_with_gil(self, Call* c) except -1:
        check_along("scatter_add", &c.x[0], <object>c.attributes, &c.x[1])
        c.y[0].layout = like_input(&c.x[0])
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef kernel.Places p
        cdef int axis = <object>c.attributes
        cdef bint good
        if c.x[0].data == c.y[0].data: check_indices("scatter_add: ", &c.x[0], axis, 1, &c.x[1])
        copy_input(c)
        kernel.aim_along(&p, &c.y[0], &c.x[2], axis, &c.x[1])
        with nogil: good = kernel.add(&p)
        if not good: check_indices("scatter_add: ", &c.x[0], axis, 1, &c.x[1])
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 2 if wanted & 4 else 0

    cdef object formula(self, c, int i, g):
        return g if i == 0 else apply2(GATHER, g, c.input(1), c.attributes) if i == 2 else None


# ---- argwhere --------------------------------------------------------------------------------------------------------

@final
cdef class Argwhere(Operator):
    """y = the places where x is not zero, a row each        no gradient"""

    def __cinit__(self):
        self.name, self.data_dependent_shape = "argwhere", True

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[2]
        with nogil: shape[0] = choose.count_nonzero(&c.x[0])
        shape[1] = c.x[0].layout.ndim
        c.y[0].layout = lay.dense(2, shape)
        c.y[0].dtype = INT64
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        with nogil: choose.argwhere(&c.x[0], <int64_t*>c.y[0].data)
        return 0


# ---- one_hot ---------------------------------------------------------------------------------------------------------

@final
cdef class OneHot(Operator):
    """y = 0, with y[i, label[i]] = 1        no gradient"""

    def __cinit__(self):
        self.name = "one_hot"

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int d
        if l.ndim == MAX_NDIM:
            raise ValueError(f"one_hot: the labels have {MAX_NDIM} dimensions, which is the most; reshape them")
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[l.ndim], c.y[0].dtype = <tuple>c.attributes
        c.y[0].layout = lay.dense(l.ndim + 1, shape)
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t classes = c.y[0].layout.shape[c.x[0].layout.ndim]
        cdef int64_t bad = 0
        cdef bint good
        cdef bytes one = np.ones((), DTYPES[c.y[0].dtype]).tobytes()
        cdef const char* element = one
        with nogil: good = choose.one_hot(&c.x[0], classes, c.y[0].data, itemsize(c.y[0].dtype), element, &bad)
        if not good: raise IndexError(f"one_hot: label {bad} is no class; the classes go from 0 to {classes - 1}")
        return 0


cdef Operator TAKE = Take(), ADD_AT = AddAt(), GATHER = Gather(), SCATTER_ADD = ScatterAdd()
cdef Operator GATHER_RANKED = GatherRanked(), ARGWHERE = Argwhere(), ONE_HOT = OneHot()
OPERATORS = {o.name: o for o in (TAKE, ADD_AT, GATHER, SCATTER_ADD, ARGWHERE, ONE_HOT)}


def take(x, indices, axis=None):
    """The elements or slices of `x` at `indices` (integers of any shape, negative ones from the end) along `axis`, or
    of the flattened `x` if that is None. Raises IndexError for an index out of range."""
    cdef Tensor t = ensure_tensor(x)
    if axis is None:
        t = reshape(t, (t.layout.size,))
        axis = 0
    return apply2(TAKE, t, index_tensor(indices, None), (lay.read_axis(axis, t.layout.ndim), 1))


def add_at(x, axis, v, *indices):
    """`x` with `v` added at index arrays for neighbouring dimensions from `axis` on: where take() would take."""
    cdef Tensor t = ensure_tensor(x)
    if not indices or not isinstance(axis, int) or not 0 <= axis <= t.layout.ndim - len(indices):
        raise IndexError(f"add_at: {len(indices)} index arrays from axis {described(axis)} on do not fit x of shape "
                         f"{t.shape}")
    return apply_list(ADD_AT, [t, v, *[index_tensor(i, None) for i in indices]], (axis, len(indices)))


def gather(x, axis, index):
    """The elements of `x` that `index` names along `axis`: y[i, j] = x[i, index[i, j]] for axis 1. The index has as
    many dimensions as x. Raises ValueError where it does not fit, IndexError for an index out of range."""
    cdef Tensor t = ensure_tensor(x)
    return apply2(GATHER, t, index_tensor(index, None), lay.read_axis(axis, t.layout.ndim))


def gather_ranked(x, axis, index):
    """gather() with an index that the order of the elements of `x` gave: topk's values."""
    cdef Tensor t = ensure_tensor(x)
    return apply2(GATHER_RANKED, t, index_tensor(index, None), lay.read_axis(axis, t.layout.ndim))


def scatter_add(x, axis, index, src):
    """`x` with the elements of `src` added where `index` says along `axis`: y[i, index[i, j]] += src[i, j] for axis 1;
    places that are named several times sum up. `src` may be larger than the index: the rest of it is not used."""
    cdef Tensor t = ensure_tensor(x), i = index_tensor(index, None), s = ensure_tensor(src)
    if t.dtype != s.dtype or t.dtype == BOOL:
        raise TypeError(f"scatter_add: x is {DTYPES[t.dtype]} and src is {DTYPES[s.dtype]}; wanted one dtype, not "
                        f"bool; convert with astype")
    if s.shape != i.shape:
        if s.layout.ndim != i.layout.ndim or any([n > m for n, m in zip(i.shape, s.shape)]):
            raise ValueError(f"scatter_add: the index is {i.shape} but src is {s.shape}; wanted a src at least as "
                             f"large in each dimension")
        s = s[tuple([slice(0, n) for n in i.shape])]
    return apply_list(SCATTER_ADD, [t, i, s], lay.read_axis(axis, t.layout.ndim))


def argwhere(x):
    """The places at which `x` is not zero (or is true), in row-major order: an integer tensor (places, dimensions). A
    net cannot plan it, since its shape depends on values."""
    return apply1(ARGWHERE, x, None)


def one_hot(labels, classes, dtype=None):
    """A row of `classes` numbers for each of the integer `labels`: 1 at the label, 0 elsewhere; dtype None is the
    default dtype. Raises IndexError for a label that is no class."""
    cdef Tensor l = index_tensor(labels, None)
    classes = operator.index(classes)
    if classes < 0: raise ValueError(f"one_hot: the number of classes is {classes}; wanted 0 or more")
    check_size(l.layout.size * classes, f"one_hot: {l.layout.size} labels of {classes} classes each are "
                                        f"{l.layout.size * classes} numbers")
    check_size(classes, f"one_hot: the number of classes is {classes}")
    return apply1(ONE_HOT, l, (classes, default_dtype() if dtype is None else dtype_number(dtype)))
