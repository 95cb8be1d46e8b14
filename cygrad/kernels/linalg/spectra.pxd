from cygrad.kernels.array cimport real

cdef Py_ssize_t svd_room(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint vectors,
                         bint full) except -1 nogil
cdef Py_ssize_t pinv_room(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) except -1 nogil
cdef Py_ssize_t eigh_room(int dtype, Py_ssize_t count, Py_ssize_t n, bint vectors) except -1 nogil
cdef void cofactors(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void svd(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void pinv(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void lstsq(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef void eigh(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef bint gaps(const real* w, Py_ssize_t n, bint squared, bint zero, real* y) noexcept nogil
