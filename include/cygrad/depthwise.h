/* Convolutions of one channel by one kernel, for images/conv.pyx: row i of the result is the sum of weights times rows
   of the packed images, and is written where it belongs.

   A vector is the widest of 16, 32 and 64 bytes that fits into a row. A block is eight rows of one vector: eight sums
   do not wait for each other. The last block of a row, or of the rows, begins earlier and computes elements again, with
   the same bits, so there are no edges. Loads that are not aligned take longer than the arithmetic, so a kernel of 3, 5
   or 7 rows reads each vector once. The file includes itself for each precision and width. */
#ifndef CYGRAD_DEPTHWISE_H
#define CYGRAD_DEPTHWISE_H

#include "cygrad/microproduct.h"

#if defined(__GNUC__)
#define CG_PLANES 1
#define CG_UNROLL_16 _Pragma("GCC unroll 16")
#define REAL float
#define OF(name) name##_f
#define BYTES 16
#define MADD _mm_fmadd_ps
#define AT(name) name##_f16
#include "cygrad/depthwise.h"
#undef BYTES
#undef MADD
#undef AT
#define BYTES 32
#define MADD _mm256_fmadd_ps
#define AT(name) name##_f32
#include "cygrad/depthwise.h"
#undef BYTES
#undef MADD
#undef AT
#define BYTES 64
#define MADD _mm512_fmadd_ps
#define AT(name) name##_f64
#include "cygrad/depthwise.h"
#undef BYTES
#undef MADD
#undef AT
#undef REAL
#undef OF
#define REAL double
#define OF(name) name##_d
#define BYTES 16
#define MADD _mm_fmadd_pd
#define AT(name) name##_d16
#include "cygrad/depthwise.h"
#undef BYTES
#undef MADD
#undef AT
#define BYTES 32
#define MADD _mm256_fmadd_pd
#define AT(name) name##_d32
#include "cygrad/depthwise.h"
#undef BYTES
#undef MADD
#undef AT
#define BYTES 64
#define MADD _mm512_fmadd_pd
#define AT(name) name##_d64
#include "cygrad/depthwise.h"
#undef BYTES
#undef MADD
#undef AT
#undef REAL
#undef OF

/* y[i, j] = the sum of w[steps[t].a] x[i * pitch + j + steps[t].b] over tall * wide terms t, for i < rows and j <
   columns, and columns is at least the number of elements in 16 bytes. Rows of y begin ldy elements apart. */
#define PLANE(REAL, end)                                                                                               \
    static void cg_plane_##end(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t tall, ptrdiff_t wide, const REAL *w,       \
                               const cg_step *steps, const REAL *x, ptrdiff_t pitch, REAL *y, ptrdiff_t ldy) {         \
        ptrdiff_t nbytes = columns * (ptrdiff_t)sizeof(REAL), below = tall > 1 ? steps[wide].b - steps[0].b : 0;       \
        if (below != pitch && below != -pitch) below = 0;                                                              \
        for (ptrdiff_t t = wide; t < tall * wide; t++)                                                                 \
            if (steps[t].b - steps[t - wide].b != below) below = 0;                                                    \
        if (CG_VECTOR == 64 && nbytes >= 64)                                                                           \
            cg_rows_##end##64(rows, columns, tall, wide, w, steps, below, x, pitch, y, ldy);                           \
        else if (CG_VECTOR >= 32 && nbytes >= 32)                                                                      \
            cg_rows_##end##32(rows, columns, tall, wide, w, steps, below, x, pitch, y, ldy);                           \
        else cg_rows_##end##16(rows, columns, tall, wide, w, steps, below, x, pitch, y, ldy);                          \
    }
PLANE(float, f)
PLANE(double, d)
#undef PLANE

#else
#define CG_PLANES 0
#define cg_plane_f(...) ((void)0)
#define cg_plane_d(...) ((void)0)
#endif

#elif defined(AT) /* one precision and width */

typedef REAL AT(cg_lanes) __attribute__((vector_size(BYTES)));

/* z += x y. Pointers, because vectors that the level does not have cannot be arguments. */
CG_INLINE void AT(cg_add_product)(AT(cg_lanes) *z, const AT(cg_lanes) *x, const AT(cg_lanes) *y) {
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__) && BYTES < 64)
    *z = MADD(*x, *y, *z);
#else
    *z += *x * *y;
#endif
}

/* high rows of one vector. The kernel's terms are down `tall` rows, `below` apart, for each of `wide` columns:
   then a vector of x is loaded once for all of the rows that it meets, if high and tall are constants of the caller. */
CG_INLINE void AT(cg_down)(const int high, const int tall, ptrdiff_t wide, const REAL *w, const cg_step *steps,
                           ptrdiff_t below, const REAL *x, ptrdiff_t pitch, REAL *y, ptrdiff_t ldy) {
    AT(cg_lanes) sum[8], each[7], v;
    CG_UNROLL for (int i = 0; i < high; i++) sum[i] = (AT(cg_lanes)){0};
    for (ptrdiff_t b = 0; b < wide; b++) {
        const REAL *p = x + steps[below > 0 ? b : (tall - 1) * wide + b].b;
        CG_UNROLL for (int a = 0; a < tall; a++)
            each[a] = w[steps[(below > 0 ? a : tall - 1 - a) * wide + b].a] - (AT(cg_lanes)){0};
        CG_UNROLL_16 for (int q = 0; q < high + tall - 1; q++, p += pitch) {
            memcpy(&v, p, BYTES);
            CG_UNROLL for (int a = 0; a < tall; a++)
                if (q >= a && q - a < high) AT(cg_add_product)(&sum[q - a], &each[a], &v);
        }
    }
    CG_UNROLL for (int i = 0; i < high; i++) memcpy(y + i * ldy, &sum[i], BYTES);
}

/* high rows of one vector, with terms anywhere. */
CG_INLINE void AT(cg_anywhere)(const int high, ptrdiff_t k, const REAL *w, const cg_step *steps, const REAL *x,
                               ptrdiff_t pitch, REAL *y, ptrdiff_t ldy) {
    AT(cg_lanes) sum[8], v;
    CG_UNROLL for (int i = 0; i < high; i++) sum[i] = (AT(cg_lanes)){0};
    for (ptrdiff_t t = 0; t < k; t++) {
        const REAL *p = x + steps[t].b;
        AT(cg_lanes) each = w[steps[t].a] - (AT(cg_lanes)){0};
        CG_UNROLL for (int i = 0; i < high; i++, p += pitch) {
            __asm__("" : "+r"(p)); /* so that no register keeps the addresses of all rows */
            memcpy(&v, p, BYTES);
            AT(cg_add_product)(&sum[i], &each, &v);
        }
    }
    CG_UNROLL for (int i = 0; i < high; i++) memcpy(y + i * ldy, &sum[i], BYTES);
}

CG_INLINE void AT(cg_piece)(const int high, ptrdiff_t tall, ptrdiff_t wide, const REAL *w, const cg_step *steps,
                            ptrdiff_t below, const REAL *x, ptrdiff_t pitch, REAL *y, ptrdiff_t ldy) {
    if (below && tall == 3) AT(cg_down)(high, 3, wide, w, steps, below, x, pitch, y, ldy);
    else if (below && tall == 5) AT(cg_down)(high, 5, wide, w, steps, below, x, pitch, y, ldy);
    else if (below && tall == 7) AT(cg_down)(high, 7, wide, w, steps, below, x, pitch, y, ldy);
    else AT(cg_anywhere)(high, tall * wide, w, steps, x, pitch, y, ldy);
}

static void AT(cg_rows)(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t tall, ptrdiff_t wide, const REAL *w,
                        const cg_step *steps, ptrdiff_t below, const REAL *x, ptrdiff_t pitch, REAL *y, ptrdiff_t ldy) {
    enum { LANES = BYTES / sizeof(REAL) };
    for (ptrdiff_t j = 0; j < columns; j += LANES) {
        ptrdiff_t at = j + LANES > columns ? columns - LANES : j;
        for (ptrdiff_t r = 0; r < rows; r += rows < 8 ? 1 : 8) {
            ptrdiff_t i = rows >= 8 && r + 8 > rows ? rows - 8 : r;
            const REAL *p = x + i * pitch + at;
            REAL *q = y + i * ldy + at;
            if (rows < 8) AT(cg_piece)(1, tall, wide, w, steps, below, p, pitch, q, ldy);
            else AT(cg_piece)(8, tall, wide, w, steps, below, p, pitch, q, ldy);
        }
    }
}

#endif
