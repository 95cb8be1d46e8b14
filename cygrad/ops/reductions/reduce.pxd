"""The base of all reductions: their attributes, and results in the shape of the operand."""

from libc.stdint cimport uint32_t

from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage
from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout
from cygrad.kernels.driver cimport Loop
from cygrad.kernels.reductions.folds cimport Fold

cdef struct Spread:         # an array with the shape of a result, described in the shape of the operand (over())
    Array array
    Layout layout
    Py_ssize_t strides[MAX_NDIM]

cdef class Axes(Attributes):
    cdef readonly uint32_t mask
    cdef readonly bint keepdims

cdef class Reduction(Operator):
    cdef int fold(self, Call* c, const Fold* fold, const Array* by, const Array* y) except -1 nogil

cdef void over(Spread* s, const Array* y, const Layout* x, const void* axes) noexcept nogil
cdef Stage* over_kept_input(BackwardCall* b) noexcept nogil
cdef int derivative(const BackwardCall* b, const Loop* loop, const Array* g, const Array* by) except -1 nogil
cdef int binary(const Loop* loop, const Array* x, double number, const Array* y) except -1 nogil
cdef int scale(const Array* x, const Array* y, double n) except -1 nogil
cdef double count(Py_ssize_t of, Py_ssize_t results) noexcept nogil
cdef Py_ssize_t inner_of(const Layout* x, const void* axes) noexcept nogil
cdef Axes read_axes(Tensor x, axis, keepdims)
cdef int read_into(Axes axes, Tensor x, axis, keepdims) except -1
cdef tuple axes_of(const Layout* x, const void* axes)
cdef int check_any_elements(str name, const Layout* x, const void* axes) except -1 nogil
cdef Tensor widened(x)
