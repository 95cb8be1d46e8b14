/* Trigonometric functions of float32 and their inverses, of which single.h says what holds; it includes this file. */
#ifndef CYGRAD_ANGLES_H
#define CYGRAD_ANGLES_H

/* ---- trigonometry ------------------------------------------------------------------------------------------------ */

/* Up to this limit, the reduction of x by a multiple of pi / 2 below is exact to 2^-60, and no float32 is that close to
   such a multiple. Beyond it, kernels call the C library. */
#define CG_FAR_F 1e7f

/* x - n pi / 2 for the nearest integer n, whose lowest bits are in *turns. pi / 2 has two parts, the first with 30
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
    float leading = CG_HALF_PI_F - 2 * b, lost = (CG_HALF_PI_F - leading) - 2 * b; /* 2.003 ulp without `lost` */
    float large = leading + (lost + cg_fma_f(-2 * b, p, CG_HALF_PI_LOW_F));
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
/* atan b - b for |b| <= 1. */
static inline float cg_atan_core_f(float b) {
    float z = b * b, p = -0x1.d4f7dap-10f;
    p = cg_fma_f(p, z, 0x1.64eda4p-7f);
    p = cg_fma_f(p, z, -0x1.fe1b46p-6f);
    p = cg_fma_f(p, z, 0x1.da6948p-5f);
    p = cg_fma_f(p, z, -0x1.5816d4p-4f);
    p = cg_fma_f(p, z, 0x1.c08f56p-4f);
    p = cg_fma_f(p, z, -0x1.2420a8p-3f);
    p = cg_fma_f(p, z, 0x1.9991e4p-3f);
    p = cg_fma_f(p, z, -0x1.55553ep-2f);
    return b * (z * p);
}

static inline float cg_atan_f(float x) {
    float a = fabsf(x), b = a > 1 ? -1 / a : a, p = cg_atan_core_f(b), y;
    y = a > 1 ? CG_HALF_PI_F + (b + (p + CG_HALF_PI_LOW_F)) : b + p;
    return copysignf(y, x);
}

/* The angle of the point (x, y): quarter + sign atan b, where b is the smaller coordinate divided by the larger one, and
   quarter is 0, pi / 2 or pi. The origin counts as a point of the axis that the sign of x tells. */
static inline float cg_atan2_f(float y, float x) {
    float a = fabsf(y), c = fabsf(x), low = a < c ? a : c, high = a < c ? c : a, b = high == 0 ? 0 : low / high, p, turns;
    int behind = cg_bits_f(x) < 0, steep = a > c;
    b = low == INFINITY ? 1 : b;
    b = behind ^ steep ? -b : b;
    p = cg_atan_core_f(b);
    turns = steep ? 1 : behind ? 2 : 0;
    p = cg_fma_f(turns, CG_HALF_PI_F, b + cg_fma_f(turns, CG_HALF_PI_LOW_F, p));
    return x == x && y == y ? copysignf(p, y) : x + y;
}

#endif
