"""The maximum and minimum over any axes, and their indices."""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint8_t

from cygrad.core.store cimport layout as lay
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, hide, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.reductions cimport folds
from cygrad.kernels.array cimport INT64, UINT8, Array, Layout, has_gradients, itemsize
from cygrad.kernels.bits cimport pack_equal, unpack_bits
from cygrad.kernels.driver cimport Loop, gather
from cygrad.kernels.reductions.folds cimport Fold
from cygrad.kernels.reductions.reduce cimport sum_into
from cygrad.kernels.reductions.scan cimport arg
from cygrad.ops.elementwise.base cimport has_code
from cygrad.ops.reductions.reduce cimport Axes, Reduction, Spread, check_any_elements, over, read_axes

from cygrad.ops.reductions.reduce import reduced, spread
from cygrad.ops.reductions.reduce import sum as sum_of
from cygrad.ops.shapes.shape import astype


cdef Loop* MUL_LOOP = driver.find("mul")
cdef Loop* DIV_LOOP = driver.find("div")


# ---- max and min -----------------------------------------------------------------------------------------------------

cdef class Extreme(Reduction):
    """The base of max and min. Saves a bit for each element, whether it equals y (a hidden output). These elements
    share the gradient equally. A NaN equals a NaN."""
    hidden = reads = "equal"
    cdef Fold* kind

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t nbytes = (c.x[0].layout.size + 7) // 8
        check_any_elements(self.name, c.x[0].layout, c.attributes)
        Reduction.infer(self, c)
        if c.wanted and has_gradients(c.y[0].dtype):
            hide(c, lay.dense(1, &nbytes), UINT8)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Spread y
        self.fold(c, self.kind, NULL, &c.y[0])
        if not c.hidden: return 0
        over(&y, &c.y[0], c.x[0].layout, c.attributes)
        pack_equal(&c.x[0], &y.array, <uint8_t*>c.y[1].data)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.workspace_bytes = b.y.size * itemsize(b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array dx = b.dx[0], share = b.g[0]
        cdef Array a[3]
        cdef Spread wide
        cdef Layout dense = b.y[0]                  # the layout of `share`
        unpack_bits(<const uint8_t*>saved(b, OWN | 1).data, dx.dtype, dx.layout.size, dx.data)
        share.data, share.layout = b.workspace, &dense
        over(&wide, &share, dx.layout, b.attributes)
        sum_into(&dx, &wide.array)                  # the number of elements equal to y
        a[0], a[1], a[2] = b.g[0], share, share
        driver.each(DIV_LOOP, a)
        a[0], a[1], a[2] = wide.array, dx, dx
        return driver.each(MUL_LOOP, a)

    cdef object formula(self, c, int i, g):
        chosen = astype(has_code(c, (<Context>c).b.input_layout(0), 1, 1), g.dtype)
        return c.locally_constant(spread(c, g) * (chosen / sum_of(chosen, reduced(c), True)))


cdef class Max(Extreme):
    """y = largest x over axes        dx = g / (number of x equal to y) where x is y, else 0"""
    integers = np.max

    def __cinit__(self):
        self.kind = &folds.MAX


cdef class Min(Extreme):
    """y = smallest x over axes        dx = g / (number of x equal to y) where x is y, else 0"""
    integers = np.min

    def __cinit__(self):
        self.kind = &folds.MIN


# ---- argmax and argmin -----------------------------------------------------------------------------------------------

cdef class ArgExtreme(Reduction):
    """y = first index of the largest (smallest) x along an axis; no gradient"""
    lanes = "places"
    traits = ""
    cdef bint least

    def __cinit__(self, str name, bint least):
        self.name, self.least = name, least

    cdef tuple row_of(self, attributes):
        """The function takes one axis, or None for all."""
        arguments = attributes.arguments()
        return self.row, arguments | {"axis": arguments["axis"] if isinstance(arguments["axis"], int) else None}

    cdef int infer(self, Call* c) except -1 nogil:
        check_any_elements(self.name, c.x[0].layout, c.attributes)
        Reduction.infer(self, c)
        c.y[0].dtype = INT64
        if not c.x[0].layout.dense:
            c.workspace_bytes = c.x[0].layout.size * itemsize(c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* l = c.x[0].layout
        cdef const char* x = c.x[0].data
        cdef uint32_t mask = (<Axes>c.attributes).mask
        cdef Py_ssize_t n = l.size, inner = 1
        cdef int d = l.ndim - 1
        if l.size == 0: return 0
        if mask != (<uint32_t>1 << l.ndim) - 1:     # one axis
            while not mask >> d & 1:
                inner *= l.shape[d]
                d -= 1
            n = l.shape[d]
        if not l.dense:
            gather(c.workspace, &c.x[0], 0, l.size)
            x = c.workspace
        arg(c.x[0].dtype, l.size // (n * inner), n, inner, x, <int64_t*>c.y[0].data, self.least)


cdef Operator MAX = Max(), MIN = Min()
cdef Operator ARGMAX = ArgExtreme("argmax", False), ARGMIN = ArgExtreme("argmin", True)
OPERATORS = {o.name: o for o in (MAX, MIN, ARGMAX, ARGMIN)}


def max(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis` (an int, a tuple, or None for all), or NaN if there is one. Equal maxima share
    the gradient. Raises ValueError for an axis of size 0."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(MAX, t, read_axes(t, axis, keepdims))


def min(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis` (an int, a tuple, or None for all), or NaN if there is one. Equal minima share
    the gradient. Raises ValueError for an axis of size 0."""
    cdef Tensor t = ensure_tensor(x)
    return apply1(MIN, t, read_axes(t, axis, keepdims))


def argmax(x: Data, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first NaN or, if there is none, of the first largest element along `axis` (None: in the
    flattened tensor): an int64 tensor. Raises ValueError for an axis of size 0."""
    return place(ARGMAX, x, axis, keepdims)


def argmin(x: Data, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first NaN or, if there is none, of the first smallest element along `axis` (None: in the
    flattened tensor): an int64 tensor. Raises ValueError for an axis of size 0."""
    return place(ARGMIN, x, axis, keepdims)


cdef object place(Operator op, x, axis, keepdims):
    cdef Tensor t = ensure_tensor(x)
    if axis is not None: axis = lay.read_axis(axis, t.layout.ndim)
    return apply1(op, t, read_axes(t, axis, keepdims))
