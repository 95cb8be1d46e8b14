/* Mathematics in float32, for loops that become vectors: no function here has a branch, a call or a table, so a plain
   loop over one of them is compiled to 4, 8 or 16 elements at a time. Within 2 ulp of the exact result, for denormals
   too; NaN, infinities and signed zeros as NumPy has them (tests/ulps.py measures it). What networks use is computed in
   float32; what they use seldom in float64 and rounded once, which is shorter and half as fast.

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

/* y 2^n for -254 <= n <= 254, in two steps, so that the second rounds denormals and overflows. The lowest bits of
   `shifted` are n + 254: its two halves are the exponents of the factors as they stand in a float, and the rest of
   `shifted` leaves to the left. */
#define CG_TWICE_BIASED_F (CG_ROUNDER_F + 254)

static inline float cg_scale_f(float y, float shifted) {
    uint32_t n = (uint32_t)cg_bits_f(shifted), half = n >> 1;
    return y * cg_from_bits_f((int32_t)(half << 23)) * cg_from_bits_f((int32_t)((n - half) << 23));
}

/* e^(x + low) for x + low in [-104, 89], where x alone has too few digits: low is what it lacks. */
static inline float cg_exp_sum_f(float x, float low) {
    float shifted = cg_fma_f(x + low, 0x1.715476p+0f, CG_TWICE_BIASED_F), n = shifted - CG_TWICE_BIASED_F;
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
    float shifted = cg_fma_f(b, 0x1.715476p+0f, CG_TWICE_BIASED_F), n = shifted - CG_TWICE_BIASED_F;
    return cg_scale_f(cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, b))), shifted);
}

static inline float cg_exp_f(float x) {
    float y = cg_exp_of_number_f(x);
    return x == x ? y : x;
}

/* The same where the result is neither a denormal nor infinite: n goes into the exponent by one addition. */
static inline float cg_exp_near_f(float x) {
    float shifted = cg_fma_f(x, 0x1.715476p+0f, CG_ROUNDER_F), n = shifted - CG_ROUNDER_F;
    float p = cg_exp_core_f(cg_fma_f(-n, CG_LN2_LOW_F, cg_fma_f(-n, CG_LN2_HIGH_F, x)));
    return cg_from_bits_f((int32_t)((uint32_t)cg_bits_f(p) + ((uint32_t)cg_bits_f(shifted) << 23)));
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
   the square has an error of up to 50 in the exponential's 2^-24.) */
static inline float cg_bell_f(float x) {
    float a = fabsf(x), b = a > 15.0f ? 15.0f : a, high = cg_from_bits_f(cg_bits_f(b) & ~0xfff);
    return cg_exp_sum_f(-0.5f * (high * high), -0.5f * ((b - high) * (b + high)));
}

static inline float cg_gauss_f(float x) {
    float a = fabsf(x), b = a > 10.5f ? 10.5f : a, high = cg_from_bits_f(cg_bits_f(b) & ~0xfff);
    return cg_exp_sum_f(-(high * high), -((b - high) * (b + high)));
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
   in rounding is put right afterwards, times 1 / (1 + e), for which 1 - e / 2 is near enough (2.3 ulp without). */
static inline float cg_sigmoid_f(float x) {
    float e = cg_exp_of_number_f(-fabsf(x)), sum = 1 + e, lost = e - (sum - 1), y = (x >= 0 ? 1 : e) / sum;
    y = cg_fma_f(y * lost, cg_fma_f(0.5f, e, -1), y);
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

/* The normal distribution's probability of less than x, with all digits also where that is small: for x < 0
   e^(-x^2 / 2) P(t) / (4 - x), t = (-x - 4) / (4 - x); for x > 0 what is left of 1; near 0, 1/2 + x S(x^2). The part
   for x < 0 has errors of up to 4 ulp: five factors are rounded. */
static inline float cg_normal_f(float x) {
    float a = fabsf(x), b = a > 15.0f ? 15.0f : a, w = 1 / (b + 4), t = (b - 4) * w, z = b * b, y;
    float p = -0x1.b55ebap-14f, s = 0x1.9dedc8p-14f;
    p = cg_fma_f(p, t, 0x1.d723a2p-13f);
    p = cg_fma_f(p, t, 0x1.9ac034p-10f);
    p = cg_fma_f(p, t, -0x1.d07c14p-9f);
    p = cg_fma_f(p, t, -0x1.ed8118p-8f);
    p = cg_fma_f(p, t, 0x1.eee328p-5f);
    p = cg_fma_f(p, t, -0x1.7dff64p-3f);
    p = cg_fma_f(p, t, 0x1.8c6d74p-2f);
    p = cg_fma_f(p, t, -0x1.373e3ap-1f);
    p = cg_fma_f(p, t, 0x1.82b4bcp-1f);
    s = cg_fma_f(s, z, -0x1.34387ep-10f);
    s = cg_fma_f(s, z, 0x1.46b204p-7f);
    s = cg_fma_f(s, z, -0x1.1057b8p-4f);
    s = cg_fma_f(s, z, 0x1.988452p-2f);
    y = cg_bell_f(x) * (p * w);
    y = x > 0 ? 1 - y : y;
    return a < 0.8f ? cg_fma_f(x, s, 0.5f) : y;
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

/* ---- in float64, exact enough for a float32 ---------------------------------------------------------------------- */

static inline int64_t cg_wide_bits(double x) {
    int64_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

static inline double cg_from_wide_bits(int64_t i) {
    double x;
    memcpy(&x, &i, sizeof x);
    return x;
}

#define CG_ROOT_HALF_BITS 0x3fe6a09e667f3bcd

/* e^x for |x| < 700, to 2^-31 */
static inline double cg_wide_exp(double x) {
    double shifted = cg_fma_d(x, 0x1.71547652b82fep+0, 0x1.8p52), p = 0x1.ab28cf92d6133p-13;
    double r = cg_fma_d(shifted - 0x1.8p52, -0x1.62e42fefa39efp-1, x);
    p = cg_fma_d(p, r, 0x1.6dcf1cba27032p-10);
    p = cg_fma_d(p, r, 0x1.110ef9e173049p-7);
    p = cg_fma_d(p, r, 0x1.5554450e7d05ap-5);
    p = cg_fma_d(p, r, 0x1.55554e72b024dp-3);
    p = cg_fma_d(p, r, 0x1.0000005aa9392p-1);
    p = cg_fma_d(p, r, 0x1.00000009617c7p+0);
    p = cg_fma_d(p, r, 0x1.ffffffffabbfap-1);
    return cg_from_wide_bits((int64_t)((uint64_t)cg_wide_bits(p) + ((uint64_t)cg_wide_bits(shifted) << 52)));
}

/* u = 2^k m, m from sqrt(1/2) on, for positive normal u: m, and k by the exponent of 2^52, into which it is or'ed. */
static inline double cg_wide_split(double u, double *k) {
    uint64_t i = (uint64_t)cg_wide_bits(u) - CG_ROOT_HALF_BITS + 0x3ff0000000000000;
    *k = cg_from_wide_bits((int64_t)(i >> 52 | 0x4330000000000000)) - (0x1p52 + 1023);
    return cg_from_wide_bits((int64_t)((i & 0xfffffffffffff) + CG_ROOT_HALF_BITS));
}

/* log(1 + f) for 1 + f in [sqrt(1/2), sqrt 2): 2 s + s^3 P(s^2) with s = f / (2 + f), to 2^-38 */
static inline double cg_wide_log_core(double f) {
    double s = f / (2 + f), z = s * s, p = 0x1.e2f9bf2774d95p-3;
    p = cg_fma_d(p, z, 0x1.2438c7384c744p-2);
    p = cg_fma_d(p, z, 0x1.999a7ab3508a6p-2);
    p = cg_fma_d(p, z, 0x1.555554fd95022p-1);
    return cg_fma_d(z * s, p, 2 * s);
}

/* log(1 + x) for x > -1, all digits also for small x */
static inline double cg_wide_log1p(double x) {
    double u = 1 + x, lost = x >= 1 ? 1 - (u - x) : x - (u - 1), k, m = cg_wide_split(u, &k);
    double power = cg_from_wide_bits(cg_wide_bits(m) - cg_wide_bits(u) + 0x3ff0000000000000); /* m / u = 2^-k */
    return cg_fma_d(k, 0x1.62e42fefa39efp-1, cg_wide_log_core(cg_fma_d(lost, power, m - 1)));
}

static inline float cg_sinh_f(float x) {
    double a = fabsf(x), b = a > 100 ? 100 : a, z = b * b, p = 0x1.7a158ac876f2dp-19, e = cg_wide_exp(b);
    p = cg_fma_d(p, z, 0x1.9ffe9450a04fcp-13);
    p = cg_fma_d(p, z, 0x1.111134f694871p-7);
    p = cg_fma_d(p, z, 0x1.5555551b460edp-3);
    return copysignf((float)(b < 1 ? cg_fma_d(p * z, b, b) : 0.5 * (e - 1 / e)), x);
}

static inline float cg_cosh_f(float x) {
    double a = fabsf(x), e = cg_wide_exp(a > 100 ? 100 : a);
    return (float)(0.5 * (e + 1 / e));
}

/* log(a + sqrt(a^2 + 1)) */
static inline float cg_asinh_f(float x) {
    double a = fabsf(x), z = a * a, y = cg_wide_log1p(a + z / (1 + sqrt(z + 1)));
    return copysignf((float)(a < INFINITY ? y : a), x);
}

/* log(x + sqrt(x^2 - 1)), written in t = x - 1 */
static inline float cg_acosh_f(float x) {
    double t = (double)x - 1, y = cg_wide_log1p(t + sqrt(t * (t + 2)));
    y = t >= 0 ? y : NAN;
    return (float)(t < INFINITY ? y : t);
}

/* log((1 + a) / (1 - a)) / 2 */
static inline float cg_atanh_f(float x) {
    double a = fabsf(x), y = 0.5 * cg_wide_log1p(2 * a / (1 - a));
    y = a < 1 ? y : a == 1 ? INFINITY : NAN;
    return copysignf((float)y, x);
}

/* x^y = 2^(y log2 |x|), its sign where y is an odd number, and what C99 says of zeros, infinities and NaN. */
static inline float cg_pow_f(float x, float y) {
    double d = x, a = fabs(d), e = y, k, m = cg_wide_split(a, &k), t, n, r, p, half = 0.5 * e, odd, whole;
    t = cg_fma_d(cg_wide_log_core(m - 1), 0x1.71547652b82fep+0, k);
    t = a > 0 ? t : a == 0 ? -INFINITY : a;
    t = a < INFINITY ? t : a;
    t = e * t;
    t = t > 200 ? 200 : t < -200 ? -200 : t;
    n = t + 0x1.8p52, r = t - (n - 0x1.8p52), p = 0x1.06b2e8f509480p-16;
    p = cg_fma_d(p, r, 0x1.448fc712407c9p-13);
    p = cg_fma_d(p, r, 0x1.5d85516bf0296p-10);
    p = cg_fma_d(p, r, 0x1.3b29bb94310ccp-7);
    p = cg_fma_d(p, r, 0x1.c6b08444459a8p-5);
    p = cg_fma_d(p, r, 0x1.ebfbe0a6681ccp-3);
    p = cg_fma_d(p, r, 0x1.62e42ffca4c9ap-1);
    p = cg_fma_d(p, r, 0x1.ffffffffabbfap-1);
    p = cg_from_wide_bits((int64_t)((uint64_t)cg_wide_bits(p) + ((uint64_t)cg_wide_bits(n) << 52)));
    whole = (e + 0x1.8p52) - 0x1.8p52; /* y, if y is whole; large float32 are, and even */
    odd = (half + 0x1.8p52) - 0x1.8p52 == half ? 1 : copysign(1, d);
    p = whole == e ? p * odd : d < 0 ? a < INFINITY ? NAN : p : p;
    t = a == 1 ? 1 : p; /* (-1)^inf is 1 too */
    p = fabs(e) == INFINITY ? t : p;
    p = d == 1 ? 1 : p;
    return (float)(e == 0 ? 1 : p);
}

#endif
