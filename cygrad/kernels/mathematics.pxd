"""Scalar functions for all kernels, in float32 (include/cygrad/single.h) and float64 (double.h). A plain loop over them
is vectorized by the compiler."""

from libc cimport math
from libc.stdint cimport INT64_MAX, int32_t, int64_t

from cygrad.kernels.array cimport real

cdef extern from "cygrad/single.h" nogil:
    const float CG_FAR_F
    float cg_exp_f(float x) noexcept
    const float CG_NEAR_EXP_F
    const float CG_NEAR_SIGMOID_F
    const float CG_NEAR_NORMAL_F
    float cg_exp_near_f(float x) noexcept
    float cg_exp_up_f(float x) noexcept
    float cg_down_f(float y) noexcept
    float cg_expm1_f(float x) noexcept
    float cg_bell_f(float x, bint near) noexcept
    float cg_gauss_f(float x) noexcept
    float cg_log_f(float x) noexcept
    float cg_log1p_f(float x) noexcept
    float cg_log_of_base_f(float x, float scale, float high, float low) noexcept
    float cg_exp2_f(float x) noexcept
    float cg_pow_f(float x, float e) noexcept
    float cg_pow_of_ordinary_f(float x, float e) noexcept
    bint cg_pow_ordinary_f(float x, float e) noexcept
    float cg_sin_f(float x) noexcept
    float cg_cos_f(float x) noexcept
    float cg_tan_f(float x) noexcept
    float cg_asin_f(float x) noexcept
    float cg_acos_f(float x) noexcept
    float cg_atan_f(float x) noexcept
    float cg_atan2_f(float y, float x) noexcept
    float cg_sinh_f(float x) noexcept
    float cg_cosh_f(float x) noexcept
    float cg_tanh_f(float x) noexcept
    float cg_asinh_f(float x) noexcept
    float cg_acosh_f(float x) noexcept
    float cg_atanh_f(float x) noexcept
    float cg_erf_f(float x) noexcept
    float cg_erfc_f(float x) noexcept
    float cg_normal_f(float x, bint near) noexcept
    float cg_sigmoid_f(float x, bint near) noexcept
    float cg_softplus_f(float x, bint near) noexcept
    float cg_gelu_f(float x, bint near) noexcept
    float cg_silu_f(float x, bint near) noexcept

cdef extern from "cygrad/double.h" nogil:
    const double CG_FAR_D
    double cg_exp_d(double x) noexcept
    const double CG_NEAR_EXP_D
    const double CG_NEAR_SIGMOID_D
    const double CG_NEAR_NORMAL_D
    double cg_exp_near_d(double x) noexcept
    double cg_exp_up_d(double x) noexcept
    double cg_down_d(double y) noexcept
    double cg_expm1_d(double x) noexcept
    double cg_bell_d(double x, bint near) noexcept
    double cg_gauss_d(double x) noexcept
    double cg_log_d(double x) noexcept
    double cg_log1p_d(double x) noexcept
    double cg_sin_d(double x) noexcept
    double cg_cos_d(double x) noexcept
    double cg_tan_d(double x) noexcept
    double cg_asin_d(double x) noexcept
    double cg_acos_d(double x) noexcept
    double cg_atan_d(double x) noexcept
    double cg_sinh_d(double x) noexcept
    double cg_cosh_d(double x) noexcept
    double cg_tanh_d(double x) noexcept
    double cg_asinh_d(double x) noexcept
    double cg_acosh_d(double x) noexcept
    double cg_atanh_d(double x) noexcept
    double cg_erf_d(double x) noexcept
    double cg_normal_d(double x, bint near) noexcept
    double cg_sigmoid_d(double x, bint near) noexcept

# Macros, because the C compiler would load a variable again for each element, in case a store has changed it.
cdef extern from *:
    """
    #define CG_ROOT_2_PI 0.39894228040143267794
    #define CG_TWO_ROOT_PI 1.12837916709551257390
    #define CG_ROOT_EIGHT_PI 1.59576912160573071176
    """
    const double ROOT_2_PI "CG_ROOT_2_PI"           # 1 / sqrt(2 pi)
    const double TWO_ROOT_PI "CG_TWO_ROOT_PI"       # 2 / sqrt(pi)
    const double ROOT_EIGHT_PI "CG_ROOT_EIGHT_PI"   # sqrt(8 / pi)

# ---- near: so close to zero that no result is denormal, which allows faster code (single.h)
cdef enum Near:
    TO_EXP, TO_SIGMOID, TO_NORMAL

cdef inline bint all_near(Near to, const real* x, Py_ssize_t n) noexcept nogil:
    """Whether all elements are near. A NaN is not."""
    cdef Py_ssize_t i
    cdef int32_t bits, max_bits = 0
    cdef int64_t bits64, max_bits64 = 0
    cdef real limit
    if to == TO_EXP:       limit = CG_NEAR_EXP_F if real is float else CG_NEAR_EXP_D
    elif to == TO_SIGMOID: limit = CG_NEAR_SIGMOID_F if real is float else CG_NEAR_SIGMOID_D
    else:                  limit = CG_NEAR_NORMAL_F if real is float else CG_NEAR_NORMAL_D
    if real is float:                               # |x| as integers, because comparisons of floats check for NaN
        for i in range(n):
            bits = (<const int32_t*>x)[i] & 0x7fffffff
            max_bits = bits if bits > max_bits else max_bits
        return max_bits <= (<int32_t*>&limit)[0]
    else:
        for i in range(n):
            bits64 = (<const int64_t*>x)[i] & INT64_MAX
            max_bits64 = bits64 if bits64 > max_bits64 else max_bits64
        return max_bits64 <= (<int64_t*>&limit)[0]

# ---- exponentials and logarithms
cdef inline real exp(real x) noexcept nogil:   return cg_exp_f(x) if real is float else cg_exp_d(x)
cdef inline real exp_near(real x) noexcept nogil: return cg_exp_near_f(x) if real is float else cg_exp_near_d(x)

cdef inline real exp_up(real x) noexcept nogil:
    """e^x for x <= 0, times a power of two that down() removes. The result is never denormal."""
    return cg_exp_up_f(x) if real is float else cg_exp_up_d(x)

cdef inline real down(real y) noexcept nogil:
    """y >= 0 without the factor of exp_up(), rounded once. Undefined for NaN."""
    return cg_down_f(y) if real is float else cg_down_d(y)

cdef inline real expm1(real x) noexcept nogil: return cg_expm1_f(x) if real is float else cg_expm1_d(x)
cdef inline real log(real x) noexcept nogil:   return cg_log_f(x) if real is float else cg_log_d(x)
cdef inline real log1p(real x) noexcept nogil: return cg_log1p_f(x) if real is float else cg_log1p_d(x)
cdef inline real log2(real x) noexcept nogil:
    return cg_log_of_base_f(x, 1.4426950408889634, 1, 0) if real is float else math.log2(x)

cdef inline real log10(real x) noexcept nogil:     # high is log10(2) in units of 2^-17
    return (cg_log_of_base_f(x, 0.4342944819032518, 39457 / 131072.0, -3.0243555500519825e-06) if real is float else
            math.log10(x))

cdef inline real exp2(real x) noexcept nogil:  return cg_exp2_f(x) if real is float else math.exp2(x)
cdef inline real pow(real x, real e) noexcept nogil: return cg_pow_f(x, e) if real is float else math.pow(x, e)

cdef inline bint pow_ordinary(real x, real e) noexcept nogil:
    """Whether pow_of_ordinary() computes x^e: the same bits as pow(), in half the time."""
    return cg_pow_ordinary_f(x, e) if real is float else False

cdef inline real pow_of_ordinary(real x, real e) noexcept nogil:
    return cg_pow_of_ordinary_f(x, e) if real is float else math.pow(x, e)

# ---- trigonometry: sin, cos and tan need numbers that are not far; *_far take any number and are not vectorized
cdef inline bint far(real x) noexcept nogil:
    """Whether x is too large for sin, cos and tan, or infinite, or NaN."""
    return not fabs(x) <= CG_FAR_F if real is float else not fabs(x) <= CG_FAR_D

cdef inline real sin(real x) noexcept nogil:   return cg_sin_f(x) if real is float else cg_sin_d(x)
cdef inline real cos(real x) noexcept nogil:   return cg_cos_f(x) if real is float else cg_cos_d(x)
cdef inline real tan(real x) noexcept nogil:   return cg_tan_f(x) if real is float else cg_tan_d(x)
cdef inline real sin_far(real x) noexcept nogil: return <real>math.sin(x) if far(x) else sin(x)
cdef inline real cos_far(real x) noexcept nogil: return <real>math.cos(x) if far(x) else cos(x)
cdef inline real tan_far(real x) noexcept nogil: return <real>math.tan(x) if far(x) else tan(x)
cdef inline real asin(real x) noexcept nogil:  return cg_asin_f(x) if real is float else cg_asin_d(x)
cdef inline real acos(real x) noexcept nogil:  return cg_acos_f(x) if real is float else cg_acos_d(x)
cdef inline real atan(real x) noexcept nogil:  return cg_atan_f(x) if real is float else cg_atan_d(x)
cdef inline real atan2(real y, real x) noexcept nogil: return cg_atan2_f(y, x) if real is float else math.atan2(y, x)
cdef inline real hypot(real x, real y) noexcept nogil:
    """sqrt(x^2 + y^2): for float32 in float64, where squares do not overflow."""
    cdef double r
    if real is float:
        r = math.sqrt(<double>x * x + <double>y * y)
        return <float>(math.INFINITY if (fabs(x) == math.INFINITY) | (fabs(y) == math.INFINITY) else r)
    else: return math.hypot(x, y)

# ---- hyperbolic functions
cdef inline real sinh(real x) noexcept nogil:  return cg_sinh_f(x) if real is float else cg_sinh_d(x)
cdef inline real cosh(real x) noexcept nogil:  return cg_cosh_f(x) if real is float else cg_cosh_d(x)
cdef inline real tanh(real x) noexcept nogil:  return cg_tanh_f(x) if real is float else cg_tanh_d(x)
cdef inline real asinh(real x) noexcept nogil: return cg_asinh_f(x) if real is float else cg_asinh_d(x)
cdef inline real acosh(real x) noexcept nogil: return cg_acosh_f(x) if real is float else cg_acosh_d(x)
cdef inline real atanh(real x) noexcept nogil: return cg_atanh_f(x) if real is float else cg_atanh_d(x)

# ---- activations
cdef inline real erf(real x) noexcept nogil:   return cg_erf_f(x) if real is float else cg_erf_d(x)
cdef inline real erfc(real x) noexcept nogil:  return cg_erfc_f(x) if real is float else math.erfc(x)

cdef inline real logistic(real x, bint near=False) noexcept nogil:
    """1 / (1 + e^-x)"""
    return cg_sigmoid_f(x, near) if real is float else cg_sigmoid_d(x, near)

cdef inline real softplus(real x, bint near=False) noexcept nogil:
    """log(1 + e^x)"""
    return (cg_softplus_f(x, near) if real is float else
            (0 if x <= 0 else x) + cg_log1p_d(cg_exp_near_d(-fabs(x)) if near else cg_exp_d(-fabs(x))))

cdef inline real silu(real x, bint near=False) noexcept nogil:
    return cg_silu_f(x, near) if real is float else x * cg_sigmoid_d(x, near)

cdef inline real gelu(real x, bint near=False) noexcept nogil:
    """x normal(x)"""
    return cg_gelu_f(x, near) if real is float else x * cg_normal_d(x, near)

cdef inline real normal(real x, bint near=False) noexcept nogil:
    """The cumulative distribution function of the normal distribution, accurate also for small results."""
    return cg_normal_f(x, near) if real is float else cg_normal_d(x, near)

cdef inline real bell(real x, bint near=False) noexcept nogil:
    """e^(-x^2 / 2)"""
    return cg_bell_f(x, near) if real is float else cg_bell_d(x, near)

cdef inline real gauss(real x) noexcept nogil:
    """e^(-x^2)"""
    return cg_gauss_f(x) if real is float else cg_gauss_d(x)

# ---- exact, or one instruction
cdef inline real sqrt(real x) noexcept nogil:  return math.sqrtf(x) if real is float else math.sqrt(x)
cdef inline real fabs(real x) noexcept nogil:  return <real>math.fabs(x)     # the compiler emits fabsf for float
