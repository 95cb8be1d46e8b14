"""Diagonals: diagonal, diag and trace. diagonal and diag are operators, each the other's gradient."""

cimport cython

import math

from libc.string cimport memset

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.shapes.index cimport copy

from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.core.store.layout import check_size
from cygrad.ops.reductions.reduce import sum


@cython.no_gc
cdef class Line(Attributes):
    """The attributes of diagonal and diag: the axes of the rows and of the columns, how far right of the main diagonal
    it is, and the shape of the tensor that has the diagonal."""
    cdef readonly int axis1
    cdef readonly int axis2
    cdef readonly Py_ssize_t offset
    cdef readonly tuple shape
    cdef int ndim
    cdef Py_ssize_t sizes[MAX_NDIM]

    def __cinit__(self, int axis1, int axis2, Py_ssize_t offset, tuple shape):
        self.axis1, self.axis2, self.offset, self.shape, self.ndim = axis1, axis2, offset, shape, <int>len(shape)
        for d in range(self.ndim): self.sizes[d] = shape[d]


cdef Layout* along(const Layout* x, const void* line, LocalLayout* l) noexcept nogil:
    """The layout of the diagonal of `x`: the other dimensions, then that of the diagonal."""
    cdef Layout* y = lay.local(l)
    cdef int a = (<Line>line).axis1, b = (<Line>line).axis2, d
    cdef Py_ssize_t k = (<Line>line).offset
    y.ndim, y.offset = 0, x.offset
    for d in range(x.ndim):
        if d == a or d == b: continue
        y.shape[y.ndim], y.strides[y.ndim] = x.shape[d], x.strides[d]
        y.ndim += 1
    y.shape[y.ndim] = max(0, min(x.shape[a] + min(k, 0), x.shape[b] - max(k, 0)))
    y.strides[y.ndim] = x.strides[a] + x.strides[b]
    if y.shape[y.ndim]: y.offset += k * x.strides[b] if k > 0 else -k * x.strides[a]
    y.ndim += 1
    return lay.finish(y)


cdef class TakeDiagonal(Operator):
    """y = the diagonal of x, a view        dx = diag(g)"""
    lanes, tangent = "shifting", "linear"
    called, traits = "diagonal", "differentiable views"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = lay.counted(along(c.x[0].layout, c.attributes, &l))
        c.view = 0

    cdef object formula(self, c, int i, g):
        return apply1(DIAG, g, c.attributes)


cdef class Diag(Operator):
    """y = 0, with x on its diagonal        dx = diagonal(g)"""
    tangent = "linear"
    traits = "differentiable"
    functions = {"put_diagonal": "x"}

    cdef tuple row_of(self, attributes):
        shape, k = attributes.shape, attributes.offset
        if (attributes.axis1, attributes.axis2, len(shape)) == (0, 1, 2) and shape[0] == shape[1] >= abs(k):
            return "diag", {"k": k}
        return "put_diagonal", attributes.arguments()

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = lay.dense((<Line>c.attributes).ndim, (<Line>c.attributes).sizes)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        cdef Array y = c.y[0]
        memset(y.data, 0, y.layout.size * itemsize(y.dtype))
        y.layout = along(y.layout, c.attributes, &l)
        y.data += y.layout.offset * itemsize(y.dtype)
        if y.layout.size: copy(&c.x[0], &y)

    cdef object formula(self, c, int i, g):
        return apply1(DIAGONAL, g, c.attributes)


cdef Operator DIAGONAL = TakeDiagonal(), DIAG = Diag()
OPERATORS = {o.name: o for o in (DIAGONAL, DIAG)}


def diagonal(x: Data, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of `x` over two axes, by default the first ones, as in NumPy: a view, with the diagonal as its last
    dimension. It starts `offset` columns to the right of the main one. Raises ValueError for fewer than two dimensions
    or equal axes."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a, b
    if t.layout.ndim < 2:
        raise ValueError(f"diagonal: x is {t.shape}; wanted at least 2 dimensions; diag(x) makes a matrix of a vector")
    a, b = lay.read_axis(axis1, t.layout.ndim), lay.read_axis(axis2, t.layout.ndim)
    if a == b: raise ValueError(f"diagonal: axis1 and axis2 are both {a}; wanted two different axes")
    return apply1(DIAGONAL, t, Line(a, b, lay.read_diagonal("diagonal", "offset", offset), t.shape))


def diag(x: Data, k: int = 0) -> Tensor:
    """Of a vector (n,), the matrix with it on the diagonal that starts `k` columns to the right of the main one, and
    zeros elsewhere. Of a matrix, that diagonal: a view. Raises ValueError for other numbers of dimensions."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim == 2: return diagonal(t, lay.read_integer("diag", "k", k))
    if t.layout.ndim != 1: raise ValueError(f"diag: x is {t.shape}; wanted a vector or a matrix; see diagonal(x, k)")
    k = lay.read_integer("diag", "k", k)
    n = t.shape[0] + abs(k)
    check_size(n * n, f"diag: the matrix would have {described(n)} rows and columns")
    return apply1(DIAG, t, Line(0, 1, k, (n, n)))


def put_diagonal(x: Data, shape: int | Sequence[int], offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Zeros of `shape` with `x` on the diagonal that diagonal() would return: the gradient of diagonal()."""
    cdef Tensor t = ensure_tensor(x)
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef int n = lay.read_shape(shape, sizes), d
    cdef Py_ssize_t k = lay.read_diagonal("put_diagonal", "offset", offset)
    whole = tuple([sizes[d] for d in range(n)])
    a, b = lay.read_axis(axis1, n), lay.read_axis(axis2, n)
    if a == b: raise ValueError(f"put_diagonal: axis1 and axis2 are both {a}; wanted two different axes")
    check_size(math.prod(whole), f"put_diagonal: the shape is {whole}")
    wanted = (*[whole[d] for d in range(n) if d not in (a, b)], max(0, min(whole[a] + min(k, 0), whole[b] - max(k, 0))))
    if t.shape != wanted:
        raise ValueError(f"put_diagonal: x is {t.shape}, but diagonal {offset} of shape {whole} is {wanted}")
    return apply1(DIAG, t, Line(a, b, k, whole))


@composed
def trace(x: Data, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the diagonal of `x` over two axes, by default the first ones; see diagonal(). Backward saves
    nothing."""
    return sum(diagonal(x, offset, axis1, axis2), -1)
