"""Elements where a mask is true: x[mask], and x[mask] = v.

Forward saves a copy of the mask, so that a later write to it changes no gradient. The copy is a bit for each element or
the indices of the true elements, whichever is smaller.

A mask is read several times: to count, to move elements, to save it. Another thread may write it meanwhile, for example
through NumPy. A kernel moves no more elements than were counted, and an operator raises an error if it found another
number."""

cimport cython

import math

from libc.stdint cimport uint8_t

from cygrad.core.store cimport layout as lay
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, hide, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.trace cimport has_values, refuse_trace
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2, apply_list
from cygrad.kernels.shapes cimport index as kernel
from cygrad.kernels.array cimport BOOL, INT64, MAX_NDIM, UINT16, UINT32, UINT8, Array, Layout, has_gradients, itemsize
from cygrad.kernels.bits cimport mask_from, pack_mask, places_of, where_code_is
from cygrad.ops.elementwise.base cimport hide_bytes
from cygrad.ops.shapes.index cimport check_dtype, check_values, clear, copy_input, place_dtype, zero_like
from cygrad.ops.shapes.shape cimport Shape

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import InplaceError
from cygrad.ops.elementwise.compare import where
from cygrad.ops.shapes.shape import reshape


cdef Layout* selected(str name, const Array* x, const Array* mask, Py_ssize_t chosen=-1) except NULL:
    """The dense layout of x[mask], with a row for each of `chosen` true elements, which are counted if it is -1."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int m = mask.layout.ndim, d
    cdef bint fits = 0 < m <= x.layout.ndim and mask.dtype == BOOL
    for d in range(m):
        if fits and mask.layout.shape[d] != x.layout.shape[d]: fits = False
    if not fits:
        raise IndexError(f"{name}: x is {lay.shape_tuple(x.layout)} and the mask is {lay.shape_tuple(mask.layout)}, "
                         f"{DTYPES[mask.dtype]}; the mask must be bool and have the shape of x, or of its first "
                         f"dimensions")
    if chosen < 0:
        with nogil: chosen = kernel.count_true(mask)
    shape[0] = chosen
    for d in range(m, x.layout.ndim): shape[d - m + 1] = x.layout.shape[d]
    return lay.dense(x.layout.ndim - m + 1, shape)


cdef int check_count(str name, const Array* mask, Py_ssize_t wanted) except -1 nogil:
    """Raise InplaceError unless a mask has as many true elements as before."""
    cdef Py_ssize_t found = kernel.count_true(mask)
    if found != wanted:
        with gil:
            raise InplaceError(f"{name}: the mask had {wanted} true elements at first and has {found} now; it was "
                               f"modified since; pass a copy()")


# ---- saved masks -----------------------------------------------------------------------------------------------------

cdef int plan_mask(Call* c, const Array* mask, Py_ssize_t chosen) except -1:
    """Plan the hidden output for a mask with `chosen` true elements: bits in UINT8, or indices in a larger dtype."""
    cdef Py_ssize_t nbytes = (mask.layout.size + 7) // 8
    cdef int dtype = max(place_dtype(mask.layout.size), <int>UINT16)
    if not c.wanted or not has_gradients(c.y[0].dtype): return 0
    if chosen * itemsize(dtype) >= nbytes: return hide_bytes(c, nbytes)
    hide(c, lay.dense(1, &chosen), dtype)


cdef bint keep_mask(Call* c, const Array* mask, Py_ssize_t chosen) noexcept nogil:
    """Save a copy, if a gradient is wanted. Returns whether the mask has `chosen` true elements."""
    if not c.hidden: return True
    if c.y[1].dtype == UINT8: return pack_mask(mask, <uint8_t*>c.y[1].data) == chosen
    return places_of(mask, c.y[1].dtype, c.y[1].layout.size, c.y[1].data) == chosen


cdef int refuse_mask(str name, Py_ssize_t chosen) except -1 with gil:
    raise InplaceError(f"{name}: the mask had {chosen} true elements at first and another number later; another thread "
                       f"modified it; pass a copy()")


cdef void read_mask(const Array* kept, Py_ssize_t n, char* mask) noexcept nogil:
    """The mask of n elements from its saved copy."""
    if kept.dtype == UINT8: where_code_is(<const uint8_t*>kept.data, n, 1, 1, <uint8_t*>mask)
    else: mask_from(kept.data, kept.dtype, kept.layout.size, n, <uint8_t*>mask)


cdef class KeptMask(Operator):
    """y = the mask whose saved copy is x; no gradient. The attributes are its shape."""

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].layout = lay.dense((<Shape>c.attributes).ndim, (<Shape>c.attributes).sizes)
        c.y[0].dtype = BOOL

    cdef int forward(self, Call* c) except -1 nogil:
        read_mask(&c.x[0], c.y[0].layout.size, c.y[0].data)


cdef Operator KEPT_MASK = KeptMask()


cdef Tensor saved_mask(Context c, tuple shape):
    """For formulas: the mask, with this shape, from hidden output 1."""
    cdef Tensor t = c.output(1).detach()
    if not t.layout.dense: t = t.copy()             # an unpack hook may return a strided tensor
    return apply1(KEPT_MASK, t, Shape(shape))


# ---- the operators ---------------------------------------------------------------------------------------------------

cdef class Select(Operator):
    """y = x[mask]        dx = 0, with dx[mask] = g

    The mask covers the first dimensions of x, or all. infer() reads values: it counts the true elements, without the
    GIL."""
    traits = "fused differentiable data_dependent_shape"
    operands, no_gradient, hidden, reads = "x mask", "mask", "chosen", "chosen"

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].dtype = c.x[0].dtype
        with gil:
            c.y[0].layout = selected("select", &c.x[0], &c.x[1])
            return plan_mask(c, &c.x[1], c.y[0].layout.shape[0])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        kernel.aim_mask(&p, &c.x[0], &c.y[0], &c.x[1])
        if kernel.take(&p) and keep_mask(c, &c.x[1], p.chosen): return 0
        return refuse_mask("select", p.chosen)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """The workspace holds the mask."""
        cdef Stage* s = add_stage(b, 1)
        s.workspace_bytes = 1
        for d in range(b.x[0].ndim - b.y.ndim + 1): s.workspace_bytes *= b.x[0].shape[d]

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef kernel.Places p
        cdef Array kept = saved(b, OWN | 1), mask
        cdef Layout over = b.x[0][0]                # the first dimensions of x
        cdef Py_ssize_t strides[MAX_NDIM]
        over.ndim = b.x[0].ndim - b.y.ndim + 1
        over.strides, over.size, over.offset, over.dense = strides, 1, 0, True
        for d in range(over.ndim - 1, -1, -1):
            strides[d] = over.size
            over.size *= over.shape[d]
        read_mask(&kept, over.size, b.workspace)
        mask.data, mask.layout, mask.dtype = b.workspace, &over, BOOL
        clear(&b.dx[0])
        kernel.aim_mask(&p, &b.dx[0], &b.g[0], &mask)
        kernel.put(&p)                              # (a mask of our own)

    cdef object formula(self, c, int i, g):
        shape = c.shape(0)
        return mask_put(zero_like(g, shape), g, saved_mask(<Context>c, shape[:len(shape) - g.ndim + 1]))


@cython.no_gc
cdef class MaskDimensions(Attributes):
    """The attributes of mask_put: the number of dimensions of the mask."""
    cdef readonly int ndim

    def __cinit__(self, int ndim):
        self.ndim = ndim


cdef class MaskPut(Operator):
    """y = x, with y[mask] = v        dx = g, with dx[mask] = 0        dv = g[mask]

    v must have the shape of x[mask]. To check it, infer() counts the true elements, without the GIL."""
    traits = "differentiable"
    operands, no_gradient, hidden, reads = "x v mask", "mask", "chosen", "chosen"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t chosen = -1
        with gil:
            if not has_values(&c.x[2]):             # (then forward() counts them)
                if not c.x[1].layout.ndim: refuse_trace("a write to the elements where a mask is true")
                chosen = c.x[1].layout.shape[0]
            check_values("mask_put", &c.x[1], selected("mask_put", &c.x[0], &c.x[2], chosen))
            Operator.infer(self, c)
            return plan_mask(c, &c.x[2], c.x[1].layout.shape[0])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef kernel.Places p
        cdef Py_ssize_t chosen = c.x[1].layout.shape[0]
        check_count("mask_put", &c.x[2], chosen)
        if not keep_mask(c, &c.x[2], chosen): return refuse_mask("mask_put", chosen)
        copy_input(c)
        kernel.aim_mask(&p, &c.y[0], &c.x[1], &c.x[2])
        return 0 if kernel.put(&p) else refuse_mask("mask_put", chosen)

    cdef object formula(self, c, int i, g):
        cdef int ndim = c.attributes.ndim
        if i > 1: return None
        mask = saved_mask(<Context>c, g.shape[:ndim])
        return where(reshape(mask, g.shape[:ndim] + (1,) * (g.ndim - ndim)), 0, g) if i == 0 else select(g, mask)


cdef Operator SELECT = Select(), MASK_PUT = MaskPut()
OPERATORS = {o.name: o for o in (SELECT, MASK_PUT, KEPT_MASK)}


def select(x: Data, mask: Data) -> Tensor:
    """x[mask] for a bool mask with the shape of `x` or of its first dimensions."""
    return apply2(SELECT, x, ensure_tensor(mask), None)


def mask_put(x: Data, v: Data, mask: Data) -> Tensor:
    """`x` with `v`, which has the shape of x[mask], where the mask is true."""
    cdef Tensor t = ensure_tensor(x), u = ensure_tensor(v), m = ensure_tensor(mask)
    check_dtype("mask_put", t, u)
    return apply_list(MASK_PUT, [t, u, m], MaskDimensions(m.layout.ndim))


def kept_mask(x: Data, shape: int | Sequence[int]) -> Tensor:
    """The mask of `shape` that select() or mask_put() saved as `x`: bits in uint8, or the indices of its true elements
    in a larger dtype."""
    cdef Tensor t = ensure_tensor(x)
    cdef Shape s = Shape(tuple(lay.whole_sizes(shape)))
    size = math.prod(s.shape)
    fits = t.layout.ndim == 1 and t.layout.dense and t.dtype in (UINT8, UINT16, UINT32, INT64)
    if fits: fits = t.layout.size == (size + 7) // 8 if t.dtype == UINT8 else t.layout.size <= size
    if not fits:
        raise ValueError(f"kept_mask: x is {DTYPES[t.dtype]} of shape {t.shape}, for a mask of {size} elements; wanted "
                         f"a byte for 8 of them in uint8, or indices in uint16, uint32 or int64, dense")
    return apply1(KEPT_MASK, t, s)
