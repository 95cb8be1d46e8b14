"""The kernel for a dtype. No other file compares dtypes to find code.

call(dtype, f[float], f[double], x, n, y) calls the kernel f of `dtype` with the arguments x, n, y. Kernels that are
found by name are a table, Kernels. The C compiler checks the arguments of call() against the parameters of each kernel.
Memory is passed as void*, which element() returns; vector(), matrix() and steps() make memoryviews."""

from libc.string cimport memset

from cygrad.kernels.array cimport FLOAT32, LOOP_F32, LOOP_F64, NO_LOOP, itemsize, loop_of

cdef extern from "cygrad/by_dtype.h" nogil:
    # The kernels are those of float32 and float64,
    void call "CG_CALL_REAL"(int dtype, ...) noexcept
    double call_double "CG_CALL_REAL"(int dtype, ...) noexcept
    bint call_bint "CG_CALL_REAL"(int dtype, ...) noexcept
    # of int8, int16, int32, int64, uint8 (and bool), uint16, uint32, uint64, float32 and float64,
    void call_numeric "CG_CALL_NUMERIC"(int dtype, ...) noexcept
    # of integers of 1, 2, 4 and 8 bytes, float32 and float64,
    void call_words "CG_CALL_WORDS"(int dtype, ...) noexcept
    # of float32 with places of uint8, uint16, uint32 and int64, and of float64 with them.
    void call_place "CG_CALL_PLACE"(int dtype, int place_dtype, ...) noexcept
    char[::1] vector "CG_VECTOR_OF"(int dtype, const void* p, Py_ssize_t n) noexcept
    char[:, ::1] matrix "CG_MATRIX_OF"(int dtype, const void* p, Py_ssize_t rows, Py_ssize_t columns) noexcept
    char[:, ::1] steps "CG_STEPS_OF"(int dtype, const void* p, Py_ssize_t rows, Py_ssize_t columns,
                                     Py_ssize_t step) noexcept      # rows are `step` elements apart

cdef struct Kernels:        # the kernels of one name, by the loop of a dtype (include/cygrad/dtypes.h)
    void* of[NO_LOOP + 1]

cdef inline Kernels reals(void* f32, void* f64) noexcept nogil:
    cdef Kernels k
    memset(&k, 0, sizeof(k))
    k.of[<int>LOOP_F32], k.of[<int>LOOP_F64] = f32, f64
    return k

cdef inline void* kernel_of(const Kernels* k, int dtype) noexcept nogil:
    return k.of[loop_of(dtype)]

cdef inline void* element(int dtype, const void* p, Py_ssize_t i) noexcept nogil:
    """The memory of element i."""
    return <char*>p + i * itemsize(dtype)

cdef inline double number(int dtype, const void* p, Py_ssize_t i) noexcept nogil:
    """Element i."""
    return (<const float*>p)[i] if dtype == FLOAT32 else (<const double*>p)[i]

cdef inline double epsilon(int dtype) noexcept nogil:
    """The distance from 1 to the next number."""
    return 1.1920928955078125e-07 if itemsize(dtype) == 4 else 2.220446049250313e-16

cdef inline void put_number(int dtype, void* p, Py_ssize_t i, double value) noexcept nogil:
    """Set element i, rounded."""
    if dtype == FLOAT32: (<float*>p)[i] = <float>value
    else: (<double*>p)[i] = value
