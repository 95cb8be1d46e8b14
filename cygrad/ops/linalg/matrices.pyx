"""Batches of matrices, (..., m, n): the base of their operators, and the work of each matrix."""

from numpy.linalg import LinAlgError

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.linalg.matrices cimport Task, each_matrix, threads_over
from cygrad.kernels.threads cimport range_t


cdef Py_ssize_t matrices_in(const Layout* x) noexcept nogil:
    """The number of matrices in a tensor of (..., m, n)."""
    cdef Py_ssize_t count = 1
    for d in range(x.ndim - 2): count *= x.shape[d]
    return count


cdef Py_ssize_t work_of(const Layout* x) noexcept nogil:
    """The work of decomposing one matrix, in elements of an elementwise operation."""
    cdef Py_ssize_t m = x.shape[x.ndim - 2], n = x.shape[x.ndim - 1]
    return 64 + m * n * min(m, n)


cdef int add_result(Call* c, int k, int dtype, int extra, Py_ssize_t p, Py_ssize_t q) except -1 nogil:
    """Describe output `k`: for each matrix of x a number, a vector of p or a (p, q) matrix (`extra` is 0, 1 or 2)."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef const Layout* x = c.x[0].layout
    cdef int d, n = x.ndim - 2
    c.n_out = max(c.n_out, k + 1)
    for d in range(n): shape[d] = x.shape[d]
    if extra > 0: shape[n] = p
    if extra > 1: shape[n + 1] = q
    c.y[k].layout = lay.dense(n + extra, shape)
    c.y[k].dtype = dtype


cdef int set_room(Call* c, Py_ssize_t count, Py_ssize_t room, bint by_lapack=False) except -1 nogil:
    """Declare the work of `count` matrices like those of x, and a workspace of `room` bytes for each thread."""
    cdef Py_ssize_t work = work_of(c.x[0].layout)
    c.work = count * work
    c.workspace_bytes = room * max(1, threads_over(count, work, by_lapack))


cdef void set_target(Task* t, int k, const Array* y, Py_ssize_t elements) noexcept nogil:
    """Result k of each matrix has so many elements of `y`."""
    t.y[k], t.step[k] = y.data, elements * itemsize(y.dtype)


cdef int refuse_matrix(Operator op, Py_ssize_t i, const Layout* x, what) except -1 with gil:
    """Raise LinAlgError: matrix `i` of x is not as the operator needs it."""
    cdef list index = []
    for d in range(x.ndim - 3, -1, -1):
        index.insert(0, i % x.shape[d])
        i //= x.shape[d]
    name = f"x[{', '.join([str(j) for j in index])}]" if index else "x"
    raise LinAlgError(f"{op.name}: {name}{what}")


cdef class OfMatrices(Operator):
    """The base of operators whose only input, x, is a batch of matrices."""
    lanes = "leading"
    traits = "promotes promotes_to_float differentiable"

    cdef int describe(self, Call* c, bint square) except -1 nogil:
        """Raise ValueError unless x is (..., m, n), or with `square` (..., n, n)."""
        cdef const Layout* x = c.x[0].layout
        if x.ndim < 2 or square and x.shape[x.ndim - 2] != x.shape[x.ndim - 1]:
            with gil: raise ValueError(f"{self.name}: x is {lay.shape_tuple(x)}; wanted "
                                       f"{'square matrices (..., n, n)' if square else 'matrices (..., m, n)'}")

    cdef int compute(self, range_t f, Task* t, Call* c) except -1 nogil:
        """Decompose each matrix of x. Raises LinAlgError for the first one that cannot be decomposed."""
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t count = matrices_in(x), work = work_of(x)
        t.a, t.workspace = &c.x[0], c.workspace
        t.room = c.workspace_bytes // max(1, threads_over(count, work, t.by_lapack)) if t.room == 0 else t.room
        each_matrix(f, t, count, work, c.workspace_bytes)
        if t.failed >= 0:
            with gil: refuse_matrix(self, t.failed, x, self.failure(t.info))

    cdef object failure(self, int info):
        """What `info` says of a matrix that cannot be decomposed."""
        return ": the iteration did not converge; nan and inf are a usual cause"
