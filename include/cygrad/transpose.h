/* Transposing small blocks of elements of 4 or 8 bytes. */
#ifndef CYGRAD_TRANSPOSE_H
#define CYGRAD_TRANSPOSE_H

#include <stddef.h>
#include <string.h>

#include "cygrad/platform.h"

#if defined(__SSE2__)
/* rows[r][c] = columns[c][r] for a block of 4 by 4 elements of 4 bytes; steps are in bytes. */
static inline void cg_transpose_block_4(char *rows, ptrdiff_t row, const char *columns, ptrdiff_t column) {
    __m128 a = _mm_loadu_ps((const float *)columns), b = _mm_loadu_ps((const float *)(columns + column));
    __m128 c = _mm_loadu_ps((const float *)(columns + 2 * column));
    __m128 d = _mm_loadu_ps((const float *)(columns + 3 * column));
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps((float *)rows, a);
    _mm_storeu_ps((float *)(rows + row), b);
    _mm_storeu_ps((float *)(rows + 2 * row), c);
    _mm_storeu_ps((float *)(rows + 3 * row), d);
}
/* The same for 2 by 2 elements of 8 bytes. */
static inline void cg_transpose_block_8(char *rows, ptrdiff_t row, const char *columns, ptrdiff_t column) {
    __m128d a = _mm_loadu_pd((const double *)columns), b = _mm_loadu_pd((const double *)(columns + column));
    _mm_storeu_pd((double *)rows, _mm_unpacklo_pd(a, b));
    _mm_storeu_pd((double *)(rows + row), _mm_unpackhi_pd(a, b));
}
#define CG_BLOCK(size) ((size) == 4 ? 4 : (size) == 8 ? 2 : 1)
#else
#define cg_transpose_block_4(rows, row, columns, column) ((void)0)
#define cg_transpose_block_8(rows, row, columns, column) ((void)0)
#define CG_BLOCK(size) 1
#endif

/* rows[r][c] = columns[c][r] for any number of elements of `size` bytes. `row` and `column` are the steps in bytes from
   one row or column to the next. The columns of a block are read whole before those of the next one, because columns
   whose step is a power of 2 evict each other from the first-level cache. The columns further on are prefetched. */
static inline void cg_transpose_tile(char *rows, ptrdiff_t row, const char *columns, ptrdiff_t column, ptrdiff_t nrows,
                                     ptrdiff_t ncolumns, int size) {
    ptrdiff_t block = CG_BLOCK(size), r, c, i;
    for (c = 0; c + block <= ncolumns && block > 1; c += block) {
        const char *x = columns + c * column;
        for (i = 0; i < block; i++) cg_prefetch(x + (i + 16) * column, 1);
        for (r = 0; r + block <= nrows; r += block) {
            char *y = rows + r * row + c * size;
            if (size == 4) cg_transpose_block_4(y, row, x + r * 4, column);
            else cg_transpose_block_8(y, row, x + r * 8, column);
        }
        for (; r < nrows; r++)
            for (i = 0; i < block; i++) memcpy(rows + r * row + (c + i) * size, x + i * column + r * size, (size_t)size);
    }
    for (c = block > 1 ? ncolumns / block * block : 0; c < ncolumns; c++)
        for (r = 0; r < nrows; r++) memcpy(rows + r * row + c * size, columns + c * column + r * size, (size_t)size);
}
#endif
