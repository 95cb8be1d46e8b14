from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from cygrad.kernels.array cimport Array
from cygrad.kernels.linalg.microproduct cimport Step

# What a convolution relates: images X (n, groups c, *size), images Y (n, groups o, *out) and weights V (groups o, c,
# *kernel). Y is the convolution of X with V. Each is bilinear in the other two: X is the transposed convolution of Y
# with V, and also the gradient of the input of a convolution; V is the gradient of its weight.
cdef enum Role:
    X
    Y
    V

ctypedef fused copied_t:    # elements of images, and places of pooling
    uint8_t
    float
    double

cdef struct Planes:         # images of any strides, in elements
    char* data
    Py_ssize_t image
    Py_ssize_t channel
    Py_ssize_t at[3]        # position in the three spatial dimensions

cdef struct Conv:
    Role role               # which of the three is computed
    int dtype
    Py_ssize_t n            # images
    Py_ssize_t groups
    Py_ssize_t c            # channels of X in a group
    Py_ssize_t o            # channels of Y in a group
    Py_ssize_t size[3]
    Py_ssize_t out[3]
    Py_ssize_t kernel[3]
    Py_ssize_t stride[3]
    Py_ssize_t low[3]       # zeros before each dimension of X
    Py_ssize_t dilation[3]
    Planes x
    Planes y
    char* v                 # dense
    bint adds               # the result is added to what its memory has
    double factor           # V is multiplied by it
    const char* bias        # for each channel of the result, or NULL
    Py_ssize_t bias_step
    void* activation        # a kernel of the driver that is applied to the result, or NULL
    # the plan; a position is one of Y or, if X is computed, a square of `stride` elements of X
    Py_ssize_t taps         # elements of the kernel
    Py_ssize_t rows         # c taps
    Py_ssize_t positions    # elements of one plane of Y
    Py_ssize_t terms        # channels that are packed: of Y if X is computed, otherwise of X
    Py_ssize_t results      # channels of Y, or of X if X is computed
    Py_ssize_t source[3]    # sizes of the images that are packed,
    Py_ssize_t target[3]    # and of X or Y, whichever is computed,
    Py_ssize_t square[3]    # number of elements of a position
    Py_ssize_t grid[4]      # images, and positions along each dimension,
    Py_ssize_t part[4]      # number of them in one tile,
    Py_ssize_t cuts[4]      # and the tiles along each
    Py_ssize_t tiles
    Py_ssize_t step[3]      # elements of the packed images from a position to the next
    Py_ssize_t first[3]     # the element where position 0 begins
    Py_ssize_t split[3]     # elements at distance `step` are packed side by side, in so many classes
    Py_ssize_t span[3]      # packed elements of a class beyond those of the last position
    Py_ssize_t block        # channels that are packed at a time
    Py_ssize_t channels     # results of one item
    bint dots               # V is computed by dots, because Y has few channels
    bint direct             # X or Y is written as it is computed, because one channel is packed
    Py_ssize_t together     # groups of one item then
    Py_ssize_t parts        # in which the positions are summed, if V is computed
    Py_ssize_t items
    size_t packed_bytes     # workspace of one thread for packed channels,
    size_t steps_bytes      # for the steps of a product,
    size_t own_bytes        # and in all
    size_t shared_bytes     # workspace of all threads together
    size_t workspace_bytes
    char* shared

cdef struct Tile:           # images and positions along each dimension
    Py_ssize_t at[4]
    Py_ssize_t size[4]
    Py_ssize_t packed[4]    # the same with the elements around them
    Py_ssize_t plane        # their product: packed elements of a class
    Py_ssize_t channel      # packed elements of a channel
    Py_ssize_t columns      # columns of the product

cdef struct Window:         # the context of pack_planes
    const Conv* v
    const Tile* t
    const Planes* planes
    Py_ssize_t channel

cdef void set_planes(Planes* p, const Array* a) noexcept nogil
cdef Tile tile_at(const Conv* v, Py_ssize_t i) noexcept nogil
cdef void pack_planes(const void* context, Py_ssize_t first, Py_ssize_t last, char* to) noexcept nogil
cdef Py_ssize_t places(const Conv* v, const Tile* t, const Py_ssize_t* r, Step* steps) noexcept nogil
cdef Py_ssize_t place_of(const Conv* v, const Tile* t, Py_ssize_t k) noexcept nogil

cdef inline Py_ssize_t up(Py_ssize_t n, Py_ssize_t by) noexcept nogil: return (n + by - 1) // by


cdef inline Py_ssize_t floor_of(Py_ssize_t n, Py_ssize_t by) noexcept nogil:
    return n // by if n >= 0 else -up(-n, by)


cdef inline void copy(const copied_t* x, Py_ssize_t step, copied_t* to, Py_ssize_t n) noexcept nogil:
    """Copy n elements. A call of memcpy() for a row of 32 takes longer than a few moves of constant size."""
    cdef Py_ssize_t i = 0
    if step == 2:                                   # vectorized
        for i in range(n): to[i] = x[2 * i]
        return
    if step != 1:
        for i in range(n): to[i] = x[i * step]
        return
    if n > 256:
        memcpy(to, x, n * sizeof(copied_t))
        return
    if n >= 16:                                     # the last 16 again from the end, so that none are left
        while i + 16 <= n:
            memcpy(to + i, x + i, 16 * sizeof(copied_t))
            i += 16
        memcpy(to + n - 16, x + n - 16, 16 * sizeof(copied_t))
    elif n >= 8:
        memcpy(to, x, 8 * sizeof(copied_t))
        memcpy(to + n - 8, x + n - 8, 8 * sizeof(copied_t))
    elif n >= 4:
        memcpy(to, x, 4 * sizeof(copied_t))
        memcpy(to + n - 4, x + n - 4, 4 * sizeof(copied_t))
    else:
        for i in range(n): to[i] = x[i]


cdef inline Py_ssize_t row_of(const Tile* t, Py_ssize_t i) noexcept nogil:
    """Where row i of the positions of a tile begins in a packed class."""
    return ((i // (t.size[2] * t.size[1]) * t.packed[1] + i // t.size[2] % t.size[1]) * t.packed[2]
            + i % t.size[2]) * t.packed[3]
