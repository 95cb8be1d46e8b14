"""Functions of one number for all kernels, in both precisions: float32 by include/cygrad/single.h, whose functions
become vectors in a plain loop."""

from libc cimport math

from cygrad.kernels.array cimport real

cdef extern from "cygrad/single.h" nogil:
    float cg_exp_f(float x) noexcept
    float cg_log_f(float x) noexcept
    float cg_tanh_f(float x) noexcept
    float cg_sigmoid_f(float x) noexcept

# ---- exponentials and logarithms
cdef inline real exp(real x) noexcept nogil:     return cg_exp_f(x) if real is float else math.exp(x)
cdef inline real expm1(real x) noexcept nogil:   return math.expm1f(x) if real is float else math.expm1(x)
cdef inline real log(real x) noexcept nogil:     return cg_log_f(x) if real is float else math.log(x)
cdef inline real log1p(real x) noexcept nogil:   return math.log1pf(x) if real is float else math.log1p(x)
cdef inline real pow(real x, real p) noexcept nogil: return math.powf(x, p) if real is float else math.pow(x, p)

# ---- trigonometry
cdef inline real sin(real x) noexcept nogil:     return math.sinf(x) if real is float else math.sin(x)
cdef inline real cos(real x) noexcept nogil:     return math.cosf(x) if real is float else math.cos(x)
cdef inline real tan(real x) noexcept nogil:     return math.tanf(x) if real is float else math.tan(x)
cdef inline real asin(real x) noexcept nogil:    return math.asinf(x) if real is float else math.asin(x)
cdef inline real acos(real x) noexcept nogil:    return math.acosf(x) if real is float else math.acos(x)
cdef inline real atan(real x) noexcept nogil:    return math.atanf(x) if real is float else math.atan(x)

# ---- hyperbolic functions
cdef inline real sinh(real x) noexcept nogil:    return math.sinhf(x) if real is float else math.sinh(x)
cdef inline real cosh(real x) noexcept nogil:    return math.coshf(x) if real is float else math.cosh(x)
cdef inline real tanh(real x) noexcept nogil:    return cg_tanh_f(x) if real is float else math.tanh(x)
cdef inline real asinh(real x) noexcept nogil:   return math.asinhf(x) if real is float else math.asinh(x)
cdef inline real acosh(real x) noexcept nogil:   return math.acoshf(x) if real is float else math.acosh(x)
cdef inline real atanh(real x) noexcept nogil:   return math.atanhf(x) if real is float else math.atanh(x)

# ---- of networks
cdef inline double logistic_d(double x) noexcept nogil:
    cdef double e = math.exp(-math.fabs(x))         # at most 1: no overflow, and small results keep all their digits
    return (1 if x >= 0 else e) / (1 + e)

cdef inline real logistic(real x) noexcept nogil: return cg_sigmoid_f(x) if real is float else logistic_d(x)
cdef inline real erf(real x) noexcept nogil:     return math.erff(x) if real is float else math.erf(x)
cdef inline real erfc(real x) noexcept nogil:    return math.erfcf(x) if real is float else math.erfc(x)

# ---- exact, or one instruction
cdef inline real sqrt(real x) noexcept nogil:    return math.sqrtf(x) if real is float else math.sqrt(x)
cdef inline real fabs(real x) noexcept nogil:    return <real>math.fabs(x)     # fabsf, to the compiler
