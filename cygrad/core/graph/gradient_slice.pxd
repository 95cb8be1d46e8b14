from cygrad.core.graph.tensor cimport Leaf, Tensor
from cygrad.kernels.array cimport Array, Layout

cdef class GradientSlice:
    """The fields do not change. Both buffers count as gradients."""
    cdef readonly Tensor indices
    cdef readonly Tensor values
    cdef Layout* layout         # layout of the dense gradient; NULL: its number of rows is not known

    cdef int take_over(self, Tensor indices, Tensor values) except -1

cdef GradientSlice new_slice(Tensor indices, Tensor values, const Layout* like)
cdef GradientSlice empty_slice(const Layout* like, int dtype)
cdef GradientSlice joined(GradientSlice a, GradientSlice b)
cdef GradientSlice unshared(GradientSlice s)
cdef Tensor dense_rows(GradientSlice s)
cdef int check_rows(GradientSlice s, const Layout* like, int dtype, str what) except -1
cdef int check_range(GradientSlice s, Py_ssize_t rows) except -1
cdef int add_rows(GradientSlice s, Tensor total) except -1
cdef int put_rows(Leaf leaf, GradientSlice s) except -1
