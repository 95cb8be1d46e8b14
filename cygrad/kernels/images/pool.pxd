from cygrad.kernels.array cimport Array
from cygrad.kernels.images.planes cimport Planes

cdef struct Pool:
    int dtype
    Py_ssize_t n            # images
    Py_ssize_t channels
    Py_ssize_t size[3]      # sizes of X
    Py_ssize_t out[3]       # sizes of Y
    Py_ssize_t kernel[3]    # adaptive: the size of the largest window
    Py_ssize_t stride[3]
    Py_ssize_t low[3]
    Py_ssize_t dilation[3]
    bint adaptive           # window i begins at i size / out and ends at (i + 1) size / out, rounded outwards
    bint padding_counts     # a mean divides by the elements of the window that lie in X or its padding
    Py_ssize_t divisor      # ... or by this number, if it is not 0
    Py_ssize_t taps         # the elements of a window, or 2^32 + 1 if there are more
    int width               # bytes of the place of a maximum in its window
    Planes x
    Planes y
    char* places            # dense, one for each element of Y, or NULL

cdef void max_pool(Pool* p) noexcept nogil
cdef void take_places(Pool* p) noexcept nogil
cdef void put_places(Pool* p) noexcept nogil
cdef void mean_pool(Pool* p) noexcept nogil
cdef void spread_means(Pool* p) noexcept nogil
