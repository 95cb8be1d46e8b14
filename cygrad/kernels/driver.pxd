from cygrad.kernels.array cimport Array

cdef enum:
    STRIP = 512             # elements of one packed strip: four operands stay in the first-level cache
    GRAIN = 32768           # elements below which one thread does the work

ctypedef enum Kind:         # the shape of a strip kernel; each is a serial loop over contiguous memory
    UNARY = 2               # (x, y)            the number counts the operands, the result last
    BINARY = 3              # (x, y, z)
    TERNARY = 4             # (w, x, y, z)

cdef struct Loop:           # one kernel in both precisions
    void* single
    void* double
    int operands

cdef Loop* find(str name) except NULL
cdef int enter(str name, void* single, void* double, int operands) except -1
cdef int each(const Loop* loop, Array* a) except -1
cdef int threads_for(Py_ssize_t work) noexcept nogil
cdef void gather(char* target, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil
cdef void scatter(const char* source, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil
