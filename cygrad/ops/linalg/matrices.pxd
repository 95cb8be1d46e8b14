from cygrad.core.graph.operator cimport Call, Operator
from cygrad.kernels.array cimport Array, Layout
from cygrad.kernels.linalg.matrices cimport Task
from cygrad.kernels.threads cimport range_t

cdef class OfMatrices(Operator):
    cdef int describe(self, Call* c, bint square) except -1 nogil
    cdef int compute(self, range_t f, Task* t, Call* c) except -1 nogil
    cdef object failure(self, int info)

cdef Py_ssize_t matrices_in(const Layout* x) noexcept nogil
cdef Py_ssize_t work_of(const Layout* x) noexcept nogil
cdef int add_result(Call* c, int k, int dtype, int extra, Py_ssize_t p, Py_ssize_t q) except -1 nogil
cdef int set_room(Call* c, Py_ssize_t count, Py_ssize_t room, bint by_lapack=*) except -1 nogil
cdef void set_target(Task* t, int k, const Array* y, Py_ssize_t elements) noexcept nogil
cdef int refuse_matrix(Operator op, Py_ssize_t i, const Layout* x, object what) except -1 with gil
