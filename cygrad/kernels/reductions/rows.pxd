from cygrad.kernels.array cimport itemsize
from cygrad.kernels.by_dtype cimport Kernels
from cygrad.kernels.threads cimport range_t

cdef struct RowLoop:
    Kernels along           # on rows
    Kernels across          # the same on the columns of a tile, where the axis is not the last
    int operands
    bint narrow             # the result has one element for each row or column

cdef struct Rows:               # the job that threads share
    const RowLoop* loop
    int dtype
    Py_ssize_t columns          # elements of a row; n of (outer, n, inner)
    const char* x
    const char* y
    char* z
    const char* g               # logsumexp has it, and g_step
    Py_ssize_t g_step
    Py_ssize_t inner            # the last of (outer, n, inner)
    Py_ssize_t tile             # columns of a tile

cdef enum:
    TILE = 256              # columns of a tile, at most: their intermediate results stay in the cache
    MIN_COLUMNS = 16        # columns that fill a vector; for fewer, the caller transposes columns to rows

cdef RowLoop OTHERS         # y_ij = the product of all x_ik but x_ij

cdef inline int exponential_cost(int dtype) noexcept nogil:
    """The plain elements that take as long as one exponential."""
    return 2 if itemsize(dtype) <= 4 else 16

cdef void share_rows(range_t f, Rows* job, Py_ssize_t rows) noexcept nogil
cdef void each_row(const RowLoop* loop, int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x,
                   const char* y, char* z) noexcept nogil
cdef void dots(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, const char* y, char* z) noexcept nogil
