from libc.stdint cimport int64_t

from cygrad.kernels.array cimport MAX_NDIM, Array

cdef struct Places:         # maps elements of x to elements of y; the aim functions fill it and borrow from both
    int ndim                # dimensions of the grid. Trailing dimensions that are contiguous in x and y form a row.
    int n                   # number of index arrays
    int masked              # number of leading dimensions that a mask covers; 0 without a mask
    int dtype
    Py_ssize_t count        # elements of the grid
    Py_ssize_t row          # elements of a row
    bint in_range           # all indices are in range
    bint y_row              # y has a row too; if not, one element of y is repeated for the row
    Py_ssize_t chosen       # rows of y, one for each true element of the mask
    Py_ssize_t chosen_stride  # stride of y from one of them to the next
    char* x
    char* y
    const char* mask
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t x_step[MAX_NDIM]
    Py_ssize_t y_step[MAX_NDIM]
    Py_ssize_t mask_step[MAX_NDIM]
    const int64_t* index[MAX_NDIM]
    Py_ssize_t index_step[MAX_NDIM][MAX_NDIM]
    Py_ssize_t size[MAX_NDIM]           # size and stride of the dimension of x that an index array selects from
    Py_ssize_t stride[MAX_NDIM]

cdef bint bad_index(const Array* index, Py_ssize_t size, int64_t* bad) noexcept nogil
cdef Py_ssize_t count_true(const Array* mask) noexcept nogil
cdef void aim(Places* p, const Array* x, const Array* y, int axis, int n, const Array* index) noexcept nogil
cdef void aim_along(Places* p, const Array* x, const Array* y, int axis, const Array* index) noexcept nogil
cdef void aim_mask(Places* p, const Array* x, const Array* y, const Array* mask) noexcept nogil
cdef bint take(Places* p) noexcept nogil
cdef bint put(const Places* p) noexcept nogil
cdef bint add(const Places* p) noexcept nogil
cdef void copy(const Array* x, const Array* y) noexcept nogil
cdef void wipe(const Array* x, Py_ssize_t k, bint upper) noexcept nogil
