/* Mathematics in float32, for loops that become vectors: no function here has a branch, a call or a table, so a plain
   loop over one of them is compiled to 4, 8 or 16 elements at a time. Within 2 ulp of the exact result, for denormals
   too; NaN, infinities and signed zeros as NumPy has them (tests/support/ulps.py). What networks use is computed in
   float32; tan, and the logarithm in pow, in float64, which is shorter and half as fast.

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

/* A product that is a denormal, or too small for one, takes an Intel processor 150 cycles: exp of what underflows took
   seven times as long. So denormals are made by a sum, of numbers that are 2^64 times as large: 2^-62 is the smallest
   normal number then, and in y + 2^-62 the bits of the fraction are those of y as a denormal, rounded. Half of that sum
   has the exponent that becomes 0. It is larger than y where y becomes a denormal, and else y is.

   This costs up to a third of the time of a function. So those that have a parameter `near`, a constant, do without
   where it is 1, which is right for |x| up to a limit below; kernels look whether a run keeps within. The bits are the
   same. */
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

/* y >= 0, but at least 1; as integers, for of floats the compiler makes a choice, and multiplies before it chooses. */
static inline float cg_from_one_f(float y) {
    int32_t i = cg_bits_f(y), one = cg_bits_f(1);
    return cg_from_bits_f(i > one ? i : one);
}

/* y >= 0, but 0 if it is less than `least`; by a shift, as the compiler knows a choice of integers too. */
static inline float cg_or_zero_f(float y, float least) {
    int32_t i = cg_bits_f(y);
    return cg_from_bits_f(i & ((cg_bits_f(least) - 1 - i) >> 31));
}

/* y 2^n for y from 1/2 to 2 and -180 <= n <= 128, rounded once; n is in the lowest bits of `shifted`, and the others
   leave to the left. What times 2^64 would overflow is held at 4: the larger is y 2^n itself there. */
static inline float cg_scale_f(float y, float shifted) {
    int32_t i = (int32_t)((uint32_t)cg_bits_f(y) + ((uint32_t)cg_bits_f(shifted) << 23)), four = cg_bits_f(4);
    float up = cg_from_bits_f((i < four ? i : four) + CG_DOWN_F);
    int32_t small = cg_bits_f(cg_fma_f(up, 0.5f, 0x1p-63f)) - CG_DOWN_F, most = cg_bits_f(INFINITY);
    i = i > small ? i : small;
    return cg_from_bits_f(i < most ? i : most);
}

/* e^(x + low) for x + low in [-120, 89], where x alone has too few digits: low is what it lacks. */
static inline float cg_exp_sum_f(float x, float low) {
    float shifted = cg_fma_f(x + low, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    float r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x) + low);
    return cg_scale_f(cg_exp_core_f(r), shifted);
}

/* e^x for a number, not NaN. The limits, beyond which it is 0 or infinite, are compared as integers: two instructions
   where comparing floats, because of NaN, takes seven with masks. As unsigned, what is below -104 is above its bits;
   as signed, what is above 89 is above its bits. */
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

/* The same where the result is neither a denormal nor infinite: n goes into the exponent by one addition. */
static inline float cg_times_power_f(float y, float shifted) {
    return cg_from_bits_f((int32_t)((uint32_t)cg_bits_f(y) + ((uint32_t)cg_bits_f(shifted) << 23)));
}

static inline float cg_exp_near_f(float x) {
    float shifted = cg_fma_f(x, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    return cg_times_power_f(cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x))), shifted);
}

/* 2^64 e^x for x <= 0, which is never a denormal; cg_down_f brings it back once nothing is multiplied any more. */
static inline float cg_exp_up_f(float x) {
    uint32_t u = (uint32_t)cg_bits_f(x), low = (uint32_t)cg_bits_f(-104.0f);
    float b = cg_from_bits_f((int32_t)(u < low ? u : low));
    float shifted = cg_fma_f(b, 0x1.715476p+0f, CG_ROUNDER_F + 64), n = shifted - (CG_ROUNDER_F + 64);
    float y = cg_times_power_f(cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, b))), shifted);
    return x == x ? y : x;
}

/* 2^n (e^r - 1) + (2^n - 1), where n is 0 below 1/2: a sum that loses half of its digits is then never made. Halves,
   so that 2^128 does not overflow too soon. */
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

/* e^(-x^2 / 2) and e^(-x^2): x^2 in two parts, the square of the upper 12 bits, which is exact, and the rest. (Rounded,
   the square has an error of up to 50 in the exponential's 2^-24.) The first times 2^64, so that it is never a denormal
   and 2^n is put into the exponent by one addition; for 0 <= b <= 15. */
static inline float cg_bell_core_f(float b) {
    float high = cg_from_bits_f(cg_bits_f(b) & ~0xfff), most = -0.5f * (high * high), rest = (b - high) * (b + high);
    float shifted = cg_fma_f(most, 0x1.715476p+0f, CG_ROUNDER_F + 64), n = shifted - (CG_ROUNDER_F + 64);
    float r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(rest, -0.5f, cg_fma_f(-n, CG_LN2_HIGH_F, most)));
    return cg_times_power_f(cg_exp_core_f(r), shifted);
}

/* |x|, but at most `most`, which a NaN becomes: one instruction for integers, seven with masks for floats. */
static inline float cg_size_f(float x, float most) {
    uint32_t size = (uint32_t)cg_bits_f(x) & 0x7fffffff, top = (uint32_t)cg_bits_f(most);
    return cg_from_bits_f((int32_t)(size < top ? size : top));
}

static inline float cg_bell_f(float x, int near) {
    float y = cg_finish_f(cg_bell_core_f(near ? fabsf(x) : cg_size_f(x, 15)), near);
    return near || x == x ? y : x;
}

static inline float cg_gauss_f(float x) {
    float a = fabsf(x), b = a > 10.5f ? 10.5f : a, high = cg_from_bits_f(cg_bits_f(b) & ~0xfff);
    float y = cg_exp_sum_f(-(high * high), -((b - high) * (b + high)));
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

/* 1 / (1 + e^-x), by e^-|x|, which is at most 1: no overflow, and small results keep all their digits. What 1 + e lost
   in rounding is put right afterwards (2.3 ulp without), too far where e is near 1, but there it matters little. e has
   a factor of 2^64 until the end, so that it is never a denormal. */
static inline float cg_sigmoid_parts_f(float x, int near, float *top, float *sum, float *lost) {
    float b = near ? -fabsf(x) : -cg_size_f(x, 110), shifted = cg_fma_f(b, 0x1.715476p+0f, CG_ROUNDER_F + 64);
    float n = shifted - (CG_ROUNDER_F + 64), r = cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, b));
    float e = cg_times_power_f(cg_exp_core_f(r), shifted);
    float large = near ? e : cg_or_zero_f(e, 1); /* what is less is far below the digits of 1 */
    *sum = cg_fma_f(large, 0x1p-64f, 1);
    *lost = cg_fma_f(large, 0x1p-64f, 1 - *sum);
    *top = x >= 0 ? 0x1p64f : e;
    return *top / *sum;
}

static inline float cg_sigmoid_f(float x, int near) {
    float top, sum, lost, y = cg_sigmoid_parts_f(x, near, &top, &sum, &lost);
    y = cg_finish_f(cg_fma_f(-y, lost, y), near);
    return near || x == x ? y : x;
}

/* x times that, with what the quotient lost too, so that the product is rounded once (3.1 ulp without; 1.7 with fused
   multiplication, 2.5 else); 1 / (1 + e) is the quotient or what is left of 1. The factor goes before large numbers are
   multiplied and after small ones. */
static inline float cg_silu_f(float x, int near) {
    float top, sum, lost, y = cg_sigmoid_parts_f(x, near, &top, &sum, &lost), b = near || x > -110 ? x : -110;
    float q = 0x1p-64f * (near ? y : cg_from_one_f(y));
    float more = cg_fma_f(-y, lost, cg_fma_f(-y, sum, top)) * (x >= 0 ? q : 1 - q);
    y = x >= 0 ? cg_fma_f(b, q, b * (0x1p-64f * more)) : -cg_finish_f(cg_fma_f(-b, y, -b * more), near);
    if (near) return y;
    y = x > -INFINITY ? y : NAN; /* as inf / inf is */
    return x < INFINITY ? y : x;
}

/* log(1 + e^x) = max(x, 0) + log(1 + e) with e = e^-|x|: e + e^2 (log 2 - 1 + (1 - e) P(e)), where 1 - e takes the
   rounding errors of P from where they would count most. Of a small e it is e. */
static inline float cg_softplus_f(float x, int near) {
    float whole = near ? cg_exp_near_f(-fabsf(x)) : cg_exp_of_number_f(-fabsf(x)), p = 0x1.a66146p-9f;
    float e = near ? whole : cg_or_zero_f(whole, 0x1p-40f);
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
    p = e > 0 ? p : whole;
    return x <= 0 ? p : x + p; /* a NaN stays a NaN */
}

/* For |x| = n log 2 + r: sinh and cosh of r by polynomials, and from these e^r - 1 and e^-r, so that e^-|x| needs no
   division. h = 2^(n - 2) and its reciprocal's sixteenth: the result is doubled last, which alone may overflow. n is
   0 below `from`. */
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

/* log(1 + x): what 1 + x lost in rounding is added to f. Where x is small, f is x itself. */
static inline float cg_log1p_f(float x) {
    float u = 1 + x, lost = x >= 1 ? 1 - (u - x) : x - (u - 1), m, y;
    int32_t i = cg_bits_f(u) - 0x3f3504f3, k = i >> 23, most = k > 126 ? 126 : k; /* 2^-k is a normal number */
    m = cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3);
    y = cg_log_core_f(cg_fma_f(lost, cg_from_bits_f((127 - most) << 23), m - 1), (float)k);
    y = x > -1 ? y : x == -1 ? -INFINITY : NAN;
    y = x == 0 ? x : y; /* -0 */
    return x < INFINITY ? y : x;
}

/* log u + more log 2 for positive normal u; and with what u lost in rounding. */
static inline float cg_log_near_f(float u, int32_t more) {
    int32_t i = cg_bits_f(u) - 0x3f3504f3;
    return cg_log_core_f(cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3) - 1, (float)((i >> 23) + more));
}

static inline float cg_log_sum_f(float u, float lost, int32_t more) {
    int32_t i = cg_bits_f(u) - 0x3f3504f3, j = (i & 0x7fffff) + 0x3f3504f3;
    float power = cg_from_bits_f(j - cg_bits_f(u) + cg_bits_f(1)); /* m / u */
    return cg_log_core_f(cg_fma_f(lost, power, cg_from_bits_f(j) - 1), (float)((i >> 23) + more));
}

/* log(a + sqrt(a^2 + 1)); below 0.53, a + a^3 P(a^2); above 2^13, log(2 a). (2.2 ulp without `lost`.) */
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

/* The normal distribution's probability of more than b, 0 <= b <= 15: e^(-b^2 / 2) w P(b w) with w = 1 / (b + 1.875).
   Errors of up to 5 ulp: five factors are rounded. Times 2^64 `unit`, a constant, for the 2^64 of cg_bell_core_f. */
static inline float cg_tail_f(float b, float unit) {
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
    return cg_bell_core_f(b) * (w * p);
}

/* The probability of less than x, all digits also where that is small; a NaN counts as a large number. */
static inline float cg_normal_f(float x, int near) {
    float tail = near ? cg_tail_f(fabsf(x), 0x1p-64f) : cg_tail_f(cg_size_f(x, 15), 1);
    float y = near ? tail : cg_down_f(tail), more = near ? tail : 0x1p-64f * cg_from_one_f(tail);
    return x > 0 ? 1 - more : y;
}

/* x times that: for x > 0, x - x (probability of more than x), which fused rounds less, and else would not do for the
   smallest numbers, of which half is no number. For x > 0 a tail below 2^-64 counts for nothing; where b is not |x|, it
   is 0. */
static inline float cg_gelu_f(float x, int near) {
    float b = near ? fabsf(x) : cg_size_f(x, 15), tail = cg_tail_f(b, near ? 0x1p-64f : 1);
    float more = near ? tail : 0x1p-64f * cg_from_one_f(tail), y = CG_FUSED ? cg_fma_f(-b, more, x) : x * (1 - more);
    if (near && CG_FUSED) return cg_fma_f(x > 0 ? -b : x, more, x > 0 ? x : -0.0f);
    if (near) return x > 0 ? y : x * more;
    y = x > 0 ? y : copysignf(cg_down_f(b * tail), x);
    return x > -INFINITY ? y : x * 0; /* NaN, as -inf times 0 is */
}

/* ---- trigonometry ------------------------------------------------------------------------------------------------ */

/* Up to here x less its multiples of pi / 2 is exact to 2^-60 in what follows: far from the nearest that a float32
   comes to one. Beyond, kernels go to the C library. */
#define CG_FAR_F 1e7f

/* x - n pi / 2 with n the nearest, where n stands in the lowest bits of *turns; pi / 2 in two parts, the first of 30
   bits, so that its product with n is exact. */
static inline double cg_reduce_f(float x, int64_t *turns) {
    double shifted = cg_fma_d(x, 0x1.45f306dc9c883p-1, 0x1.8p52), n = shifted - 0x1.8p52;
    memcpy(turns, &shifted, sizeof *turns);
    return cg_fma_d(-n, 0x1.10b4611a62633p-30, cg_fma_d(-n, 0x1.921fb54p+0, x));
}

/* The sine of r + turns pi / 2, |r| <= pi / 4. */
static inline float cg_sine_f(float r, int32_t turns) {
    float z = r * r, s = -0x1.9952bep-13f, c = 0x1.99e812p-16f, y;
    s = cg_fma_f(s, z, 0x1.110776p-7f);
    s = cg_fma_f(s, z, -0x1.555546p-3f);
    s = cg_fma_f(s * z, r, r);
    c = cg_fma_f(c, z, -0x1.6c0c28p-10f);
    c = cg_fma_f(c, z, 0x1.55554ap-5f);
    c = cg_fma_f(z * z, c, cg_fma_f(z, -0.5f, 1));
    y = turns & 1 ? c : s;
    return cg_from_bits_f(cg_bits_f(y) ^ (int32_t)((uint32_t)(turns & 2) << 30));
}

static inline float cg_sin_f(float x) {
    int64_t turns;
    float r = (float)cg_reduce_f(x, &turns), y = cg_sine_f(r, (int32_t)turns);
    return x == 0 ? x : y; /* -0 */
}

static inline float cg_cos_f(float x) {
    int64_t turns;
    float r = (float)cg_reduce_f(x, &turns);
    return cg_sine_f(r, (int32_t)turns + 1);
}

static inline float cg_tan_f(float x) {
    int64_t turns;
    double r = cg_reduce_f(x, &turns), z = r * r, p = 0x1.1f739bf34308bp-8, y;
    p = cg_fma_d(p, z, 0x1.26de4d177ddb3p-14);
    p = cg_fma_d(p, z, 0x1.638b01359e200p-7);
    p = cg_fma_d(p, z, 0x1.5c99a79642484p-6);
    p = cg_fma_d(p, z, 0x1.badde7af7f42dp-5);
    p = cg_fma_d(p, z, 0x1.110d82f2f021fp-3);
    p = cg_fma_d(p, z, 0x1.5555608136f46p-2);
    y = cg_fma_d(p * z, r, r);
    return (float)(turns & 1 ? -1 / y : y);
}

#define CG_HALF_PI_F 0x1.921fb6p+0f
#define CG_HALF_PI_LOW_F -0x1.777a5cp-25f

/* (asin b - b) / b^3 for b^2 = z <= 1/4 */
static inline float cg_asin_core_f(float z) {
    float p = 0x1.34cb26p-5f;
    p = cg_fma_f(p, z, 0x1.d51bc0p-7f);
    p = cg_fma_f(p, z, 0x1.04d2f4p-5f);
    p = cg_fma_f(p, z, 0x1.6ca758p-5f);
    p = cg_fma_f(p, z, 0x1.3338acp-4f);
    return cg_fma_f(p, z, 0x1.55554cp-3f);
}

/* Above 1/2, asin x = pi / 2 - 2 asin b with b = sqrt((1 - x) / 2). */
static inline float cg_asin_f(float x) {
    float a = fabsf(x), z = a <= 0.5f ? a * a : cg_fma_f(a, -0.5f, 0.5f), b = sqrtf(z), p = z * cg_asin_core_f(z);
    float most = CG_HALF_PI_F - 2 * b, lost = (CG_HALF_PI_F - most) - 2 * b; /* lost in rounding; 2.003 ulp without */
    float large = most + (lost + cg_fma_f(-2 * b, p, CG_HALF_PI_LOW_F));
    return copysignf(a <= 0.5f ? cg_fma_f(a, p, a) : large, x);
}

static inline float cg_acos_f(float x) {
    float a = fabsf(x), z = a <= 0.5f ? a * a : cg_fma_f(a, -0.5f, 0.5f), b = sqrtf(z);
    float p = z * cg_asin_core_f(z), large;
    large = 2 * cg_fma_f(b, p, b);
    large = x > 0 ? large : 2 * CG_HALF_PI_F - (large - 2 * CG_HALF_PI_LOW_F);
    return a <= 0.5f ? CG_HALF_PI_F - (x + cg_fma_f(x, p, -CG_HALF_PI_LOW_F)) : large;
}

/* Above 1, atan x = pi / 2 + atan(-1 / x). */
static inline float cg_atan_f(float x) {
    float a = fabsf(x), b = a > 1 ? -1 / a : a, z = b * b, p = -0x1.d4f7dap-10f, y;
    p = cg_fma_f(p, z, 0x1.64eda4p-7f);
    p = cg_fma_f(p, z, -0x1.fe1b46p-6f);
    p = cg_fma_f(p, z, 0x1.da6948p-5f);
    p = cg_fma_f(p, z, -0x1.5816d4p-4f);
    p = cg_fma_f(p, z, 0x1.c08f56p-4f);
    p = cg_fma_f(p, z, -0x1.2420a8p-3f);
    p = cg_fma_f(p, z, 0x1.9991e4p-3f);
    p = cg_fma_f(p, z, -0x1.55553ep-2f);
    p = b * (z * p);
    y = a > 1 ? CG_HALF_PI_F + (b + (p + CG_HALF_PI_LOW_F)) : b + p;
    return copysignf(y, x);
}

/* ---- powers --------------------------------------------------------------------------------------------------- */

static inline int64_t cg_wide_bits(double x) {
    int64_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

/* 2^(e log2 a) for a = 2^k m, from the bits of a less those of sqrt(1/2): log2 m = s P(s^2) with s = (m - 1) / (m + 1),
   to 2^-36, as the exponent makes its error 2^7 times as large. `clamped`: where the result may be a denormal, 0 or
   infinite; otherwise the same bits for less. */
static inline float cg_pow_core_f(int32_t i, int32_t k, float e, int clamped) {
    float m = cg_from_bits_f((i & 0x7fffff) + 0x3f3504f3), q = 1 / (m + 1), r, y = 0x1.442fd4p-13f;
    double f = m - 1, s = f * q, z, p = 0x1.5ceaef3851218p-2, t, n;
    uint32_t bits, half;
    s = cg_fma_d(cg_fma_d(-s, f + 2, f), q, s); /* Newton's step: q has 24 bits */
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
    r = (float)(t - (n - (0x1.8p52 + 254)));
    y = cg_fma_f(y, r, 0x1.5f0a78p-10f);
    y = cg_fma_f(y, r, 0x1.3b2a3ep-7f);
    y = cg_fma_f(y, r, 0x1.c6af78p-5f);
    y = cg_fma_f(y, r, 0x1.ebfbe0p-3f);
    y = cg_fma_f(y, r, 0x1.62e430p-1f);
    y = cg_fma_f(y, r, 1);
    bits = (uint32_t)(uint64_t)cg_wide_bits(n);
    if (!clamped) return cg_from_bits_f((int32_t)((uint32_t)cg_bits_f(y) + ((bits - 254) << 23)));
    half = (bits & 0xfff) >> 1;
    return y * cg_from_bits_f((int32_t)(half << 23)) * cg_from_bits_f((int32_t)((bits - half) << 23));
}

/* Whether x^e is ordinary: of a positive normal number, and a normal number itself. */
static inline int cg_pow_ordinary_f(float x, float e) {
    int32_t i = cg_bits_f(x), k = (i - 0x3f3504f3) >> 23;
    return (i >= 0x800000) & (i < 0x7f800000) & (fabsf(e) * (float)((k < 0 ? -k : k) + 1) <= 120);
}

static inline float cg_pow_of_ordinary_f(float x, float e) {
    int32_t i = cg_bits_f(x) - 0x3f3504f3;
    return cg_pow_core_f(i, i >> 23, e, 0);
}

/* x^e for any, its sign where e is an odd number, and what C99 says of zeros, infinities and NaN. */
static inline float cg_pow_f(float x, float e) {
    float a = fabsf(x), near = cg_size_f(e, 0x1p24f), y; /* from there on numbers are even */
    int denormal = a < 0x1p-126f;
    int32_t i = cg_bits_f(denormal ? a * 0x1p23f : a) - 0x3f3504f3, k = i >> 23, whole = (int32_t)near;
    int32_t broken = (float)whole != near, odd = (int32_t)((uint32_t)(whole & (broken - 1)) << 31);
    y = cg_pow_core_f(i, denormal ? k - 23 : k, e, 1);
    y = a == 0 ? e > 0 ? 0 : INFINITY : y;
    y = a == INFINITY ? e > 0 ? INFINITY : 0 : y;
    y = fabsf(e) == INFINITY ? a == 1 ? 1 : y : y; /* (-1)^inf is 1 too */
    y = cg_from_bits_f(cg_bits_f(y) ^ (odd & cg_bits_f(x)));
    y = broken & (x < 0) & (a < INFINITY) ? NAN : y;
    y = x == x ? y : x;
    y = e == e ? y : e;
    y = x == 1 ? 1 : y;
    return e == 0 ? 1 : y;
}

#endif
