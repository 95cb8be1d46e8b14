from libc.stdint cimport int64_t

from cygrad.kernels.array cimport Array

cdef enum BagMode:
    SUM, MEAN, MAX

cdef struct Bags:           # the arguments of the kernels; matrices are dense, with a row for each index or bag
    int dtype               # dtype of the matrices
    int place_dtype
    BagMode mode
    Py_ssize_t n            # indices
    Py_ssize_t bags
    Py_ssize_t width        # indices in each bag; -1: bag b begins at offsets[b]
    Py_ssize_t rows         # number of rows of the weight
    Py_ssize_t row          # elements of a row
    int64_t padding         # the index that counts as none, or -1
    const int64_t* offsets
    const char* places      # the indices, none negative
    const char* weight
    const char* scale       # a factor for each index, or NULL
    const char* g           # the gradient of the output
    char* y                 # the output, or the gradient that the kernel computes
    char* order             # MAX: the row that each element comes from; `rows` if the bag is empty
    bint adds               # the gradient is added to y
    double factor           # scatter_rows() multiplies it by this
    Py_ssize_t first        # the row of the table that is the first of y, which has `rows`

cdef bint narrow_places(const Array* index, Py_ssize_t rows, int dtype, char* places, int64_t* bad) noexcept nogil
cdef void scatter_rows(const Bags* s) noexcept nogil
cdef void fold_bags(Bags* s) noexcept nogil
cdef void scatter_bags(Bags* s) noexcept nogil
cdef void scatter_order(Bags* s) noexcept nogil
cdef void scale_grad(Bags* s) noexcept nogil
