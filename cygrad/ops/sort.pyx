"""Order: sort, argsort, topk. NumPy sorts; the order is stable, and nan counts as the largest."""

import operator

import numpy as np

from cython cimport final
from libc.stdint cimport uint32_t

from cygrad.core cimport layout as lay
from cygrad.core.bridge cimport lend
from cygrad.core.graph cimport OUTPUT, Call, Operator, Tensor, ensure_tensor, is_tracked
from cygrad.core.modes cimport flags
from cygrad.core.run cimport apply1
from cygrad.kernels cimport sort as kernel
from cygrad.kernels.array cimport FLOAT32, INT32, INT64, MAX_NDIM, Layout
from cygrad.kernels.sort cimport SHORT
from cygrad.ops.index cimport zero_like

from cygrad.core.dtypes import DTYPES
from cygrad.ops.index import gather_ranked, scatter_add
from cygrad.ops.shape import astype


def order_of(x, axis, descending):
    """The places of the elements of an array in order; equal ones stay as they are, whichever way."""
    if x.dtype == np.bool_: x = x != 0              # NumPy sorts bytes, and a bool may be any
    if not descending: return np.argsort(x, axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


@final
cdef class Sort(Operator):
    """y = x in order along an axis        dx = g, back in its places

    Keeps the places, in 32 bits (a hidden output, made where it will be wanted: values alone sort much faster). The
    attributes are (axis, descending, whether it is)."""

    def __cinit__(self):
        self.name, self.differentiable = "sort", True

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = c.x[0].dtype
        if not (<tuple>c.attributes)[2]: return 0
        c.n_out, c.hidden = 2, 1
        c.y[1].layout = lay.share(c.y[0].layout)
        c.y[1].dtype = INT32 if c.x[0].layout.size < 1 << 31 else INT64
        return 0

    cdef int forward(self, Call* c) except -1:
        axis, descending, kept = <tuple>c.attributes
        x, y = lend(&c.x[0], NULL, False), lend(&c.y[0], NULL, True)
        if kept:
            order = order_of(x, axis, descending)
            y[...] = np.take_along_axis(x, order, axis)
            lend(&c.y[1], NULL, True)[...] = order
        else:
            y[...] = x
            y.sort(axis)
            if descending: y[...] = np.flip(y, axis)
        return 0

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        return 2 << OUTPUT

    cdef object formula(self, c, int i, g):
        order = astype(c.output(1).detach(), DTYPES[INT64])
        return c.locally_constant(scatter_add(zero_like(g, c.shape(0)), c.attributes[0], order, g))


@final
cdef class ArgSort(Operator):
    """y = the places of the elements of x in order along an axis        no gradient"""

    def __cinit__(self):
        self.name = "argsort"

    cdef int infer(self, Call* c) except -1:
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        c.y[0].dtype = INT64
        return 0

    cdef int forward(self, Call* c) except -1:
        axis, descending = <tuple>c.attributes
        lend(&c.y[0], NULL, True)[...] = order_of(lend(&c.x[0], NULL, False), axis, descending)
        return 0


@final
cdef class TopK(Operator):
    """i = the places of the k largest (smallest) elements along an axis, in order        no gradient

    The values are gathered from there, and have gather's gradient."""

    def __cinit__(self):
        self.name = "topk"

    cdef int infer(self, Call* c) except -1:
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef const Layout* l = c.x[0].layout
        cdef int d
        for d in range(l.ndim): shape[d] = l.shape[d]
        shape[<int>(<tuple>c.attributes)[0]] = (<tuple>c.attributes)[1]
        c.y[0].layout = lay.dense(l.ndim, shape)
        c.y[0].dtype = INT64
        return 0

    cdef int forward(self, Call* c) except -1:
        axis, k, largest = <tuple>c.attributes
        if k <= SHORT and c.x[0].dtype >= FLOAT32:
            kernel.topk(&c.x[0], axis, largest, &c.y[0])
            return 0
        order = order_of(lend(&c.x[0], NULL, False), axis, largest)
        lend(&c.y[0], NULL, True)[...] = np.moveaxis(np.moveaxis(order, axis, 0)[:k], 0, axis)
        return 0


cdef Operator SORT = Sort(), ARGSORT = ArgSort(), TOPK = TopK()
OPERATORS = {o.name: o for o in (SORT, ARGSORT, TOPK)}


def sort(x, axis=-1, descending=False):
    """The elements of `x` in order along `axis`; nan counts as the largest. What is equal keeps its order."""
    cdef Tensor t = ensure_tensor(x)
    cdef bint kept = flags().recording and is_tracked(t)
    return apply1(SORT, t, (lay.read_axis(axis, t.layout.ndim), bool(descending), kept))


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
