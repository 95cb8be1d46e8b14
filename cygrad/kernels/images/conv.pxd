from cygrad.kernels.images.planes cimport Conv

cdef int make_plan(Conv* v) noexcept nogil
cdef int convolve(Conv* v, char* workspace, size_t nbytes) except -1 nogil
