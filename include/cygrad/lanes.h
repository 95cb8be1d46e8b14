/* Sums and dots of short rows of float32 in eight lanes, for folds.pyx and linalg/panels.pyx.

   If gcc prefers vectors of 512 bits, it unrolls loops over eight floats into scalar code, because eight floats fill
   only half a vector. In a function that prefers 256 bits it vectorizes them: a row of 64 takes 4 ns instead of 10. */

#ifndef CYGRAD_LANES_H
#define CYGRAD_LANES_H

#include <stddef.h>

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, target("prefer-vector-width=256")))
#endif
static void cg_short_sums(const float *x, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n, double *y, ptrdiff_t step)
{
    for (ptrdiff_t r = 0; r < rows; r++, x += row, y += step) {
        float lane[8] = {0};
        ptrdiff_t i = 0;
        for (; i + 8 <= n; i += 8)
            for (int l = 0; l < 8; l++) lane[l] += x[i + l];
        for (ptrdiff_t l = 0; l < n - i; l++) lane[l] += x[i + l];
        *y += ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
}

/* y[r] += the dot of z and row r of x, with the bits of dot_of() in kernels/lanes.pxd. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, target("prefer-vector-width=256")))
#endif
static void cg_short_dots(const float *x, ptrdiff_t row, ptrdiff_t rows, const float *z, ptrdiff_t n, double *y)
{
    for (ptrdiff_t r = 0; r < rows; r++, x += row) {
        float lane[8] = {0};
        ptrdiff_t i = 0;
        for (; i + 8 <= n; i += 8)
            for (int l = 0; l < 8; l++) lane[l] += x[i + l] * z[i + l];
        for (ptrdiff_t l = 0; l < n - i; l++) lane[l] += x[i + l] * z[i + l];
        y[r] += ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
}

#endif
