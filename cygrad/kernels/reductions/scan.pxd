from libc.stdint cimport int64_t

cdef void cumsum(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, char* y,
                 bint reverse) noexcept nogil
cdef void cumprod(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, char* y) noexcept nogil
cdef Py_ssize_t cumprod_room(Py_ssize_t n, Py_ssize_t inner) noexcept nogil
cdef void cumprod_grad(int dtype, Py_ssize_t n, Py_ssize_t inner, const char* g, const char* x, char* dx,
                       char* scratch) noexcept nogil
cdef void recurrence(int dtype, Py_ssize_t n, Py_ssize_t inner, const char* x, const char* a, char* y,
                     bint reverse) noexcept nogil
cdef void extreme_places(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
                         bint is_min) noexcept nogil
cdef void arg(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
              bint is_min) noexcept nogil
