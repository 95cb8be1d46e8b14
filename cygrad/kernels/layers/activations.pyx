"""Strip kernels of the activations in ops/layers/activations, and the kernels of glu. As in
kernels/elementwise/functions.pyx, operands are in the order of the formula, and the result is last. A number (p) is one
element."""

from libc.stdint cimport uint64_t, uint8_t

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real
from cygrad.kernels.by_dtype cimport call, element
from cygrad.kernels.codes cimport WORD, at_least, greater
from cygrad.kernels.mathematics cimport TO_SIGMOID, all_near, exp, exp_near, expm1, fabs, logistic, silu, softplus
from cygrad.kernels.threads cimport GRAIN, parallel_for, threads_for

cdef enum:
    RUN = 2048              # as in kernels/elementwise/functions.pyx

# Klambauer and others, https://arxiv.org/abs/1706.02515. Macros, as in mathematics.pxd.
cdef extern from *:
    """
    #define CG_SELU_SCALE 1.0507009873554804934193349852946
    #define CG_SELU_SCALE_ALPHA 1.7580993408473768599402175208123
    """
    const double SCALE "CG_SELU_SCALE"
    const double SCALE_ALPHA "CG_SELU_SCALE_ALPHA"


# ---- two lines with a kink -------------------------------------------------------------------------------------------

cdef void leaky_relu_(real[::1] x, real[::1] p, real[::1] y) noexcept nogil:
    cdef real slope
    if y.shape[0] == 0: return
    slope = p[0]
    for i in range(y.shape[0]):
        y[i] = slope * x[i] if x[i] <= 0 else x[i]

cdef void leaky_relu_grad(real[::1] g, real[::1] y, real[::1] p, real[::1] dx) noexcept nogil:
    cdef real slope, v
    if dx.shape[0] == 0: return
    slope = p[0]
    for i in range(dx.shape[0]):
        v = g[i]
        dx[i] = slope * v if y[i] <= 0 else v

cdef void leaky_relu_grad_coded(uint8_t[::1] c, real[::1] g, real[::1] p, real[::1] dx) noexcept nogil:
    """The code is 1 where y is above 0."""
    cdef real slope, v
    if dx.shape[0] == 0: return
    slope = p[0]
    for i in range(dx.shape[0]):
        v = g[i]
        dx[i] = v if c[i] else slope * v

cdef void prelu_(real[::1] x, real[::1] w, real[::1] y) noexcept nogil:
    cdef real v
    for i in range(y.shape[0]):
        v = w[i] * x[i]
        y[i] = x[i] if x[i] > 0 else v

cdef void prelu_grad_x(real[::1] g, real[::1] x, real[::1] w, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = w[i] * g[i]
        dx[i] = g[i] if x[i] > 0 else v

cdef void prelu_grad_w(real[::1] g, real[::1] x, real[::1] dw) noexcept nogil:
    cdef real v
    for i in range(dw.shape[0]):
        v = g[i] * x[i]
        dw[i] = 0 if x[i] > 0 else v

cdef void threshold_(real[::1] x, real[::1] t, real[::1] v, real[::1] y) noexcept nogil:
    cdef real at, value, a
    if y.shape[0] == 0: return
    at, value = t[0], v[0]                          # numbers, which the driver repeats
    for i in range(y.shape[0]):
        a = x[i]
        y[i] = value if a <= at else a              # propagates NaN

cdef void threshold_code(real[::1] x, real[::1] t, real[::1] v, real[::1] y, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where the result is x."""
    cdef Py_ssize_t i, k
    cdef real at, value, a
    if y.shape[0] == 0: return
    at, value = t[0], v[0]
    for k in range(y.shape[0] // WORD):
        c[k] = ~at_least(&t[0], &x[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            a = x[i]
            y[i] = value if a <= at else a


# ---- three lines -----------------------------------------------------------------------------------------------------

cdef inline real between(real v, real low, real high) noexcept nogil:
    """v limited to the range from low to high, or NaN."""
    v = low if v < low else v
    return high if v > high else v

cdef void hardtanh_(real[::1] x, real[::1] low, real[::1] high, real[::1] y) noexcept nogil:
    cdef real a, b
    if y.shape[0] == 0: return
    a, b = low[0], high[0]                          # numbers, which the driver repeats
    for i in range(y.shape[0]):
        y[i] = between(x[i], a, b)

cdef void hardtanh_code(real[::1] x, real[::1] low, real[::1] high, real[::1] y, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where low < x < high, and for NaN."""
    cdef Py_ssize_t i, k
    cdef real a, b
    if y.shape[0] == 0: return
    a, b = low[0], high[0]
    for k in range(y.shape[0] // WORD):
        c[k] = ~(at_least(&low[0], &x[WORD * k]) | at_least(&x[WORD * k], &high[0]))
        for i in range(WORD * k, WORD * k + WORD):
            y[i] = between(x[i], a, b)

cdef inline real sixth(real v) noexcept nogil:
    """v / 6 by a multiplication, which takes a quarter of the time of a division; exactly 1 for 6"""
    return v * <real>(1 / 6.0)

cdef void hardsigmoid_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = sixth(between(x[i] + 3, <real>0, <real>6))

cdef void hardsigmoid_code(real[::1] x, real[::1] y, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where -3 < x < 3."""
    cdef real limits[2][WORD]
    cdef Py_ssize_t i, k
    for i in range(WORD): limits[0][i], limits[1][i] = -3, 3
    for k in range(y.shape[0] // WORD):
        c[k] = greater(&x[WORD * k], limits[0]) & greater(limits[1], &x[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            y[i] = sixth(between(x[i] + 3, <real>0, <real>6))

cdef void hardsigmoid_grad(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = sixth(g[i])
        dx[i] = v if c[i] else 0

cdef void hardswish_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = x[i] * sixth(between(x[i] + 3, <real>0, <real>6))

cdef void hardswish_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    cdef real v, slope
    for i in range(dx.shape[0]):
        v = g[i]
        slope = v * (2 * sixth(x[i]) + <real>0.5)
        slope = v if x[i] >= 3 else slope
        dx[i] = 0 if x[i] <= -3 else slope


# ---- smooth functions ------------------------------------------------------------------------------------------------

cdef void elu_(real[::1] x, real[::1] p, real[::1] y) noexcept nogil:
    cdef real alpha, v
    if y.shape[0] == 0: return
    alpha = p[0]
    for i in range(y.shape[0]):
        v = alpha * expm1(x[i])
        y[i] = x[i] if x[i] > 0 else v

cdef void elu_grad(real[::1] g, real[::1] y, real[::1] p, real[::1] dx) noexcept nogil:
    cdef real alpha, v
    if dx.shape[0] == 0: return
    alpha = p[0]
    for i in range(dx.shape[0]):
        v = g[i] * (y[i] + alpha)
        dx[i] = g[i] if y[i] > 0 else v

cdef void selu_(real[::1] x, real[::1] y) noexcept nogil:
    cdef real v
    for i in range(y.shape[0]):
        v = <real>SCALE_ALPHA * expm1(x[i])
        y[i] = <real>SCALE * x[i] if x[i] > 0 else v

cdef void selu_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i] * (y[i] + <real>SCALE_ALPHA)
        dx[i] = g[i] * <real>SCALE if y[i] > 0 else v

cdef void celu_(real[::1] x, real[::1] p, real[::1] y) noexcept nogil:
    cdef real alpha, v
    if y.shape[0] == 0: return
    alpha = p[0]
    for i in range(y.shape[0]):
        v = alpha * expm1(x[i] / alpha)
        y[i] = x[i] if x[i] > 0 else v

cdef void celu_grad(real[::1] g, real[::1] y, real[::1] p, real[::1] dx) noexcept nogil:
    cdef real alpha, v
    if dx.shape[0] == 0: return
    alpha = p[0]
    for i in range(dx.shape[0]):
        v = g[i] * (1 + y[i] / alpha)
        dx[i] = g[i] if y[i] > 0 else v

cdef void softsign_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = x[i] / (1 + fabs(x[i]))

cdef void softsign_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    cdef real t
    for i in range(dx.shape[0]):
        t = 1 - fabs(y[i])
        dx[i] = g[i] * (t * t)

cdef void logsigmoid_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < y.shape[0]:
        stop = min(start + RUN, y.shape[0])
        if all_near[real](TO_SIGMOID, &x[start], stop - start):
            for i in range(start, stop): y[i] = -softplus(-x[i], True)
        else:
            for i in range(start, stop): y[i] = -softplus(-x[i])
        start = stop

cdef void logsigmoid_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = -g[i] * expm1(y[i])

# With e = e^x and n = e (e + 2), tanh(log(1 + e)) = n / (n + 2), and its derivative is 4 e (1 + e) / (n + 2)^2. This
# has no cancellation. For large x, where the tanh rounds to 1, e is that of the limit; for x far below 0, where e can
# be denormal, mish rounds to silu.
cdef inline real mish_limit(real x) noexcept nogil:
    return 20 if real is float else 40

cdef inline real mish_low(real x) noexcept nogil:
    """Below it, mish is silu. No run of near numbers has such a number."""
    return -80 if real is float else -700

cdef inline real mish(real x, bint near) noexcept nogil:
    cdef real v = mish_limit(x) if x > mish_limit(x) else x
    cdef real e = exp_near(v) if near else exp(v)
    cdef real n = e * (e + 2)
    return x * (n / (n + 2))

cdef inline real mish_slope(real x, bint near) noexcept nogil:
    cdef real v = mish_limit(x) if x > mish_limit(x) else x
    cdef real e = exp_near(v) if near else exp(v)
    cdef real n = e * (e + 2), r = 1 / (n + 2)
    cdef real slope = n * r + x * (4 * e * (1 + e) * r * r)
    return 1 if x > mish_limit(x) else slope

cdef void mish_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    cdef real far
    while start < y.shape[0]:
        stop = min(start + RUN, y.shape[0])
        if all_near[real](TO_SIGMOID, &x[start], stop - start):
            for i in range(start, stop): y[i] = mish(x[i], True)
        else:
            for i in range(start, stop):
                far = silu(x[i])
                y[i] = far if x[i] < mish_low(x[i]) else mish(x[i], False)
        start = stop

cdef void mish_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < dx.shape[0]:
        stop = min(start + RUN, dx.shape[0])
        if all_near[real](TO_SIGMOID, &x[start], stop - start):
            for i in range(start, stop): dx[i] = g[i] * mish_slope(x[i], True)
        else:
            for i in range(start, stop): dx[i] = g[i] * mish_slope(x[i], False)
        start = stop


# ---- glu -------------------------------------------------------------------------------------------------------------

cdef struct Gated:          # x is (outer, 2, half): the values, then the gates
    int dtype
    Py_ssize_t half
    const char* g
    const char* x
    char* y


cdef void glu_(const real* x, const real* gate, real* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < n:
        stop = min(start + RUN, n)
        if all_near[real](TO_SIGMOID, &gate[start], stop - start):
            for i in range(start, stop): y[i] = x[i] * logistic(gate[i], True)
        else:
            for i in range(start, stop): y[i] = x[i] * logistic(gate[i])
        start = stop


cdef void glu_grad_(const real* g, const real* x, const real* gate, real* dx, real* dgate, Py_ssize_t n) noexcept nogil:
    cdef real s, v
    for i in range(n):
        s, v = logistic(gate[i]), g[i]
        dgate[i] = v * x[i] * (s * (1 - s))
        dx[i] = v * s


cdef void glu_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Elements start to stop - 1 of the result, or their gradients."""
    cdef const Gated* j = <const Gated*>job
    cdef Py_ssize_t half = j.half, count, at
    cdef void* x
    cdef void* gate
    while start < stop:
        count = min(half - start % half, stop - start)
        at = start + start // half * half           # in x; the gates follow after `half` elements
        x, gate = element(j.dtype, j.x, at), element(j.dtype, j.x, at + half)
        if j.g == NULL: call(j.dtype, glu_[float], glu_[double], x, gate, element(j.dtype, j.y, start), count)
        else:
            call(j.dtype, glu_grad_[float], glu_grad_[double], element(j.dtype, j.g, start), x, gate,
                 element(j.dtype, j.y, at), element(j.dtype, j.y, at + half), count)
        start += count


cdef void glu(int dtype, Py_ssize_t outer, Py_ssize_t half, const char* x, char* y) noexcept nogil:
    cdef Gated job = Gated(dtype, half, NULL, x, y)
    cdef Py_ssize_t n = outer * half
    parallel_for(glu_range, &job, n, GRAIN, threads_for(2 * n))


cdef void glu_grad(int dtype, Py_ssize_t outer, Py_ssize_t half, const char* g, const char* x, char* dx) noexcept nogil:
    """dx may be x."""
    cdef Gated job = Gated(dtype, half, g, x, dx)
    cdef Py_ssize_t n = outer * half
    parallel_for(glu_range, &job, n, GRAIN, threads_for(3 * n))


cdef int register(str name, void* f32, void* f64, int operands, int cost=1, int f64_cost=0, int number=-1) except -1:
    """Register a compute-bound kernel, as in kernels/elementwise/functions.pyx."""
    driver.register(name, f32, f64, operands, cost, f64_cost or 6 * cost, number)
    driver.find(name).compute_bound = True


cdef int table() except -1:
    driver.register("leaky_relu", <void*>leaky_relu_[float], <void*>leaky_relu_[double], 3, 1, 2, 1)
    driver.register("leaky_relu_grad", <void*>leaky_relu_grad[float], <void*>leaky_relu_grad[double], 4, 1, 2, 2)
    driver.register("leaky_relu_grad_coded", <void*>leaky_relu_grad_coded[float], <void*>leaky_relu_grad_coded[double],
                    4, 1, 2, 2)
    driver.register("prelu", <void*>prelu_[float], <void*>prelu_[double], 3)
    driver.register("prelu_grad_x", <void*>prelu_grad_x[float], <void*>prelu_grad_x[double], 4)
    driver.register("prelu_grad_w", <void*>prelu_grad_w[float], <void*>prelu_grad_w[double], 3)
    driver.register("threshold", <void*>threshold_[float], <void*>threshold_[double], 4)
    driver.register("threshold_code", <void*>threshold_code[float], <void*>threshold_code[double], 4)
    driver.register("hardtanh", <void*>hardtanh_[float], <void*>hardtanh_[double], 4)
    driver.register("hardtanh_code", <void*>hardtanh_code[float], <void*>hardtanh_code[double], 4)
    driver.register("hardsigmoid", <void*>hardsigmoid_[float], <void*>hardsigmoid_[double], 2)
    driver.register("hardsigmoid_code", <void*>hardsigmoid_code[float], <void*>hardsigmoid_code[double], 2)
    driver.register("hardsigmoid_grad", <void*>hardsigmoid_grad[float], <void*>hardsigmoid_grad[double], 3)
    driver.register("hardswish", <void*>hardswish_[float], <void*>hardswish_[double], 2)
    driver.register("hardswish_grad", <void*>hardswish_grad[float], <void*>hardswish_grad[double], 3)
    register("elu", <void*>elu_[float], <void*>elu_[double], 3, 2, 3, 1)
    driver.register("elu_grad", <void*>elu_grad[float], <void*>elu_grad[double], 4, 1, 2, 2)
    register("selu", <void*>selu_[float], <void*>selu_[double], 2, 2, 3)
    driver.register("selu_grad", <void*>selu_grad[float], <void*>selu_grad[double], 3)
    register("celu", <void*>celu_[float], <void*>celu_[double], 3, 2, 3, 1)
    driver.register("celu_grad", <void*>celu_grad[float], <void*>celu_grad[double], 4, 1, 2, 2)
    driver.register("softsign", <void*>softsign_[float], <void*>softsign_[double], 2)
    driver.register("softsign_grad", <void*>softsign_grad[float], <void*>softsign_grad[double], 3)
    register("logsigmoid", <void*>logsigmoid_[float], <void*>logsigmoid_[double], 2, 2, 42)
    register("logsigmoid_grad", <void*>logsigmoid_grad[float], <void*>logsigmoid_grad[double], 3, 2, 12)
    register("mish", <void*>mish_[float], <void*>mish_[double], 2, 2)
    register("mish_grad", <void*>mish_grad[float], <void*>mish_grad[double], 3, 2)

table()
