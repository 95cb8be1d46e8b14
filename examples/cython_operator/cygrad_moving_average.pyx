# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Moving averages as an operator of cygrad: one that is not elementwise, with an attribute and a fused backward."""

from cython cimport final

from cygrad.core.execute.run cimport apply1
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, input_bit
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.store.layout cimport dense, shape_tuple
from cygrad.kernels.array cimport FLOAT32, MAX_NDIM, Layout, itemsize, real
from cygrad.kernels.driver cimport strip_of

import operator

import cygrad as cg


# ---- the loops: rows one after the other, sums in double -------------------------------------------------------------

cdef void average(Py_ssize_t rows, Py_ssize_t n, Py_ssize_t width, const real* x, real* y) noexcept nogil:
    """y_k = (x_k + ... + x_{k + width - 1}) / width        n elements of x a row"""
    cdef Py_ssize_t m = n - width + 1, r, k, i
    cdef double s
    for r in range(rows):
        for k in range(m):
            s = 0
            for i in range(k, k + width): s += x[r * n + i]
            y[r * m + k] = <real>(s / width)

cdef void average_grad(Py_ssize_t rows, Py_ssize_t n, Py_ssize_t width, const real* g, real* dx) noexcept nogil:
    """dx_i = (g_{i - width + 1} + ... + g_i) / width        where those exist"""
    cdef Py_ssize_t m = n - width + 1, r, k, i
    cdef double s
    for r in range(rows):
        for i in range(n):
            s = 0
            for k in range(max(0, i - width + 1), min(i + 1, m)): s += g[r * m + k]
            dx[r * n + i] = <real>(s / width)


# ---- the operator ----------------------------------------------------------------------------------------------------

cdef class Window(Attributes):
    """The attributes of moving_average: how many elements each average has."""
    cdef readonly Py_ssize_t width

    def __cinit__(self, Py_ssize_t width):
        self.width = width


@final
cdef class MovingAverage(Operator):
    """y_k = (x_k + ... + x_{k + width - 1}) / width        dx_i = (g_{i - width + 1} + ... + g_i) / width"""

    def __cinit__(self):
        self.name = "moving_average"
        self.promotes_to_float = self.differentiable = self.fused = True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t width = (<Window>c.attributes).width
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef int d
        if x.ndim == 0 or x.shape[x.ndim - 1] < width:
            with gil: raise ValueError(f"moving_average: x is {shape_tuple(x)}; wanted a last dimension of at least "
                                       f"{width} elements, the width")
        for d in range(x.ndim): shape[d] = x.shape[d]
        shape[x.ndim - 1] -= width - 1
        c.y[0].dtype, c.y[0].layout = c.x[0].dtype, dense(x.ndim, shape)
        if not x.dense: c.workspace_bytes = x.size * itemsize(c.x[0].dtype)
        return 0

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t n = x.shape[x.ndim - 1], width = (<Window>c.attributes).width
        cdef const char* values = strip_of(&c.x[0], 0, x.size, c.workspace)
        if c.x[0].dtype == FLOAT32: average[float](x.size // n, n, width, <float*>values, <float*>c.y[0].data)
        else:                       average[double](x.size // n, n, width, <double*>values, <double*>c.y[0].data)
        return 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, input_bit(0))
        if not b.g[0].layout.dense: s.workspace_bytes = b.y.size * itemsize(b.dtype)
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const Layout* x = b.x[0]
        cdef Py_ssize_t n = x.shape[x.ndim - 1], width = (<Window>b.attributes).width
        cdef const char* g = strip_of(&b.g[0], 0, b.y.size, b.workspace)
        if b.dtype == FLOAT32: average_grad[float](x.size // n, n, width, <float*>g, <float*>b.dx[0].data)
        else:                  average_grad[double](x.size // n, n, width, <double*>g, <double*>b.dx[0].data)
        return 0

    cdef object formula(self, c, int i, g):
        """The average of g with width - 1 zeros on both sides."""
        cdef Py_ssize_t margin = c.attributes.width - 1
        return apply1(MOVING_AVERAGE, cg.pad(g, [(0, 0)] * (g.ndim - 1) + [(margin, margin)]), c.attributes)


cdef Operator MOVING_AVERAGE = MovingAverage()


def moving_average(x, width):
    """The averages of `width` neighbours along the last axis: x (..., n) gives (..., n - width + 1), of the dtype of x;
    integers are brought to the default dtype first. Raises ValueError if n < width or width < 1."""
    cdef Tensor t = ensure_tensor(x)
    try: size = operator.index(width)
    except TypeError:
        raise TypeError(f"moving_average: width is {width!r}; wanted an integer of at least 1") from None
    if size < 1: raise ValueError(f"moving_average: width is {size}; wanted an integer of at least 1")
    return apply1(MOVING_AVERAGE, t, Window(size))
