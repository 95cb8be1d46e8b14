from cpython.ref cimport PyObject

from cygrad.kernels.array cimport Array
from cygrad.kernels.threads cimport range_t

cdef enum:
    RESULTS = 3

cdef struct Task:           # one decomposition of each matrix of a batch
    int dtype
    int m, n, k             # rows and columns of a matrix; the columns of a right side
    bint upper              # the upper triangle; or with vectors
    bint left               # the unknown is on the right of the matrix
    bint transposed
    bint unit               # the diagonal counts as ones
    bint full               # orthogonal matrices are completed
    bint by_lapack          # LAPACK decomposes them
    bint shared             # all have the same matrix `a`
    double rcond            # smaller singular values, in units of the largest, count as zero
    const Array* a          # strided: the matrices, which are gathered
    const Array* b          # the right sides
    char* y[RESULTS]          # dense results
    Py_ssize_t step[RESULTS]  # bytes from one matrix to the next
    char* workspace
    size_t room             # bytes of workspace for one thread
    Py_ssize_t part         # matrices of one thread
    Py_ssize_t at_once      # matrices that LAPACK decomposes in one call
    Py_ssize_t failed       # the first matrix that failed; -1: none
    int info                # what the decomposition said of it
    PyObject* error         # what numpy.linalg raised, if that is no LinAlgError; owned

cdef void fail(Task* t, Py_ssize_t i, int info) noexcept nogil
cdef size_t factor_room(int dtype, Py_ssize_t n) noexcept nogil
cdef size_t inverse_room(int dtype, Py_ssize_t n) noexcept nogil
cdef int begin_task(Task* t, int dtype, Py_ssize_t m, Py_ssize_t n, bint by_lapack=*) except -1 nogil
cdef int each_matrix(range_t f, Task* t, Py_ssize_t count, Py_ssize_t work, size_t nbytes) except -1 nogil
cdef int threads_over(Py_ssize_t count, Py_ssize_t work, bint by_lapack=*) noexcept nogil

cdef void cholesky(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void cholesky_grad(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void solve_triangular(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void solve(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void inverse(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void determinant(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void qr(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void identity(int dtype, Py_ssize_t n, char* a) noexcept nogil

cdef inline char* result(const Task* t, int k, Py_ssize_t i) noexcept nogil:
    """Result k of matrix i."""
    return t.y[k] + i * t.step[k]

cdef inline char* scratch(const Task* t, Py_ssize_t start) noexcept nogil:
    """The workspace of the thread whose matrices begin at `start`."""
    return t.workspace + start // t.part * t.room
