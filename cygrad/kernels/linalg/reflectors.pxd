cdef size_t qr_bytes(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef void factor_qr(int dtype, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, char* a, char* q, char* r,
                    char* work) noexcept nogil
