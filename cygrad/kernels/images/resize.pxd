from cygrad.kernels.images.planes cimport Planes

cdef enum Mode:
    NEAREST
    LINEAR
    CUBIC

cdef struct Resize:         # Y is X, resized
    Mode mode
    bint corners            # the centers of the corner elements coincide; otherwise their outer corners do
    int dtype
    Py_ssize_t n            # images
    Py_ssize_t channels
    Py_ssize_t size[3]      # sizes of X
    Py_ssize_t out[3]       # sizes of Y
    double scale[3]         # elements of X for one of Y
    Planes x
    Planes y

cdef size_t own_bytes(const Resize* r, size_t* shared) noexcept nogil
cdef void resize(const Resize* r, bint back, char* workspace, size_t nbytes) noexcept nogil
