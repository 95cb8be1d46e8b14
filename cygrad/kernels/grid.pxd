from cygrad.kernels.array cimport MAX_NDIM, MAX_OPERANDS, Array

cdef struct Grid:           # the common shape of several arrays, with axes merged where all of them allow it
    int ndim                # at least 1; the last axis is that of the rows
    Py_ssize_t shape[MAX_NDIM]
    Py_ssize_t step[MAX_OPERANDS][MAX_NDIM]     # bytes to the next element along an axis, for each array
    Py_ssize_t index[MAX_NDIM]                  # of the row where `at` is
    char* at[MAX_OPERANDS]                      # the first element of that row

cdef void merge_axes(Grid* g, const Array* a, int n) noexcept nogil
cdef void go_to(Grid* g, const Array* a, int n, Py_ssize_t row) noexcept nogil
cdef void go_on(Grid* g, int n, Py_ssize_t rows) noexcept nogil
