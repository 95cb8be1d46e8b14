"""sort, argsort, topk and searchsorted. NumPy sorts values in place; kernels compute indices. The order is stable, and
nan counts as the largest value."""

from libc.stdint cimport int64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.interop.numpy cimport lend
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport Call, Operator, hide
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels.shapes cimport search as searching
from cygrad.kernels.shapes cimport sort as kernel
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, UINT8, Array, Layout, has_gradients, is_real, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.shapes.index cimport copy
from cygrad.kernels.shapes.sort cimport SHORT
from cygrad.ops.shapes.index cimport place_dtype, wide_places, zero_like

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.ops.shapes.index import gather_ranked, scatter_add, take


cdef enum:
    COLUMNS = 1 << 18       # bytes: columns are sorted in groups of at most this size, or one at a time


cdef class Order(Attributes):
    """The attributes of sort and argsort: the axis, which is not negative, and whether the largest come first."""
    cdef readonly int axis
    cdef readonly bint descending

    def __cinit__(self, int axis=0, bint descending=False):
        self.axis, self.descending = axis, descending


cdef Order order_along(Tensor x, axis, descending):
    cdef Order o = Order.__new__(Order)
    o.axis, o.descending = lay.read_axis(axis, x.layout.ndim), bool(descending)
    return o


cdef class Best(Attributes):
    """The attributes of topk: the axis, which is not negative, the number of elements, and whether the largest are
    wanted."""
    cdef readonly int axis
    cdef readonly Py_ssize_t k
    cdef readonly bint largest

    def __cinit__(self, int axis=0, Py_ssize_t k=0, bint largest=True):
        self.axis, self.k, self.largest = axis, k, largest


cdef Py_ssize_t inner_of(const Layout* l, int axis) noexcept nogil:
    """The number of elements of the dimensions after `axis`."""
    cdef Py_ssize_t inner = 1
    for d in range(axis + 1, l.ndim): inner *= l.shape[d]
    return inner


cdef Py_ssize_t columns_at_once(const Layout* l, int axis, int size) noexcept nogil:
    """The number of columns of a dense array that are sorted at a time."""
    cdef Py_ssize_t n = l.shape[axis] * size
    return max(1, min(inner_of(l, axis), COLUMNS // n if n else 1))


cdef int sort_columns(Call* c, int axis, bint descending) except -1:
    """Sort y along an axis that is not the last. Groups of columns are transposed to rows of the workspace, sorted
    there and transposed back."""
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


cdef class Sort(Operator):
    """y = x sorted along an axis        dx = g, put back in the order of x

    Backward keeps the sorted indices, in the smallest dtype that fits. They are a hidden output, computed only if a
    gradient is wanted: NumPy sorts values alone much faster."""
    lanes = "shifting"
    traits = "differentiable"
    hidden = reads = "places"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int axis = (<Order>c.attributes).axis, size = itemsize(c.x[0].dtype)
        Operator.infer(self, c)
        if c.wanted and has_gradients(c.y[0].dtype):
            hide(c, lay.incref(c.y[0].layout), place_dtype(c.x[0].layout.shape[axis]))
            c.workspace_bytes = kernel.order_room(&c.x[0], axis, False)
        elif c.y[0].layout.size and inner_of(c.y[0].layout, axis) > 1:
            c.workspace_bytes = columns_at_once(c.y[0].layout, axis, size) * c.y[0].layout.shape[axis] * size

    cdef int forward(self, Call* c) except -1 nogil:
        if c.y[0].layout.size == 0: return 0
        if not c.hidden:
            with gil: return self.forward_with_gil(c)
        kernel.order(&c.x[0], (<Order>c.attributes).axis, (<Order>c.attributes).descending, &c.y[0], &c.y[1], False,
                     c.workspace)

    cdef int forward_with_gil(self, Call* c) except -1:
        """Sort values alone, with NumPy."""
        cdef int axis = (<Order>c.attributes).axis
        cdef bint descending = (<Order>c.attributes).descending
        cdef Py_ssize_t n = c.y[0].layout.shape[axis]
        copy(&c.x[0], &c.y[0])
        if inner_of(c.y[0].layout, axis) > 1: return sort_columns(c, axis, descending)
        lend(&c.y[0], NULL, True).sort(axis)        # in place, without a temporary array
        if descending: kernel.reverse(c.y[0].data, itemsize(c.y[0].dtype), c.y[0].layout.size // n, n)

    cdef object formula(self, c, int i, g):
        order = wide_places(<Context>c)
        return c.locally_constant(scatter_add(zero_like(g, c.shape(0)), c.attributes.axis, order, g))


cdef class ArgSort(Operator):
    """y = the indices that sort x along an axis        no gradient"""
    lanes = "shifting"
    called = "argsort"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef int axis = (<Order>c.attributes).axis
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = INT64
        c.workspace_bytes = kernel.order_room(&c.x[0], axis, c.y[0].layout.strides[axis] == 1)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef int axis = (<Order>c.attributes).axis
        kernel.order(&c.x[0], axis, (<Order>c.attributes).descending, NULL, &c.y[0],
                     c.y[0].layout.strides[axis] == 1, c.workspace)


cdef inline bint is_short(const Call* c) noexcept nogil:
    """Whether topk maintains a short sorted list; otherwise it sorts all elements."""
    return (<Best>c.attributes).k <= SHORT and is_real(c.x[0].dtype)


cdef class TopK(Operator):
    """i = the indices of the k largest (smallest) elements along an axis, in order        no gradient

    topk() gathers the values with these indices; their gradient is that of gather."""
    lanes = "shifting"
    called = "topk"
    row, functions, selects = "topk_places", {"topk": "x"}, True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[(<Best>c.attributes).axis] = (<Best>c.attributes).k
        c.y[0].layout = lay.dense(l.ndim, shape)
        c.y[0].dtype = INT64
        if not is_short(c): c.workspace_bytes = kernel.order_room(&c.x[0], (<Best>c.attributes).axis, False)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef int axis = (<Best>c.attributes).axis
        cdef bint largest = (<Best>c.attributes).largest
        if is_short(c): kernel.topk(&c.x[0], axis, largest, &c.y[0])
        else: kernel.order(&c.x[0], axis, largest, NULL, &c.y[0], False, c.workspace)


cdef class SearchSorted(Operator):
    """y = the number of elements of a that are less than v (right: not larger than v)        no gradient"""
    operands = "x v sorter?"
    cdef bint right

    def __cinit__(self, bint right):
        self.name, self.right, self.promotes = "searchsorted", right, True

    cdef tuple row_of(self, attributes):
        return self.row, {"side": "right" if self.right else "left"}

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.dense_like(c.x[1].layout)
        c.y[0].dtype = INT64
        if not c.x[0].layout.dense: c.workspace_bytes = c.x[0].layout.size * itemsize(c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const char* a = c.x[0].data
        if not c.x[0].layout.dense:
            gather(c.workspace, &c.x[0], 0, c.x[0].layout.size)
            a = c.workspace
        searching.search(c.x[0].dtype, a, c.x[0].layout.size, &c.x[1], self.right, <int64_t*>c.y[0].data)


cdef Operator SORT = Sort(), ARGSORT = ArgSort(), TOPK = TopK()
cdef Operator SEARCH_LEFT = SearchSorted(False), SEARCH_RIGHT = SearchSorted(True)
OPERATORS = {o.name: o for o in (SORT, ARGSORT, TOPK, SEARCH_LEFT)}
OPERATORS["searchsorted_right"] = SEARCH_RIGHT      # (its name is that of the other side)


def sort(x: Data, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements of `x`, sorted along `axis`; nan counts as the largest. Equal elements keep their order."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(SORT, t, order_along(t, axis, descending))


def argsort(x: Data, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices (int64) that sort `x` along `axis`; nan counts as the largest. Equal elements keep their order."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(ARGSORT, t, order_along(t, axis, descending))


def topk(x: Data, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) elements of `x` along `axis`, in order, and their indices: a tuple (values,
    indices). Equal elements keep their order. Raises ValueError if the axis has fewer than k elements."""
    cdef Tensor t = ensure_tensor(x)
    cdef Best best = best_along(t, k, axis, largest)
    indices = apply1(TOPK, t, best)
    return gather_ranked(t, best.axis, indices), indices


cdef Best best_along(Tensor t, k, axis, largest):
    cdef Best best = Best.__new__(Best)
    best.axis = lay.read_axis(axis, t.layout.ndim)
    k = lay.read_integer("topk", "k", k)
    if not 0 <= k <= t.layout.shape[best.axis]:
        raise ValueError(f"topk: k is {described(k)}, but dimension {best.axis} has {t.layout.shape[best.axis]} "
                         f"elements")
    best.k, best.largest = k, bool(largest)
    return best


def topk_places(x: Data, k: int, axis: int = -1, largest: bool = True) -> Tensor:
    """The indices of topk()."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(TOPK, t, best_along(t, k, axis, largest))


def searchsorted(x: Data, v: Data, side: Literal["left", "right"] = "left", sorter: Data | None = None) -> Tensor:
    """Where each element of `v` would be inserted into the sorted vector `x` to keep its order, as in
    numpy.searchsorted: an int64 tensor of the shape of v. Before equal elements, or after them with side="right". nan
    counts as the largest. `sorter` are the indices that sort x, if it is not sorted. Raises ValueError if x does not
    have one dimension, or for another side."""
    cdef Tensor t = numbers(x), wanted = numbers(v)
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {described(side)}")
    if t.layout.ndim != 1: raise ValueError(f"searchsorted: x has shape {t.shape}; it must have one dimension")
    if sorter is not None:
        s = ensure_tensor(sorter)
        if s.shape != t.shape:
            raise ValueError(f"searchsorted: sorter has shape {s.shape} and x has {t.shape}; they must be equal")
        t = take(t, s, 0)
    return apply2(SEARCH_RIGHT if side == "right" else SEARCH_LEFT, t, wanted, None)


cdef Tensor numbers(x):
    """A tensor without a gradient; bools as uint8."""
    cdef Tensor t = ensure_tensor(x)
    return (t.astype(DTYPES[UINT8]) if t.dtype == BOOL else t).detach()
