"""What a kernel call sees of memory: a strided array, nothing of Python.

A Layout is immutable once made and shared by counting (`refs`, under the GIL); sizes and strides count elements. An
Array borrows both its memory and its layout from whoever calls."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    MAX_NDIM = 16           # dimensions of one array
    MAX_OPERANDS = 5        # arrays in one elementwise call

cdef enum DType:
    BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64

cdef struct Layout:
    int refs
    int ndim
    bint dense              # row-major without gaps: element i of the flattened array is at offset + i
    Py_ssize_t size         # elements
    Py_ssize_t offset       # of the first element, from the start of the buffer
    Py_ssize_t* shape       # ndim sizes, then ndim strides, in the same allocation
    Py_ssize_t* strides

cdef struct Array:
    char* data              # the first element (the layout's offset is already in it)
    const Layout* layout
    int dtype

ctypedef fused real:
    float
    double

ctypedef fused integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


# Typed memoryviews over raw memory, made on the stack as arguments of a kernel call (see platform.h).
cdef extern from "cygrad/platform.h" nogil:
    char[::1] view1 "CG_VIEW1"(char* p, Py_ssize_t n)
    float[::1] view1f "CG_VIEW1"(float* p, Py_ssize_t n)
    double[::1] view1d "CG_VIEW1"(double* p, Py_ssize_t n)
    float[:, ::1] view2f "CG_VIEW2"(float* p, Py_ssize_t rows, Py_ssize_t columns)
    double[:, ::1] view2d "CG_VIEW2"(double* p, Py_ssize_t rows, Py_ssize_t columns)
    double[:] steps1d "CG_VIEW1S"(double* p, Py_ssize_t n, Py_ssize_t step)
    float[:, ::1] steps2f "CG_VIEW2S"(float* p, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step)
    double[:, ::1] steps2d "CG_VIEW2S"(double* p, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step)


cdef inline int itemsize(int dtype) noexcept nogil:
    if dtype >= FLOAT32: return 4 if dtype == FLOAT32 else 8
    if dtype == BOOL: return 1
    return 1 << ((dtype - 1) & 3)
