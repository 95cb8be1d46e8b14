"""The update rules of solvers that have no norms: each is one serial loop over a parameter w, its gradient g and its
states s, in place. The coefficients c are numbers that cygrad/ops/rules.pyx computes once for each update. update.pyx
has the rules with norms, and runs all of them."""

from libc.float cimport DBL_MAX, FLT_MAX

from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport reals
from cygrad.kernels.mathematics cimport fabs, sqrt
from cygrad.kernels.update cimport L2, add_kernel, add_linear, bounded


cdef inline real decayed(const real* g, const real* w, Py_ssize_t i, real l2, bint decays) noexcept nogil:
    """g + l2 w. Without a decay w is not read: an infinite parameter must not make its gradient NaN. The compiler makes
    two loops of it."""
    return g[i] + l2 * w[i] if decays else g[i]


cdef void sgd(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """w -= lr g"""
    cdef real lr = <real>c[0], l2 = <real>c[L2]
    cdef bint decays = l2 != 0
    cdef Py_ssize_t i
    for i in range(n): w[i] -= lr * decayed(g, w, i, l2, decays)


cdef void sgdw(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = momentum v + lr g; w -= v + decay w"""
    cdef real lr = <real>c[0], momentum = <real>c[1], decay = <real>c[2]
    cdef real* v = s[0]
    for i in range(n):
        v[i] = momentum * v[i] + lr * g[i]
        w[i] -= v[i] + decay * w[i]


cdef void momentum(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = momentum v + lr g; w -= v"""
    cdef real lr = <real>c[0], momentum = <real>c[1], l2 = <real>c[L2]
    cdef real* v = s[0]
    cdef bint decays = l2 != 0
    cdef Py_ssize_t i
    for i in range(n):
        v[i] = momentum * v[i] + lr * decayed(g, w, i, l2, decays)
        w[i] -= v[i]


cdef void nesterov(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """u = momentum v - lr g; w += (1 + momentum) u - momentum v; v = u"""
    cdef real lr = <real>c[0], momentum = <real>c[1], ahead = 1 + momentum, l2 = <real>c[L2], u
    cdef real* v = s[0]
    cdef bint decays = l2 != 0
    cdef Py_ssize_t i
    for i in range(n):
        u = momentum * v[i] - lr * decayed(g, w, i, l2, decays)
        w[i] += ahead * u - momentum * v[i]
        v[i] = u


# ---- the parts of linear rules: what precedes the sum target += sign lr g, and what follows it

cdef void sgd_before(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """w -= lr l2 w, for a decay above 0"""
    cdef real rate = <real>c[0] * <real>c[L2]
    for i in range(n): w[i] -= rate * w[i]


cdef void sgdw_before(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v *= momentum"""
    cdef real momentum = <real>c[1]
    cdef real* v = s[0]
    for i in range(n): v[i] *= momentum


cdef void sgdw_after(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """w -= v + decay w"""
    cdef real decay = <real>c[2]
    cdef const real* v = s[0]
    for i in range(n): w[i] -= v[i] + decay * w[i]


cdef void momentum_before(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = momentum v + lr l2 w"""
    cdef real momentum = <real>c[1], rate = <real>c[0] * <real>c[L2]
    cdef real* v = s[0]
    if rate == 0:                                   # (w is not read: see decayed())
        for i in range(n): v[i] *= momentum
        return
    for i in range(n): v[i] = momentum * v[i] + rate * w[i]


cdef void momentum_after(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """w -= v"""
    cdef const real* v = s[0]
    for i in range(n): w[i] -= v[i]


cdef void nesterov_before(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """u = momentum v; v = u - lr l2 w; w -= u"""
    cdef real momentum = <real>c[1], rate = <real>c[0] * <real>c[L2], u
    cdef real* v = s[0]
    cdef bint decays = rate != 0
    for i in range(n):
        u = momentum * v[i]
        v[i] = u - rate * w[i] if decays else u
        w[i] -= u


cdef void nesterov_after(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """w += (1 + momentum) v"""
    cdef real ahead = 1 + <real>c[1]
    cdef const real* v = s[0]
    for i in range(n): w[i] += ahead * v[i]


# ---- the others ------------------------------------------------------------------------------------------------------

cdef void adagrad(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v += g^2; w -= lr g / (sqrt(v) + eps)"""
    cdef real lr = <real>c[0], eps = <real>c[1], l2 = <real>c[L2], x
    cdef real* v = s[0]
    cdef bint decays = l2 != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        v[i] += x * x
        w[i] -= lr * x / (sqrt(v[i]) + eps)


cdef void ftrl(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """u = v; v += g^2; z += g - (sqrt(v) - sqrt(u)) / lr w
    w = lr (sign(z) lamda1 - z) / (beta + sqrt(v) + lr decay), and 0 where |z| <= lamda1

    The roots are subtracted, although g^2 / (sqrt(v) + sqrt(u)) is more accurate: so the terms add up to the root of
    the v that is stored, by which w is divided. lr = 0, of a schedule, is no step, and neither is one where v has
    overflowed, by whose root the others would divide g."""
    cdef real lr = <real>c[0], lamda1 = <real>c[1], beta = <real>c[2], decay = <real>c[3], old, new, x
    cdef real limit = <real>(FLT_MAX if real is float else DBL_MAX)
    cdef real* z = s[0]
    cdef real* v = s[1]
    cdef bint held
    if lr == 0: return
    for i in range(n):
        old = sqrt(v[i])
        v[i] += g[i] * g[i]
        new = sqrt(v[i])
        held = new > limit
        x = z[i] + (g[i] - (new - old) / lr * w[i])
        z[i] = z[i] if held else x
        x = 0 if fabs(x) <= lamda1 else (lamda1 if x > 0 else -lamda1) - x      # (NaN remains)
        x = lr * x / (beta + new + lr * decay) if x != 0 else <real>0
        w[i] = w[i] + 0 * g[i] if held else x       # (of an infinite g: NaN)


cdef void adadelta(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = decay v + (1 - decay) g^2; d = sqrt((u + eps) / (v + eps)) g; u = decay u + (1 - decay) d^2; w -= lr d"""
    cdef real lr = <real>c[0], decay = <real>c[1], rest = <real>c[2], eps = <real>c[3], l2 = <real>c[L2], x, d
    cdef real* v = s[0]
    cdef real* u = s[1]
    cdef bint decays = l2 != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        v[i] = decay * v[i] + rest * x * x
        d = sqrt((u[i] + eps) / (v[i] + eps)) * x
        u[i] = decay * u[i] + rest * d * d
        w[i] -= lr * d


cdef void rmsprop(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = decay v + (1 - decay) g^2; w -= lr g / (sqrt(v) + eps)"""
    cdef real lr = <real>c[0], decay = <real>c[1], rest = <real>c[2], eps = <real>c[3], l2 = <real>c[L2], x
    cdef real* v = s[0]
    cdef bint decays = l2 != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        v[i] = decay * v[i] + rest * x * x
        w[i] -= lr * x / (sqrt(v[i]) + eps)


cdef void rmsprop_graves(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """v = decay v + (1 - decay) g^2; m = decay m + (1 - decay) g; d = momentum d - lr g / sqrt(v - m^2 + eps); w += d

    v - m^2 is a variance. Rounding can make it negative, which would be NaN after the root if eps is smaller, and an
    infinite v less an infinite m^2 would be NaN too, so m^2 is finite here and the variance at least 0."""
    cdef real lr = <real>c[0], decay = <real>c[1], rest = <real>c[2], momentum = <real>c[3], eps = <real>c[4]
    cdef real l2 = <real>c[L2], x, square, variance, limit = <real>(FLT_MAX if real is float else DBL_MAX)
    cdef real* v = s[0]
    cdef real* m = s[1]
    cdef real* d = s[2]
    cdef bint decays = l2 != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        v[i] = decay * v[i] + rest * x * x
        m[i] = decay * m[i] + rest * x
        square = m[i] * m[i]
        variance = v[i] - (limit if square > limit else square)
        d[i] = momentum * d[i] - lr * x / sqrt((0 if variance < 0 else variance) + eps)
        w[i] += d[i]


cdef inline void with_means(bint largest, bint bounds, real* w, const real* g, real** s, const double* c,
                            Py_ssize_t n) noexcept nogil:
    """m, v: running means of g and g^2; w -= rate m / (sqrt(v) + eps). If `largest`, v_max = max(v_max, v) takes the
    place of v; if `bounds`, rate / (sqrt(v) + eps) is clipped. The compiler makes a loop for each caller."""
    cdef real rate = <real>c[0], beta1 = <real>c[1], rest1 = <real>c[2], beta2 = <real>c[3], rest2 = <real>c[4]
    cdef real eps = <real>c[5], low = <real>c[6], high = <real>c[7], l2 = <real>c[L2], x, a, b
    cdef real* m = s[0]
    cdef real* v = s[1]
    cdef real* v_max = s[2]
    cdef bint decays = l2 != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        a = beta1 * m[i] + rest1 * x
        b = beta2 * v[i] + rest2 * x * x
        m[i] = a
        v[i] = b
        if largest:
            b = v_max[i] if v_max[i] > b else b
            v_max[i] = b
        if bounds: w[i] -= bounded(rate / (sqrt(b) + eps), low, high) * a
        else: w[i] -= rate * a / (sqrt(b) + eps)


cdef void adam(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    with_means[real](False, False, w, g, s, c, n)


cdef void adamw(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """m, v as in adam; w -= rate m / (sqrt(v) + eps) + decay w"""
    cdef real rate = <real>c[0], beta1 = <real>c[1], rest1 = <real>c[2], beta2 = <real>c[3], rest2 = <real>c[4]
    cdef real eps = <real>c[5], decay = <real>c[6], a, b
    cdef real* m = s[0]
    cdef real* v = s[1]
    for i in range(n):
        a = beta1 * m[i] + rest1 * g[i]
        b = beta2 * v[i] + rest2 * g[i] * g[i]
        m[i] = a
        v[i] = b
        w[i] -= rate * a / (sqrt(b) + eps) + decay * w[i]


cdef void adamax(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """m: running mean of g; u = max(beta2 u, |g|); w -= rate m / (u + eps)"""
    cdef real rate = <real>c[0], beta1 = <real>c[1], rest1 = <real>c[2], beta2 = <real>c[3], eps = <real>c[5]
    cdef real l2 = <real>c[L2], x, a, b
    cdef real* m = s[0]
    cdef real* u = s[1]
    cdef bint decays = l2 != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        a = beta1 * m[i] + rest1 * x
        b = beta2 * u[i]
        b = b if b > fabs(x) else fabs(x)
        m[i] = a
        u[i] = b
        w[i] -= rate * a / (b + eps)


cdef void amsgrad(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    with_means[real](True, False, w, g, s, c, n)


cdef void adabound(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    with_means[real](False, True, w, g, s, c, n)


cdef void amsbound(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    with_means[real](True, True, w, g, s, c, n)


cdef inline void with_belief(bint largest, real* w, const real* g, real** s, const double* c,
                             Py_ssize_t n) noexcept nogil:
    """m: running mean of g; v = beta2 v + (1 - beta2) (g - m)^2 + eps; w -= decay w + rate m / (sqrt(rate2 v) + eps),
    without the divisor unless `adapts`. If `largest`, v_max = max(v_max, v) + eps takes the place of v, to which no eps
    is added."""
    cdef real rate = <real>c[0], beta1 = <real>c[1], rest1 = <real>c[2], beta2 = <real>c[3], rest2 = <real>c[4]
    cdef real eps = <real>c[5], decay = <real>c[6], rate2 = <real>c[8], l2 = <real>c[L2], x, a, b
    cdef real* m = s[0]
    cdef real* v = s[1]
    cdef real* v_max = s[2]
    cdef bint decays = l2 != 0, adapts = c[7] != 0
    for i in range(n):
        x = decayed(g, w, i, l2, decays)
        a = beta1 * m[i] + rest1 * x
        b = beta2 * v[i] + rest2 * (x - a) * (x - a)
        if not largest: b = b + eps
        m[i] = a
        v[i] = b
        if largest:
            b = (v_max[i] if v_max[i] > b else b) + eps
            v_max[i] = b
        w[i] -= decay * w[i] + (rate * a / (sqrt(rate2 * b) + eps) if adapts else rate * a)


cdef void adabelief(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    with_belief[real](False, w, g, s, c, n)


cdef void adabelief_max(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    with_belief[real](True, w, g, s, c, n)


cdef void lion(real* w, const real* g, real** s, const double* c, Py_ssize_t n) noexcept nogil:
    """x = beta1 m + (1 - beta1) g; m = beta2 m + (1 - beta2) g; w -= lr (sign(x) + decay w)"""
    cdef real lr = <real>c[0], beta1 = <real>c[1], rest1 = <real>c[2], beta2 = <real>c[3], rest2 = <real>c[4]
    cdef real decay = <real>c[5], x
    cdef real* m = s[0]
    for i in range(n):
        x = beta1 * m[i] + rest1 * g[i]
        m[i] = beta2 * m[i] + rest2 * g[i]
        x = <real>1 if x > 0 else <real>-1 if x < 0 else <real>0
        w[i] -= lr * (x + decay * w[i])


add_kernel("sgd", <void*>sgd[float], <void*>sgd[double])
add_kernel("sgdw", <void*>sgdw[float], <void*>sgdw[double])
add_kernel("momentum", <void*>momentum[float], <void*>momentum[double])
add_kernel("nesterov", <void*>nesterov[float], <void*>nesterov[double])
add_kernel("adagrad", <void*>adagrad[float], <void*>adagrad[double])
add_kernel("ftrl", <void*>ftrl[float], <void*>ftrl[double])
add_kernel("adadelta", <void*>adadelta[float], <void*>adadelta[double])
add_kernel("rmsprop", <void*>rmsprop[float], <void*>rmsprop[double])
add_kernel("rmsprop_graves", <void*>rmsprop_graves[float], <void*>rmsprop_graves[double])
add_kernel("adam", <void*>adam[float], <void*>adam[double])
add_kernel("adamw", <void*>adamw[float], <void*>adamw[double])
add_kernel("adamax", <void*>adamax[float], <void*>adamax[double])
add_kernel("amsgrad", <void*>amsgrad[float], <void*>amsgrad[double])
add_kernel("adabound", <void*>adabound[float], <void*>adabound[double])
add_kernel("amsbound", <void*>amsbound[float], <void*>amsbound[double])
add_kernel("adabelief", <void*>adabelief[float], <void*>adabelief[double])
add_kernel("adabelief_max", <void*>adabelief_max[float], <void*>adabelief_max[double])
add_kernel("lion", <void*>lion[float], <void*>lion[double])

add_linear("sgd", -1, -1, True, reals(<void*>sgd_before[float], <void*>sgd_before[double]), reals(NULL, NULL))
add_linear("sgdw", 0, 1, False, reals(<void*>sgdw_before[float], <void*>sgdw_before[double]),
           reals(<void*>sgdw_after[float], <void*>sgdw_after[double]))
add_linear("momentum", 0, 1, False, reals(<void*>momentum_before[float], <void*>momentum_before[double]),
           reals(<void*>momentum_after[float], <void*>momentum_after[double]))
add_linear("nesterov", 0, -1, True, reals(<void*>nesterov_before[float], <void*>nesterov_before[double]),
           reals(<void*>nesterov_after[float], <void*>nesterov_after[double]))
