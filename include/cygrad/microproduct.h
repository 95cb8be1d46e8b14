/* Blocks of matrix products that are summed in registers, for linalg/microproduct.pyx. Vectors are as wide as those of
   the instruction level. With AVX-512 a block is 8 rows by 3 vectors: its 24 sums, 3 vectors of B and one number of A
   fill 28 of 32 registers, and there are 11 loads for 24 multiplications. Levels with 16 registers have 4 rows.

   The file includes itself once for each precision. A compiler without vector types gets vectors of one number. */
#ifndef CYGRAD_MICROPRODUCT_H
#define CYGRAD_MICROPRODUCT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

enum { CG_COLUMNS = 3, CG_WIDE = 4 }; /* vectors in a row of a block; columns of a block of dots */

#if defined(__AVX512F__)
enum { CG_VECTOR = 64, CG_ROWS = 8, CG_TALL = 6 }; /* bytes of a vector; rows of a block, and of one of dots */
#elif defined(__GNUC__)
#if defined(__AVX2__) && defined(__FMA__)
enum { CG_VECTOR = 32, CG_ROWS = 4, CG_TALL = 2 };
#else
enum { CG_VECTOR = 16, CG_ROWS = 4, CG_TALL = 2 };
#endif
#else
enum { CG_VECTOR = 8, CG_ROWS = 4, CG_TALL = 2 };
#endif

#if defined(__GNUC__)
#define CG_INLINE static inline __attribute__((always_inline))
#define CG_UNROLL _Pragma("GCC unroll 16")
#else
#define CG_INLINE static __inline
#define CG_UNROLL
#endif

/* Memory of the stack until the calling function returns. */
#if defined(_MSC_VER)
#include <malloc.h>
#define cg_on_stack(nbytes) _alloca(nbytes)
#else
#define cg_on_stack(nbytes) __builtin_alloca(nbytes)
#endif

/* Where term k of a product is: A(i, k) = a[i * ai + steps[k].a], B(k, j) = b[steps[k].b + j]. */
typedef struct {
    int32_t a, b;
} cg_step;

/* The lines of which dots are computed: `rows` runs of n numbers. Run r of a line of A begins r * pitch behind its
   start, of B it begins starts[r] behind. */
typedef struct {
    ptrdiff_t rows, n, pitch;
    const int32_t *starts;
} cg_lines;

#define REAL float
#define BITS int32_t
#define OF(name) name##_f
#define MADD512 _mm512_fmadd_ps
#define MADD256 _mm256_fmadd_ps
#include "cygrad/microproduct.h"
#undef REAL
#undef BITS
#undef OF
#undef MADD512
#undef MADD256
#define REAL double
#define BITS int64_t
#define OF(name) name##_d
#define MADD512 _mm512_fmadd_pd
#define MADD256 _mm256_fmadd_pd
#include "cygrad/microproduct.h"
#undef REAL
#undef BITS
#undef OF
#undef MADD512
#undef MADD256

#elif defined(REAL) /* one precision */

#if defined(__GNUC__)
typedef REAL OF(cg_vector) __attribute__((vector_size(CG_VECTOR)));
typedef REAL OF(cg_quarter) __attribute__((vector_size(16)));
typedef BITS OF(cg_mask) __attribute__((vector_size(CG_VECTOR)));
#else
typedef REAL OF(cg_vector);
#endif
#define V OF(cg_vector)
enum { OF(CG_LANES) = sizeof(V) / sizeof(REAL) };

CG_INLINE V OF(cg_load)(const REAL *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* x y + z, rounded once where the instruction level can */
CG_INLINE V OF(cg_madd)(V x, V y, V z) {
#if defined(__AVX512F__)
    return MADD512(x, y, z);
#elif defined(__AVX2__) && defined(__FMA__)
    return MADD256(x, y, z);
#else
    return x * y + z;
#endif
}

CG_INLINE V OF(cg_filled)(REAL x) {
#if defined(__GNUC__)
    return x - (V){0};
#else
    return x;
#endif
}

/* A block of a product: C = alpha A B + beta D; with beta = 0, D is not read. rows and columns (in vectors) are
   constants of the caller. */
CG_INLINE void OF(cg_block)(const int rows, const int columns, ptrdiff_t k, const REAL *a, ptrdiff_t ai,
                            const cg_step *steps, const REAL *b, REAL *c, ptrdiff_t ldc, REAL alpha, REAL beta,
                            const REAL *d, ptrdiff_t ldd) {
    V sum[8][3];
#if defined(__GNUC__)
    const REAL *row = c;
    for (int i = 0; i < rows; i++, row += ldc) {
        __asm__("" : "+r"(row)); /* so that no register keeps these addresses for the end */
        CG_UNROLL for (int j = 0; j < columns; j++) __builtin_prefetch(row + j * OF(CG_LANES));
    }
#endif
    CG_UNROLL for (int i = 0; i < rows; i++) CG_UNROLL for (int j = 0; j < columns; j++) sum[i][j] = OF(cg_filled)(0);
    for (ptrdiff_t t = 0; t < k; t++) {
        const REAL *p = a + steps[t].a, *q = b + steps[t].b;
        V y[3];
        CG_UNROLL for (int j = 0; j < columns; j++) y[j] = OF(cg_load)(q + j * OF(CG_LANES));
        CG_UNROLL for (int i = 0; i < rows; i++) {
            V x = OF(cg_filled)(p[i * ai]);
            CG_UNROLL for (int j = 0; j < columns; j++) sum[i][j] = OF(cg_madd)(x, y[j], sum[i][j]);
        }
    }
    CG_UNROLL for (int i = 0; i < rows; i++) CG_UNROLL for (int j = 0; j < columns; j++) {
        REAL *y = c + i * ldc + j * OF(CG_LANES);
        V all = sum[i][j] * OF(cg_filled)(alpha);
        if (beta != 0) all = OF(cg_madd)(OF(cg_filled)(beta), OF(cg_load)(d + i * ldd + j * OF(CG_LANES)), all);
        memcpy(y, &all, sizeof(V));
    }
}

#define BLOCK(r, n)                                                                                                    \
    static void OF(cg_block_##r##n)(ptrdiff_t k, const REAL *a, ptrdiff_t ai, const cg_step *steps, const REAL *b,     \
                                    REAL *c, ptrdiff_t ldc, REAL alpha, REAL beta, const REAL *d, ptrdiff_t ldd) {     \
        OF(cg_block)(r, n, k, a, ai, steps, b, c, ldc, alpha, beta, d, ldd);                                           \
    }
#define BLOCKS(n) BLOCK(1, n) BLOCK(2, n) BLOCK(3, n) BLOCK(4, n)
BLOCKS(1) BLOCKS(2) BLOCKS(3)
#if defined(__AVX512F__)
#define MORE(n) BLOCK(5, n) BLOCK(6, n) BLOCK(7, n) BLOCK(8, n)
MORE(1) MORE(2) MORE(3)
#undef MORE
#define OTHERS(n) , OF(cg_block_5##n), OF(cg_block_6##n), OF(cg_block_7##n), OF(cg_block_8##n)
#else
#define OTHERS(n)
#endif
#define LIST(n) {OF(cg_block_1##n), OF(cg_block_2##n), OF(cg_block_3##n), OF(cg_block_4##n) OTHERS(n)}

/* C (m, n) = alpha A B + beta D. B and D are read, and C is written, in whole vectors, up to one beyond column
   n - 1. */
static void OF(cg_multiply)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const REAL *a, ptrdiff_t ai, const cg_step *steps,
                            const REAL *b, REAL *c, ptrdiff_t ldc, REAL alpha, REAL beta, const REAL *d,
                            ptrdiff_t ldd) {
    typedef void (*block_t)(ptrdiff_t, const REAL *, ptrdiff_t, const cg_step *, const REAL *, REAL *, ptrdiff_t, REAL,
                            REAL, const REAL *, ptrdiff_t);
    static const block_t blocks[CG_COLUMNS][CG_ROWS] = {LIST(1), LIST(2), LIST(3)};
    ptrdiff_t vectors = (n + OF(CG_LANES) - 1) / OF(CG_LANES), wide = (vectors + CG_COLUMNS - 1) / CG_COLUMNS;
    ptrdiff_t high = (m + CG_ROWS - 1) / CG_ROWS;
    for (ptrdiff_t j = 0; j < wide; j++) { /* all rows meet the same columns of B, which stay in the L1 cache */
        ptrdiff_t first = j * vectors / wide, columns = (j + 1) * vectors / wide - first;
        first *= OF(CG_LANES);
        for (ptrdiff_t i = 0; i < high; i++) {
            ptrdiff_t row = i * m / high, rows = (i + 1) * m / high - row;
            blocks[columns - 1][rows - 1](k, a + row * ai, ai, steps, b + first, c + row * ldc + first, ldc, alpha,
                                          beta, d + row * ldd + first, ldd);
        }
    }
}

#if defined(__GNUC__)
/* In each pair of rows that are d apart, exchange the halves of 2 d numbers that belong to the other row. d is a
   constant of the caller: with a loop over d, the compiler keeps the rows in memory, which takes three times as long. */
CG_INLINE void OF(cg_exchange)(V *r, const int d) {
    OF(cg_mask) low, high;
    if (d >= OF(CG_LANES)) return;
    CG_UNROLL for (int l = 0; l < OF(CG_LANES); l++) {
        low[l] = l & d ? OF(CG_LANES) + l - d : l;
        high[l] = l & d ? OF(CG_LANES) + l : l + d;
    }
    CG_UNROLL for (int l = 0; l < OF(CG_LANES); l++) {
        if (l & d) continue;
        V x = r[l], y = r[l + d];
        r[l] = __builtin_shuffle(x, y, low);
        r[l + d] = __builtin_shuffle(x, y, high);
    }
}

/* A square of the transposition below, of which the first `have` columns exist. */
CG_INLINE void OF(cg_square)(const int have, const REAL *b, ptrdiff_t step, REAL *to, ptrdiff_t width) {
    V r[OF(CG_LANES)];
    CG_UNROLL for (int l = 0; l < OF(CG_LANES); l++) r[l] = l < have ? OF(cg_load)(b + l * step) : OF(cg_filled)(0);
    OF(cg_exchange)(r, 1);
    OF(cg_exchange)(r, 2);
    OF(cg_exchange)(r, 4);
    OF(cg_exchange)(r, 8);
    CG_UNROLL for (int l = 0; l < OF(CG_LANES); l++) memcpy(to + l * width, &r[l], sizeof(V));
}
#endif

/* Element (t, j) of `to`, whose rows are `width` long, = b[j * step + t], for t < n and j < columns. The rest of the
   last vector of columns may be written. */
static void OF(cg_transpose)(ptrdiff_t n, ptrdiff_t columns, const REAL *b, ptrdiff_t step, REAL *to, ptrdiff_t width) {
    ptrdiff_t j = 0;
#if defined(__GNUC__)
    for (; j < columns && n >= OF(CG_LANES); j += OF(CG_LANES), b += OF(CG_LANES) * step, to += OF(CG_LANES)) {
        for (ptrdiff_t i = 0; i < n; i += OF(CG_LANES)) {
            ptrdiff_t t = i <= n - OF(CG_LANES) ? i : n - OF(CG_LANES); /* the last square may overlap the one before */
            if (j + OF(CG_LANES) <= columns) OF(cg_square)(OF(CG_LANES), b + t, step, to + t * width, width);
            else OF(cg_square)((int)(columns - j), b + t, step, to + t * width, width);
        }
    }
    if (j) return;
#endif
    for (; j < columns; j++)
        for (ptrdiff_t t = 0; t < n; t++) to[t * width + j] = b[j * step + t];
}
#undef BLOCK
#undef BLOCKS
#undef OTHERS
#undef LIST
/* The sum of the lanes */
CG_INLINE REAL OF(cg_total)(V v) {
#if defined(__GNUC__)
    OF(cg_quarter) part[CG_VECTOR / 16], all;
    memcpy(part, &v, sizeof v);
    all = part[0];
    CG_UNROLL for (int i = 1; i < CG_VECTOR / 16; i++) all += part[i];
    enum { LAST = 16 / sizeof(REAL) - 1 };
    return sizeof(REAL) == 8 ? all[0] + all[1] : (all[0] + all[1]) + (all[LAST - 1] + all[LAST]);
#else
    return v;
#endif
}

/* A block of dots: C(i, j) = the dot of line i of A and line j of B, + D unless it is NULL. rows is a constant of the
   caller. Lines of A have zeros up to the end of a vector. Those of B have anything, NaN too, so they are masked. */
CG_INLINE void OF(cg_dots)(const int rows, int columns, const cg_lines *lines, const REAL *a, ptrdiff_t ai,
                           const REAL *b, const int32_t *places, REAL *c, ptrdiff_t ldc, const REAL *d,
                           ptrdiff_t ldd) {
    V sum[CG_TALL][CG_WIDE], y[CG_WIDE];
    const REAL *q[CG_WIDE];
    ptrdiff_t whole = lines->n / OF(CG_LANES) * OF(CG_LANES), rest = lines->n - whole;
    REAL each[CG_TALL][CG_WIDE];
#if defined(__GNUC__)
    OF(cg_mask) mask;
    for (int l = 0; l < OF(CG_LANES); l++) mask[l] = l < rest ? -1 : 0;
#endif
    for (int j = 0; j < CG_WIDE; j++) q[j] = b + places[j < columns ? j : columns - 1];
    CG_UNROLL for (int i = 0; i < rows; i++) CG_UNROLL for (int j = 0; j < CG_WIDE; j++) sum[i][j] = OF(cg_filled)(0);
    for (ptrdiff_t r = 0; r < lines->rows; r++) {
        const REAL *p = a + r * lines->pitch;
        ptrdiff_t start = lines->starts[r], t = 0;
        for (; t < whole; t += OF(CG_LANES)) {
            CG_UNROLL for (int j = 0; j < CG_WIDE; j++) y[j] = OF(cg_load)(q[j] + start + t);
            CG_UNROLL for (int i = 0; i < rows; i++) {
                V x = OF(cg_load)(p + i * ai + t);
                CG_UNROLL for (int j = 0; j < CG_WIDE; j++) sum[i][j] = OF(cg_madd)(x, y[j], sum[i][j]);
            }
        }
#if defined(__GNUC__)
        if (rest) {
            CG_UNROLL for (int j = 0; j < CG_WIDE; j++)
                y[j] = (V)((OF(cg_mask))OF(cg_load)(q[j] + start + t) & mask);
            CG_UNROLL for (int i = 0; i < rows; i++) {
                V x = OF(cg_load)(p + i * ai + t);
                CG_UNROLL for (int j = 0; j < CG_WIDE; j++) sum[i][j] = OF(cg_madd)(x, y[j], sum[i][j]);
            }
        }
#endif
    }
    CG_UNROLL for (int i = 0; i < rows; i++)
        CG_UNROLL for (int j = 0; j < CG_WIDE; j++) each[i][j] = OF(cg_total)(sum[i][j]);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) c[i * ldc + j] = each[i][j] + (d ? d[i * ldd + j] : 0);
}

#define DOTS(r)                                                                                                        \
    static void OF(cg_dots_##r)(int columns, const cg_lines *lines, const REAL *a, ptrdiff_t ai, const REAL *b,        \
                                const int32_t *places, REAL *c, ptrdiff_t ldc, const REAL *d, ptrdiff_t ldd) {         \
        OF(cg_dots)(r, columns, lines, a, ai, b, places, c, ldc, d, ldd);                                              \
    }
DOTS(1) DOTS(2)
#if defined(__AVX512F__)
DOTS(3) DOTS(4) DOTS(5) DOTS(6)
#define OTHERS , OF(cg_dots_3), OF(cg_dots_4), OF(cg_dots_5), OF(cg_dots_6)
#else
#define OTHERS
#endif

/* C(i, j) = the dot of line i of A, which begins at a[i * ai], and line j of B, which begins at b[places[j]], + D
   unless it is NULL, for i < m and j < n. */
static void OF(cg_multiply_lines)(ptrdiff_t m, ptrdiff_t n, const cg_lines *lines, const REAL *a, ptrdiff_t ai,
                                  const REAL *b, const int32_t *places, REAL *c, ptrdiff_t ldc, const REAL *d,
                                  ptrdiff_t ldd) {
    typedef void (*dots_t)(int, const cg_lines *, const REAL *, ptrdiff_t, const REAL *, const int32_t *, REAL *,
                           ptrdiff_t, const REAL *, ptrdiff_t);
    static const dots_t dots[CG_TALL] = {OF(cg_dots_1), OF(cg_dots_2) OTHERS};
    ptrdiff_t high = (m + CG_TALL - 1) / CG_TALL;
    for (ptrdiff_t i = 0; i < high; i++) {
        ptrdiff_t row = i * m / high, rows = (i + 1) * m / high - row;
        for (ptrdiff_t j = 0; j < n; j += CG_WIDE)
            dots[rows - 1]((int)(n - j < CG_WIDE ? n - j : CG_WIDE), lines, a + row * ai, ai, b, places + j,
                           c + row * ldc + j, ldc, d ? d + row * ldd + j : d, ldd);
    }
}
#undef DOTS
#undef OTHERS
#undef V

#endif
