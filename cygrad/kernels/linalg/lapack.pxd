from cpython.ref cimport PyObject

from cygrad.kernels.array cimport real

cdef enum:
    INT = sizeof(int)

cdef bint by_numpy              # numpy.linalg decomposes, with the GIL; for after need()

cdef inline size_t aligned(size_t n) noexcept nogil:
    return (n + 63) // 64 * 64

cdef int need() except -1 nogil
cdef int refuse_size(Py_ssize_t m, Py_ssize_t n) except -1 with gil
cdef void transpose(real* a, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t at_once(Py_ssize_t count, Py_ssize_t elements) except -1 nogil
cdef Py_ssize_t svd_bytes(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint vectors,
                          bint full) except -1 nogil
cdef int decompose_svd(int dtype, Py_ssize_t count, Py_ssize_t m, Py_ssize_t n, bint full, char* a, char* u, char* s,
                       char* vh, char* work, size_t nbytes, PyObject** error) noexcept nogil
cdef Py_ssize_t symmetric_bytes(int dtype, Py_ssize_t count, Py_ssize_t n, bint vectors) except -1 nogil
cdef int decompose_symmetric(int dtype, Py_ssize_t count, Py_ssize_t n, bint upper, bint vectors, char* a, char* w,
                             char* work, PyObject** error) noexcept nogil
