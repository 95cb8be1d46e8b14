/* Mathematical functions of float32 that the compiler can vectorize. They have no branches, calls or tables, so a plain
   loop over one of them computes 4, 8 or 16 elements at a time. Errors are at most 2 ulp, for denormals too. Results
   for NaN, infinities and signed zeros are NumPy's (tests/support/ulps.py measures both). tan and the logarithm in pow
   are computed in float64, which is shorter and half as fast; all other functions in float32.

   Polynomials are minimax fits of the relative error (Remez algorithm with 200 bits). Their coefficients are rounded to
   float32 one by one, the lowest first, and the others are fitted again each time. */
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

/* Adding and subtracting it rounds to an integer. The lowest bits of the sum are that integer. */
#define CG_ROUNDER_F 12582912.0f /* 1.5 * 2^23 */
#define CG_LN2_HIGH_F 0.693359375f /* 9 bits: its product with an exponent is exact */
#define CG_LN2_LOW_F -2.12194440e-4f

/* ---- exponentials ------------------------------------------------------------------------------------------------ */

/* e^r for |r| <= log(2) / 2. The error of the polynomial is 2^-28. */
static inline float cg_exp_core_f(float r) {
    float p = 0x1.6b03e6p-10f;
    p = cg_fma_f(p, r, 0x1.1244ccp-7f);
    p = cg_fma_f(p, r, 0x1.555826p-5f);
    p = cg_fma_f(p, r, 0x1.555482p-3f);
    p = cg_fma_f(p, r, 0x1.fffffcp-2f);
    return cg_fma_f(r * r, p, r) + 1;
}

/* A product whose result is denormal or underflows takes an Intel CPU 150 cycles: exp took seven times as long for such
   results. Denormals are therefore computed by a sum of numbers that are 2^64 times as large. There 2^-62 is the
   smallest normal number, and the fraction bits of y + 2^-62 are those of y as a denormal, rounded. Half of that sum
   has the exponent that becomes 0. It is larger than y exactly where y becomes denormal, so the result is the larger of
   the two.

   This takes up to a third of a function's time. Functions with a parameter `near`, a constant, omit it for near = 1,
   which is correct for |x| up to the limits below. Kernels check whether all elements of a run are within the limit.
   The bits are the same. */
#define CG_NEAR_EXP_F 87.0f
#define CG_NEAR_SIGMOID_F 40.0f /* silu and softplus too */
#define CG_NEAR_NORMAL_F 12.0f  /* gelu and bell too */
#define CG_DOWN_F (64 << 23)

/* y 2^-64 for y >= 0, rounded once. */
static inline float cg_down_f(float y) {
    float small = cg_fma_f(y, 0.5f, 0x1p-63f);
    return cg_from_bits_f(cg_bits_f(y > small ? y : small) - CG_DOWN_F);
}

static inline float cg_finish_f(float y, int near) { return near ? 0x1p-64f * y : cg_down_f(y); }

/* max(y, 1) for y >= 0. Compares integers: with floats the compiler would move a multiplication into a select. */
static inline float cg_from_one_f(float y) {
    int32_t i = cg_bits_f(y), one = cg_bits_f(1);
    return cg_from_bits_f(i > one ? i : one);
}

/* y >= 0, but 0 if y < minimum. Uses a shift, because the compiler would turn a comparison into a select. */
static inline float cg_or_zero_f(float y, float minimum) {
    int32_t i = cg_bits_f(y);
    return cg_from_bits_f(i & ((cg_bits_f(minimum) - 1 - i) >> 31));
}

/* y 2^n for y from 1/2 to 2 and -180 <= n <= 128, rounded once. n is in the lowest bits of `shifted`; the shift removes
   the others. A number that would overflow when multiplied by 2^64 is limited to 4; there y 2^n is the larger one. */
static inline float cg_scale_f(float y, float shifted) {
    int32_t i = (int32_t)((uint32_t)cg_bits_f(y) + ((uint32_t)cg_bits_f(shifted) << 23)), four = cg_bits_f(4);
    float up = cg_from_bits_f((i < four ? i : four) + CG_DOWN_F);
    int32_t small = cg_bits_f(cg_fma_f(up, 0.5f, 0x1p-63f)) - CG_DOWN_F, infinity = cg_bits_f(INFINITY);
    i = i > small ? i : small;
    return cg_from_bits_f(i < infinity ? i : infinity);
}

/* e^(x + low) for x + low in [-120, 89]. low is the part of the argument that does not fit into x. */
static inline float cg_exp_sum_f(float x, float low) {
    float shifted = cg_fma_f(x + low, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    float r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x) + low);
    return cg_scale_f(cg_exp_core_f(r), shifted);
}

/* e^x for x that is not NaN. The limits, beyond which the result is 0 or infinite, are compared as integers. That takes
   two instructions; comparisons of floats take seven, because of NaN. As unsigned integers, the bits of numbers below
   -104 are larger than its bits. As signed integers, the bits of numbers above 89 are larger than its bits. */
static inline float cg_exp_of_number_f(float x) {
    uint32_t u = (uint32_t)cg_bits_f(x), low = (uint32_t)cg_bits_f(-104.0f);
    int32_t i = (int32_t)(u < low ? u : low), high = cg_bits_f(89.0f);
    float b = cg_from_bits_f(i < high ? i : high);
    float shifted = cg_fma_f(b, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    return cg_scale_f(cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, b))), shifted);
}

static inline float cg_exp_f(float x) {
    float y = cg_exp_of_number_f(x);
    return x == x ? y : x;
}

/* The same for results that are neither denormal nor infinite: one addition adds n to the exponent. */
static inline float cg_times_power_f(float y, float shifted) {
    return cg_from_bits_f((int32_t)((uint32_t)cg_bits_f(y) + ((uint32_t)cg_bits_f(shifted) << 23)));
}

static inline float cg_exp_near_f(float x) {
    float shifted = cg_fma_f(x, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    return cg_times_power_f(cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x))), shifted);
}

/* 2^64 e^x for x <= 0, which is never denormal. cg_down_f removes the factor after the last multiplication. near: for
   x from -110 to 0. */
static inline float cg_exp_up_near_f(float x) {
    float shifted = cg_fma_f(x, 0x1.715476p+0f, CG_ROUNDER_F + 64), n = shifted - (CG_ROUNDER_F + 64);
    return cg_times_power_f(cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x))), shifted);
}

static inline float cg_exp_up_f(float x) {
    uint32_t u = (uint32_t)cg_bits_f(x), low = (uint32_t)cg_bits_f(-104.0f);
    float y = cg_exp_up_near_f(cg_from_bits_f((int32_t)(u < low ? u : low)));
    return x == x ? y : x;
}

/* 2^n (e^r - 1) + (2^n - 1). n is 0 for |x| < 1/2, which avoids a sum that cancels half of its digits. The terms are
   halved so that 2^128 does not overflow. */
static inline float cg_expm1_f(float x) {
    float b = x > 89.0f ? 89.0f : x < -25.0f ? -25.0f : x, shifted, n, r, p = 0x1.b16142p-13f, half, y;
    shifted = cg_fma_f(b, 0x1.715476p+0f, CG_ROUNDER_F);
    shifted = fabsf(b) < 0.5f ? CG_ROUNDER_F : shifted;
    n = shifted - CG_ROUNDER_F;
    r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, b));
    p = cg_fma_f(p, r, 0x1.6f4b2ap-10f);
    p = cg_fma_f(p, r, 0x1.10fff8p-7f);
    p = cg_fma_f(p, r, 0x1.5551bap-5f);
    p = cg_fma_f(p, r, 0x1.555560p-3f);
    p = cg_fma_f(p, r, 0x1.000002p-1f);
    p = cg_fma_f(r * r, p, r);
    half = cg_from_bits_f((cg_bits_f(shifted) - cg_bits_f(CG_ROUNDER_F) + 126) << 23);
    y = 2 * cg_fma_f(half, p, half - 0.5f);
    y = n == 0 ? p : y;
    return x == 0 ? x : y;
}

/* 2^64 e^(x + low) for x from -115 to 0, which is never denormal, so one addition adds n to the exponent. */
static inline float cg_exp_sum_up_f(float x, float low) {
    float shifted = cg_fma_f(x, 0x1.715476p+0f, CG_ROUNDER_F + 64), n = shifted - (CG_ROUNDER_F + 64);
    float r = cg_fma_f(-n, CG_LN2_LOW_F, low + cg_fma_f(-n, CG_LN2_HIGH_F, x));
    return cg_times_power_f(cg_exp_core_f(r), shifted);
}

/* e^(-x^2 / 2) and e^(-x^2). x^2 has two parts: the square of the upper 12 bits, which is exact, and the rest. The
   rounding error of the whole square would be up to 50 times 2^-24 in the exponential. cg_bell_core_f takes
   0 <= b <= 15, cg_gauss_core_f takes 0 <= b <= 10.5; both have a factor of 2^64. */
static inline float cg_bell_core_f(float b) {
    float high = cg_from_bits_f(cg_bits_f(b) & ~0xfff);
    return cg_exp_sum_up_f(-0.5f * (high * high), -0.5f * ((b - high) * (b + high)));
}
static inline float cg_gauss_core_f(float b) {
    float high = cg_from_bits_f(cg_bits_f(b) & ~0xfff);
    return cg_exp_sum_up_f(-(high * high), -((b - high) * (b + high)));
}

/* min(|x|, limit); limit for NaN. One instruction with integers, seven with floats. */
static inline float cg_size_f(float x, float limit) {
    uint32_t bits = (uint32_t)cg_bits_f(x) & 0x7fffffff, limit_bits = (uint32_t)cg_bits_f(limit);
    return cg_from_bits_f((int32_t)(bits < limit_bits ? bits : limit_bits));
}

static inline float cg_bell_f(float x, int near) {
    float y = cg_finish_f(cg_bell_core_f(near ? fabsf(x) : cg_size_f(x, 15)), near);
    return near || x == x ? y : x;
}

static inline float cg_gauss_f(float x) {
    float y = cg_down_f(cg_gauss_core_f(cg_size_f(x, 10.5f)));
    return x == x ? y : x;
}

/* tanh x = x + x^3 P(x^2) below 0.625, 1 - 2 / (e^2x + 1) above. */
static inline float cg_tanh_f(float x) {
    float a = fabsf(x), b = a > 10.0f ? 10.0f : a, z = b * b, p = -0x1.750c8ep-8f, large;
    p = cg_fma_f(p, z, 0x1.51f8c8p-6f);
    p = cg_fma_f(p, z, -0x1.b835a4p-5f);
    p = cg_fma_f(p, z, 0x1.1106f6p-3f);
    p = cg_fma_f(p, z, -0x1.555532p-2f);
    large = 1 - 2 / (cg_exp_near_f(b + b) + 1);
    return copysignf(a >= 0.625f ? large : cg_fma_f(z * p, a, a), x);
}

/* 1 / (1 + e^-x), computed from e = e^-|x| <= 1. This does not overflow, and small results are accurate. The rounding
   error of 1 + e is corrected afterwards (2.3 ulp without). The correction is too large for e near 1, where it matters
   little. e has a factor of 2^64 until the end, so that it is never denormal. */
static inline float cg_sigmoid_f(float x, int near) {
    float e = cg_exp_up_near_f(near ? -fabsf(x) : -cg_size_f(x, 110));
    float large = near ? e : cg_or_zero_f(e, 1); /* smaller numbers do not change 1 + e */
    float sum = cg_fma_f(large, 0x1p-64f, 1), lost = cg_fma_f(large, 0x1p-64f, 1 - sum);
    float y = (x >= 0 ? 0x1p64f : e) / sum;
    y = cg_finish_f(cg_fma_f(-y, lost, y), near);
    return near || x == x ? y : x;
}

/* x / (1 + e^-x) = x t / (1 + e) for t = e if x < 0, otherwise 1. The product x t and the sum 1 + e have rounding
   errors, and so has the reciprocal of the sum: all three are in the remainder of the quotient, which corrects it. Its
   first part, x t minus the quotient, is exact. Without fused multiply-add, where a remainder has as large an error
   itself, the error of the sum alone is corrected. If not near, e has a factor of 2^64 until the end where x < 0, so
   that nothing before is denormal. */
static inline float cg_silu_f(float x, int near) {
    int32_t minus = cg_bits_f(x) >> 31, one = cg_bits_f(1); /* -1 for x < 0; selects would compute all of it twice */
    float b = near || x > -110 ? x : -110, top, sum, product, y, r, q;
    float up = near ? cg_exp_near_f(-fabsf(x)) : cg_exp_up_near_f(-cg_size_f(x, 110));
    float e = near ? up : 0x1p-64f * cg_or_zero_f(up, 1); /* smaller numbers do not change 1 + e */
    sum = 1 + e;
    top = cg_from_bits_f(one ^ ((one ^ cg_bits_f(up)) & minus));
    product = b * top;
    if (CG_FUSED) {
        r = 1 / sum;
        q = product * r;
        y = cg_fma_f(-q, e, product - q) + cg_fma_f(b, top, -product);
        y = cg_fma_f(y, r, q);
    } else {
        q = product / sum;
        y = q - q * (e - (sum - 1));
    }
    if (near) return copysignf(y, x);
    y = cg_from_bits_f((cg_bits_f(cg_down_f(-y)) & minus) | (cg_bits_f(y) & ~minus));
    y = copysignf(y, x);
    y = x > -INFINITY ? y : NAN; /* the result of inf / inf */
    return x < INFINITY ? y : x;
}

/* log(1 + e^x) = max(x, 0) + log(1 + e) with e = e^-|x|. log(1 + e) = e + e^2 (log 2 - 1 + (1 - e) P(e)), where the
   factor 1 - e reduces the rounding errors of P for e near 1, where they are largest. For small e, log(1 + e) is e. */
static inline float cg_softplus_f(float x, int near) {
    float full = near ? cg_exp_near_f(-fabsf(x)) : cg_exp_of_number_f(-fabsf(x)), p = 0x1.a66146p-9f;
    float e = near ? full : cg_or_zero_f(full, 0x1p-40f);
    p = cg_fma_f(p, e, -0x1.0f92d8p-6f);
    p = cg_fma_f(p, e, 0x1.4ac1eep-5f);
    p = cg_fma_f(p, e, -0x1.0d5abep-4f);
    p = cg_fma_f(p, e, 0x1.661e3ap-4f);
    p = cg_fma_f(p, e, -0x1.c02408p-4f);
    p = cg_fma_f(p, e, 0x1.1f0aaap-3f);
    p = cg_fma_f(p, e, -0x1.8b9060p-3f);
    p = cg_fma_f(1 - e, p, -0x1.3a37a0p-2f);
    p = cg_fma_f(e * e, p, e);
    if (near) return (x <= 0 ? 0 : x) + p;
    p = e > 0 ? p : full;
    return x <= 0 ? p : x + p; /* propagates NaN */
}

/* For |x| = n log 2 + r: sinh r and cosh r - 1 by polynomials. They give e^r - 1 and e^-r, so e^-|x| needs no division.
   h = 2^(n - 2) and q = 2^(-n - 2): the result is doubled at the end, and only that step can overflow. n is 0 for
   |x| < from. */
static inline void cg_hyperbolic_f(float x, float from, float *s, float *c, float *h, float *q) {
    float b = cg_size_f(x, 89.5f), shifted = cg_fma_f(b, 0x1.715476p+0f, CG_ROUNDER_F), n, r, z;
    int32_t i, j;
    if (from > 0) shifted = b < from ? CG_ROUNDER_F : shifted; /* `from` is a constant */
    n = shifted - CG_ROUNDER_F;
    r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, b));
    z = r * r;
    *c = z * cg_fma_f(z, cg_fma_f(z, 0x1.6d4f06p-10f, 0x1.5554e6p-5f), 0.5f); /* cosh r - 1, for |r| <= log(2) / 2 */
    *s = cg_fma_f(0x1.75a6f4p-19f, z, 0x1.a02156p-13f);                       /* sinh r, for |r| <= 1 */
    *s = cg_fma_f(*s, z, 0x1.1110e2p-7f);
    *s = cg_fma_f(*s, z, 0x1.555556p-3f);
    *s = cg_fma_f(r * z, *s, r);
    i = cg_bits_f(shifted) - cg_bits_f(CG_ROUNDER_F), j = 125 - i;
    *h = cg_from_bits_f((i + 125) << 23);
    *q = cg_from_bits_f((j > 0 ? j : 0) << 23);
}

static inline float cg_sinh_f(float x) {
    float s, c, h, q, y;
    cg_hyperbolic_f(x, 1, &s, &c, &h, &q);
    y = 2 * (h + cg_fma_f(h, c + s, (s - c - 1) * q));
    y = fabsf(x) < 1 ? s : y;
    return copysignf(x == x ? y : x, x);
}

static inline float cg_cosh_f(float x) {
    float s, c, h, q, y;
    cg_hyperbolic_f(x, 0, &s, &c, &h, &q);
    y = 2 * (h + cg_fma_f(h, c + s, (1 - (s - c)) * q));
    return x == x ? y : x;
}

/* ---- logarithms -------------------------------------------------------------------------------------------------- */

/* k log 2 + log(1 + f) for 1 + f in [sqrt(1/2), sqrt 2). The error of the polynomial is 2^-27. */
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

/* f and *k of cg_log_core_f for x = 2^k (1 + f), x > 0. */
static inline float cg_log_split_f(float x, float *k) {
    int denormal = x < 0x1p-126f;
    int32_t i = cg_bits_f(denormal ? x * 0x1p23f : x) - 0x3f3504f3, n = i >> 23; /* 0x3f3504f3: sqrt(1/2) */
    *k = (float)(denormal ? n - 23 : n);
    return cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3) - 1;
}

/* y for x > 0; the logarithms of the other numbers. */
static inline float cg_log_ends_f(float x, float y) {
    y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
    return x < INFINITY ? y : x; /* inf, and NaN with its sign */
}

static inline float cg_log_f(float x) {
    float k, f = cg_log_split_f(x, &k);
    return cg_log_ends_f(x, cg_log_core_f(f, k));
}

/* log x / log b, where scale is 1 / log b, and log 2 / log b is high + low. high has 16 bits, so its product with k is
   exact and the last sum is the only one that rounds a large result: powers of b give integers. */
static inline float cg_log_of_base_f(float x, float scale, float high, float low) {
    float k, f = cg_log_split_f(x, &k);
    return cg_log_ends_f(x, cg_fma_f(k, high, cg_fma_f(cg_log_core_f(f, 0), scale, k * low)));
}

/* log(1 + x). The rounding error of 1 + x is added to f. For small x, f is x. */
static inline float cg_log1p_f(float x) {
    float u = 1 + x, lost = x >= 1 ? 1 - (u - x) : x - (u - 1), m, y;
    int32_t i = cg_bits_f(u) - 0x3f3504f3, k = i >> 23, exponent = k > 126 ? 126 : k; /* 2^-k is a normal number */
    m = cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3);
    y = cg_log_core_f(cg_fma_f(lost, cg_from_bits_f((127 - exponent) << 23), m - 1), (float)k);
    y = x > -1 ? y : x == -1 ? -INFINITY : NAN;
    y = x == 0 ? x : y; /* -0 */
    return x < INFINITY ? y : x;
}

/* log u + more log 2 for positive normal u; cg_log_sum_f computes it for u + lost, where `lost` is a rounding error. */
static inline float cg_log_near_f(float u, int32_t more) {
    int32_t i = cg_bits_f(u) - 0x3f3504f3;
    return cg_log_core_f(cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3) - 1, (float)((i >> 23) + more));
}

static inline float cg_log_sum_f(float u, float lost, int32_t more) {
    int32_t i = cg_bits_f(u) - 0x3f3504f3, j = (i & 0x7fffff) + 0x3f3504f3;
    float power = cg_from_bits_f(j - cg_bits_f(u) + cg_bits_f(1)); /* m / u */
    return cg_log_core_f(cg_fma_f(lost, power, cg_from_bits_f(j) - 1), (float)((i >> 23) + more));
}

/* log(a + sqrt(a^2 + 1)); below 0.53, a + a^3 P(a^2); above 2^13, log(2 a). The error is 2.2 ulp without `lost`. */
static inline float cg_asinh_f(float x) {
    float a = fabsf(x), z = a * a, s = sqrtf(z + 1), u = a + s, lost = a - (u - s), p = -0x1.992688p-7f, y;
    int large = a > 0x1p13f;
    y = cg_log_sum_f(large ? 0.5f * a : u, large ? 0 : lost, large ? 2 : 0);
    p = cg_fma_f(p, z, 0x1.c66642p-6f);
    p = cg_fma_f(p, z, -0x1.6ae578p-5f);
    p = cg_fma_f(p, z, 0x1.331e36p-4f);
    p = cg_fma_f(p, z, -0x1.555522p-3f);
    y = a < 0.53f ? cg_fma_f(a * z, p, a) : y;
    return copysignf(a < INFINITY ? y : a, x);
}

/* log(x + sqrt(x^2 - 1)); for t = x - 1 below 0.55, s + s t P(t) with s = sqrt(2 t); above 2^13, log(2 x). */
static inline float cg_acosh_f(float x) {
    float t = x - 1, s = sqrtf(t + t), p = -0x1.99811ep-12f, y;
    int large = x > 0x1p13f;
    y = cg_log_near_f(large ? 0.5f * x : x + sqrtf(t * (x + 1)), large ? 2 : 0);
    p = cg_fma_f(p, t, 0x1.c67e1cp-10f);
    p = cg_fma_f(p, t, -0x1.6ae768p-8f);
    p = cg_fma_f(p, t, 0x1.331e42p-6f);
    p = cg_fma_f(p, t, -0x1.555522p-4f);
    y = t < 0.55f ? cg_fma_f(s * t, p, s) : y;
    y = t >= 0 ? y : NAN;
    return t < INFINITY ? y : t;
}

/* log((1 + a) / (1 - a)) / 2; below 1/2, a + a^3 P(a^2) */
static inline float cg_atanh_f(float x) {
    float a = fabsf(x), z = a * a, y = 0.5f * cg_log_near_f((1 + a) / (1 - a), 0), p = 0x1.6afe32p-3f;
    p = cg_fma_f(p, z, 0x1.a15940p-5f);
    p = cg_fma_f(p, z, 0x1.e4c58cp-4f);
    p = cg_fma_f(p, z, 0x1.23408ap-3f);
    p = cg_fma_f(p, z, 0x1.99a73cp-3f);
    p = cg_fma_f(p, z, 0x1.55553ep-2f);
    y = a < 0.5f ? cg_fma_f(a * z, p, a) : y;
    y = a < 1 ? y : a == 1 ? INFINITY : NAN;
    return copysignf(y, x);
}

/* ---- the error function and the normal distribution -------------------------------------------------------------- */

/* erf x = x + x P(x^2) below 1; above, 1 - e^Q(x), where Q is log erfc. */
static inline float cg_erf_f(float x) {
    float a = fabsf(x), b = a > 4.0f ? 4.0f : a, z = b * b, p = 0x1.47713ep-14f, q = -0x1.464648p-16f;
    p = cg_fma_f(p, z, -0x1.a35134p-11f);
    p = cg_fma_f(p, z, 0x1.53f222p-8f);
    p = cg_fma_f(p, z, -0x1.b7f71ap-6f);
    p = cg_fma_f(p, z, 0x1.ce2ce6p-4f);
    p = cg_fma_f(p, z, -0x1.81273ep-2f);
    p = cg_fma_f(p, z, 0x1.06eba8p-3f);
    q = cg_fma_f(q, b, 0x1.b1f5eep-12f);
    q = cg_fma_f(q, b, -0x1.0a5640p-8f);
    q = cg_fma_f(q, b, 0x1.96a23ap-6f);
    q = cg_fma_f(q, b, -0x1.b97f50p-4f);
    q = cg_fma_f(q, b, -0x1.448406p-1f);
    q = cg_fma_f(q, b, -0x1.2117bep+0f);
    q = cg_fma_f(q, b, 0x1.fac4e6p-14f);
    return copysignf(a >= 1 ? 1 - cg_exp_near_f(q) : cg_fma_f(b, p, b), x);
}

/* w P(b w) with w = 1 / (b + 1.875), times unit, which is a constant: e^(b^2 / 2) times the probability that a standard
   normal variable exceeds b. */
static inline float cg_tail_factor_f(float b, float unit) {
    float w = 1 / (b + 1.875f), u = b * w, p = 0x1.08d464p-3f * unit;
    p = cg_fma_f(p, u, -0x1.8ef4ecp-2f * unit);
    p = cg_fma_f(p, u, 0x1.a0275cp-2f * unit);
    p = cg_fma_f(p, u, -0x1.030364p-2f * unit);
    p = cg_fma_f(p, u, 0x1.391ea4p-3f * unit);
    p = cg_fma_f(p, u, 0x1.13e6b6p-4f * unit);
    p = cg_fma_f(p, u, 0x1.0d3d10p-5f * unit);
    p = cg_fma_f(p, u, -0x1.c21b32p-3f * unit);
    p = cg_fma_f(p, u, -0x1.dc304cp-2f * unit);
    p = cg_fma_f(p, u, 0x1.e00000p-1f * unit);
    return w * p;
}

/* The probability that a standard normal variable exceeds b, for 0 <= b <= 15. Errors are up to 5 ulp, because five
   factors are rounded. The result has a factor of 2^64 unit, because cg_bell_core_f has a factor of 2^64. */
static inline float cg_tail_f(float b, float unit) { return cg_bell_core_f(b) * cg_tail_factor_f(b, unit); }

/* 1 - erf x, which is 2 or nearly 2 for negative x. Errors are up to 5 ulp, as those of cg_tail_f. Its e^(-b^2 / 2) is
   that of x and not of the rounded b = x sqrt 2. */
static inline float cg_erfc_f(float x) {
    float a = cg_size_f(x, 10.5f), y = cg_down_f(cg_gauss_core_f(a) * cg_tail_factor_f(a * 0x1.6a09e6p+0f, 2));
    y = x < 0 ? 2 - y : y;
    return x == x ? y : x;
}

/* The cumulative distribution function, accurate also for small results. NaN is treated as a large number. */
static inline float cg_normal_f(float x, int near) {
    float tail = near ? cg_tail_f(fabsf(x), 0x1p-64f) : cg_tail_f(cg_size_f(x, 15), 1);
    float y = near ? tail : cg_down_f(tail), more = near ? tail : 0x1p-64f * cg_from_one_f(tail);
    return x > 0 ? 1 - more : y;
}

/* x times the cumulative distribution function. With fused multiply-add, x > 0 gives x - x (tail probability), which
   has less rounding error. Without it, that would be wrong for the smallest denormals, whose halves are not
   representable. For x > 0, a tail below 2^-64 does not matter. Where b is not |x|, the tail is 0. */
static inline float cg_gelu_f(float x, int near) {
    float b = near ? fabsf(x) : cg_size_f(x, 15), tail = cg_tail_f(b, near ? 0x1p-64f : 1);
    float more = near ? tail : 0x1p-64f * cg_from_one_f(tail), y = CG_FUSED ? cg_fma_f(-b, more, x) : x * (1 - more);
    if (near && CG_FUSED) return cg_fma_f(x > 0 ? -b : x, more, x > 0 ? x : -0.0f);
    if (near) return x > 0 ? y : x * more;
    y = x > 0 ? y : copysignf(cg_down_f(b * tail), x);
    return x > -INFINITY ? y : x * 0; /* NaN, the result of -inf times 0 */
}

#include "cygrad/angles.h"

/* ---- powers --------------------------------------------------------------------------------------------------- */

static inline int64_t cg_bits64(double x) {
    int64_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

/* 2^r for |r| <= 1/2. */
static inline float cg_exp2_core_f(float r) {
    float y = 0x1.442fd4p-13f;
    y = cg_fma_f(y, r, 0x1.5f0a78p-10f);
    y = cg_fma_f(y, r, 0x1.3b2a3ep-7f);
    y = cg_fma_f(y, r, 0x1.c6af78p-5f);
    y = cg_fma_f(y, r, 0x1.ebfbe0p-3f);
    y = cg_fma_f(y, r, 0x1.62e430p-1f);
    return cg_fma_f(y, r, 1);
}

static inline float cg_exp2_f(float x) {
    float b = x < -152 ? -152 : x, shifted, y;
    b = b > 128 ? 128 : b;
    shifted = b + CG_ROUNDER_F;
    y = cg_scale_f(cg_exp2_core_f(b - (shifted - CG_ROUNDER_F)), shifted);
    return x == x ? y : x;
}

/* 2^(e log2 a) for a = 2^k m. i is the bits of a minus those of sqrt(1/2). log2 m = s P(s^2) with s = (m - 1) / (m + 1)
   has an error of 2^-36, because the exponent multiplies it by up to 2^7. `clamped` is needed if the result may be
   denormal, 0 or infinite. Without it the function is faster and returns the same bits. */
static inline float cg_pow_core_f(int32_t i, int32_t k, float e, int clamped) {
    float m = cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3), q = 1 / (m + 1), y;
    double f = m - 1, s = f * q, z, p = 0x1.5ceaef3851218p-2, t, n;
    uint32_t bits, half;
    s = cg_fma_d(cg_fma_d(-s, f + 2, f), q, s); /* a Newton step, because q has 24 bits */
    z = s * s;
    p = cg_fma_d(p, z, 0x1.a58d6154fb6e7p-2);
    p = cg_fma_d(p, z, 0x1.27778045f6973p-1);
    p = cg_fma_d(p, z, 0x1.ec709d1241be7p-1);
    p = cg_fma_d(p, z, 0x1.71547652bee78p+1);
    t = e * cg_fma_d(s, p, k);
    if (clamped) {
        t = t > 200 ? 200 : t;
        t = t < -200 ? -200 : t;
    }
    n = t + (0x1.8p52 + 254);
    y = cg_exp2_core_f((float)(t - (n - (0x1.8p52 + 254))));
    bits = (uint32_t)(uint64_t)cg_bits64(n);
    if (!clamped) return cg_from_bits_f((int32_t)((uint32_t)cg_bits_f(y) + ((bits - 254) << 23)));
    half = (bits & 0xfff) >> 1;
    return y * cg_from_bits_f((int32_t)(half << 23)) * cg_from_bits_f((int32_t)((bits - half) << 23));
}

/* Whether x^e is ordinary: x is a positive normal number, and the result is normal. */
static inline int cg_pow_ordinary_f(float x, float e) {
    int32_t i = cg_bits_f(x), k = (i - 0x3f3504f3) >> 23;
    return (i >= 0x800000) & (i < 0x7f800000) & (fabsf(e) * (float)((k < 0 ? -k : k) + 1) <= 120);
}

static inline float cg_pow_of_ordinary_f(float x, float e) {
    int32_t i = cg_bits_f(x) - 0x3f3504f3;
    return cg_pow_core_f(i, i >> 23, e, 0);
}

/* x^e for any numbers, with the sign of x if e is odd, and zeros, infinities and NaN as in C99. */
static inline float cg_pow_f(float x, float e) {
    float a = fabsf(x), near = cg_size_f(e, 0x1p24f), y; /* larger numbers are even */
    int denormal = a < 0x1p-126f;
    int32_t i = cg_bits_f(denormal ? a * 0x1p23f : a) - 0x3f3504f3, k = i >> 23, integer = (int32_t)near;
    int32_t fractional = (float)integer != near, odd = (int32_t)((uint32_t)(integer & (fractional - 1)) << 31);
    y = cg_pow_core_f(i, denormal ? k - 23 : k, e, 1);
    y = a == 0 ? e > 0 ? 0 : INFINITY : y;
    y = a == INFINITY ? e > 0 ? INFINITY : 0 : y;
    y = fabsf(e) == INFINITY ? a == 1 ? 1 : y : y; /* (-1)^inf is 1 too */
    y = cg_from_bits_f(cg_bits_f(y) ^ (odd & cg_bits_f(x)));
    y = fractional & (x < 0) & (a < INFINITY) ? NAN : y;
    y = x == x ? y : x;
    y = e == e ? y : e;
    y = x == 1 ? 1 : y;
    return e == 0 ? 1 : y;
}

#endif
