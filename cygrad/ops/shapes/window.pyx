"""Windows: strided views of a dense tensor, given by shape, strides and offset in elements. In the graph they represent
views of a tensor that was written in place (core/graph/views.pyx)."""

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.late_bound cimport late_bound
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.graph.views cimport Window
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Array, Layout, is_real, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.shapes.index cimport copy

from cygrad.core.errors import described
from cygrad.core.interop.creation import zeros
from cygrad.ops.shapes.shape import reshape


cdef Layout* window_layout(const void* window, Py_ssize_t offset, LocalLayout* l) noexcept nogil:
    """The layout of a Window, shifted by `offset` elements."""
    cdef Layout* y = lay.local(l)
    y.ndim, y.offset = (<Window>window).ndim, (<Window>window).offset + offset
    for d in range(y.ndim): y.shape[d], y.strides[d] = (<Window>window).sizes[d], (<Window>window).steps[d]
    return lay.finish(y)


cdef bint covers_all(Window window, tuple shape) except -1:
    """Whether a window contains all elements of a dense tensor of that shape, in row-major order."""
    cdef Py_ssize_t size = 1, n_elements = 1
    if window.offset != 0: return False
    for n, step in zip(reversed(window.shape), reversed(window.strides)):
        if n != 1 and step != size: return False
        size *= n
    for n in shape: n_elements *= n
    return size == n_elements


cdef class AsView(Operator):
    """y = x[window], a view        dx = 0, with dx[window] = g (summed over repeated elements)"""
    traits = "differentiable views"
    may_copy = True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef LocalLayout l
        c.y[0].dtype = c.x[0].dtype
        if x.dense:
            c.y[0].layout = lay.counted(window_layout(c.attributes, x.offset, &l))
            c.view = 0
        else:                                       # x is not dense: forward() copies it to the workspace
            c.y[0].layout = lay.dense((<Window>c.attributes).ndim, (<Window>c.attributes).sizes)
            c.workspace_bytes = x.size * itemsize(c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        cdef Array a
        gather(c.workspace, &c.x[0], 0, c.x[0].layout.size)
        a.layout, a.dtype = window_layout(c.attributes, 0, &l), c.x[0].dtype
        a.data = c.workspace + l.layout.offset * itemsize(a.dtype)
        gather(c.y[0].data, &a, 0, l.layout.size)

    cdef object formula(self, c, int i, g):
        cdef Window w = c.attributes
        if covers_all(w, c.shape(0)): return reshape(g, c.shape(0))
        once = tuple([1 if step == 0 else n for n, step in zip(w.shape, w.strides)])
        return put_view(zeros(c.shape(0), g.dtype), late_bound.sum_to(g, once), w.strides, w.offset)


cdef class PutView(Operator):
    """y = x, with y[window] = v        dx = g, with dx[window] = 0        dv = g[window]"""
    traits = "promotes differentiable"
    operands = "x v"

    cdef int forward(self, Call* c) except -1 nogil:
        cdef LocalLayout l
        cdef Array a[2]
        gather(c.y[0].data, &c.x[0], 0, c.x[0].layout.size)
        a[0], a[1] = c.x[1], c.y[0]
        a[1].layout = window_layout(c.attributes, 0, &l)
        a[1].data += l.layout.offset * itemsize(a[1].dtype)
        if is_real(a[1].dtype): return driver.each(COPY_LOOP, a)
        copy(&a[0], &a[1])

    cdef object formula(self, c, int i, g):
        cdef Window w = c.attributes
        if i == 1: return as_view(g, w.shape, w.strides, w.offset)
        return put_view(g, zeros(w.shape, g.dtype), w.strides, w.offset)


cdef driver.Loop* COPY_LOOP = driver.find("copy")
cdef Operator AS_VIEW = AsView(), PUT_VIEW = PutView()
OPERATORS = {o.name: o for o in (AS_VIEW, PUT_VIEW)}


def as_view(x: Data, shape: int | Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """The window of `shape` and `strides` (tuples, in elements of `x` in row-major order) that begins at element
    `offset`. A view if `x` is dense. Raises IndexError if the window is not inside x."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(AS_VIEW, t, read_window("as_view", t, tuple(lay.whole_sizes(shape)), strides, offset))


def put_view(x: Data, v: Data, strides: Sequence[int], offset: int = 0) -> Tensor:
    """A copy of `x` with `v` at the window of the shape of `v` and of `strides` and `offset` (see as_view). The window
    must not contain an element twice."""
    cdef Tensor t = ensure_tensor(v)
    x = ensure_tensor(x)
    return apply2(PUT_VIEW, x, t, read_window("put_view", x, t.shape, strides, offset))


cdef Window read_window(str name, Tensor x, tuple shape, strides, offset):
    """A window of x. Raises IndexError if a part of it is outside."""
    cdef Window window = Window(shape, tuple(lay.whole_sizes(strides)), lay.read_integer(name, "offset", offset))
    first = last = window.offset
    for n, step in zip(shape, window.strides):
        if n < 0: raise ValueError(f"{name}: the shape {described(shape)} has a negative size")
        if step < 0: first += step * (n - 1)
        else: last += step * (n - 1)
    if 0 in shape: first = last = window.offset
    if not 0 <= first <= last < x.layout.size + (0 in shape):
        raise IndexError(f"{name}: a window of shape {described(shape)}, strides {described(window.strides)} and "
                         f"offset {offset} is not inside x of shape {x.shape}")
    return window
