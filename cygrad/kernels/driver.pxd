from libc.stdint cimport uint8_t

from cygrad.kernels.array cimport FLOAT64, MAX_NDIM, MAX_OPERANDS, Array, Layout, itemsize
from cygrad.kernels.by_dtype cimport Kernels, kernel_of

cdef enum:
    STRIP = 512             # elements of a packed strip: four operands fit into the first-level cache
    STREAM = 1 << 24        # bytes: results of at least this size are streamed
    LINE = 64               # bytes of a cache line
    PARTS = 4               # parts for each thread, if there is enough work

cdef struct Loop:           # a serial loop over contiguous memory, with a kernel for each dtype that it supports
    Kernels kernels
    int operands            # including the result, which is the last
    int number              # the operand that the kernel reads as a single number, or -1
    int cost                # time per float32 element, in units of one exponential (0.15 ns)
    int f64_cost            # the same for float64
    bint compute_bound      # computing takes longer than memory access, and each element is read once

cdef struct LoopCall:       # a call of a loop
    const Loop* loop
    Array a[MAX_OPERANDS]   # the operands, as each() takes them
    bint coded              # one of them may be packed codes
    int bits                # the loop also writes so many bits of codes for each element, to `codes`; 0: it does not
    uint8_t* codes
    double number           # room for an operand that is a number,
    Layout seen[MAX_OPERANDS]       # and for the layouts of those that are broadcast
    Py_ssize_t strides[MAX_OPERANDS][MAX_NDIM]

cdef struct Codes:          # packed codes that a kernel writes beside its result
    uint8_t* packed
    int bits                # per code: 1 or 2

cdef Loop* find(str name) except NULL
cdef int register(str name, void* f32, void* f64, int operands, int cost=*, int f64_cost=*, int number=*) except -1
cdef int register_all_dtypes(str name, void* f32, void* f64, void* i64, void* b8, int operands) except -1
cdef int register_new(str name, void* f32, void* f64, int operands) except -1
cdef int each(const Loop* loop, Array* a) except -1 nogil
cdef int each_coded(const Loop* loop, Array* a) except -1 nogil
cdef int each_with_codes(const Loop* loop, Array* a, int bits, uint8_t* packed) except -1 nogil
cdef int run(LoopCall* c) except -1 nogil
cdef void call_coding(void* f, int operands, char** p, const int* size, Py_ssize_t n, const Codes* codes,
                      Py_ssize_t start) noexcept nogil
cdef void fill(char* strip, const char* value, Py_ssize_t count, int size) noexcept nogil
cdef bint is_one_element(const Layout* l) noexcept nogil
cdef void gather(char* target, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil
cdef void copy_all(char* target, const Array* x) noexcept nogil
cdef void scatter(const char* source, const Array* x, Py_ssize_t start, Py_ssize_t count) noexcept nogil

cdef inline bint has(const Loop* loop, int dtype) noexcept nogil:
    """Whether the kernel is compiled for a dtype."""
    return loop != NULL and kernel_of(&loop.kernels, dtype) != NULL

cdef inline int cost_of(const Loop* loop, const Array* a) noexcept nogil:
    """The time per element of a call, in units of one exponential in float32."""
    return loop.f64_cost if a[loop.operands - 2].dtype == FLOAT64 else loop.cost

cdef inline const char* strip_of(const Array* x, Py_ssize_t start, Py_ssize_t count, char* scratch) noexcept nogil:
    """Elements start to start + count - 1 of x: in its own memory if x is dense, else packed into `scratch`."""
    if x.layout.dense: return x.data + start * itemsize(x.dtype)
    gather(scratch, x, start, count)
    return scratch


# A contiguous memoryview is a pointer and a length for every element type, so one call fits kernels of all dtypes.
cdef extern from "cygrad/views.h" nogil:
    void call "cg_call"(void* f, int operands, char** p, Py_ssize_t n)
