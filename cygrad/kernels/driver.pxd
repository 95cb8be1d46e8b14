from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport Array, itemsize

cdef enum:
    STRIP = 512             # elements of one packed strip: four operands stay in the first-level cache

cdef struct Loop:           # one kernel in each dtype that it is compiled for: a serial loop over contiguous memory
    void* f32
    void* f64
    void* i64
    void* b8
    int operands            # the result is the last
    int number              # the operand that is one element, of which a strip is not filled; or -1
    int cost                # an element's time in single precision, measured in that of an exponential (0.15 ns),
    int double_cost         # and in double
    bint computes           # whether that is longer than memory takes, and each element is read once

cdef Loop* find(str name) except NULL
cdef int register(str name, void* single, void* double, int operands, int cost=*, int double_cost=*,
                  int number=*) except -1
cdef int register_all_dtypes(str name, void* single, void* double, void* whole, void* truth, int operands) except -1
cdef int register_new(str name, void* single, void* double, int operands) except -1
cdef bint has(const Loop* loop, int dtype) noexcept nogil
cdef int each(const Loop* loop, Array* a) except -1 nogil
cdef int each_coded(const Loop* loop, Array* a) except -1 nogil
cdef int each_with_codes(const Loop* loop, Array* a, int bits, uint8_t* packed) except -1 nogil
cdef void gather(char* target, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil
cdef void scatter(const char* source, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil

cdef inline const char* strip_of(const Array* x, Py_ssize_t start, Py_ssize_t count, char* scratch) noexcept nogil:
    """Elements start .. start + count of x, in its memory or, where they are strided, packed in `scratch`."""
    if x.layout.dense: return x.data + start * itemsize(x.dtype)
    gather(scratch, x, start, count)
    return scratch
