from cygrad.kernels.array cimport Array

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
    bint flat               # the spatial dimensions are row-major without gaps

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
    # the plan
    Py_ssize_t taps         # elements of the kernel
    Py_ssize_t rows         # c taps: the inner size of the product
    Py_ssize_t positions    # elements of one plane of Y
    bint depthwise          # one channel in a group: loops without a product
    bint direct             # X itself is the matrix of patches
    bint packs_y
    Py_ssize_t images       # of one tile; 1 if an image is divided into `cuts` tiles
    Py_ssize_t cuts
    Py_ssize_t columns      # positions of one tile
    Py_ssize_t tiles
    Py_ssize_t block        # rows of patches that are packed at a time
    Py_ssize_t channels     # of X in one item, if X is computed
    Py_ssize_t parts        # in which the positions are summed, if V is computed
    Py_ssize_t items
    size_t own_bytes        # workspace of one thread,
    size_t shared_bytes     # and of all together
    size_t workspace_bytes
    char* shared

cdef void set_planes(Planes* p, const Array* a) noexcept nogil
cdef int make_plan(Conv* v) noexcept nogil
cdef void unfold_images(Conv* v, const Array* y, char* workspace, bint back) noexcept nogil
cdef int convolve(Conv* v, char* workspace, size_t nbytes) except -1 nogil
