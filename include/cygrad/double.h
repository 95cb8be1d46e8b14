/* Mathematical functions of float64 without branches, calls or tables, so that the compiler vectorizes a plain loop
   over them. Errors are at most 1 ulp, for denormals too. NaN, infinities and signed zeros are as in C99, Annex F.

   Where one double is not precise enough, a value is a pair, high + low, and low is added to the result last.
   Coefficients are minimax fits by tools/fit.py. Hexadecimal constants are rounded mathematical constants. */
#ifndef CYGRAD_DOUBLE_H
#define CYGRAD_DOUBLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cygrad/platform.h"

/* Always inlined, because a loop with a call is not vectorized. */
#if defined(__GNUC__)
#define CG_INLINE static inline __attribute__((always_inline))
#else
#define CG_INLINE static inline
#endif

/* Polynomials in z by Horner's rule, the constant first. */
#define CG_LAST1(z, a) (a)
#define CG_LAST2(z, a, b) cg_fma_d(z, b, a)
#define CG_LAST3(z, a, b, c) cg_fma_d(z, CG_LAST2(z, b, c), a)
#define CG_LAST4(z, a, b, c, d) cg_fma_d(z, CG_LAST3(z, b, c, d), a)
#define CG_NEXT4(z, a, b, c, d, rest) cg_fma_d(z, cg_fma_d(z, cg_fma_d(z, cg_fma_d(z, rest, d), c), b), a)

/* 1.5 * 2^52: adding it rounds a number up to 2^51 to an integer, and the low bits of the sum are that integer. */
#define CG_ROUND 0x1.8p52

#define CG_LOG2_E 0x1.71547652b82fep+0
#define CG_LN2_HIGH 0x1.62e42ffp-1 /* 32 bits: an integer of up to 21 bits times this is exact */
#define CG_LN2_LOW -0x1.718432a1b0e26p-35

CG_INLINE uint64_t cg_bits_d(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
CG_INLINE double cg_from_bits_d(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
CG_INLINE double cg_abs_d(double x) { return __builtin_fabs(x); }

/* a if mask is all ones, b if it is 0. Uses bit operations, because with `?:` the compiler may move the computation of
   a or b into a branch, and a loop with a branch is not vectorized. */
CG_INLINE double cg_choose_d(uint64_t mask, double a, double b) {
    return cg_from_bits_d((cg_bits_d(a) & mask) | (cg_bits_d(b) & ~mask));
}
/* The mask of numbers below 0. */
CG_INLINE uint64_t cg_negative_d(double x) { return 0 - (cg_bits_d(x) >> 63); }

/* x with the sign of s. */
CG_INLINE double cg_sign_d(double x, double s) { return __builtin_copysign(x, s); }

/* 2^k for an integer k from -1022 to 1023. */
CG_INLINE double cg_power_of_2_d(double k) { return cg_from_bits_d(cg_bits_d(k + (CG_ROUND + 1023)) << 52); }

/* x 2^k for |k| up to 1076. A denormal result is rounded once, in the last step. */
CG_INLINE double cg_scale_d(double x, double k) {
    double half = (k * 0.5 + CG_ROUND) - CG_ROUND;
    return x * cg_power_of_2_d(half) * cg_power_of_2_d(k - half);
}

/* A product whose result is denormal or underflows takes an Intel CPU 150 cycles. Denormals are therefore computed by a
   sum: 2^-422 is 2^52 times the smallest denormal times 2^600, and the lowest bits of y 2^600 + 2^-422 are y as a
   denormal, rounded. `bits` are the bits of y if y is normal; otherwise they are below 2^52. */
#define CG_DOWN_D ((uint64_t)600 << 52)
#define CG_NEAR_EXP_D 700.0 /* the limits of `near` (single.h) */
#define CG_NEAR_SIGMOID_D 700.0
#define CG_NEAR_NORMAL_D 37.0

CG_INLINE double cg_small_d(uint64_t bits) {
    uint64_t small = cg_bits_d(cg_from_bits_d(bits + CG_DOWN_D) + 0x1p-422) - cg_bits_d(0x1p-422);
    return cg_choose_d(0 - ((bits - ((uint64_t)1 << 52)) >> 63), cg_from_bits_d(small), cg_from_bits_d(bits));
}

/* y 2^-600 for y >= 0, rounded once. */
CG_INLINE double cg_down_d(double y) { return cg_small_d(cg_bits_d(y) - CG_DOWN_D); }

/* y 2^k for y from 1/4 to 2 and an integer k, if the result is normal; then for k from -1600 to 1023, rounded once. */
CG_INLINE double cg_times_power_d(double y, double k) {
    return cg_from_bits_d(cg_bits_d(y) + (cg_bits_d(k + CG_ROUND) << 52));
}
CG_INLINE double cg_scale_down_d(double y, double k, int near) {
    double z = cg_times_power_d(y, k);
    return near ? z : cg_small_d(cg_bits_d(z));
}


/* ---- pairs: exact sums and products, and quotients (Dekker 1971, Knuth 4.2.2) ------------------------------------ */

/* a + b for |a| >= |b|. */
CG_INLINE double cg_plus_d(double a, double b, double *low) {
    double s = a + b;
    *low = (a - s) + b;
    return s;
}
/* a + b for any a and b. */
CG_INLINE double cg_sum_d(double a, double b, double *low) {
    double s = a + b, t = s - a;
    *low = (a - (s - t)) + (b - t);
    return s;
}
/* a b for |a| and |b| below 2^996. */
CG_INLINE double cg_times_d(double a, double b, double *low) {
    double p = a * b;
#if CG_FUSED
    *low = cg_fma_d(a, b, -p);
#else
    double s = a * 134217729.0, t = b * 134217729.0; /* 2^27 + 1: the upper halves */
    double ah = s - (s - a), bh = t - (t - b), al = a - ah, bl = b - bh;
    *low = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
    return p;
}
/* (nh + nl) / (dh + dl) */
CG_INLINE double cg_ratio_d(double nh, double nl, double dh, double dl, double *low) {
    double inverse = 1 / dh, q = nh * inverse, pl, p = cg_times_d(q, dh, &pl);
    return cg_plus_d(q, (((nh - p) - pl) + (nl - q * dl)) * inverse, low);
}


/* ---- exponentials ------------------------------------------------------------------------------------------------ */

/* exp(x + xl) = 2^k (1 + r + rest) for |x| < 1000 and xl much smaller than x; |r| <= ln 2 / 2 and
   rest = exp(r) - 1 - r. */
CG_INLINE double cg_exponent_d(double x, double xl, double *k, double *rest) {
    double n = cg_fma_d(x, CG_LOG2_E, CG_ROUND) - CG_ROUND;
    double t = cg_fma_d(n, -CG_LN2_HIGH, x), c = cg_fma_d(n, -CG_LN2_LOW, xl), r = t + c, low = (t - r) + c;
    double q =
        CG_NEXT4(r, 0.16666666666666677, 0.0416666666666667, 0.008333333333321657, 0.0013888888888866928,
        CG_NEXT4(r, 0.0001984126988606, 2.4801587360464067e-05, 2.755724427756233e-06, 2.755724279185073e-07,
        CG_LAST2(r, 2.510901243550631e-08, 2.092444306252447e-09)));
    double more = cg_fma_d(r * r, r * q, low);
    *k = n;
#if CG_FUSED
    *rest = cg_fma_d(0.5 * r, r, more);
#else
    double square = cg_times_d(0.5 * r, r, &low); /* its rounding error is 0.1 ulp of expm1 */
    *rest = square + (low + more);
#endif
    return r;
}

/* The same as 2^k (high + low), with high from 0.7 to 1.42. */
CG_INLINE double cg_exp_pair_d(double x, double xl, double *k, double *low) {
    double rest, one, r = cg_exponent_d(x, xl, k, &rest), s = cg_plus_d(1, r, &one);
    return cg_plus_d(s, one + rest, low);
}

/* exp(x) - 1 = 2^k (high + low) for x from -50 to 1000. */
CG_INLINE double cg_expm1_pair_d(double x, double *k, double *low) {
    double rest, one, r = cg_exponent_d(x, 0, k, &rest), n = *k, p = cg_power_of_2_d(n > 80 ? -80 : -n);
    double u = 1 - p, s = cg_plus_d(u, r, &one); /* u is 0 or |u| >= 0.5, so |u| >= |r| */
    return cg_plus_d(s, one + (rest + ((1 - u) - p)), low);
}

CG_INLINE double cg_exp_d(double x) {
    double k, low, v = x > 710 ? 710 : x, high = cg_exp_pair_d(v < -746 ? -746 : v, 0, &k, &low);
    double y = cg_scale_down_d(high, k, 0), beyond = x * INFINITY;
    return x <= 0x1.62e42fefa39efp+9 ? y : beyond; /* the logarithm of the largest number; or NaN */
}

CG_INLINE double cg_exp_near_d(double x) {
    double k, low, high = cg_exp_pair_d(x, 0, &k, &low);
    return cg_times_power_d(high, k);
}

/* 2^600 e^x for x <= 0, which is never denormal. cg_down_d removes the factor after the last multiplication. */
CG_INLINE double cg_exp_up_d(double x) {
    double k, low, high = cg_exp_pair_d(x < -746 ? -746 : x, 0, &k, &low);
    double y = cg_times_power_d(high, k + 600);
    return x == x ? y : x;
}

CG_INLINE double cg_expm1_d(double x) {
    double k, low, v = x > 710 ? 710 : x, high = cg_expm1_pair_d(v < -50 ? -50 : v, &k, &low);
    double y = high * 2 * cg_power_of_2_d(k - 1);
    return x == 0 ? x : y;
}

/* 1 / (1 + exp(-x)); for negative x exp(x) / (1 + exp(x)), scaled last. */
CG_INLINE double cg_sigmoid_d(double x, int near) {
    double k, el, dl, low, a = cg_abs_d(x), v = a > 746 ? 746 : a, eh = cg_exp_pair_d(-v, 0, &k, &el);
    double p = cg_power_of_2_d(k < -200 ? -200 : k), dh = cg_plus_d(1, eh * p, &dl);
    double q = cg_ratio_d(x < 0 ? eh : 1, x < 0 ? el : 0, dh, cg_fma_d(el, p, dl), &low);
    double y = cg_scale_down_d(q, x < 0 ? k : 0, near);
    return near || x == x ? y : x;
}

/* (exp(2 x) - 1) / (exp(2 x) + 1) */
CG_INLINE double cg_tanh_d(double x) {
    double k, nl, dl, low, a = cg_abs_d(x), nh = cg_expm1_pair_d(2 * (a > 20 ? 20 : a), &k, &nl);
    double dh = cg_sum_d(nh, 2 * cg_power_of_2_d(-k), &dl);
    return cg_sign_d(cg_ratio_d(nh, nl, dh, dl + nl, &low), x);
}

/* With E = exp(|x|) - 1: (E + E / (E + 1)) / 2 */
CG_INLINE double cg_sinh_d(double x) {
    double k, nl, dl, ql, a = cg_abs_d(x), nh = cg_expm1_pair_d(a > 711 ? 711 : a, &k, &nl);
    double p = cg_power_of_2_d(k > 200 ? -200 : -k), dh = cg_sum_d(nh, p, &dl);
    double q = cg_ratio_d(nh, nl, dh, dl + nl, &ql), low, s = cg_plus_d(nh, q * p, &low);
    return cg_sign_d(cg_scale_d(s + (low + cg_fma_d(ql, p, nl)), k - 1), x);
}

/* (exp(|x|) + exp(-|x|)) / 2 */
CG_INLINE double cg_cosh_d(double x) {
    double k, el, a = cg_abs_d(x), eh = cg_exp_pair_d(a > 711 ? 711 : a, 0, &k, &el);
    double p = cg_power_of_2_d(k > 200 ? -200 : -k), low, s = cg_plus_d(eh, p * p / eh, &low);
    return cg_scale_d(s + (low + el), k - 1);
}

/* exp(-x^2 / 2) and exp(-x^2). The last digits depend on the rounding error of the square, pl. */
CG_INLINE double cg_bell_d(double x, int near) {
    double a = cg_abs_d(x), v = a > 40 ? 40 : a, pl, p = cg_times_d(v, 0.5 * v, &pl), k, low;
    double high = cg_exp_pair_d(-p, -pl, &k, &low), y = cg_scale_down_d(high, k, near);
    return near || x == x ? y : x;
}
CG_INLINE double cg_gauss_d(double x) {
    double a = cg_abs_d(x), v = a > 28 ? 28 : a, pl, p = cg_times_d(v, v, &pl), k, low;
    double high = cg_exp_pair_d(-p, -pl, &k, &low), y = cg_scale_down_d(high, k, 0);
    return x == x ? y : x;
}


/* ---- logarithms -------------------------------------------------------------------------------------------------- */

/* x = 2^k m with m from sqrt(1/2) to sqrt(2). Undefined for 0, infinity and NaN. */
CG_INLINE double cg_split_d(double x, double *k) {
    int small = x < 0x1p-1022;
    uint64_t root = 0x3fe6a09e667f3bcd, u = cg_bits_d(small ? x * 0x1p54 : x) - root + ((uint64_t)1023 << 52);
    *k = cg_from_bits_d(u >> 52 | 0x4330000000000000) - (small ? 0x1p52 + 1023 + 54 : 0x1p52 + 1023);
    return cg_from_bits_d((u & 0x000fffffffffffff) + root);
}

/* log(2^k (1 + f + fl)) for 1 + f from sqrt(1/2) to sqrt(2). With s = f / (2 + f), log(1 + f) is 2 atanh(s). Replacing
   s by f / 2 - s f / 2 makes the exact f the first term: f - f^2/2 + s (f^2/2 + (2/3) s^2 + (2/5) s^4 + ...) */
CG_INLINE double cg_log_sum_d(double f, double fl, double k) {
    double s = f / (2 + f), z = s * s, h = 0.5 * f, square = h * f;
    double series = z *
        CG_NEXT4(z, 0.6666666666666734, 0.39999999999414565, 0.2857142874241375, 0.2222219857024224,
        CG_LAST3(z, 0.18183564493317245, 0.15314045959164196, 0.14795998191603316));
    double high = cg_fma_d(-h, f, f), low = cg_fma_d(-h, f, f - high);
    double one, sum = cg_plus_d(k * CG_LN2_HIGH, high, &one);
    return sum + (one + (low + cg_fma_d(s, square + series, cg_fma_d(k, CG_LN2_LOW, cg_fma_d(-fl, f, fl)))));
}

/* log(2^more (x + xl)) for a positive normal x and xl much smaller than x. */
CG_INLINE double cg_log_pair_d(double x, double xl, double more) {
    double k, f = cg_split_d(x, &k) - 1, fl = xl * cg_power_of_2_d(k > 1000 ? -1000 : -k), low;
    f = cg_sum_d(f, fl, &low);
    return cg_log_sum_d(f, low, k + more);
}

CG_INLINE double cg_log_d(double x) {
    double k, m = cg_split_d(x, &k), y = cg_log_sum_d(m - 1, 0, k);
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    return x >= 0 ? y : NAN;
}

CG_INLINE double cg_log1p_d(double x) {
    double low, u = cg_sum_d(1, x, &low), y = cg_log_pair_d(u, low, 0);
    y = x == INFINITY || x == 0 ? x : y;
    y = x == -1 ? -INFINITY : y;
    return x >= -1 ? y : NAN;
}

/* log(|x| + sqrt(x^2 + 1)) */
CG_INLINE double cg_asinh_d(double x) {
    double a = cg_abs_d(x), pl, p, tl, t, r, rl, ql, q, ul, u, y;
    int large = a > 0x1p30;
    p = cg_times_d(large ? 1 : a, large ? 1 : a, &pl);
    t = cg_sum_d(1, p, &tl);
    r = __builtin_sqrt(t);
    q = cg_times_d(r, r, &ql);
    rl = (((t - q) - ql) + (tl + pl)) / (2 * r);
    u = cg_sum_d(a, r, &ul);
    y = cg_log_pair_d(large ? a : u, large ? 0 : ul + rl, large ? 1 : 0);
    y = a < 0x1p-27 ? a - a * a * a * (1.0 / 6) : y;
    return cg_sign_d(a < INFINITY ? y : a, x);
}

/* log(x + sqrt(x^2 - 1)) */
CG_INLINE double cg_acosh_d(double x) {
    int large = x > 0x1p30;
    double v = large ? 2 : x, pl, p = cg_times_d(v, v, &pl), tl, t = cg_plus_d(p - 1, pl, &tl);
    double r = __builtin_sqrt(t), ql, q = cg_times_d(r, r, &ql);
    double rl = (((t - q) - ql) + tl) / (2 * r), ul, u = cg_plus_d(v, r, &ul), y;
    y = cg_log_pair_d(large ? x : u, large ? 0 : ul + rl, large ? 1 : 0);
    y = x == 1 ? 0 : y;
    return x == INFINITY ? x : x >= 1 ? y : NAN;
}

/* log(1 + 2 |x| / (1 - |x|)) / 2 */
CG_INLINE double cg_atanh_d(double x) {
    double a = cg_abs_d(x), dl, dh = cg_plus_d(1, -a, &dl), ql, q = cg_ratio_d(2 * a, 0, dh, dl, &ql), ul, u, y;
    u = cg_sum_d(1, q, &ul);
    y = 0.5 * cg_log_pair_d(u, ul + ql, 0);
    y = a == 1 ? INFINITY : a < 0x1p-27 ? a : y;
    return cg_sign_d(a <= 1 ? y : NAN, x);
}


/* ---- the error function ------------------------------------------------------------------------------------------ */

/* erfc(a + al) = 2^k (high + low) for 0 <= a <= 28; p + pl is the square of a + al. Computed from
   h = (1 + a) exp(a^2) erfc(a), which is smooth in t = (a - 4) / (a + 4). */
CG_INLINE double cg_erfc_tail_d(double a, double al, double p, double pl, double *k, double *low) {
    double nl, n = cg_sum_d(a, -4, &nl), dl, d = cg_sum_d(a, 4, &dl), tl, t = cg_ratio_d(n, nl + al, d, dl + al, &tl);
    double rest = t *
        CG_NEXT4(t, 0.11704966551044234, -0.048080381221307186, 0.003962055681298778, 0.015312509679269008,
        CG_NEXT4(t, -0.017515654646716047, 0.012161784753678823, -0.0060687352176635335, 0.002116421576680894,
        CG_NEXT4(t, -0.0003897674991375444, -6.0136727758734896e-05, 6.403279295813536e-05, -1.3151304155454844e-05,
        CG_NEXT4(t, -4.138663962762527e-06, 2.6506804492577064e-06, 4.722796859042984e-09, -3.6483112129281517e-07,
        CG_NEXT4(t, 5.013004096879819e-08, 4.755225361303687e-08, -1.0199351527774014e-08, -6.166490650287975e-09,
        CG_LAST2(t, 1.035516914862258e-09, 5.803983317601271e-10))))));
    double derivative = CG_LAST4(t, -0.21, 0.35, -0.06, -0.33); /* h', approximately; for the low part of t */
    double ml, m = cg_times_d(t, -0.1993445828003671, &ml);
    double one, hl, h = cg_plus_d(0.6849972881253069, m, &one);
    h = cg_plus_d(h, cg_fma_d(t, rest, cg_fma_d(tl, derivative, one + (ml + 3.631643462186649e-17))), &hl);
    double el, eh = cg_exp_pair_d(-p, -pl, k, &el);
    double yl, y = cg_times_d(eh, h, &yl), ol, o = cg_sum_d(1, a, &ol);
    return cg_ratio_d(y, yl + cg_fma_d(eh, hl, el * h), o, ol + al, low);
}

/* erfc(-x / sqrt(2)) / 2: the cumulative distribution function of the normal distribution */
CG_INLINE double cg_normal_d(double x, int near) {
    double full = cg_abs_d(x), v = full > 39 ? 39 : full, pl, p = cg_times_d(v, 0.5 * v, &pl), k, low, one;
    double al, a = cg_times_d(v, 0x1.6a09e667f3bcdp-1, &al);
    double tail = cg_erfc_tail_d(a, cg_fma_d(v, -0x1.bdd3413b26456p-55, al), p, pl, &k, &low);
    double half = cg_power_of_2_d((near || k > -200 ? k : -200) - 1);
    double z = cg_plus_d(1, -half * tail, &one) + (one - half * low);
    double y = near ? tail * half : cg_down_d(tail * cg_power_of_2_d(k + 599));
    y = x < 0 ? y : z;
    return near || x == x ? y : x;
}

/* x (2 / sqrt(pi) + x^2 (...)) up to 0.65, then 1 - erfc(x) */
CG_INLINE double cg_erf_d(double x) {
    double full = cg_abs_d(x), a = full > 6 ? 6 : full, zl, z = cg_times_d(a, a, &zl);
    double pl, p = cg_times_d(a, 0x1.20dd750429b6dp+0, &pl), k, low, tail = cg_erfc_tail_d(a, 0, z, zl, &k, &low);
    double far = 1 - tail * cg_power_of_2_d(k);
    double series = cg_fma_d(z,
        CG_NEXT4(z, -0.37612638903183615, 0.11283791670942189, -0.02686617064088521, 0.005223977557075694,
        CG_NEXT4(z, -0.000854832079023307, 0.00012054989158549318, -1.491392963850513e-05, 1.6219773652718875e-06,
        CG_LAST1(z, -1.355051312894103e-07))), 0x1.1ae3a914fed80p-56);
    double more = cg_fma_d(a, series, pl), near = p + (a < 0x1p-900 ? 0 : more); /* (pl is not exact there) */
    return cg_sign_d(cg_choose_d(cg_negative_d(a - 0.65), near, far), x);
}


/* ---- trigonometry ------------------------------------------------------------------------------------------------ */

/* The functions below are accurate up to this limit. Beyond it, kernels call the C library. */
#define CG_FAR_D 0x1p30

/* |x| = n pi/2 + r + low with |r| up to pi/4. Returns a number whose low bits are n. pi / 2 has three parts. */
CG_INLINE uint64_t cg_quadrant_d(double x, double *r, double *low) {
    double turns = cg_fma_d(x, 0x1.45f306dc9c883p-1, CG_ROUND), n = turns - CG_ROUND;
    double pl, p = cg_times_d(n, 0x1.921fb54442d18p+0, &pl), t = (x - p) - pl; /* exact: a multiple of 2^-52 below 1 */
    double ql, q = cg_times_d(n, 0x1.1a62633145c07p-54, &ql), sl, s = cg_sum_d(t, -q, &sl);
    *r = cg_plus_d(s, sl - cg_fma_d(n, -0x1.f1976b7ed8fbcp-110, ql), low);
    return cg_bits_d(turns);
}

/* sin(r + low) and cos(r + low) as pairs, for |r| up to pi / 4 */
CG_INLINE double cg_sine_d(double r, double rl, double *low) {
    double z = r * r, series =
        CG_NEXT4(z, -0.16666666666666632, 0.008333333333322424, -0.0001984126982981662, 2.755731369506117e-06,
        CG_LAST2(z, -2.505075861832053e-08, 1.5896825427582798e-10));
    return cg_plus_d(r, cg_fma_d(r * z, series, cg_fma_d(rl, -0.5 * z, rl)), low);
}
CG_INLINE double cg_cosine_d(double r, double rl, double *low) {
    double z = r * r, one, w = cg_plus_d(1, -0.5 * z, &one), series =
        CG_NEXT4(z, 0.0416666666666666, -0.0013888888888874133, 2.480158728948824e-05, -2.7557314354135564e-07,
        CG_LAST2(z, 2.08757235294969e-09, -1.1359661766163467e-11));
    return cg_plus_d(w, one + cg_fma_d(z * z, series, -r * rl), low);
}

/* sin(r + rl + n pi / 2) */
CG_INLINE double cg_turned_d(uint64_t n, double r, double rl) {
    double low, s = cg_sine_d(r, rl, &low), c = cg_cosine_d(r, rl, &low);
    return cg_from_bits_d(cg_bits_d(cg_choose_d(0 - (n & 1), c, s)) ^ (n & 2) << 62);
}

CG_INLINE double cg_sin_d(double x) {
    double r, rl, a = cg_abs_d(x);
    uint64_t n = cg_quadrant_d(a, &r, &rl);
    return cg_from_bits_d(cg_bits_d(cg_turned_d(n, r, rl)) ^ (cg_bits_d(x) & 0x8000000000000000));
}

CG_INLINE double cg_cos_d(double x) {
    double r, rl;
    uint64_t n = cg_quadrant_d(cg_abs_d(x), &r, &rl);
    return cg_turned_d(n + 1, r, rl);
}

/* sin and cos of x turns, for 0 <= x < 1. The error is at most 2^-51: not relative, as that of the others. */
CG_INLINE void cg_turn_d(double x, double *sine, double *cosine) {
    double turns = 4 * x + CG_ROUND, r = (4 * x - (turns - CG_ROUND)) * 0x1.921fb54442d18p+0, low;
    uint64_t n = cg_bits_d(turns), odd = 0 - (n & 1);
    double s = cg_sine_d(r, 0, &low), c = cg_cosine_d(r, 0, &low);
    *sine = cg_from_bits_d(cg_bits_d(cg_choose_d(odd, c, s)) ^ (n & 2) << 62);
    *cosine = cg_from_bits_d(cg_bits_d(cg_choose_d(odd, s, c)) ^ ((n + 1) & 2) << 62);
}

CG_INLINE double cg_tan_d(double x) {
    double r, rl, sl, cl, low, q;
    uint64_t n = cg_quadrant_d(cg_abs_d(x), &r, &rl);
    double s = cg_sine_d(r, rl, &sl), c = cg_cosine_d(r, rl, &cl);
    uint64_t odd = 0 - (n & 1);
    q = cg_ratio_d(cg_choose_d(odd, -c, s), cg_choose_d(odd, -cl, sl), cg_choose_d(odd, s, c), cg_choose_d(odd, sl, cl),
                   &low);
    return cg_from_bits_d(cg_bits_d(q) ^ (cg_bits_d(x) & 0x8000000000000000));
}

/* Returns v, and *low with asin(v) = v + *low. Up to 0.5, v = a. Beyond, v = sqrt((1 - a) / 2), and then
   asin(a) = pi/2 - 2 asin(v). */
CG_INLINE double cg_arc_d(double a, double *low) {
    int far = a > 0.5;
    double z = far ? 0.5 * (1 - a) : a * a, v = far ? __builtin_sqrt(z) : a, pl, p = cg_times_d(v, v, &pl);
    double vl = ((z - p) - pl) / (2 * v + 0x1p-1000);
    double series = z *
        CG_NEXT4(z, 0.16666666666666763, 0.07499999999970262, 0.044642857175116506, 0.03038194268390018,
        CG_NEXT4(z, 0.022372215651377158, 0.01735160025653149, 0.01398095951742099, 0.011397791023479787,
        CG_NEXT4(z, 0.010786450709692346, 0.003683312329491476, 0.021762907327336788, -0.02107654977259841,
        CG_LAST1(z, 0.03267648459077484))));
    *low = cg_fma_d(v, series, far ? vl : 0);
    return v;
}

CG_INLINE double cg_asin_d(double x) {
    double a = cg_abs_d(x), vl, v = cg_arc_d(a, &vl), one, high = cg_plus_d(0x1.921fb54442d18p+0, -2 * v, &one);
    double y = a > 0.5 ? high + (one + (0x1.1a62633145c07p-54 - 2 * vl)) : v + vl;
    return cg_sign_d(y, x);
}

CG_INLINE double cg_acos_d(double x) {
    double a = cg_abs_d(x), vl, v = cg_arc_d(a, &vl), one, high;
    /* near 0: pi/2 - x; near 1: 0 + 2 v; near -1: pi - 2 v */
    double base = a > 0.5 ? (x < 0 ? 0x1.921fb54442d18p+1 : 0) : 0x1.921fb54442d18p+0;
    double more = a > 0.5 ? (x < 0 ? 0x1.1a62633145c07p-53 : 0) : 0x1.1a62633145c07p-54;
    double times = a > 0.5 ? (x < 0 ? -2 : 2) : (x < 0 ? 1 : -1);
    high = cg_plus_d(base, times * v, &one);
    return high + (one + cg_fma_d(times, vl, more));
}

/* base + atan(t). Up to tan(pi/8), t = a and base = 0; up to tan(3 pi/8), t = (a - 1) / (a + 1) and base = pi/4;
   beyond, t = -1 / a and base = pi/2. */
CG_INLINE double cg_atan_d(double x) {
    const double tan1 = 0.41421356237309503, tan3 = 2.414213562373095;
    double full = cg_abs_d(x), a = full > 0x1p60 ? 0x1p60 : full;
    double nl, n = cg_sum_d(a, -1, &nl), dl, d = cg_sum_d(a, 1, &dl);
    double base = a > tan1 ? 0x1.921fb54442d18p-1 : 0, more = a > tan1 ? 0x1.1a62633145c07p-55 : 0, tl, z, one, high;
    n = a > tan1 ? n : a;
    n = a > tan3 ? -1 : n;
    nl = a > tan1 ? nl : 0;
    nl = a > tan3 ? 0 : nl;
    d = a > tan1 ? d : 1;
    d = a > tan3 ? a : d;
    dl = a > tan1 ? dl : 0;
    dl = a > tan3 ? 0 : dl;
    base = a > tan3 ? 2 * base : base;
    more = a > tan3 ? 2 * more : more;
    double t = cg_ratio_d(n, nl, d, dl, &tl);
    z = t * t;
    double series = z *
        CG_NEXT4(z, -0.333333333333332, 0.19999999999954082, -0.1428571428024859, 0.11111110786146051,
        CG_NEXT4(z, -0.09090897836828499, 0.0769206164598699, -0.0666312050214443, 0.05848009858349943,
        CG_LAST3(z, -0.05039849956557783, 0.03807843562280017, -0.01792240393532191)));
    high = cg_plus_d(base, t, &one);
    return cg_sign_d(high + (one + (cg_fma_d(t, series, tl) + more)), x);
}

#endif
