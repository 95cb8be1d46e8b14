from cygrad.kernels.array cimport Array

cdef enum:
    SHORT = 64              # so many of the largest are kept in order as a row is read; for more it is sorted

cdef void topk(const Array* x, int axis, bint largest, const Array* y) noexcept nogil
