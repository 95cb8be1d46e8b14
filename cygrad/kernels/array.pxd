"""The arguments of a kernel call: strided arrays as C structs, without Python objects.

A Layout is immutable and has a reference count (`refs`, guarded by the GIL). Sizes and strides count elements. An Array
borrows its memory and its layout from the caller."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    MAX_NDIM = 16           # dimensions of one array
    MAX_OPERANDS = 5        # arrays in one elementwise call

# The numbers of the dtypes, and the columns of the table in the header.
cdef extern from "cygrad/dtypes.h" nogil:
    enum:
        BOOL "CG_BOOL"
        INT8 "CG_INT8"
        INT16 "CG_INT16"
        INT32 "CG_INT32"
        INT64 "CG_INT64"
        UINT8 "CG_UINT8"
        UINT16 "CG_UINT16"
        UINT32 "CG_UINT32"
        UINT64 "CG_UINT64"
        FLOAT32 "CG_FLOAT32"
        FLOAT64 "CG_FLOAT64"
        N_DTYPES "CG_N_DTYPES"
        LOOP_F32 "CG_F32"
        LOOP_F64 "CG_F64"
        LOOP_I64 "CG_I64"
        LOOP_B8 "CG_B8"
        NO_LOOP "CG_NO_LOOP"
    const char* dtype_name "cg_dtype_name"(int dtype) noexcept
    const char* dtype_format "cg_dtype_format"(int dtype) noexcept
    int itemsize "cg_itemsize"(int dtype) noexcept
    char kind_of "cg_kind"(int dtype) noexcept              # b'b', b'i', b'u' or b'f'
    int loop_of "cg_loop"(int dtype) noexcept
    bint is_floating "cg_is_floating"(int dtype) noexcept       # has fractions, NaN and infinities
    bint is_real "cg_is_real"(int dtype) noexcept               # kernels of the fused type `real` compute it
    bint has_gradients "cg_has_gradients"(int dtype) noexcept

cdef struct Layout:
    int refs
    int ndim
    bint dense              # row-major without gaps: element i of the flattened array is at offset + i
    Py_ssize_t size         # elements
    Py_ssize_t offset       # position of the first element in the buffer
    Py_ssize_t* shape       # ndim sizes, then ndim strides, in the same allocation
    Py_ssize_t* strides

cdef struct Array:
    char* data              # the first element; the layout's offset is included
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


# Typed memoryviews over raw memory, created on the stack as arguments of a kernel call (platform.h).
cdef extern from "cygrad/platform.h" nogil:
    char[::1] view1 "CG_VIEW1"(char* p, Py_ssize_t n)
    float[:, ::1] view2f "CG_VIEW2"(float* p, Py_ssize_t rows, Py_ssize_t columns)
    double[:, ::1] view2d "CG_VIEW2"(double* p, Py_ssize_t rows, Py_ssize_t columns)
    double[:] steps1d "CG_VIEW1S"(double* p, Py_ssize_t n, Py_ssize_t step)
    float[:, ::1] steps2f "CG_VIEW2S"(float* p, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step)
    double[:, ::1] steps2d "CG_VIEW2S"(double* p, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step)
