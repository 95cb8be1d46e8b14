/* The table of dtypes, one line each. core/dtypes.pyx builds the NumPy dtypes and the promotion rules from it, and
   kernels/array.pxd declares its predicates. The number of a dtype is its position in the table.

   name    NumPy's name
   bytes   size of one element
   kind    NumPy's letter: b for bool, i and u for integers, f for floating point
   format  the letter of Python's struct module, for the buffer protocol
   loop    which of the kernels of a name computes it (struct Kernels in kernels/by_dtype.pxd); CG_NO_LOOP: NumPy does
   grad    whether it can have gradients */
#ifndef CYGRAD_DTYPES_H
#define CYGRAD_DTYPES_H

enum { CG_F32, CG_F64, CG_I64, CG_B8, CG_NO_LOOP };

/*         name     bytes  kind  format  loop  grad */
#define CG_DTYPES(DTYPE) \
    DTYPE(BOOL,    bool,    1, 'b', "?", CG_B8, 0) \
    DTYPE(INT8,    int8,    1, 'i', "b", CG_NO_LOOP, 0) \
    DTYPE(INT16,   int16,   2, 'i', "h", CG_NO_LOOP, 0) \
    DTYPE(INT32,   int32,   4, 'i', "i", CG_NO_LOOP, 0) \
    DTYPE(INT64,   int64,   8, 'i', "q", CG_I64, 0) \
    DTYPE(UINT8,   uint8,   1, 'u', "B", CG_NO_LOOP, 0) \
    DTYPE(UINT16,  uint16,  2, 'u', "H", CG_NO_LOOP, 0) \
    DTYPE(UINT32,  uint32,  4, 'u', "I", CG_NO_LOOP, 0) \
    DTYPE(UINT64,  uint64,  8, 'u', "Q", CG_NO_LOOP, 0) \
    DTYPE(FLOAT32, float32, 4, 'f', "f", CG_F32, 1) \
    DTYPE(FLOAT64, float64, 8, 'f', "d", CG_F64, 1)

#define CG_NUMBER(constant, name, bytes, kind, format, loop, grad) CG_##constant,
#define CG_NAME(constant, name, bytes, kind, format, loop, grad) #name,
#define CG_BYTES(constant, name, bytes, kind, format, loop, grad) bytes,
#define CG_KIND(constant, name, bytes, kind, format, loop, grad) kind,
#define CG_FORMAT(constant, name, bytes, kind, format, loop, grad) format,
#define CG_LOOP(constant, name, bytes, kind, format, loop, grad) loop,
#define CG_FLOATING_BIT(constant, name, bytes, kind, format, loop, grad) | (kind == 'f') << CG_##constant
#define CG_REAL_BIT(constant, name, bytes, kind, format, loop, grad) | (loop == CG_F32 || loop == CG_F64) << CG_##constant
#define CG_GRAD_BIT(constant, name, bytes, kind, format, loop, grad) | grad << CG_##constant

enum { CG_DTYPES(CG_NUMBER) CG_N_DTYPES };
enum { CG_FLOATING = 0 CG_DTYPES(CG_FLOATING_BIT), CG_REAL = 0 CG_DTYPES(CG_REAL_BIT), CG_GRAD = 0 CG_DTYPES(CG_GRAD_BIT) };

static inline const char *cg_dtype_name(int dtype) {
    static const char *const names[] = { CG_DTYPES(CG_NAME) };
    return names[dtype];
}

static inline const char *cg_dtype_format(int dtype) {
    static const char *const formats[] = { CG_DTYPES(CG_FORMAT) };
    return formats[dtype];
}

static inline int cg_itemsize(int dtype) {
    static const unsigned char bytes[] = { CG_DTYPES(CG_BYTES) };
    return bytes[dtype];
}

static inline char cg_kind(int dtype) {
    static const char kinds[] = { CG_DTYPES(CG_KIND) };
    return kinds[dtype];
}

static inline int cg_loop(int dtype) {
    static const unsigned char loops[] = { CG_DTYPES(CG_LOOP) };
    return loops[dtype];
}

static inline int cg_is_floating(int dtype) { return CG_FLOATING >> dtype & 1; }

static inline int cg_has_gradients(int dtype) { return CG_GRAD >> dtype & 1; }

static inline int cg_is_real(int dtype) { return CG_REAL >> dtype & 1; }

#endif
