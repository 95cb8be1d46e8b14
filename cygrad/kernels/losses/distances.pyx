"""Strip kernels of losses of a difference (l1, smooth_l1, huber), of divergences and of hinge embeddings. The operands
are those of criteria.pyx: x is the input, t the target, g the incoming gradient."""

from libc.stdint cimport uint8_t

from cygrad.kernels cimport driver
from cygrad.kernels.losses cimport criteria
from cygrad.kernels.array cimport real
from cygrad.kernels.losses.criteria cimport G, T, X
from cygrad.kernels.mathematics cimport exp, fabs, log

cdef enum:                  # masks of operands
    READS_T = 1 << T
    READS_G = 1 << G
    XT = 1 << X | 1 << T


# ---- absolute and squared errors -------------------------------------------------------------------------------------

cdef bint l1(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = |x - t|"""
    for i in range(n): y[i] = fabs(x[i] - t[i])

cdef bint l1_sign(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = x - t, which has the sign of the gradient"""
    for i in range(n): y[i] = x[i] - t[i]

cdef void negative_by_code(uint8_t[::1] c, real[::1] g, real[::1] dt) noexcept nogil:
    """dt = -g where the code is 1, g where it is 2, else 0"""
    cdef real v
    for i in range(dt.shape[0]):
        v = g[i]
        v = v if c[i] == 2 else -v
        dt[i] = 0 if c[i] == 0 else v

cdef bint smooth_l1(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = d^2 / (2 beta) where d = |x - t| < beta, else d - beta / 2"""
    cdef real beta = <real>p[0], half = <real>(0.5 * p[0]), d
    cdef real rate = <real>(0.5 / p[0])
    for i in range(n):
        d = fabs(x[i] - t[i])
        y[i] = rate * d * d if d < beta else d - half

cdef inline real clipped(real d, real bound) noexcept nogil:
    """d between -bound and bound; NaN stays."""
    return -bound if d < -bound else (bound if d > bound else d)

cdef bint smooth_l1_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                       Py_ssize_t n) noexcept nogil:
    """y = g (x - t) / beta, at most g and at least -g"""
    cdef real beta = <real>p[0]
    for i in range(n): y[i] = g[i] * clipped((x[i] - t[i]) / beta, <real>1)

cdef bint smooth_l1_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                       Py_ssize_t n) noexcept nogil:
    return smooth_l1_dx[real](t, x, w, u, g, p, y, n)

cdef bint huber(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = d^2 / 2 where d = |x - t| <= delta, else delta (d - delta / 2)"""
    cdef real delta = <real>p[0], half = <real>(0.5 * p[0]), d
    for i in range(n):
        d = fabs(x[i] - t[i])
        y[i] = <real>0.5 * d * d if d <= delta else delta * (d - half)

cdef bint huber_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g (x - t), with x - t clipped to delta"""
    cdef real delta = <real>p[0]
    for i in range(n): y[i] = g[i] * clipped(x[i] - t[i], delta)

cdef bint huber_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    return huber_dx[real](t, x, w, u, g, p, y, n)


# ---- divergences -----------------------------------------------------------------------------------------------------

cdef bint kl(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = t (log t - x), 0 where t is 0 and x is no NaN"""
    cdef real v
    for i in range(n):
        v = t[i] * (log(t[i]) - x[i])
        y[i] = 0 if t[i] == 0 and x[i] == x[i] else v

cdef bint kl_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = -g t"""
    for i in range(n): y[i] = -g[i] * t[i]

cdef bint kl_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g (log t + 1 - x), and -g x where t is 0"""
    cdef real v
    for i in range(n):
        v = log(t[i]) + 1
        y[i] = g[i] * ((0 if t[i] == 0 else v) - x[i])

cdef bint kl_log(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = e^t (t - x), 0 where t is -inf and x is no NaN"""
    cdef real e, v
    for i in range(n):
        e = exp(t[i])
        v = e * (t[i] - x[i])
        y[i] = 0 if e == 0 and x[i] == x[i] else v

cdef bint kl_log_dx(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = -g e^t"""
    for i in range(n): y[i] = -g[i] * exp(t[i])

cdef bint kl_log_dt(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = g e^t (t - x + 1)"""
    cdef real e, v
    for i in range(n):
        e = exp(t[i])
        v = g[i] * e * (t[i] - x[i] + 1)
        y[i] = 0 if e == 0 and x[i] == x[i] else v

# ---- hinge embedding -------------------------------------------------------------------------------------------------

cdef bint hinge(real* x, real* t, real* w, real* u, real* g, const double* p, real* y, Py_ssize_t n) noexcept nogil:
    """y = x where t is not -1, plus max(0, margin - x) where t is not 1"""
    cdef real margin = <real>p[0], near, far
    for i in range(n):
        near = 0 if t[i] == -1 else x[i]
        far = 0 if t[i] == 1 or margin - x[i] < 0 else margin - x[i]
        y[i] = near + far

cdef bint hinge_sign(real* x, real* t, real* w, real* u, real* g, const double* p, real* y,
                     Py_ssize_t n) noexcept nogil:
    """y = the derivative: 1, -1 or 0"""
    cdef real margin = <real>p[0], near, far
    for i in range(n):
        near = 0 if t[i] == -1 else 1
        far = 0 if t[i] == 1 or margin - x[i] < 0 else 1
        y[i] = near - far


cdef int table() except -1:
    criteria.register("l1", <void*>l1[float], <void*>l1[double], XT, 1)
    criteria.register("l1_sign", <void*>l1_sign[float], <void*>l1_sign[double], XT, 1)
    driver.register("negative_by_code", <void*>negative_by_code[float], <void*>negative_by_code[double], 3)
    criteria.register("smooth_l1", <void*>smooth_l1[float], <void*>smooth_l1[double], XT, 1)
    criteria.register("smooth_l1_dx", <void*>smooth_l1_dx[float], <void*>smooth_l1_dx[double], XT | READS_G, 2)
    criteria.register("smooth_l1_dt", <void*>smooth_l1_dt[float], <void*>smooth_l1_dt[double], XT | READS_G, 2)
    criteria.register("huber", <void*>huber[float], <void*>huber[double], XT, 1)
    criteria.register("huber_dx", <void*>huber_dx[float], <void*>huber_dx[double], XT | READS_G, 1)
    criteria.register("huber_dt", <void*>huber_dt[float], <void*>huber_dt[double], XT | READS_G, 1)
    criteria.register("kl", <void*>kl[float], <void*>kl[double], XT, 3)
    criteria.register("kl_dx", <void*>kl_dx[float], <void*>kl_dx[double], READS_T | READS_G, 1)
    criteria.register("kl_dt", <void*>kl_dt[float], <void*>kl_dt[double], XT | READS_G, 3)
    criteria.register("kl_log", <void*>kl_log[float], <void*>kl_log[double], XT, 2)
    criteria.register("kl_log_dx", <void*>kl_log_dx[float], <void*>kl_log_dx[double], READS_T | READS_G, 2)
    criteria.register("kl_log_dt", <void*>kl_log_dt[float], <void*>kl_log_dt[double], XT | READS_G, 2)
    criteria.register("hinge", <void*>hinge[float], <void*>hinge[double], XT, 1)
    criteria.register("hinge_sign", <void*>hinge_sign[float], <void*>hinge_sign[double], XT, 1)

table()
