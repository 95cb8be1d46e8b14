from cygrad.kernels.array cimport Array

cdef enum:
    SHORT = 64              # so many of the largest are kept in order as a row is read; for more it is sorted

cdef void topk(const Array* x, int axis, bint largest, const Array* y) noexcept nogil
cdef size_t order_room(const Array* x, int axis, bint lends) noexcept nogil
cdef void order(const Array* x, int axis, bint descending, const Array* values, const Array* y, bint lends,
                char* workspace) noexcept nogil
cdef void reverse(char* x, int size, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
cdef void turn(const char* x, int size, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t x_step, char* y,
               Py_ssize_t y_step) noexcept nogil
