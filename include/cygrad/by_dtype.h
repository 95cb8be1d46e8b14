/* Calls of the kernel for a dtype (kernels/by_dtype.pxd). A macro takes a kernel for each dtype and then the arguments.
   The calls are direct, so the C compiler checks the arguments of each kernel and may inline it. Memory is passed as
   void*, which converts to a pointer to any element. */
#ifndef CYGRAD_BY_DTYPE_H
#define CYGRAD_BY_DTYPE_H

#include "cygrad/dtypes.h"

/* float32, float64 */
#define CG_CALL_REAL(dtype, f32, f64, ...) ((dtype) == CG_FLOAT32 ? f32(__VA_ARGS__) : f64(__VA_ARGS__))

/* All dtypes but bool: int8 ... int64, uint8 ... uint64, float32, float64. Bools are computed as uint8. */
#define CG_CALL_NUMERIC(dtype, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, ...) \
    ((dtype) == CG_FLOAT32  ? f32(__VA_ARGS__) \
     : (dtype) == CG_FLOAT64 ? f64(__VA_ARGS__) \
     : (dtype) == CG_INT8    ? i8(__VA_ARGS__) \
     : (dtype) == CG_INT16   ? i16(__VA_ARGS__) \
     : (dtype) == CG_INT32   ? i32(__VA_ARGS__) \
     : (dtype) == CG_INT64   ? i64(__VA_ARGS__) \
     : (dtype) == CG_UINT16  ? u16(__VA_ARGS__) \
     : (dtype) == CG_UINT32  ? u32(__VA_ARGS__) \
     : (dtype) == CG_UINT64  ? u64(__VA_ARGS__) \
                             : u8(__VA_ARGS__))

/* Floating numbers, or words of the size of an integer: what adds or copies integers ignores their sign. */
#define CG_CALL_WORDS(dtype, w8, w16, w32, w64, f32, f64, ...) \
    ((dtype) == CG_FLOAT32     ? f32(__VA_ARGS__) \
     : (dtype) == CG_FLOAT64    ? f64(__VA_ARGS__) \
     : cg_itemsize(dtype) == 1 ? w8(__VA_ARGS__) \
     : cg_itemsize(dtype) == 2 ? w16(__VA_ARGS__) \
     : cg_itemsize(dtype) == 4 ? w32(__VA_ARGS__) \
                               : w64(__VA_ARGS__))

/* float32 with places of uint8, uint16, uint32 or int64, and float64 with them */
#define CG_CALL_PLACE(dtype, place_dtype, f_8, f_16, f_32, f_64, d_8, d_16, d_32, d_64, ...) \
    ((place_dtype) == CG_UINT8    ? CG_CALL_REAL(dtype, f_8, d_8, __VA_ARGS__) \
     : (place_dtype) == CG_UINT16 ? CG_CALL_REAL(dtype, f_16, d_16, __VA_ARGS__) \
     : (place_dtype) == CG_UINT32 ? CG_CALL_REAL(dtype, f_32, d_32, __VA_ARGS__) \
                                  : CG_CALL_REAL(dtype, f_64, d_64, __VA_ARGS__))

/* The memoryview of elements of a dtype that a kernel takes: a vector, or a matrix whose rows are `step` elements
   apart. */
#define CG_VECTOR_OF(dtype, p, n) \
    ((__Pyx_memviewslice){.memview = (void *)Py_None, \
                          .data = (char *)(p), \
                          .shape = {(n)}, \
                          .strides = {cg_itemsize(dtype)}, \
                          .suboffsets = {-1, -1}})
#define CG_STEPS_OF(dtype, p, rows, columns, step) \
    ((__Pyx_memviewslice){.memview = (void *)Py_None, \
                          .data = (char *)(p), \
                          .shape = {(rows), (columns)}, \
                          .strides = {(Py_ssize_t)(step) * cg_itemsize(dtype), cg_itemsize(dtype)}, \
                          .suboffsets = {-1, -1}})
#define CG_MATRIX_OF(dtype, p, rows, columns) CG_STEPS_OF(dtype, p, rows, columns, columns)

#endif
