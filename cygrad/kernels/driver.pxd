from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport Array, itemsize
from cygrad.kernels.by_dtype cimport Kernels, kernel_of

cdef enum:
    STRIP = 512             # elements of a packed strip: four operands fit into the first-level cache

cdef struct Loop:           # a serial loop over contiguous memory, with a kernel for each dtype that it supports
    Kernels kernels
    int operands            # including the result, which is the last
    int number              # the operand that the kernel reads as a single number, or -1
    int cost                # time per float32 element, in units of one exponential (0.15 ns)
    int f64_cost            # the same for float64
    bint compute_bound      # computing takes longer than memory access, and each element is read once

cdef Loop* find(str name) except NULL
cdef int register(str name, void* f32, void* f64, int operands, int cost=*, int f64_cost=*, int number=*) except -1
cdef int register_all_dtypes(str name, void* f32, void* f64, void* i64, void* b8, int operands) except -1
cdef int register_new(str name, void* f32, void* f64, int operands) except -1
cdef int each(const Loop* loop, Array* a) except -1 nogil
cdef int each_coded(const Loop* loop, Array* a) except -1 nogil
cdef int each_with_codes(const Loop* loop, Array* a, int bits, uint8_t* packed) except -1 nogil
cdef void gather(char* target, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil
cdef void scatter(const char* source, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil

cdef inline bint has(const Loop* loop, int dtype) noexcept nogil:
    """Whether the kernel is compiled for a dtype."""
    return loop != NULL and kernel_of(&loop.kernels, dtype) != NULL

cdef inline const char* strip_of(const Array* x, Py_ssize_t start, Py_ssize_t count, char* scratch) noexcept nogil:
    """Elements start to start + count - 1 of x: in its own memory if x is dense, else packed into `scratch`."""
    if x.layout.dense: return x.data + start * itemsize(x.dtype)
    gather(scratch, x, start, count)
    return scratch
