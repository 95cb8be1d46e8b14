"""Order: sort, argsort, topk. NumPy sorts values, in place; kernels find their places. The order is stable, and nan
counts as the largest."""

import operator

from cython cimport final
from libc.stdint cimport uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport Call, Operator, output_bit
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport sort as kernel
from cygrad.kernels.array cimport FLOAT32, INT64, MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.index cimport copy
from cygrad.kernels.sort cimport SHORT
from cygrad.ops.index cimport place_dtype, wide_places, zero_like

from cygrad.ops.index import gather_ranked, scatter_add


cdef enum:
    COLUMNS = 1 << 18       # bytes of columns that are sorted at a time, if there are so many


cdef Py_ssize_t inner_of(const Layout* l, int axis) noexcept:
    """The elements for each place of a dense array along an axis."""
    cdef Py_ssize_t inner = 1
    cdef int d
    for d in range(axis + 1, l.ndim): inner *= l.shape[d]
    return inner


cdef Py_ssize_t columns_at_once(const Layout* l, int axis, int size) noexcept:
    """How many columns of a dense array are sorted at a time."""
    cdef Py_ssize_t n = l.shape[axis] * size
    return max(1, min(inner_of(l, axis), COLUMNS // n if n else 1))


cdef int sort_columns(Call* c, int axis, bint descending) except -1:
    """y = x in order along an axis that is not the last: some columns at a time are rows of the workspace."""
    cdef const Layout* l = c.y[0].layout
    cdef int size = itemsize(c.y[0].dtype)
    cdef Py_ssize_t n = l.shape[axis], inner = inner_of(l, axis), max_ = columns_at_once(l, axis, size), o, j
    cdef Py_ssize_t shape[2]
    cdef Array rows
    cdef char* at
    for o in range(l.size // (n * inner)):
        for j in range(0, inner, max_):
            shape[0], shape[1] = min(max_, inner - j), n
            at = c.y[0].data + (o * n * inner + j) * size
            rows.data, rows.dtype, rows.layout = c.workspace, c.y[0].dtype, lay.dense(2, shape)
            try:
                kernel.turn(at, size, n, shape[0], inner, c.workspace, n)
                lend(&rows, NULL, True).sort()
                if descending: kernel.reverse(c.workspace, size, shape[0], n)
                kernel.turn(c.workspace, size, shape[0], n, n, at, inner)
            finally:
                lay.decref(rows.layout)
    return 0


@final
cdef class Sort(Operator):
    """y = x in order along an axis        dx = g, back in its places

    Keeps the places along the axis in the smallest dtype that has room for them (a hidden output, made where it will be
    wanted: values alone sort much faster). The attributes are (axis, descending)."""

    def __cinit__(self):
        self.name, self.differentiable = "sort", True

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef int axis = (<tuple>c.attributes)[0], size = itemsize(c.x[0].dtype)
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        if c.wanted and c.y[0].dtype >= FLOAT32:
            c.n_out, c.hidden = 2, 1
            c.y[1].layout = lay.incref(c.y[0].layout)
            c.y[1].dtype = place_dtype(c.x[0].layout.shape[axis])
            c.workspace_bytes = kernel.order_room(&c.x[0], axis, False)
        elif c.y[0].layout.size and inner_of(c.y[0].layout, axis) > 1:
            c.workspace_bytes = columns_at_once(c.y[0].layout, axis, size) * c.y[0].layout.shape[axis] * size
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef int axis = (<tuple>c.attributes)[0], size = itemsize(c.y[0].dtype)
        cdef bint descending = (<tuple>c.attributes)[1]
        cdef Py_ssize_t n = c.y[0].layout.shape[axis]
        if c.y[0].layout.size == 0: return 0
        if c.hidden:
            with nogil: kernel.order(&c.x[0], axis, descending, &c.y[0], &c.y[1], False, c.workspace)
            return 0
        with nogil: copy(&c.x[0], &c.y[0])
        if inner_of(c.y[0].layout, axis) > 1: return sort_columns(c, axis, descending)
        lend(&c.y[0], NULL, True).sort(axis)        # in place, without any memory
        if descending:
            with nogil: kernel.reverse(c.y[0].data, size, c.y[0].layout.size // n, n)
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return output_bit(1)

    cdef object formula(self, c, int i, g):
        order = wide_places(<Context>c)
        return c.locally_constant(scatter_add(zero_like(g, c.shape(0)), c.attributes[0], order, g))


@final
cdef class ArgSort(Operator):
    """y = the places of the elements of x in order along an axis        no gradient"""

    def __cinit__(self):
        self.name = "argsort"

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef int axis = (<tuple>c.attributes)[0]
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = INT64
        c.workspace_bytes = kernel.order_room(&c.x[0], axis, c.y[0].layout.strides[axis] == 1)
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef int axis = (<tuple>c.attributes)[0]
        cdef bint descending = (<tuple>c.attributes)[1]
        with nogil:
            kernel.order(&c.x[0], axis, descending, NULL, &c.y[0], c.y[0].layout.strides[axis] == 1, c.workspace)
        return 0


cdef inline bint inline_(const Call* c) noexcept:
    """Whether topk keeps a list of the best; else it puts all in order."""
    return <Py_ssize_t>(<tuple>c.attributes)[1] <= SHORT and c.x[0].dtype >= FLOAT32


@final
cdef class TopK(Operator):
    """i = the places of the k largest (smallest) elements along an axis, in order        no gradient

    The values are gathered from there, and have gather's gradient."""

    def __cinit__(self):
        self.name = "topk"

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int d
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[<int>(<tuple>c.attributes)[0]] = (<tuple>c.attributes)[1]
        c.y[0].layout = lay.dense(l.ndim, shape)
        c.y[0].dtype = INT64
        if not inline_(c): c.workspace_bytes = kernel.order_room(&c.x[0], (<tuple>c.attributes)[0], False)
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef int axis = (<tuple>c.attributes)[0]
        cdef bint largest = (<tuple>c.attributes)[2], short = inline_(c)
        with nogil:
            if short: kernel.topk(&c.x[0], axis, largest, &c.y[0])
            else: kernel.order(&c.x[0], axis, largest, NULL, &c.y[0], False, c.workspace)
        return 0


cdef Operator SORT = Sort(), ARGSORT = ArgSort(), TOPK = TopK()
OPERATORS = {o.name: o for o in (SORT, ARGSORT, TOPK)}


def sort(x, axis=-1, descending=False):
    """The elements of `x` in order along `axis`; nan counts as the largest. What is equal keeps its order."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(SORT, t, (lay.read_axis(axis, t.layout.ndim), bool(descending)))


def argsort(x, axis=-1, descending=False):
    """The places (int64) of the elements of `x` in order along `axis`; nan counts as the largest. What is equal keeps
    its order."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(ARGSORT, t, (lay.read_axis(axis, t.layout.ndim), bool(descending)))


def topk(x, k, axis=-1, largest=True):
    """The `k` largest (or smallest) elements of `x` along `axis`, in order, and their places: a tuple (values,
    indices). Of what is equal the first come first. Raises ValueError if there are not so many."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a = lay.read_axis(axis, t.layout.ndim)
    k = operator.index(k)
    if not 0 <= k <= t.layout.shape[a]:
        raise ValueError(f"topk: k is {k}, but dimension {a} has {t.layout.shape[a]} elements")
    indices = apply1(TOPK, t, (a, k, bool(largest)))
    return gather_ranked(t, a, indices), indices
