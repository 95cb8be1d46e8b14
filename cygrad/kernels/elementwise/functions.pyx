"""Strip kernels of functions: exponentials, logarithms, trigonometry, hyperbolic functions and activations. As in
kernels/elementwise/elementwise.pyx, operands are in the order of the formula, and the result is last. A `_grad` kernel
takes g first, then what its operator saves: x or y."""

from libc.stdint cimport uint64_t

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real
from cygrad.kernels.codes cimport WORD, ZEROS, at_least
from cygrad.kernels.mathematics cimport (
    ROOT_2_PI, ROOT_EIGHT_PI, TO_EXP, TO_NORMAL, TO_SIGMOID, TWO_ROOT_PI, acos, acosh, all_near, asin, asinh, atan,
    atanh, bell, cos, cos_far, cosh, erf, exp, exp_near, expm1, far, gauss, gelu, log, log1p, logistic, normal, silu,
    sin, sin_far, sinh, softplus, sqrt, tan, tan_far, tanh,
)

cdef enum:
    RUN = 2048              # elements of a run, which is checked and then computed while it is in the first-level cache

# Functions whose results can be denormal have two loops. The faster one is for runs in which all numbers are near
# (mathematics.pxd). Both loops compute the same bits.


# ---- exponentials and logarithms -------------------------------------------------------------------------------------

cdef void exp_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < y.shape[0]:
        stop = min(start + RUN, y.shape[0])
        if all_near[real](TO_EXP, &x[start], stop - start):
            for i in range(start, stop): y[i] = exp_near(x[i])
        else:
            for i in range(start, stop): y[i] = exp(x[i])
        start = stop

cdef void expm1_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = expm1(x[i])

cdef void expm1_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (y[i] + 1)

cdef void log_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = log(x[i])

cdef void log1p_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = log1p(x[i])

cdef void log1p_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (x[i] + 1)


# ---- trigonometry ----------------------------------------------------------------------------------------------------

cdef bint some_far(real[::1] x, Py_ssize_t n) noexcept nogil:
    """Whether some element is too large for the vectorized sin, cos and tan. For other elements sin_far and sin
    compute the same bits, so a result does not depend on its neighbours."""
    cdef int any = 0
    for i in range(n):
        any |= far(x[i])
    return any

cdef void sin_(real[::1] x, real[::1] y) noexcept nogil:
    if some_far(x, y.shape[0]):
        for i in range(y.shape[0]):
            y[i] = sin_far(x[i])
    else:
        for i in range(y.shape[0]):
            y[i] = sin(x[i])

cdef void sin_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    if some_far(x, dx.shape[0]):
        for i in range(dx.shape[0]):
            dx[i] = g[i] * cos_far(x[i])
    else:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * cos(x[i])

cdef void cos_(real[::1] x, real[::1] y) noexcept nogil:
    if some_far(x, y.shape[0]):
        for i in range(y.shape[0]):
            y[i] = cos_far(x[i])
    else:
        for i in range(y.shape[0]):
            y[i] = cos(x[i])

cdef void cos_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    if some_far(x, dx.shape[0]):
        for i in range(dx.shape[0]):
            dx[i] = -g[i] * sin_far(x[i])
    else:
        for i in range(dx.shape[0]):
            dx[i] = -g[i] * sin(x[i])

cdef void tan_(real[::1] x, real[::1] y) noexcept nogil:
    if some_far(x, y.shape[0]):
        for i in range(y.shape[0]):
            y[i] = tan_far(x[i])
    else:
        for i in range(y.shape[0]):
            y[i] = tan(x[i])

cdef void tan_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (1 + y[i] * y[i])

cdef void asin_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = asin(x[i])

cdef void asin_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / sqrt((1 - x[i]) * (1 + x[i]))

cdef void acos_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = acos(x[i])

cdef void acos_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = -g[i] / sqrt((1 - x[i]) * (1 + x[i]))

cdef void atan_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = atan(x[i])

cdef void atan_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (1 + x[i] * x[i])


# ---- hyperbolic functions --------------------------------------------------------------------------------------------

cdef void sinh_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = sinh(x[i])

cdef void sinh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * cosh(x[i])

cdef void cosh_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = cosh(x[i])

cdef void cosh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * sinh(x[i])

cdef void tanh_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = tanh(x[i])

cdef void tanh_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (1 - y[i] * y[i])

cdef void asinh_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = asinh(x[i])

cdef void asinh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / sqrt(x[i] * x[i] + 1)

cdef void acosh_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = acosh(x[i])

cdef void acosh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / sqrt((x[i] - 1) * (x[i] + 1))

cdef void atanh_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = atanh(x[i])

cdef void atanh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / ((1 - x[i]) * (1 + x[i]))


# ---- activations -----------------------------------------------------------------------------------------------------

cdef void erf_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = erf(x[i])

cdef void erf_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (<real>TWO_ROOT_PI * gauss(x[i]))

cdef void sigmoid_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < y.shape[0]:
        stop = min(start + RUN, y.shape[0])
        if all_near[real](TO_SIGMOID, &x[start], stop - start):
            for i in range(start, stop): y[i] = logistic(x[i], True)
        else:
            for i in range(start, stop): y[i] = logistic(x[i])
        start = stop

cdef void sigmoid_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (y[i] * (1 - y[i]))

cdef void silu_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < y.shape[0]:
        stop = min(start + RUN, y.shape[0])
        if all_near[real](TO_SIGMOID, &x[start], stop - start):
            for i in range(start, stop): y[i] = silu(x[i], True)
        else:
            for i in range(start, stop): y[i] = silu(x[i])
        start = stop

cdef void silu_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    cdef real s
    while start < dx.shape[0]:
        stop = min(start + RUN, dx.shape[0])
        if all_near[real](TO_SIGMOID, &x[start], stop - start):
            for i in range(start, stop):
                s = logistic(x[i], True)
                dx[i] = g[i] * (s * (1 + x[i] * (1 - s)))
        else:
            for i in range(start, stop):
                s = logistic(x[i])
                dx[i] = g[i] * (s * (1 + x[i] * (1 - s)))
        start = stop

cdef void softplus_(real[::1] x, real[::1] b, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    cdef real beta
    if y.shape[0] == 0: return
    beta = b[0]                                     # one number
    if beta == 1:
        while start < y.shape[0]:
            stop = min(start + RUN, y.shape[0])
            if all_near[real](TO_SIGMOID, &x[start], stop - start):
                for i in range(start, stop): y[i] = softplus(x[i], True)
            else:
                for i in range(start, stop): y[i] = softplus(x[i])
            start = stop
    else:
        for i in range(y.shape[0]):
            y[i] = softplus(beta * x[i]) / beta

cdef void softplus_grad(real[::1] g, real[::1] y, real[::1] b, real[::1] dx) noexcept nogil:
    cdef real beta
    if dx.shape[0] == 0: return
    beta = b[0]
    for i in range(dx.shape[0]):
        dx[i] = -g[i] * expm1(-beta * y[i])

cdef void gelu_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < y.shape[0]:
        stop = min(start + RUN, y.shape[0])
        if all_near[real](TO_NORMAL, &x[start], stop - start):
            for i in range(start, stop): y[i] = gelu(x[i], True)
        else:
            for i in range(start, stop): y[i] = gelu(x[i])
        start = stop

cdef void gelu_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop
    while start < dx.shape[0]:
        stop = min(start + RUN, dx.shape[0])
        if all_near[real](TO_NORMAL, &x[start], stop - start):
            for i in range(start, stop):
                dx[i] = g[i] * (normal(x[i], True) + x[i] * (<real>ROOT_2_PI * bell(x[i], True)))
        else:
            for i in range(start, stop): dx[i] = g[i] * (normal(x[i]) + x[i] * (<real>ROOT_2_PI * bell(x[i])))
        start = stop

# 1/2 (1 + tanh u) = 1 / (1 + e^-2u). The right side keeps all digits of small results and is faster.
cdef void gelu_tanh_(real[::1] x, real[::1] y) noexcept nogil:
    cdef real v
    for i in range(y.shape[0]):
        v = x[i]
        y[i] = v * logistic(<real>ROOT_EIGHT_PI * (v + <real>0.044715 * v * v * v))

cdef void gelu_tanh_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    cdef real v, s, derivative
    for i in range(dx.shape[0]):
        v = x[i]
        s = logistic(<real>ROOT_EIGHT_PI * (v + <real>0.044715 * v * v * v))
        derivative = <real>ROOT_EIGHT_PI * (1 + 3 * <real>0.044715 * v * v)
        dx[i] = g[i] * (s + v * (s * (1 - s) * derivative))

cdef void relu_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = 0 if x[i] <= 0 else x[i]             # propagates NaN

cdef void relu_gradient(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]                                    # always read: a branch would be mispredicted for random signs
        dx[i] = 0 if y[i] <= 0 else v

cdef void relu_gradient_code(real[::1] g, real[::1] y, real[::1] dx, uint64_t[::1] c) noexcept nogil:
    """Also writes a code: 1 where dx is g."""
    cdef Py_ssize_t i, k
    for k in range(dx.shape[0] // WORD):
        c[k] = ~at_least(<real*>ZEROS, &y[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            dx[i] = 0 if y[i] <= 0 else g[i]


cdef int register(str name, void* f32, void* f64, int operands, int cost=1, int f64_cost=0, int number=-1) except -1:
    """Register a compute-bound kernel. A polynomial takes about six times as long in float64, for twice the bytes."""
    driver.register(name, f32, f64, operands, cost, f64_cost or 6 * cost, number)
    driver.find(name).compute_bound = True


cdef int table() except -1:
    register("exp", <void*>exp_[float], <void*>exp_[double], 2)
    register("expm1", <void*>expm1_[float], <void*>expm1_[double], 2, 2)
    driver.register("expm1_grad", <void*>expm1_grad[float], <void*>expm1_grad[double], 3)
    register("log", <void*>log_[float], <void*>log_[double], 2)
    register("log1p", <void*>log1p_[float], <void*>log1p_[double], 2, 2)
    driver.register("log1p_grad", <void*>log1p_grad[float], <void*>log1p_grad[double], 3)
    # sin, cos and tan read a strip twice (some_far), so they are not registered as compute-bound.
    driver.register("sin", <void*>sin_[float], <void*>sin_[double], 2, 1, 6)
    driver.register("sin_grad", <void*>sin_grad[float], <void*>sin_grad[double], 3, 2, 12)
    driver.register("cos", <void*>cos_[float], <void*>cos_[double], 2, 1, 6)
    driver.register("cos_grad", <void*>cos_grad[float], <void*>cos_grad[double], 3, 2, 12)
    driver.register("tan", <void*>tan_[float], <void*>tan_[double], 2, 2, 3)
    driver.register("tan_grad", <void*>tan_grad[float], <void*>tan_grad[double], 3)
    register("asin", <void*>asin_[float], <void*>asin_[double], 2, 2)
    driver.register("asin_grad", <void*>asin_grad[float], <void*>asin_grad[double], 3)
    register("acos", <void*>acos_[float], <void*>acos_[double], 2, 2)
    driver.register("acos_grad", <void*>acos_grad[float], <void*>acos_grad[double], 3)
    register("atan", <void*>atan_[float], <void*>atan_[double], 2, 2)
    driver.register("atan_grad", <void*>atan_grad[float], <void*>atan_grad[double], 3)
    register("sinh", <void*>sinh_[float], <void*>sinh_[double], 2, 2, 18)
    register("sinh_grad", <void*>sinh_grad[float], <void*>sinh_grad[double], 3, 2, 18)
    register("cosh", <void*>cosh_[float], <void*>cosh_[double], 2, 2, 18)
    register("cosh_grad", <void*>cosh_grad[float], <void*>cosh_grad[double], 3, 2, 18)
    register("tanh", <void*>tanh_[float], <void*>tanh_[double], 2)
    driver.register("tanh_grad", <void*>tanh_grad[float], <void*>tanh_grad[double], 3)
    register("asinh", <void*>asinh_[float], <void*>asinh_[double], 2, 3, 48)
    driver.register("asinh_grad", <void*>asinh_grad[float], <void*>asinh_grad[double], 3)
    register("acosh", <void*>acosh_[float], <void*>acosh_[double], 2, 3, 36)
    driver.register("acosh_grad", <void*>acosh_grad[float], <void*>acosh_grad[double], 3)
    register("atanh", <void*>atanh_[float], <void*>atanh_[double], 2, 2, 30)
    driver.register("atanh_grad", <void*>atanh_grad[float], <void*>atanh_grad[double], 3)
    register("erf", <void*>erf_[float], <void*>erf_[double], 2, 2)
    register("erf_grad", <void*>erf_grad[float], <void*>erf_grad[double], 3)
    register("sigmoid", <void*>sigmoid_[float], <void*>sigmoid_[double], 2)
    driver.register("sigmoid_grad", <void*>sigmoid_grad[float], <void*>sigmoid_grad[double], 3)
    register("silu", <void*>silu_[float], <void*>silu_[double], 2)
    register("silu_grad", <void*>silu_grad[float], <void*>silu_grad[double], 3, 2)
    register("softplus", <void*>softplus_[float], <void*>softplus_[double], 3, 2, 42, 1)
    register("softplus_grad", <void*>softplus_grad[float], <void*>softplus_grad[double], 4, 2, 12, 2)
    register("gelu", <void*>gelu_[float], <void*>gelu_[double], 2, 2)
    register("gelu_grad", <void*>gelu_grad[float], <void*>gelu_grad[double], 3, 3)
    register("gelu_tanh", <void*>gelu_tanh_[float], <void*>gelu_tanh_[double], 2, 3)
    register("gelu_tanh_grad", <void*>gelu_tanh_grad[float], <void*>gelu_tanh_grad[double], 3, 3)
    driver.register("relu", <void*>relu_[float], <void*>relu_[double], 2)
    driver.register("relu_gradient_code", <void*>relu_gradient_code[float], <void*>relu_gradient_code[double], 3)
    driver.register("relu_gradient", <void*>relu_gradient[float], <void*>relu_gradient[double], 3)

table()
