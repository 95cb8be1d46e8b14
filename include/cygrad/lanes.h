/* Sums of short rows of float32 in eight lanes: what sum_along of folds.pyx does, where it has no vectors.

Where gcc may use vectors of 512 bits it takes loops of eight numbers apart into single ones, as they fill but half of
one; told 256, in a function of its own, it makes vectors of them. A row of 64 takes 4 ns instead of 10. */

#ifndef CYGRAD_LANES_H
#define CYGRAD_LANES_H

#include <stddef.h>

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((noinline, target("prefer-vector-width=256")))
#endif
static void cg_short_sums(const float *x, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n, double *y, ptrdiff_t step)
{
    for (ptrdiff_t r = 0; r < rows; r++, x += row, y += step) {
        float few[8] = {0};
        ptrdiff_t i = 0;
        for (; i + 8 <= n; i += 8)
            for (int l = 0; l < 8; l++) few[l] += x[i + l];
        for (ptrdiff_t l = 0; l < n - i; l++) few[l] += x[i + l];
        *y += ((few[0] + few[1]) + (few[2] + few[3])) + ((few[4] + few[5]) + (few[6] + few[7]));
    }
}

#endif
