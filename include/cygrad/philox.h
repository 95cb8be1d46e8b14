/* Philox4x32-10: the words of CG_BLOCKS blocks from block `first` on, with the upper half of the counter 0
   (cygrad/kernels/random.pyx). A product of 32-bit numbers is one instruction for each vector of 64-bit numbers, which
   compilers do not find: they take 1.6 times as long. */
#ifndef CYGRAD_PHILOX_H
#define CYGRAD_PHILOX_H

#include <stdint.h>
#include <string.h>

#define CG_BLOCKS 64
#define CG_M0 0xD2511F53u /* the multipliers */
#define CG_M1 0xCD9E8D57u
#define CG_W0 0x9E3779B9u /* added to the key in each round */
#define CG_W1 0xBB67AE85u
#define CG_ROUNDS 10

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#include <immintrin.h>
#if defined(__AVX512F__)
#define CG_WORDS 8
#define CG_PRODUCT(x, y) (cg_words)_mm512_mul_epu32((__m512i)(x), (__m512i)(y))
#elif defined(__AVX2__)
#define CG_WORDS 4
#define CG_PRODUCT(x, y) (cg_words)_mm256_mul_epu32((__m256i)(x), (__m256i)(y))
#else
#define CG_WORDS 2
#define CG_PRODUCT(x, y) (cg_words)_mm_mul_epu32((__m128i)(x), (__m128i)(y)) /* of the lower halves */
#endif
#define CG_GROUPS 4 /* vectors at a time, so that no product is waited for */

typedef uint64_t cg_words __attribute__((vector_size(8 * CG_WORDS)));

static inline void cg_philox(uint64_t key, uint64_t first, uint32_t *words) {
    cg_words m0 = {0}, m1 = {0}, w0 = {0}, w1 = {0}, lower = {0}, left = {0}, right = {0};
    for (int i = 0; i < CG_WORDS; i++) {
        m0[i] = CG_M0, m1[i] = CG_M1, w0[i] = CG_W0, w1[i] = CG_W1, lower[i] = UINT32_MAX;
        left[i] = (i & 1) * CG_WORDS + i / 2, right[i] = left[i] + CG_WORDS / 2;
    }
    for (int j = 0; j < CG_BLOCKS; j += CG_GROUPS * CG_WORDS) {
        cg_words a[CG_GROUPS] = {{0}}, b[CG_GROUPS] = {{0}}, c[CG_GROUPS] = {{0}}, d[CG_GROUPS] = {{0}};
        cg_words k0 = (cg_words){0} + (uint32_t)key, k1 = (cg_words){0} + (key >> 32);
        for (int g = 0; g < CG_GROUPS; g++)
            for (int i = 0; i < CG_WORDS; i++) {
                uint64_t block = first + (uint64_t)(j + g * CG_WORDS + i);
                a[g][i] = block, b[g][i] = block >> 32;
            }
        for (int r = 0; r < CG_ROUNDS; r++) { /* the upper halves of words may be anything */
            for (int g = 0; g < CG_GROUPS; g++) {
                cg_words p0 = CG_PRODUCT(a[g], m0), p1 = CG_PRODUCT(c[g], m1);
                a[g] = p1 >> 32 ^ b[g] ^ k0;
                c[g] = p0 >> 32 ^ d[g] ^ k1;
                b[g] = p1, d[g] = p0;
            }
            k0 += w0;
            k1 += w1;
        }
        for (int g = 0; g < CG_GROUPS; g++) {
            cg_words x = (a[g] & lower) | b[g] << 32, y = (c[g] & lower) | d[g] << 32;
            cg_words low = __builtin_shuffle(x, y, left), high = __builtin_shuffle(x, y, right);
            uint32_t *to = words + 4 * (j + g * CG_WORDS);
            memcpy(to, &low, sizeof(low));
            memcpy(to + 2 * CG_WORDS, &high, sizeof(high));
        }
    }
}

#else
static inline void cg_philox(uint64_t key, uint64_t first, uint32_t *words) {
    uint32_t a[CG_BLOCKS], b[CG_BLOCKS], c[CG_BLOCKS], d[CG_BLOCKS], k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < CG_BLOCKS; i++)
        a[i] = (uint32_t)(first + (uint64_t)i), b[i] = (uint32_t)((first + (uint64_t)i) >> 32), c[i] = 0, d[i] = 0;
    for (int r = 0; r < CG_ROUNDS; r++, k0 += CG_W0, k1 += CG_W1)
        for (int i = 0; i < CG_BLOCKS; i++) {
            uint64_t p0 = (uint64_t)CG_M0 * a[i], p1 = (uint64_t)CG_M1 * c[i];
            a[i] = (uint32_t)(p1 >> 32) ^ b[i] ^ k0;
            c[i] = (uint32_t)(p0 >> 32) ^ d[i] ^ k1;
            b[i] = (uint32_t)p1, d[i] = (uint32_t)p0;
        }
    for (int i = 0; i < CG_BLOCKS; i++)
        words[4 * i] = a[i], words[4 * i + 1] = b[i], words[4 * i + 2] = c[i], words[4 * i + 3] = d[i];
}
#endif

#endif
