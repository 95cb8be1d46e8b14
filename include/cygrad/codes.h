/* Operations on 64 elements and the bits of a word: comparisons, tests for nonzero, and conversion of bits to bytes.
   Compilers do not generate the instructions for this. When a loop wrote bytes that were packed afterwards, packing the
   signs of a million float32 took half as long as their abs; this takes a tenth. Comparisons with NaN are false. */
#ifndef CYGRAD_CODES_H
#define CYGRAD_CODES_H

#include <stdint.h>
#include <string.h>

static const double cg_zeros[64]; /* 64 zeros, readable as float too */

#if defined(__AVX512BW__) && defined(__AVX512DQ__)
#include <immintrin.h>
#define CG_JOINED(a, b, c, d) _cvtmask64_u64(_mm512_kunpackd(_mm512_kunpackw(d, c), _mm512_kunpackw(b, a)))
#define CG_SIXTEEN_F(i, HOW) _mm512_cmp_ps_mask(_mm512_loadu_ps(x + (i)), _mm512_loadu_ps(y + (i)), HOW)
#define CG_EIGHT_D(i, HOW) _mm512_cmp_pd_mask(_mm512_loadu_pd(x + (i)), _mm512_loadu_pd(y + (i)), HOW)
#define CG_SIXTEEN_D(i, HOW) _mm512_kunpackb(CG_EIGHT_D((i) + 8, HOW), CG_EIGHT_D(i, HOW))
#define CG_COMPARISON(NAME, SSE_F, SSE_D, HOW, SIGN)                                                                 \
    static inline uint64_t NAME##_f(const float *x, const float *y) {                                                \
        return CG_JOINED(CG_SIXTEEN_F(0, HOW), CG_SIXTEEN_F(16, HOW), CG_SIXTEEN_F(32, HOW), CG_SIXTEEN_F(48, HOW)); \
    }                                                                                                                \
    static inline uint64_t NAME##_d(const double *x, const double *y) {                                              \
        return CG_JOINED(CG_SIXTEEN_D(0, HOW), CG_SIXTEEN_D(16, HOW), CG_SIXTEEN_D(32, HOW), CG_SIXTEEN_D(48, HOW)); \
    }

/* Which of 64 bytes are not 0. */
static inline uint64_t cg_nonzero(const uint8_t *x) {
    const __m512i v = _mm512_loadu_si512(x);
    return _cvtmask64_u64(_mm512_test_epi8_mask(v, v));
}

/* 64 bytes of 0 to 3 from their low and high bits. */
static inline void cg_spread(uint64_t low, uint64_t high, uint8_t *codes) {
    const __m512i v = _mm512_maskz_set1_epi8(_cvtu64_mask64(low), 1);
    _mm512_storeu_si512(codes, _mm512_mask_add_epi8(v, _cvtu64_mask64(high), v, _mm512_set1_epi8(2)));
}

#elif defined(__AVX2__)
#include <immintrin.h>
#define CG_EIGHT_F(i, HOW) \
    _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(x + (i)), _mm256_loadu_ps(y + (i)), HOW))
#define CG_FOUR_D(i, HOW) \
    ((uint64_t)_mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(x + (i)), _mm256_loadu_pd(y + (i)), HOW)) << (i))
#define CG_SIXTEEN_D(i, HOW) \
    (CG_FOUR_D(i, HOW) | CG_FOUR_D((i) + 4, HOW) | CG_FOUR_D((i) + 8, HOW) | CG_FOUR_D((i) + 12, HOW))
#define CG_COMPARISON(NAME, SSE_F, SSE_D, HOW, SIGN)                                                                 \
    static inline uint64_t NAME##_f(const float *x, const float *y) {                                                \
        return cg_joined(CG_EIGHT_F(0, HOW), CG_EIGHT_F(8, HOW), CG_EIGHT_F(16, HOW), CG_EIGHT_F(24, HOW)) |         \
               cg_joined(CG_EIGHT_F(32, HOW), CG_EIGHT_F(40, HOW), CG_EIGHT_F(48, HOW), CG_EIGHT_F(56, HOW)) << 32;  \
    }                                                                                                                \
    static inline uint64_t NAME##_d(const double *x, const double *y) {                                              \
        return CG_SIXTEEN_D(0, HOW) | CG_SIXTEEN_D(16, HOW) | CG_SIXTEEN_D(32, HOW) | CG_SIXTEEN_D(48, HOW);         \
    }

/* A bit for each of 32 masks of 32 bits. Packing works on halves of vectors; the permutation restores the order. */
static inline uint64_t cg_joined(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return (uint32_t)_mm256_movemask_epi8(_mm256_permutevar8x32_epi32(bytes, order));
}

static inline uint64_t cg_zero_bytes(const uint8_t *x) {
    const __m256i v = _mm256_loadu_si256((const __m256i *)x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256()));
}
static inline uint64_t cg_nonzero(const uint8_t *x) { return ~(cg_zero_bytes(x) | cg_zero_bytes(x + 32) << 32); }

/* 32 bytes of 0 or -1. Byte k of the word is copied to bytes 8 k to 8 k + 7, and each of these tests its own bit. */
static inline __m256i cg_bytes_of(uint64_t bits) {
    const __m256i places = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                            2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i own = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)(uint32_t)bits), places), own);
    return _mm256_cmpeq_epi8(v, own);
}
static inline void cg_spread(uint64_t low, uint64_t high, uint8_t *codes) {
    for (int k = 0; k < 64; k += 32) {
        const __m256i v = _mm256_sub_epi8(_mm256_setzero_si256(), cg_bytes_of(low >> k)), w = cg_bytes_of(high >> k);
        _mm256_storeu_si256((__m256i *)(codes + k), _mm256_sub_epi8(v, _mm256_add_epi8(w, w)));
    }
}

#else
#if defined(__SSE2__)
#include <emmintrin.h>
#define CG_FOUR_F(i, SSE) _mm_castps_si128(SSE(_mm_loadu_ps(x + (i)), _mm_loadu_ps(y + (i))))
#define CG_TWO_D(i, SSE) ((uint64_t)_mm_movemask_pd(SSE(_mm_loadu_pd(x + (i)), _mm_loadu_pd(y + (i)))) << (i))
#define CG_COMPARISON(NAME, SSE_F, SSE_D, HOW, SIGN)                                                                 \
    static inline uint64_t NAME##_f(const float *x, const float *y) {                                                \
        uint64_t bits = 0;                                                                                           \
        for (int i = 0; i < 64; i += 16)                                                                             \
            bits |= (uint64_t)_mm_movemask_epi8(                                                                     \
                        _mm_packs_epi16(_mm_packs_epi32(CG_FOUR_F(i, SSE_F), CG_FOUR_F(i + 4, SSE_F)),               \
                                        _mm_packs_epi32(CG_FOUR_F(i + 8, SSE_F), CG_FOUR_F(i + 12, SSE_F)))) << i;   \
        return bits;                                                                                                 \
    }                                                                                                                \
    static inline uint64_t NAME##_d(const double *x, const double *y) {                                              \
        uint64_t bits = 0;                                                                                           \
        for (int i = 0; i < 64; i += 2) bits |= CG_TWO_D(i, SSE_D);                                                  \
        return bits;                                                                                                 \
    }
#else
#define CG_COMPARISON(NAME, SSE_F, SSE_D, HOW, SIGN)                                                                 \
    static inline uint64_t NAME##_f(const float *x, const float *y) {                                                \
        uint64_t bits = 0;                                                                                           \
        for (int i = 0; i < 64; i++) bits |= (uint64_t)(x[i] SIGN y[i]) << i;                                        \
        return bits;                                                                                                 \
    }                                                                                                                \
    static inline uint64_t NAME##_d(const double *x, const double *y) {                                              \
        uint64_t bits = 0;                                                                                           \
        for (int i = 0; i < 64; i++) bits |= (uint64_t)(x[i] SIGN y[i]) << i;                                        \
        return bits;                                                                                                 \
    }
#endif

/* Turns eight bytes into 0 or 1. Then the product moves bit 8 k to bit 56 + k, without carries. */
static inline uint64_t cg_nonzero(const uint8_t *x) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7F, ones = 0x0101010101010101;
    uint64_t bits = 0, eight;
    for (int i = 0; i < 64; i += 8) {
        memcpy(&eight, x + i, 8);
        eight = (((eight & low) + low) | eight) >> 7 & ones;
        bits |= (eight * 0x0102040810204080 >> 56) << i;
    }
    return bits;
}

/* Copies the lowest eight bits to each byte of a word; byte k becomes bit k, 0 or 1. */
static inline uint64_t cg_bytes_of(uint64_t bits) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7F, ones = 0x0101010101010101;
    return (((bits & 0xFF) * ones & 0x8040201008040201) + low) >> 7 & ones;
}
static inline void cg_spread(uint64_t low, uint64_t high, uint8_t *codes) {
    for (int i = 0; i < 64; i += 8) {
        const uint64_t eight = cg_bytes_of(low >> i) | cg_bytes_of(high >> i) << 1;
        memcpy(codes + i, &eight, 8);
    }
}
#endif

/* x > y and x >= y for 64 elements, as bits. */
CG_COMPARISON(cg_greater, _mm_cmpgt_ps, _mm_cmpgt_pd, _CMP_GT_OQ, >)
CG_COMPARISON(cg_at_least, _mm_cmpge_ps, _mm_cmpge_pd, _CMP_GE_OQ, >=)

#endif
