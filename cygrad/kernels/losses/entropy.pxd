from libc.stdint cimport int64_t

from cygrad.kernels.array cimport Array

cdef struct Entropy:            # the job of cross-entropy: x is (outer, classes, inner); a row is a pair (outer, inner)
    int dtype
    Py_ssize_t outer
    Py_ssize_t classes
    Py_ssize_t inner
    const char* x
    const int64_t* labels       # one a row; NULL: there are probabilities
    const char* target          # probabilities of the shape of x; NULL: there are labels
    const char* weight          # one a class; NULL: 1
    int64_t ignored             # the label of rows that have no loss
    double smoothing
    char* loss                  # one a row
    char* logs                  # log sum e^(x - max) of each row: forward writes it, backward reads it
    const char* g               # one a row: g[row * g_step] * scale
    Py_ssize_t g_step
    double scale
    char* dx                    # it may be x; NULL: not wanted
    char* dtarget               # NULL: not wanted
    double weights              # the sum of weight, set by the functions
    Py_ssize_t tile             # columns of a tile, set by the functions

cdef Py_ssize_t read_labels(Py_ssize_t rows, Py_ssize_t classes, const int64_t* labels, int64_t ignored, int dtype,
                            const char* weight, double* total) noexcept nogil
cdef void cross_entropy(Entropy* e) noexcept nogil
cdef void cross_entropy_grad(Entropy* e) noexcept nogil
cdef void pick(const Array* x, int axis, const int64_t* labels, int64_t ignored, const char* weight,
               char* y) noexcept nogil
cdef void place(const Entropy* e) noexcept nogil
cdef void add_rows(int dtype, Py_ssize_t rows, Py_ssize_t columns, const char* x, double* sums) noexcept nogil
