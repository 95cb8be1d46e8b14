from cygrad.kernels.array cimport Array

cdef enum:
    SHORT = 64              # the largest k of topk(); for a larger k, the operator sorts the rows

cdef void topk(const Array* x, int axis, bint largest, const Array* y) noexcept nogil
cdef size_t order_room(const Array* x, int axis, bint in_place) noexcept nogil
cdef void order(const Array* x, int axis, bint descending, const Array* values, const Array* y, bint in_place,
                char* workspace) noexcept nogil
cdef void reverse(char* x, int size, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
cdef void turn(const char* x, int size, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t x_step, char* y,
               Py_ssize_t y_step) noexcept nogil
