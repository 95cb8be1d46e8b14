"""Strip kernels of negative log-likelihoods: Gaussian, Poisson, binary cross-entropy. The operands are those of
criteria.pyx: x is the input, t the target, then the variance or the weight w, the weight u of positive targets, and g,
the incoming gradient."""

from cygrad.kernels.losses cimport criteria
from cygrad.kernels.array cimport real
from cygrad.kernels.losses.criteria cimport G, T, V, W, X
from cygrad.kernels.mathematics cimport exp, log, logistic, softplus

cdef enum:                  # masks of operands
    READS_X = 1 << X
    READS_V = 1 << V
    READS_W = 1 << W
    READS_G = 1 << G
    XT = 1 << X | 1 << T
    ALL3 = XT | 1 << V


# ---- Gaussian --------------------------------------------------------------------------------------------------------

cdef bint gaussian(real* x, real* t, real* var, real* u, real* g, const double* p, real* y,
                   Py_ssize_t n) noexcept nogil:
    """y = (log v + (x - t)^2 / v) / 2 + p_1, with v at least p_0; out of range if v < 0"""
    cdef real eps = <real>p[0], more = <real>p[1], v, d
    cdef int bad = 0
    for i in range(n):
        v = eps if var[i] < eps else var[i]
        d = x[i] - t[i]
        bad |= var[i] < 0
        y[i] = <real>0.5 * (log(v) + d * d / v) + more
    return bad != 0

cdef bint gaussian_dx(real* x, real* t, real* var, real* u, real* g, const double* p, real* y,
                      Py_ssize_t n) noexcept nogil:
    """y = g (x - t) / v"""
    cdef real eps = <real>p[0]
    for i in range(n): y[i] = g[i] * (x[i] - t[i]) / (eps if var[i] < eps else var[i])

cdef bint gaussian_dt(real* x, real* t, real* var, real* u, real* g, const double* p, real* y,
                      Py_ssize_t n) noexcept nogil:
    return gaussian_dx[real](t, x, var, u, g, p, y, n)

cdef bint gaussian_dv(real* x, real* t, real* var, real* u, real* g, const double* p, real* y,
                      Py_ssize_t n) noexcept nogil:
    """y = g (1 - (x - t)^2 / v) / (2 v)"""
    cdef real eps = <real>p[0], v, d
    for i in range(n):
        v = eps if var[i] < eps else var[i]
        d = x[i] - t[i]
        y[i] = g[i] * <real>0.5 * (1 - d * d / v) / v


# ---- Poisson ---------------------------------------------------------------------------------------------------------

cdef inline real stirling(real t, bint full) noexcept nogil:
    """Stirling's approximation of log t! for t > 1, without the constant's half; 0 for others. `full` is constant."""
    cdef real v
    if not full: return 0
    v = t * log(t) - t + <real>0.5 * log(<real>6.283185307179586477 * t)
    return v if t > 1 else <real>0

cdef inline real stirling_slope(real t, bint full) noexcept nogil:
    cdef real v
    if not full: return 0
    v = log(t) + <real>0.5 / t
    return v if t > 1 else <real>0

cdef inline bint poisson_(bint full, real* x, real* t, real* y, Py_ssize_t n) noexcept nogil:
    for i in range(n): y[i] = exp(x[i]) - t[i] * x[i] + stirling(t[i], full)

cdef bint poisson(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = e^x - t x, plus log t! if p_1"""
    return poisson_[real](True, x, t, y, n) if p[1] else poisson_[real](False, x, t, y, n)

cdef bint poisson_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                     Py_ssize_t n) noexcept nogil:
    """y = g (e^x - t)"""
    for i in range(n): y[i] = g[i] * (exp(x[i]) - t[i])

cdef bint poisson_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                     Py_ssize_t n) noexcept nogil:
    """y = -g x, plus g times the derivative of log t! if p_1"""
    if p[1]:
        for i in range(n): y[i] = g[i] * (stirling_slope(t[i], True) - x[i])
    else:
        for i in range(n): y[i] = -g[i] * x[i]

cdef inline bint rate_(bint full, real* x, real* t, real eps, real* y, Py_ssize_t n) noexcept nogil:
    for i in range(n): y[i] = x[i] - t[i] * log(x[i] + eps) + stirling(t[i], full)

cdef bint rate(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = x - t log(x + p_0), plus log t! if p_1"""
    if p[1]: return rate_[real](True, x, t, <real>p[0], y, n)
    return rate_[real](False, x, t, <real>p[0], y, n)

cdef bint rate_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g (1 - t / (x + p_0))"""
    cdef real eps = <real>p[0]
    for i in range(n): y[i] = g[i] * (1 - t[i] / (x[i] + eps))

cdef bint rate_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = -g log(x + p_0), plus g times the derivative of log t! if p_1"""
    cdef real eps = <real>p[0]
    if p[1]:
        for i in range(n): y[i] = g[i] * (stirling_slope(t[i], True) - log(x[i] + eps))
    else:
        for i in range(n): y[i] = -g[i] * log(x[i] + eps)


# ---- binary cross-entropy --------------------------------------------------------------------------------------------

cdef inline real log_clamped(real x) noexcept nogil:
    """log x, at least -100"""
    cdef real v = log(x)
    return <real>-100 if v < -100 else v

cdef bint bce(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = -w (t log x + (1 - t) log(1 - x)), with logarithms of at least -100; out of range if x is not from 0 to 1"""
    cdef int bad = 0
    for i in range(n):
        bad |= (x[i] < 0) | (x[i] > 1)
        y[i] = w[i] * ((t[i] - 1) * log_clamped(1 - x[i]) - t[i] * log_clamped(x[i]))
    return bad != 0

cdef bint bce_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g w (x - t) / (x (1 - x)), with a divisor of at least 1e-12"""
    cdef real d
    for i in range(n):
        d = (1 - x[i]) * x[i]
        y[i] = g[i] * w[i] * (x[i] - t[i]) / (<real>1e-12 if d < <real>1e-12 else d)

cdef bint bce_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g w (log(1 - x) - log x), with logarithms of at least -100"""
    for i in range(n): y[i] = g[i] * w[i] * (log_clamped(1 - x[i]) - log_clamped(x[i]))

cdef bint bce_dw(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = -g (t log x + (1 - t) log(1 - x)), with logarithms of at least -100"""
    for i in range(n): y[i] = g[i] * ((t[i] - 1) * log_clamped(1 - x[i]) - t[i] * log_clamped(x[i]))

cdef bint logits(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = w ((1 - t) x + (1 + (u - 1) t) log(1 + e^-x)) for the weight u of positive targets"""
    for i in range(n): y[i] = w[i] * ((1 - t[i]) * x[i] + (1 + (u[i] - 1) * t[i]) * softplus(-x[i]))

cdef bint logits_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g w (1 - t - (1 + (u - 1) t) / (1 + e^x))"""
    for i in range(n): y[i] = g[i] * w[i] * (1 - t[i] - (1 + (u[i] - 1) * t[i]) * logistic(-x[i]))

cdef bint logits_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g w ((u - 1) log(1 + e^-x) - x)"""
    for i in range(n): y[i] = g[i] * w[i] * ((u[i] - 1) * softplus(-x[i]) - x[i])

cdef bint logits_dw(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g ((1 - t) x + (1 + (u - 1) t) log(1 + e^-x))"""
    for i in range(n): y[i] = g[i] * ((1 - t[i]) * x[i] + (1 + (u[i] - 1) * t[i]) * softplus(-x[i]))

cdef bint logits_du(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g w t log(1 + e^-x)"""
    for i in range(n): y[i] = g[i] * w[i] * t[i] * softplus(-x[i])

cdef bint soft_margin(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                      Py_ssize_t n) noexcept nogil:
    """y = log(1 + e^(-t x))"""
    for i in range(n): y[i] = softplus(-t[i] * x[i])

cdef bint soft_margin_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                         Py_ssize_t n) noexcept nogil:
    """y = -g t / (1 + e^(t x))"""
    for i in range(n): y[i] = -g[i] * t[i] * logistic(-t[i] * x[i])

cdef bint soft_margin_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                         Py_ssize_t n) noexcept nogil:
    """y = -g x / (1 + e^(t x))"""
    for i in range(n): y[i] = -g[i] * x[i] * logistic(-t[i] * x[i])


cdef int table() except -1:
    criteria.register("gaussian", <void*>gaussian[float], <void*>gaussian[double], ALL3, 4)
    criteria.register("gaussian_dx", <void*>gaussian_dx[float], <void*>gaussian_dx[double], ALL3 | READS_G, 2)
    criteria.register("gaussian_dt", <void*>gaussian_dt[float], <void*>gaussian_dt[double], ALL3 | READS_G, 2)
    criteria.register("gaussian_dv", <void*>gaussian_dv[float], <void*>gaussian_dv[double], ALL3 | READS_G, 3)
    criteria.register("poisson", <void*>poisson[float], <void*>poisson[double], XT, 3)
    criteria.register("poisson_dx", <void*>poisson_dx[float], <void*>poisson_dx[double], XT | READS_G, 2)
    criteria.register("poisson_dt", <void*>poisson_dt[float], <void*>poisson_dt[double], XT | READS_G, 2)
    criteria.register("rate", <void*>rate[float], <void*>rate[double], XT, 3)
    criteria.register("rate_dx", <void*>rate_dx[float], <void*>rate_dx[double], XT | READS_G, 2)
    criteria.register("rate_dt", <void*>rate_dt[float], <void*>rate_dt[double], XT | READS_G, 3)
    criteria.register("bce", <void*>bce[float], <void*>bce[double], ALL3, 6)
    criteria.register("bce_dx", <void*>bce_dx[float], <void*>bce_dx[double], ALL3 | READS_G, 2)
    criteria.register("bce_dt", <void*>bce_dt[float], <void*>bce_dt[double], READS_X | READS_V | READS_G, 6)
    criteria.register("bce_dw", <void*>bce_dw[float], <void*>bce_dw[double], XT | READS_G, 6)
    criteria.register("logits", <void*>logits[float], <void*>logits[double], ALL3 | READS_W, 4)
    criteria.register("logits_dx", <void*>logits_dx[float], <void*>logits_dx[double], ALL3 | READS_W | READS_G, 3)
    criteria.register("logits_dt", <void*>logits_dt[float], <void*>logits_dt[double],
                      READS_X | READS_V | READS_W | READS_G, 4)
    criteria.register("logits_dw", <void*>logits_dw[float], <void*>logits_dw[double], XT | READS_W | READS_G, 4)
    criteria.register("logits_du", <void*>logits_du[float], <void*>logits_du[double], ALL3 | READS_G, 4)
    criteria.register("soft_margin", <void*>soft_margin[float], <void*>soft_margin[double], XT, 4)
    criteria.register("soft_margin_dx", <void*>soft_margin_dx[float], <void*>soft_margin_dx[double], XT | READS_G, 3)
    criteria.register("soft_margin_dt", <void*>soft_margin_dt[float], <void*>soft_margin_dt[double], XT | READS_G, 3)

table()
