/* Mathematics in float32, for loops that become vectors: no function here has a branch, a call or a table, so a plain
   loop over one of them is compiled to 4, 8 or 16 elements at a time. Within 2 ulp of the exact result, for denormals
   too; NaN, infinities and signed zeros as NumPy has them (tests/ulps.py measures it).

   Polynomials are minimax for the relative error of the function (Remez's exchange in 200 bits), their coefficients
   rounded to float32 one by one, lowest first, and the rest fitted anew each time. */
#ifndef CYGRAD_SINGLE_H
#define CYGRAD_SINGLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cygrad/platform.h"

static inline int32_t cg_bits_f(float x) {
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

static inline float cg_from_bits_f(int32_t i) {
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* Added and taken away again, it rounds to an integer, and the integer stands in the sum's lowest bits. */
#define CG_ROUNDER_F 12582912.0f /* 1.5 * 2^23 */
#define CG_LN2_HIGH_F 0.693359375f /* 9 bits: its product with an exponent is exact */
#define CG_LN2_LOW_F -2.12194440e-4f

/* ---- exponentials ------------------------------------------------------------------------------------------------ */

/* e^r for |r| <= log(2) / 2; error of the polynomial 2^-28. */
static inline float cg_exp_core_f(float r) {
    float p = 0x1.6b03e6p-10f;
    p = cg_fma_f(p, r, 0x1.1244ccp-7f);
    p = cg_fma_f(p, r, 0x1.555826p-5f);
    p = cg_fma_f(p, r, 0x1.555482p-3f);
    p = cg_fma_f(p, r, 0x1.fffffcp-2f);
    return cg_fma_f(r * r, p, r) + 1;
}

/* y 2^n for -252 <= n <= 254, where n stands in the lowest bits of `shifted`; in two steps, so that the second rounds
   denormals and overflows. */
static inline float cg_scale_f(float y, float shifted) {
    int32_t n = cg_bits_f(shifted) - cg_bits_f(CG_ROUNDER_F), half = n >> 1;
    return y * cg_from_bits_f((half + 127) << 23) * cg_from_bits_f((n - half + 127) << 23);
}

/* e^(x + low) for x in [-104, 89], low small beside 1. */
static inline float cg_exp_sum_f(float x, float low) {
    float shifted = cg_fma_f(x, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    float r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x) + low);
    return cg_scale_f(cg_exp_core_f(r), shifted);
}

static inline float cg_exp_f(float x) {
    x = x > 89.0f ? 89.0f : x; /* infinite; a NaN stays one */
    x = x < -104.0f ? -104.0f : x; /* 0 */
    return cg_exp_sum_f(x, 0);
}

/* tanh x = x + x^3 P(x^2) below 0.625, 1 - 2 / (e^2x + 1) above. */
static inline float cg_tanh_f(float x) {
    float a = fabsf(x), b = a > 10.0f ? 10.0f : a, z = b * b, p = -0x1.750c8ep-8f, large;
    p = cg_fma_f(p, z, 0x1.51f8c8p-6f);
    p = cg_fma_f(p, z, -0x1.b835a4p-5f);
    p = cg_fma_f(p, z, 0x1.1106f6p-3f);
    p = cg_fma_f(p, z, -0x1.555532p-2f);
    large = 1 - 2 / (cg_exp_sum_f(b + b, 0) + 1);
    return copysignf(a < 0.625f ? cg_fma_f(z * p, a, a) : large, x);
}

/* 1 / (1 + e^-x), by e^-|x|, which is at most 1: no overflow, and small results keep all their digits. What 1 + e lost
   in rounding is put right afterwards, times 1 / (1 + e), for which 1 - e / 2 is near enough (2.3 ulp without). */
static inline float cg_sigmoid_f(float x) {
    float e = cg_exp_f(-fabsf(x)), sum = 1 + e, lost = e - (sum - 1), y = (x >= 0 ? 1 : e) / sum;
    return cg_fma_f(y * lost, cg_fma_f(0.5f, e, -1), y);
}

/* ---- logarithms -------------------------------------------------------------------------------------------------- */

/* k log 2 + log(1 + f) for 1 + f in [sqrt(1/2), sqrt 2); error of the polynomial 2^-27. */
static inline float cg_log_core_f(float f, float k) {
    float p = -0x1.392d7cp-4f, z = f * f;
    p = cg_fma_f(p, f, 0x1.0596a4p-3f);
    p = cg_fma_f(p, f, -0x1.0d8b28p-3f);
    p = cg_fma_f(p, f, 0x1.22d29cp-3f);
    p = cg_fma_f(p, f, -0x1.5470eap-3f);
    p = cg_fma_f(p, f, 0x1.99a048p-3f);
    p = cg_fma_f(p, f, -0x1.00022cp-2f);
    p = cg_fma_f(p, f, 0x1.555554p-2f);
    p = cg_fma_f(z * f, p, k * CG_LN2_LOW_F);
    p = cg_fma_f(z, -0.5f, p);
    return cg_fma_f(k, CG_LN2_HIGH_F, f + p);
}

static inline float cg_log_f(float x) {
    int denormal = x < 0x1p-126f;
    float y = denormal ? x * 0x1p23f : x, m;
    int32_t i = cg_bits_f(y) - 0x3f3504f3, k = i >> 23; /* from sqrt(1/2) on */
    m = cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3);
    y = cg_log_core_f(m - 1, (float)(denormal ? k - 23 : k));
    y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
    return x < INFINITY ? y : x; /* inf, and NaN with its sign */
}

#endif
