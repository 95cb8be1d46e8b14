from libc.stdint cimport int64_t

from cygrad.kernels.array cimport MAX_NDIM, Array

cdef struct Places:         # which element of x goes with which of y; an aim function makes it, borrowing from both
    int ndim                # of the grid that is walked; trailing dimensions that lie in one run in both are a row
    int n                   # index arrays
    int masked              # the first so many dimensions are those of a mask; 0: there is none
    int dtype
    Py_ssize_t count        # elements of the grid
    Py_ssize_t row          # elements of a row
    bint good               # all indices were seen in range
    bint y_row              # ... in y too; False: one element of y goes with the whole row
    Py_ssize_t each         # step of y from one chosen place of a mask to the next
    char* x
    char* y
    const char* mask
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t x_step[MAX_NDIM]
    Py_ssize_t y_step[MAX_NDIM]
    Py_ssize_t mask_step[MAX_NDIM]
    const int64_t* index[MAX_NDIM]
    Py_ssize_t index_step[MAX_NDIM][MAX_NDIM]
    Py_ssize_t size[MAX_NDIM]           # of the dimension of x that an index array chooses from,
    Py_ssize_t stride[MAX_NDIM]         # and its step

cdef bint bad_index(const Array* index, Py_ssize_t size, int64_t* bad) noexcept nogil
cdef Py_ssize_t count_true(const Array* mask) noexcept nogil
cdef void aim(Places* p, const Array* x, const Array* y, int axis, int n, const Array* index) noexcept nogil
cdef void aim_along(Places* p, const Array* x, const Array* y, int axis, const Array* index) noexcept nogil
cdef void aim_mask(Places* p, const Array* x, const Array* y, const Array* mask) noexcept nogil
cdef bint take(Places* p) noexcept nogil
cdef void put(const Places* p) noexcept nogil
cdef bint add(const Places* p) noexcept nogil
cdef void copy(const Array* x, const Array* y) noexcept nogil
cdef void wipe(const Array* x, Py_ssize_t k, bint upper) noexcept nogil
