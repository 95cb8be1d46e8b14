from cygrad.kernels.array cimport Array, loop_of
from cygrad.kernels.threads cimport range_t

cdef enum:
    RESULTS = 3
    INT = sizeof(int)

# void* stands for float* or double*.
ctypedef void (*potrf_t)(char*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*getrf_t)(int*, int*, void*, int*, int*, int*) noexcept nogil
ctypedef void (*getri_t)(int*, void*, int*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*gelqf_t)(int*, int*, void*, int*, void*, void*, int*, int*) noexcept nogil
ctypedef void (*orglq_t)(int*, int*, int*, void*, int*, void*, void*, int*, int*) noexcept nogil
ctypedef void (*gesdd_t)(char*, int*, int*, void*, int*, void*, void*, int*, void*, int*, void*, int*, int*,
                         int*) noexcept nogil
ctypedef void (*syevd_t)(char*, char*, int*, void*, int*, void*, void*, int*, int*, int*, int*) noexcept nogil
ctypedef void (*trsm_t)(char*, char*, char*, char*, int*, int*, void*, void*, int*, void*, int*) noexcept nogil
ctypedef void (*gemm_t)(char*, char*, int*, int*, int*, void*, void*, int*, void*, int*, void*, void*,
                        int*) noexcept nogil

cdef potrf_t potrf_[2]      # for LOOP_F32 and for LOOP_F64
cdef getrf_t getrf_[2]
cdef getri_t getri_[2]
cdef gelqf_t gelqf_[2]
cdef orglq_t orglq_[2]
cdef gesdd_t gesdd_[2]
cdef syevd_t syevd_[2]
cdef trsm_t trsm_[2]
cdef trsm_t trmm_[2]        # (with the same parameters)
cdef gemm_t gemm_[2]

cdef struct Task:           # one decomposition of each matrix of a batch
    int dtype
    int m, n, k             # rows and columns of a matrix; the columns of a right side
    bint upper              # the upper triangle; or with vectors
    bint left               # the unknown is on the right of the matrix
    bint transposed
    bint unit               # the diagonal counts as ones
    bint full               # orthogonal matrices are completed
    bint shared             # all have the same matrix `a`
    double rcond            # smaller singular values, in units of the largest, count as zero
    const Array* a          # strided: the matrices, which are gathered
    const Array* b          # the right sides
    char* y[RESULTS]          # dense results
    Py_ssize_t step[RESULTS]  # bytes from one matrix to the next
    char* workspace
    size_t room             # bytes of workspace for one thread
    Py_ssize_t part         # matrices of one thread
    Py_ssize_t failed       # the first matrix that failed; -1: none
    int info                # what LAPACK said of it

cdef int need() except -1 nogil
cdef int refuse_size(Py_ssize_t m, Py_ssize_t n) except -1 with gil
cdef void fail(Task* t, Py_ssize_t i, int info) noexcept nogil
cdef void product(int dtype, bint ta, bint tb, int m, int n, int k, const char* a, int lda, const char* b, int ldb,
                  char* c) noexcept nogil
cdef size_t factor_room(int dtype, Py_ssize_t n) noexcept nogil
cdef size_t inverse_room(int dtype, Py_ssize_t n) noexcept nogil
cdef size_t qr_room(int dtype, Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef int begin_task(Task* t, int dtype, Py_ssize_t m, Py_ssize_t n) except -1 nogil
cdef int each_matrix(range_t f, Task* t, Py_ssize_t count, Py_ssize_t work, size_t nbytes) except -1 nogil
cdef int threads_over(Py_ssize_t count, Py_ssize_t work) noexcept nogil

cdef void cholesky(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void cholesky_grad(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void solve_triangular(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void solve(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void inverse(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void determinant(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void qr(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil

cdef inline size_t aligned(size_t n) noexcept nogil:
    return (n + 63) // 64 * 64

cdef inline int kind(const Task* t) noexcept nogil:
    return loop_of(t.dtype)

cdef inline char* result(const Task* t, int k, Py_ssize_t i) noexcept nogil:
    """Result k of matrix i."""
    return t.y[k] + i * t.step[k]

cdef inline char* scratch(const Task* t, Py_ssize_t start) noexcept nogil:
    """The workspace of the thread whose matrices begin at `start`."""
    return t.workspace + start // t.part * t.room
