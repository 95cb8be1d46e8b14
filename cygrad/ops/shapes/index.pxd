from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.backward.formula cimport Context
from cygrad.core.graph.operator cimport Call
from cygrad.core.graph.tensor cimport Tensor
from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.shapes.index cimport Places

cdef class Indexed(Attributes):
    cdef readonly int axis
    cdef readonly int count

cdef int check_indices(str name, const Array* x, int axis, int n, const Array* index) except -1 nogil
cdef int refuse_indices(str name, const Places* p, const Array* x, int axis, int n,
                        const Array* index) except -1 nogil
cdef int refuse_changed(str name) except -1 with gil
cdef int check_values(str name, const Array* v, Layout* wanted) except -1 nogil
cdef int check_dtype(str name, Tensor x, Tensor v) except -1
cdef Tensor own(Tensor t, Tensor written)
cdef Tensor index_tensor(v, Tensor written)
cdef Tensor zero_like(Tensor g, tuple shape)
cdef void copy_input(Call* c) noexcept nogil
cdef void clear(const Array* dx) noexcept nogil
cdef int place_dtype(Py_ssize_t n) noexcept nogil
cdef object wide_places(Context c)
