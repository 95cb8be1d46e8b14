from libc.stdint cimport int64_t

cdef void cumsum(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, char* y,
                 bint reverse) noexcept nogil
cdef void arg(int dtype, Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, const char* x, int64_t* y,
              bint is_min) noexcept nogil
