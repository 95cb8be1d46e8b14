"""Windows: a part of a dense tensor given by shape, strides and offset, in elements. This is how the graph speaks of
views of a tensor that was written in place (core/graph/views.pyx)."""

from cython cimport final

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Array, Layout, is_real, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.index cimport copy

from cygrad.core.interop.creation import zeros
from cygrad.ops.reduce import sum_to
from cygrad.ops.shape import reshape


cdef Layout* window_layout(tuple window, Py_ssize_t offset) except NULL:
    """The window as a layout, `offset` elements further on."""
    cdef tuple shape = window[0], strides = window[1]
    cdef Layout* l = lay.blank(len(shape))
    cdef int d
    for d in range(l.ndim): l.shape[d], l.strides[d] = shape[d], strides[d]
    l.offset = <Py_ssize_t>window[2] + offset
    return lay.finish(l)


cdef bint covers_all(tuple window, tuple shape) except -1:
    """Whether a window has all elements of a dense tensor of that shape, in row-major order."""
    cdef Py_ssize_t size = 1, whole = 1
    if window[2] != 0: return False
    for n, step in zip(reversed(window[0]), reversed(window[1])):
        if n != 1 and step != size: return False
        size *= n
    for n in shape: whole *= n
    return size == whole


@final
cdef class AsView(Operator):
    """y = x[window], a view        dx = 0, with dx[window] = g (summed over what the window repeats)"""

    def __cinit__(self):
        self.name, self.differentiable, self.views = "as_view", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        cdef const Layout* x = c.x[0].layout
        c.y[0].dtype = c.x[0].dtype
        if x.dense:
            c.y[0].layout = window_layout(<tuple>c.attributes, x.offset)
            c.view = 0
        else:                                       # it lies in steps itself: by way of a dense copy
            c.y[0].layout = lay.from_shape((<tuple>c.attributes)[0])
            c.workspace_bytes = x.size * itemsize(c.x[0].dtype)
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Layout* l = window_layout(<tuple>c.attributes, 0)
        cdef Array a
        gather(c.workspace, &c.x[0], 0, c.x[0].layout.size)
        a.data, a.layout, a.dtype = c.workspace + l.offset * itemsize(c.x[0].dtype), l, c.x[0].dtype
        gather(c.y[0].data, &a, 0, l.size)
        lay.decref(l)
        return 0

    cdef object formula(self, c, int i, g):
        shape, strides, offset = c.attributes
        if covers_all(c.attributes, c.shape(0)): return reshape(g, c.shape(0))
        seen = tuple([1 if step == 0 else n for n, step in zip(shape, strides)])
        return put_view(zeros(c.shape(0), g.dtype), sum_to(g, seen), strides, offset)


@final
cdef class PutView(Operator):
    """y = x, with y[window] = v        dx = g, with dx[window] = 0        dv = g[window]"""

    def __cinit__(self):
        self.name, self.differentiable, self.promotes = "put_view", True, True

    cdef int infer_with_gil(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        return 0

    cdef int forward_with_gil(self, Call* c) except -1:
        cdef Layout* l = window_layout(<tuple>c.attributes, 0)
        cdef Array a[2]
        gather(c.y[0].data, &c.x[0], 0, c.x[0].layout.size)
        a[0], a[1] = c.x[1], c.y[0]
        a[1].layout = l
        a[1].data += l.offset * itemsize(a[1].dtype)
        try:
            if is_real(a[1].dtype): driver.each(COPY_LOOP, a)
            else: copy(&a[0], &a[1])
        finally:
            lay.decref(l)
        return 0

    cdef object formula(self, c, int i, g):
        shape, strides, offset = c.attributes
        return as_view(g, shape, strides, offset) if i == 1 else put_view(g, zeros(shape, g.dtype), strides, offset)


cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef Operator AS_VIEW = AsView(), PUT_VIEW = PutView()
OPERATORS = {o.name: o for o in (AS_VIEW, PUT_VIEW)}


def as_view(x, shape, strides, offset=0):
    """The window of `shape` and `strides` (tuples, in elements of `x` in row-major order) that begins at element
    `offset`; nothing checks that it lies inside. A view if `x` is dense."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(AS_VIEW, t, (tuple(shape), tuple(strides), offset))


def put_view(x, v, strides, offset=0):
    """A copy of `x` with `v` at the window of the shape of `v`, and of `strides` and `offset` as in as_view, which must
    not see an element twice."""
    cdef Tensor t = ensure_tensor(v)
    return apply2(PUT_VIEW, x, t, (t.shape, tuple(strides), offset))
