"""Strip kernels of special functions: logarithms and powers of other bases, the gamma function and its derivatives,
sinc, angles. Operands are in the order of the formula, and the result is last.

What mathematics.pxd has is computed in vectors, and so are logaddexp and the gamma functions of float32, in double
precision; the others by the C library."""

from libc cimport math
from libc.math cimport M_LN2 as LN_2, M_LN10 as LN_10, M_PI as PI
from libc.math cimport cbrt, copysign, fabs, floor, fmod, isnan, pow, sqrt, tan
from libc.stdint cimport uint64_t

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real
from cygrad.kernels.codes cimport WORD
from cygrad.kernels.mathematics cimport (
    TWO_ROOT_PI, atan2, cos, erf, erfc, exp2, exp_near, gauss, hypot, log, log2, log10, logistic, sin, softplus,
)

cdef extern from "<math.h>" nogil:
    double lgamma_r(double x, int* sign)
    double INFINITY
    double NAN


# ---- logarithms and powers -------------------------------------------------------------------------------------------

cdef void log2_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = log2(x[i])

cdef void log2_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (x[i] * <real>LN_2)

cdef void log10_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = log10(x[i])

cdef void log10_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (x[i] * <real>LN_10)

cdef void exp2_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = exp2(x[i])

cdef void exp2_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (y[i] * <real>LN_2)

cdef void cbrt_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = <real>cbrt(x[i])

cdef void cbrt_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (3 * y[i] * y[i])

cdef inline real logaddexp(real x, real y) noexcept nogil:
    """The larger number and log(1 + e^d), where d is minus the distance; equal infinities have no distance. The
    rounding error of d is added, because it matters as much as the larger number if that is small."""
    cdef real high = x if x > y else y, low = y if x > y else x, d = low - high, v = d - low, more = softplus(d)
    cdef real lost = ((low - (d - v)) - (high + v)) * more, equal = x + <real>LN_2, without = x + y
    v = high + (more + (0 if lost != lost else lost))
    v = v if d == d else without
    return equal if x == y else v

cdef inline double log1p_below_one(double e) noexcept nogil:
    """log(1 + e) for 0 <= e <= 1: 2 atanh s with s = e / (2 + e), whose series ends where its terms are below 2^-52."""
    cdef double s = e / (2 + e), z = s * s, p = 1 / 29.0
    p = ((p * z + 1 / 27.0) * z + 1 / 25.0) * z + 1 / 23.0
    p = ((p * z + 1 / 21.0) * z + 1 / 19.0) * z + 1 / 17.0
    p = ((p * z + 1 / 15.0) * z + 1 / 13.0) * z + 1 / 11.0
    p = ((p * z + 1 / 9.0) * z + 1 / 7.0) * z + 1 / 5.0
    return 2 * (s + s * z * (p * z + 1 / 3.0))

cdef inline double logaddexp_wide(double x, double y) noexcept nogil:
    """The same for float32, in float64, since digits of the sum cancel if the larger number is negative."""
    cdef double high = x if x > y else y, low = y if x > y else x, d = low - high, v
    v = high + log1p_below_one(exp_near(d if d > -120 else -120.0))
    return v if d == d else x + y

cdef void logaddexp_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = <real>(logaddexp_wide(x[i], y[i]) if real is float else logaddexp(x[i], y[i]))

cdef void logaddexp_grad_x(real[::1] g, real[::1] x, real[::1] y, real[::1] dx) noexcept nogil:
    """dx = g e^x / (e^x + e^y); half of g each for equal infinities"""
    cdef real d
    for i in range(dx.shape[0]):
        d = logistic(x[i] - y[i])
        dx[i] = g[i] * (<real>0.5 if x[i] == y[i] else d)

cdef void logaddexp_grad_y(real[::1] g, real[::1] x, real[::1] y, real[::1] dy) noexcept nogil:
    logaddexp_grad_x[real](g, y, x, dy)

cdef void xlogy_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef real v
    for i in range(z.shape[0]):
        v = x[i] * log(y[i])
        z[i] = 0 if (x[i] == 0) & (y[i] == y[i]) else v

cdef void xlogy_grad_x(real[::1] g, real[::1] x, real[::1] y, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i] * log(y[i])
        dx[i] = 0 if (x[i] == 0) & (y[i] <= 0) else v

cdef void xlogy_grad_y(real[::1] g, real[::1] x, real[::1] y, real[::1] dy) noexcept nogil:
    cdef real v
    for i in range(dy.shape[0]):
        v = g[i] * x[i] / y[i]
        dy[i] = 0 if (x[i] == 0) & (y[i] == y[i]) else v


# ---- the error function and the gamma function -----------------------------------------------------------------------

cdef void erfc_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = erfc(x[i])

cdef void erfc_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = -g[i] * (<real>TWO_ROOT_PI * gauss(x[i]))

cdef inline real erfinv_near(real x) noexcept nogil:
    """The inverse of erf to 22 bits or more in float32's range, up to |x| of 1 - 2^-24. Source: M. Giles, Approximating
    the erfinv function (2012), table 5."""
    cdef real w = -log((1 - x) * (1 + x)), v = w - <real>2.5, t = sqrt(w if w > 5 else <real>5) - 3
    cdef real p = <real>2.81022636e-08, q = <real>-0.000200214257
    p = <real>3.43273939e-07 + p * v
    p = <real>-3.5233877e-06 + p * v
    p = <real>-4.39150654e-06 + p * v
    p = <real>0.00021858087 + p * v
    p = <real>-0.00125372503 + p * v
    p = <real>-0.00417768164 + p * v
    p = <real>0.246640727 + p * v
    p = <real>1.50140941 + p * v
    q = <real>0.000100950558 + q * t
    q = <real>0.00134934322 + q * t
    q = <real>-0.00367342844 + q * t
    q = <real>0.00573950773 + q * t
    q = <real>-0.0076224613 + q * t
    q = <real>0.00943887047 + q * t
    q = <real>1.00167406 + q * t
    q = <real>2.83297682 + q * t
    return x * (p if w < 5 else q)

cdef inline double closer(double x, double y) noexcept nogil:
    """One step of Halley's method from y to the inverse of erf at x. The residual near 1 is that of erfc."""
    cdef double a = fabs(x), b = fabs(y), rest = erf(b) - a if a < 0.5 else (1 - a) - erfc(b), u
    u = rest / (<double>TWO_ROOT_PI * gauss(b))
    return copysign(b - u / (1 + b * u), x)

cdef void erfinv_(real[::1] x, real[::1] y) noexcept nogil:
    cdef real v
    for i in range(y.shape[0]):
        v = erfinv_near(x[i])
        if real is double: v = closer(x[i], closer(x[i], v))
        y[i] = v if fabs(x[i]) < 1 else x[i] * <real>INFINITY if fabs(x[i]) == 1 else <real>NAN

cdef void erfinv_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (<real>TWO_ROOT_PI * gauss(y[i]))

# In float32 the gamma function and its derivatives are computed in double precision and in vectors: for x > 0 from the
# asymptotic series at z = x + 8 or, from 8 on, at x, and from p = x (x + 1) ... (x + 7) = u (u + 6) (u + 10) (u + 12)
# with u = x (x + 7); below 0 by reflection.
cdef inline double fraction(double x) noexcept nogil:
    """pi (x - n) with the nearest integer n: the sine is exactly 0 at integers, and the tangent is that of pi x."""
    return PI * (x - math.rint(x))

cdef inline double shifted(double x) noexcept nogil: return x + 8 if x < 8 else x

cdef inline double product(double x) noexcept nogil:
    cdef double u = x * (x + 7), p = u * (u + 6) * (u + 10) * (u + 12)
    return p if x < 8 else 1

cdef inline double stirling(double x, double log_z) noexcept nogil:
    """log gamma(x) + log(product(x)) for x > 0, by Stirling's series (Abramowitz and Stegun 6.1.41)."""
    cdef double z = shifted(x), u = 1 / z, w = u * u
    return (z - 0.5) * (log_z - 1) + 0.41893853320467274 + u * (
        1 / 12.0 - w * (1 / 360.0 - w * (1 / 1260.0 - w * (1 / 1680.0 - w * (1 / 1188.0)))))

cdef inline double near_zeros(double x, double v) noexcept nogil:
    """log gamma(x) by Taylor's series near the zeros 1 and 2, else v."""
    cdef double t = x - 1 if x < 1.5 else x - 2, one, two
    one = t * (-0.57721566490153286 + t * (0.8224670334241132 + t * (-0.40068563438653143 + t * 0.27058080842778454)))
    two = t * (0.42278433509846714 + t * (0.32246703342411322 + t * (-0.067352301053198095 + t * 0.020580808427784548)))
    one = one if x < 1.5 else two
    return one if fabs(t) < 0.0078125 else v

cdef inline double psi(double x, double log_z) noexcept nogil:
    """The derivative of log gamma for x > 0 (6.3.18)."""
    cdef double z = shifted(x), u = x * (x + 7), r = 1 / z, w = r * r, s
    s = (2 * x + 7) * (720 + u * (504 + u * (84 + u * 4))) / product(x)     # p' / p
    return log_z - 0.5 * r - w * (1 / 12.0 - w * (1 / 120.0 - w * (1 / 252.0 - w * (1 / 240.0 - w * (1 / 132.0))))) - (
        s if x < 8 else 0)

cdef inline double psi_1(double x) noexcept nogil:
    """The second derivative of log gamma for x > 0 (6.4.12)."""
    cdef double z = shifted(x), u = x * (x + 7), p = product(x), r = 1 / z, w = r * r, s
    cdef double q = 720 + u * (504 + u * (84 + u * 4)), d = 2 * x + 7
    s = (d * d * (q * q - p * (504 + u * (168 + u * 12))) - 2 * p * q) / (p * p)        # (p'^2 - p p'') / p^2
    return r * (1 + 0.5 * r + w * (1 / 6.0 - w * (1 / 30.0 - w * (1 / 42.0 - w * (1 / 30.0))))) + (s if x < 8 else 0)

ctypedef enum Derivative: LOG_GAMMA, PSI, PSI_1

cdef inline double reflected(Derivative which, double x, double v) noexcept nogil:
    """psi or psi_1 at x from its value v at 1 - x, where x is not above 0 (6.3.7, 6.4.7)."""
    cdef double t = fraction(x), s = sin(t), f
    if which == PSI:
        f = v - PI * cos(t) / s
        f = f if s != 0 else <double>NAN
        f = -copysign(INFINITY, x) if x == 0 else f
    else: f = (PI / s) * (PI / s) - v
    return v if x > 0 else f

cdef inline void gammas(Derivative which, const float* x, double* y, Py_ssize_t n) noexcept nogil:
    """One of these functions of up to 64 numbers. A loop with a single logarithm is vectorized."""
    cdef double[WORD] z
    cdef double[WORD] p
    cdef Py_ssize_t i
    cdef int below = 0
    cdef double s
    for i in range(n):
        below |= not x[i] > 0
        z[i] = x[i] if x[i] > 0 else 1 - <double>x[i]
    if which != PSI_1:
        for i in range(n): y[i] = log(shifted(z[i]))
    if which == LOG_GAMMA:                          # below 0 log(pi / |sin pi x|) - log gamma(1 - x) (6.1.17)
        for i in range(n): p[i] = product(z[i])
        if below:
            for i in range(n):
                s = p[i] * PI / fabs(sin[double](fraction(x[i])))
                p[i] = p[i] if x[i] > 0 else s
        for i in range(n): p[i] = log(p[i])
        for i in range(n):
            s = stirling(z[i], y[i])
            y[i] = near_zeros(z[i], s - p[i]) if x[i] > 0 else p[i] - s
        if below:
            for i in range(n): y[i] = <double>INFINITY if x[i] == -INFINITY else y[i]
    elif which == PSI:
        for i in range(n): y[i] = psi(z[i], y[i])
    else:
        for i in range(n): y[i] = psi_1(z[i])
    if below and which != LOG_GAMMA:
        for i in range(n): y[i] = reflected(which, x[i], y[i])

cdef void gamma_strip(Derivative which, float[::1] g, float[::1] x, float[::1] y) noexcept nogil:
    """y is one of these functions of x, times g if g has elements."""
    cdef double[WORD] v
    cdef Py_ssize_t i, at = 0, n
    while at < y.shape[0]:
        n = min(WORD, y.shape[0] - at)
        if which == LOG_GAMMA: gammas(LOG_GAMMA, &x[at], v, n)
        elif which == PSI: gammas(PSI, &x[at], v, n)
        else: gammas(PSI_1, &x[at], v, n)
        if g.shape[0]:
            for i in range(n): v[i] *= g[at + i]
        for i in range(n): y[at + i] = <float>v[i]
        at += WORD

cdef void lgamma_(real[::1] x, real[::1] y) noexcept nogil:
    cdef int sign
    if real is float: gamma_strip(LOG_GAMMA, x[:0], x, y)
    else:
        for i in range(y.shape[0]): y[i] = lgamma_r(x[i], &sign)

cdef void lgamma_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    if real is float: gamma_strip(PSI, g, x, dx)
    else:
        for i in range(dx.shape[0]): dx[i] = g[i] * digamma(x[i])

cdef double digamma(double x) noexcept nogil:
    """The derivative of log gamma: recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.18);
    reflection below 0 (6.3.7). NaN at negative integers, -inf at 0 and inf at -0, as SciPy."""
    cdef double s = 0, z
    if x == 0: return -copysign(INFINITY, x)
    if x < 0:
        if x == floor(x): return NAN
        return digamma(1 - x) - PI / tan(PI * fmod(x, 1))
    if x > 1e17: return math.log(x)
    while x < 10:
        s -= 1 / x
        x += 1
    z = 1 / (x * x)
    return s + math.log(x) - 0.5 / x - z * (1 / 12.0 - z * (1 / 120.0 - z * (1 / 252.0 - z * (1 / 240.0 - z * (
        1 / 132.0 - z * (691 / 32760.0 - z / 12))))))

cdef void digamma_(real[::1] x, real[::1] y) noexcept nogil:
    if real is float: gamma_strip(PSI, x[:0], x, y)
    else:
        for i in range(y.shape[0]): y[i] = digamma(x[i])

cdef void digamma_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    if real is float: gamma_strip(PSI_1, g, x, dx)
    else:
        for i in range(dx.shape[0]): dx[i] = g[i] * polygamma(1, x[i], 10)

cdef inline double to_minus(double x, double s) noexcept nogil:
    """x^-s for a positive integer s, by multiplication if s is small."""
    cdef double y, inverse
    if s > 8: return pow(x, -s)
    y = inverse = 1 / x
    for _ in range(<int>s - 1): y *= inverse
    return y

cdef double polygamma(double n, double x, int start) noexcept nogil:
    """The derivative of order n of digamma: (-1)^(n + 1) n! times the sum of (x + k)^-(n + 1) over k >= 0. The first
    terms are added until x + k is 2 start - 4, the others by the Euler-Maclaurin formula (Abramowitz and Stegun
    23.1.30). NaN at integers of at most 0 if n is even, else inf."""
    cdef double s = n + 1, total = 0, term, factor = 1
    cdef int k
    if n == 0: return digamma(x)
    if isnan(x) or n < 0 or n != floor(n): return NAN
    if x < -1e6: return NAN                         # the sum would take as many terms
    if x <= 0 and x == floor(x): return INFINITY if fmod(n, 2) == 1 else NAN
    if n > 4: start = 12                            # terms of the formula fall more slowly
    for k in range(2, <int>n + 1): factor *= k
    while x < 2 * start - 4:
        total += to_minus(x, s)
        x += 1
    term = to_minus(x, s)                           # (0 for a large x whose power s - 1 is not)
    total += to_minus(x, s - 1) / (s - 1) + 0.5 * term
    term *= s / x                                   # s (s + 1) ... (s + 2 k) x^-(s + 2 k + 1)
    for k in range(8):
        total += BERNOULLI[k] * term
        term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (x * x)
    return total * factor * (1 if fmod(n, 2) == 1 else -1)

cdef double[8] BERNOULLI                            # B_2k / (2k)!
BERNOULLI[:] = [1 / 12.0, -1 / 720.0, 1 / 30240.0, -1 / 1209600.0, 1 / 47900160.0, -691 / 1307674368000.0,
                1 / 74724249600.0, -3617 / 10670622842880000.0]

cdef void polygamma_(real[::1] x, real[::1] n, real[::1] y) noexcept nogil:
    if real is float and (n[0] == 0 or n[0] == 1):
        gamma_strip(PSI if n[0] == 0 else PSI_1, x[:0], x, y)
        return
    for i in range(y.shape[0]):
        y[i] = <real>polygamma(n[0], x[i], 5 if real is float else 10)

cdef void polygamma_grad(real[::1] g, real[::1] x, real[::1] n, real[::1] dx) noexcept nogil:
    if real is float and n[0] == 0:
        gamma_strip(PSI_1, g, x, dx)
        return
    for i in range(dx.shape[0]):
        dx[i] = <real>(g[i] * polygamma(<double>n[0] + 1, x[i], 5 if real is float else 10))


# ---- sinc and angles -------------------------------------------------------------------------------------------------

cdef double sinc_derivative(int n, double x) noexcept nogil:
    """The derivative of order n of sin(t) / t at t = pi x, times pi^n. For large t by
    f_n = (sin(t + n pi / 2) - n f_{n - 1}) / t, for small t by the series: the sum of cos((n + j) pi / 2) t^j /
    (j! (n + j + 1)) over j >= 0."""
    cdef double t = PI * x, s = 0, power = 1, f, q
    cdef int j, k
    if fabs(t) > n + 1 or n == 0 and t != 0:
        q = fmod(x, 2)                              # sin(pi x) loses no digits for large x
        f = math.sin(PI * q) / t
        for k in range(1, n + 1):
            f = ((math.sin(PI * q) if k % 4 == 0 else math.cos(PI * q) if k % 4 == 1
                  else -math.sin(PI * q) if k % 4 == 2 else -math.cos(PI * q)) - k * f) / t
        return f * pow(PI, n)
    for j in range(40 + 4 * n):
        if (n + j) % 2 == 0: s += (power if (n + j) % 4 == 0 else -power) / (n + j + 1)
        power *= t / (j + 1)
    return s * pow(PI, n)

cdef inline double half_turns(double x) noexcept nogil:
    """pi x without whole turns: sin(pi x) and cos(pi x) lose no digits for large x."""
    return PI * (x - 2 * math.rint(0.5 * x))

cdef void sinc_(real[::1] x, real[::1] y) noexcept nogil:
    cdef double v
    for i in range(y.shape[0]):
        v = sin[double](half_turns(x[i])) / (PI * x[i])
        y[i] = 1 if x[i] == 0 else <real>v

cdef void sinc_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    """dx = g pi (cos t - sin(t) / t) / t at t = pi x; for |t| < 1 the sum of (-1)^k 2 k t^(2 k - 1) / (2 k + 1)!"""
    cdef double t, turned, v, z, p
    for i in range(dx.shape[0]):
        t, turned = PI * x[i], half_turns(x[i])
        v = (cos[double](turned) - sin[double](turned) / t) / t
        z = t * t
        p = 16 / 355687428096000.0 - z * (18 / 121645100408832000.0)
        p = 12 / 6227020800.0 - z * (14 / 1307674368000.0 - z * p)
        p = 8 / 362880.0 - z * (10 / 39916800.0 - z * p)
        p = 1 / 3.0 - z * (4 / 120.0 - z * (6 / 5040.0 - z * p))
        p = -t * p
        dx[i] = <real>(g[i] * (PI * (p if z < 1 else v)))

cdef void sinc_derivative_(real[::1] x, real[::1] n, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = <real>sinc_derivative(<int>n[0], x[i])

cdef void sinc_derivative_grad(real[::1] g, real[::1] x, real[::1] n, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = <real>(g[i] * sinc_derivative(<int>n[0] + 1, x[i]))

cdef void atan2_(real[::1] y, real[::1] x, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = atan2(y[i], x[i])

cdef inline double over_square(double x, double r) noexcept nogil:
    """x / r^2, 0 for r = 0; r is not squared, because its square could overflow."""
    cdef double v = (x / r) / r
    return 0 if r == 0 else v

cdef inline double radius(real x, real y) noexcept nogil:
    return math.sqrt(<double>x * x + <double>y * y) if real is float else math.hypot(x, y)

cdef void atan2_grad_y(real[::1] g, real[::1] y, real[::1] x, real[::1] dy) noexcept nogil:
    """dy = g x / (x^2 + y^2), 0 at the origin"""
    for i in range(dy.shape[0]):
        dy[i] = <real>(g[i] * over_square(x[i], radius(x[i], y[i])))

cdef void atan2_grad_x(real[::1] g, real[::1] y, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = <real>(-g[i] * over_square(y[i], radius(x[i], y[i])))

cdef void hypot_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = hypot(x[i], y[i])

cdef void hypot_grad(real[::1] g, real[::1] x, real[::1] z, real[::1] dx) noexcept nogil:
    """dx = g x / z, 0 at the origin"""
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i] * (x[i] / z[i])
        dx[i] = 0 if z[i] == 0 else v


# ---- choices ---------------------------------------------------------------------------------------------------------

cdef void copysign_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = <real>copysign(x[i], y[i])

cdef void copysign_code(real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where x keeps its sign, 2 where it changes, 0 where x is 0."""
    cdef Py_ssize_t i, k
    cdef uint64_t low, high
    for k in range(z.shape[0] // WORD):
        low = high = 0
        for i in range(WORD):
            z[WORD * k + i] = <real>copysign(x[WORD * k + i], y[WORD * k + i])
            if x[WORD * k + i] == z[WORD * k + i]: low |= <uint64_t>(x[WORD * k + i] != 0) << i
            else: high |= <uint64_t>1 << i
        c[2 * k], c[2 * k + 1] = low, high

cdef inline real not_nan(bint larger, real x, real y) noexcept nogil:
    if isnan(x): return y
    if isnan(y): return x
    return (x if x > y else y) if larger else (x if x < y else y)

cdef void fmax_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = not_nan(True, x[i], y[i])

cdef void fmin_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = not_nan(False, x[i], y[i])

cdef void fmax_code(real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where z is x, 2 where z is y, 3 where they are equal, 0 where both are NaN."""
    choose(True, x, y, z, c)

cdef void fmin_code(real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] c) noexcept nogil:
    choose(False, x, y, z, c)

cdef inline void choose(bint larger, real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] c) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef uint64_t low, high
    for k in range(z.shape[0] // WORD):
        low = high = 0
        for i in range(WORD * k, WORD * k + WORD):
            z[i] = not_nan(larger, x[i], y[i])
            low |= <uint64_t>(z[i] == x[i]) << (i - WORD * k)
            high |= <uint64_t>(z[i] == y[i]) << (i - WORD * k)
        c[2 * k], c[2 * k + 1] = low, high


cdef int table() except -1:
    driver.register("log2", <void*>log2_[float], <void*>log2_[double], 2, 3, 16)
    driver.register("log2_grad", <void*>log2_grad[float], <void*>log2_grad[double], 3)
    driver.register("log10", <void*>log10_[float], <void*>log10_[double], 2, 3, 16)
    driver.register("log10_grad", <void*>log10_grad[float], <void*>log10_grad[double], 3)
    driver.register("exp2", <void*>exp2_[float], <void*>exp2_[double], 2, 1, 16)
    driver.register("exp2_grad", <void*>exp2_grad[float], <void*>exp2_grad[double], 3)
    driver.register("cbrt", <void*>cbrt_[float], <void*>cbrt_[double], 2, 20, 20)
    driver.register("cbrt_grad", <void*>cbrt_grad[float], <void*>cbrt_grad[double], 3)
    driver.register("logaddexp", <void*>logaddexp_[float], <void*>logaddexp_[double], 3, 3, 8)
    driver.register("logaddexp_grad_x", <void*>logaddexp_grad_x[float], <void*>logaddexp_grad_x[double], 4, 2, 8)
    driver.register("logaddexp_grad_y", <void*>logaddexp_grad_y[float], <void*>logaddexp_grad_y[double], 4, 2, 8)
    driver.register("xlogy", <void*>xlogy_[float], <void*>xlogy_[double], 3, 2, 8)
    driver.register("xlogy_grad_x", <void*>xlogy_grad_x[float], <void*>xlogy_grad_x[double], 4, 2, 8)
    driver.register("xlogy_grad_y", <void*>xlogy_grad_y[float], <void*>xlogy_grad_y[double], 4)
    driver.register("erfc", <void*>erfc_[float], <void*>erfc_[double], 2, 3, 20)
    driver.register("erfc_grad", <void*>erfc_grad[float], <void*>erfc_grad[double], 3, 2, 6)
    driver.register("erfinv", <void*>erfinv_[float], <void*>erfinv_[double], 2, 6, 60)
    driver.register("erfinv_grad", <void*>erfinv_grad[float], <void*>erfinv_grad[double], 3, 3, 8)
    driver.register("lgamma", <void*>lgamma_[float], <void*>lgamma_[double], 2, 60, 60)
    driver.register("lgamma_grad", <void*>lgamma_grad[float], <void*>lgamma_grad[double], 3, 100, 100)
    driver.register("digamma", <void*>digamma_[float], <void*>digamma_[double], 2, 100, 100)
    driver.register("digamma_grad", <void*>digamma_grad[float], <void*>digamma_grad[double], 3, 200, 400)
    driver.register("polygamma", <void*>polygamma_[float], <void*>polygamma_[double], 3, 200, 400, 1)
    driver.register("polygamma_grad", <void*>polygamma_grad[float], <void*>polygamma_grad[double], 4, 200, 400, 2)
    driver.register("sinc", <void*>sinc_[float], <void*>sinc_[double], 2, 4, 8)
    driver.register("sinc_grad", <void*>sinc_grad[float], <void*>sinc_grad[double], 3, 8, 12)
    driver.register("sinc_derivative", <void*>sinc_derivative_[float], <void*>sinc_derivative_[double], 3, 100, 100, 1)
    driver.register("sinc_derivative_grad", <void*>sinc_derivative_grad[float], <void*>sinc_derivative_grad[double], 4,
                    100, 100, 2)
    driver.register("atan2", <void*>atan2_[float], <void*>atan2_[double], 3, 3, 40)
    driver.register("atan2_grad_y", <void*>atan2_grad_y[float], <void*>atan2_grad_y[double], 4, 8, 8)
    driver.register("atan2_grad_x", <void*>atan2_grad_x[float], <void*>atan2_grad_x[double], 4, 8, 8)
    driver.register("hypot", <void*>hypot_[float], <void*>hypot_[double], 3, 3, 8)
    driver.register("hypot_grad", <void*>hypot_grad[float], <void*>hypot_grad[double], 4)
    driver.register("copysign", <void*>copysign_[float], <void*>copysign_[double], 3)
    driver.register("copysign_code", <void*>copysign_code[float], <void*>copysign_code[double], 3)
    driver.register("fmax", <void*>fmax_[float], <void*>fmax_[double], 3)
    driver.register("fmin", <void*>fmin_[float], <void*>fmin_[double], 3)
    driver.register("fmax_code", <void*>fmax_code[float], <void*>fmax_code[double], 3)
    driver.register("fmin_code", <void*>fmin_code[float], <void*>fmin_code[double], 3)

table()
