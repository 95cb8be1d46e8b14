"""Cumulative sums along an axis."""

import numpy as np

from cython cimport final

from cygrad.core.store cimport layout as lay
from cygrad.core.interop.numpy cimport lend
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, add_stage
from cygrad.core.graph.tensor cimport Tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport scan as kernels
from cygrad.kernels.array cimport Array, Layout, is_real
from cygrad.kernels.driver cimport gather
from cygrad.ops.reduce cimport widened

from cygrad.ops.shape import reshape


cdef class Scan(Attributes):
    """The attributes of cumsum: the axis, and whether the sums run from the last element to the first."""
    cdef readonly int axis
    cdef readonly bint reverse

    def __cinit__(self, int axis=0, bint reverse=False):
        self.axis, self.reverse = axis, reverse


@final
cdef class Cumsum(Operator):
    """y_k = sum of x_i, i up to k        dx_k = sum of g_i, i from k on"""

    def __cinit__(self):
        self.name, self.numpy = "cumsum", np.cumsum
        self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward(self, Call* c) except -1 nogil:
        if not is_real(c.y[0].dtype):
            with gil: return self.forward_with_gil(c)
        return run_sums(&c.x[0], &c.y[0], (<Scan>c.attributes).axis, (<Scan>c.attributes).reverse)

    cdef int forward_with_gil(self, Call* c) except -1:
        """Sum integers with NumPy. They have no gradients, so `reverse` is never set."""
        np.cumsum(lend(&c.x[0], NULL, False), (<Scan>c.attributes).axis, out=lend(&c.y[0], NULL, True))
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        add_stage(b, 1).donated_gradients = 1
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return run_sums(&b.g[0], &b.dx[0], (<Scan>b.attributes).axis, not (<Scan>b.attributes).reverse)

    cdef object formula(self, c, int i, g):
        return apply1(CUMSUM, g, scan_along(c.attributes.axis, not c.attributes.reverse))


cdef Scan scan_along(int axis, bint reverse):
    cdef Scan scan = Scan.__new__(Scan)
    scan.axis, scan.reverse = axis, reverse
    return scan


cdef int run_sums(const Array* x, const Array* y, int axis, bint reverse) except -1 nogil:
    """y = the cumulative sums of x; x may be y."""
    cdef const Layout* l = y.layout
    cdef Py_ssize_t inner = 1
    cdef const char* given = x.data
    cdef int d
    if l.size == 0: return 0
    for d in range(axis + 1, l.ndim): inner *= l.shape[d]
    if not x.layout.dense:
        gather(y.data, x, 0, l.size)
        given = y.data
    kernels.cumsum(y.dtype, l.size // (l.shape[axis] * inner), l.shape[axis], inner, given, y.data, reverse)
    return 0


cdef Operator CUMSUM = Cumsum()
OPERATORS = {o.name: o for o in (CUMSUM,)}


def cumsum(x: Data, axis: int | None = None) -> Tensor:
    """The cumulative sums along `axis`, or with None of all elements in row-major order, as one dimension. Bools and
    small integers are summed as int64 (uint64)."""
    cdef Tensor t = widened(x)
    if axis is None:
        if t.layout.ndim != 1: t = reshape(t, (t.layout.size,))
        axis = 0
    return apply1(CUMSUM, t, scan_along(lay.read_axis(axis, t.layout.ndim), False))
