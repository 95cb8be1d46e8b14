from cygrad.kernels.array cimport Array
from cygrad.kernels.images.planes cimport Conv

cdef void unfold_images(Conv* v, const Array* y, char* workspace, bint back) noexcept nogil
