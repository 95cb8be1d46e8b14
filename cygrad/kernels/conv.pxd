# What a convolution relates: images X (n, groups c, *size), images Y (n, groups o, *out) and weights V (groups o, c,
# *kernel). Y is the convolution of X with V. Each is bilinear in the other two: X is the transposed convolution of Y
# with V, and also the gradient of the input of a convolution; V is the gradient of its weight.
cdef enum Role:
    X
    Y
    V

cdef struct Planes:         # images of any strides, in elements
    char* data
    Py_ssize_t image
    Py_ssize_t channel
    Py_ssize_t at[3]        # of the three spatial dimensions

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
    Py_ssize_t square[3]    # of which a position has so many elements
    Py_ssize_t grid[4]      # images, and positions along each dimension,
    Py_ssize_t part[4]      # of which so many are in one tile,
    Py_ssize_t cuts[4]      # and the tiles along each
    Py_ssize_t tiles
    Py_ssize_t step[3]      # elements of the packed images from a position to the next
    Py_ssize_t first[3]     # the element where position 0 begins
    Py_ssize_t split[3]     # elements at distance `step` are packed side by side, in so many classes
    Py_ssize_t span[3]      # packed elements of a class beyond those of the last position
    Py_ssize_t block        # channels that are packed at a time
    Py_ssize_t channels     # results of one item
    bint dots               # V is computed by dots, because Y has few channels
    Py_ssize_t parts        # in which the positions are summed, if V is computed
    Py_ssize_t items
    size_t packed_bytes     # workspace of one thread for packed channels,
    size_t steps_bytes      # for the steps of a product,
    size_t own_bytes        # and in all
    size_t shared_bytes     # workspace of all threads together
    size_t workspace_bytes
    char* shared

cdef int make_plan(Conv* v) noexcept nogil
cdef int convolve(Conv* v, char* workspace, size_t nbytes) except -1 nogil
