"""Strip kernels of arithmetic and powers: each is the formula in one loop over contiguous memory.

Operands are in the order of the formula, and the result is last. The result may be one of the operands, because each
element is read before it is written. A `_grad` kernel takes the gradient g of the output first. table() registers the
kernels under their names."""

from libc cimport math
from libc.stdint cimport uint8_t, uint64_t

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real
from cygrad.kernels.codes cimport WORD, ZEROS, greater
from cygrad.kernels.mathematics cimport fabs, log, pow, pow_of_ordinary, pow_ordinary, sqrt


ctypedef fused source:      # of a cast
    float
    double

ctypedef fused target:
    float
    double

cdef enum:
    RUN = 2048              # elements that are checked and then computed while they are in the first-level cache

cdef inline real floor(real x) noexcept nogil:    return math.floorf(x) if real is float else math.floor(x)
cdef inline real ceil(real x) noexcept nogil:     return math.ceilf(x) if real is float else math.ceil(x)
cdef inline real trunc(real x) noexcept nogil:    return math.truncf(x) if real is float else math.trunc(x)
cdef inline real rint(real x) noexcept nogil:     return math.rintf(x) if real is float else math.rint(x)
cdef inline real sign(real x) noexcept nogil:        return 1 if x > 0 else -1 if x < 0 else 0 if x == 0 else x


# ---- arithmetic ------------------------------------------------------------------------------------------------------

cdef void add_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = x[i] + y[i]

cdef void cast(source[::1] x, target[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = <target>x[i]

cdef void sub_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = x[i] - y[i]

cdef void mul_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = x[i] * y[i]

cdef void div_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = x[i] / y[i]

cdef void div_grad_y(real[::1] g, real[::1] y, real[::1] z, real[::1] dy) noexcept nogil:
    for i in range(dy.shape[0]):
        dy[i] = -g[i] * z[i] / y[i]

cdef inline double floored(double x, double y, double* rest) noexcept nogil:
    """The largest integer that is at most x / y, and the rest x - y floor(x / y) with the sign of y. As Python's divmod
    for floats; for y = 0, x / y and NaN."""
    cdef double quotient, whole
    rest[0] = math.fmod(x, y)
    if y == 0: return x / y
    quotient = (x - rest[0]) / y
    if rest[0] != 0:
        if (y < 0) != (rest[0] < 0):
            rest[0] += y
            quotient -= 1
    else: rest[0] = math.copysign(0, y)
    if quotient == 0: return math.copysign(0, x / y)
    whole = math.floor(quotient)
    return whole + 1 if quotient - whole > 0.5 else whole

# For float32 operands whose quotient is small, float64 gives the same bits as floored(), in vectors: the rounded
# quotient has the right floor, because it is at least 2^-25 from an integer or is one, and the floor times y has 52
# bits.
cdef inline bint small_quotients(const real* x, const real* y, Py_ssize_t n) noexcept nogil:
    cdef int all = real is float
    cdef Py_ssize_t i
    if real is float:
        for i in range(n):
            all &= (fabs(x[i] / y[i]) < <real>(1 << 27)) & (fabs(y[i]) < <real>math.INFINITY)
    return all

cdef inline double floored_small(double x, double y, double* rest) noexcept nogil:
    cdef double whole = math.floor(x / y), r = x - whole * y
    rest[0] = math.copysign(0, y) if r == 0 else r
    return whole

cdef void floor_divide_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef double rest
    cdef Py_ssize_t i, start = 0, stop
    while start < z.shape[0]:
        stop = min(start + RUN, z.shape[0])
        if small_quotients[real](&x[start], &y[start], stop - start):
            for i in range(start, stop): z[i] = <real>floored_small(x[i], y[i], &rest)
        else:
            for i in range(start, stop): z[i] = <real>floored(x[i], y[i], &rest)
        start = stop

cdef void remainder_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef double rest
    cdef Py_ssize_t i, start = 0, stop
    while start < z.shape[0]:
        stop = min(start + RUN, z.shape[0])
        if small_quotients[real](&x[start], &y[start], stop - start):
            for i in range(start, stop):
                floored_small(x[i], y[i], &rest)
                z[i] = <real>rest
        else:
            for i in range(start, stop):
                floored(x[i], y[i], &rest)
                z[i] = <real>rest
        start = stop

cdef void remainder_grad_y(real[::1] g, real[::1] x, real[::1] y, real[::1] dy) noexcept nogil:
    cdef double rest
    cdef Py_ssize_t i, start = 0, stop
    while start < dy.shape[0]:
        stop = min(start + RUN, dy.shape[0])
        if small_quotients[real](&x[start], &y[start], stop - start):
            for i in range(start, stop): dy[i] = <real>(-g[i] * floored_small(x[i], y[i], &rest))
        else:
            for i in range(start, stop): dy[i] = <real>(-g[i] * floored(x[i], y[i], &rest))
        start = stop

cdef void neg_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = -x[i]

cdef void abs_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = fabs(x[i])

cdef void abs_code(real[::1] x, real[::1] y, uint64_t[::1] c) noexcept nogil:
    """Also writes a code: 1 where x > 0, 2 where x < 0, else 0."""
    cdef Py_ssize_t i, k
    for k in range(y.shape[0] // WORD):
        c[2 * k] = greater(&x[WORD * k], <real*>ZEROS)
        c[2 * k + 1] = greater(<real*>ZEROS, &x[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            y[i] = fabs(x[i])

cdef void abs_grad(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]
        v = -v if c[i] == 2 else v
        dx[i] = 0 if c[i] == 0 else v

cdef void sign_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = sign(x[i])

cdef void floor_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = floor(x[i])

cdef void ceil_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = ceil(x[i])

cdef void trunc_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = trunc(x[i])

cdef void round_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = rint(x[i])

cdef void zero_(real[::1] g, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = 0

cdef void copy_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = x[i]


# ---- powers ----------------------------------------------------------------------------------------------------------

# pow_of_ordinary takes half the time of pow. Kernels use it if all elements of a strip are ordinary, which is common.
# Both compute the same bits, so an element's result does not depend on its neighbours.
cdef bint all_ordinary(real[::1] x, real e, Py_ssize_t n) noexcept nogil:
    cdef int all = real is float
    for i in range(n):
        all &= pow_ordinary(x[i], e)
    return all

cdef bint all_pairs_ordinary(real[::1] x, real[::1] y, real less, Py_ssize_t n) noexcept nogil:
    """Whether all x^(y - less) are ordinary."""
    cdef int all = real is float
    for i in range(n):
        all &= pow_ordinary(x[i], y[i] - less)
    return all

# Common exponents need one or two multiplications, if these are accurate enough: x x x has an error of up to 1.5 ulp,
# too much for float64.
cdef void pow_(real[::1] x, real[::1] p, real[::1] y) noexcept nogil:
    cdef real e
    if y.shape[0] == 0: return
    e = p[0]                                        # the exponent is one number
    if e == 2:
        for i in range(y.shape[0]):
            y[i] = x[i] * x[i]
    elif e == 1:
        for i in range(y.shape[0]):
            y[i] = x[i]
    elif e == 0.5:
        for i in range(y.shape[0]):
            y[i] = sqrt(x[i])
    elif e == -1:
        for i in range(y.shape[0]):
            y[i] = 1 / x[i]
    elif real is float and e == 3:
        for i in range(y.shape[0]):
            y[i] = x[i] * x[i] * x[i]
    elif real is float and e == 1.5:
        for i in range(y.shape[0]):                 # pow(-inf, 1.5) is inf
            y[i] = <real>math.INFINITY if x[i] == <real>-math.INFINITY else x[i] * sqrt(x[i])
    elif all_ordinary(x, e, y.shape[0]):
        for i in range(y.shape[0]):
            y[i] = pow_of_ordinary(x[i], e)
    else:
        for i in range(y.shape[0]):
            y[i] = pow(x[i], e)

cdef void pow_grad(real[::1] g, real[::1] x, real[::1] p, real[::1] dx) noexcept nogil:
    cdef real e
    if dx.shape[0] == 0: return
    e = p[0]
    if e == 2:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (2 * x[i])
    elif e == 3:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (3 * (x[i] * x[i]))
    elif e == 1.5:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (<real>1.5 * sqrt(x[i]))
    elif all_ordinary(x, e - 1, dx.shape[0]):
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (e * pow_of_ordinary(x[i], e - 1))
    else:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (e * pow(x[i], e - 1))

cdef void power_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    if all_pairs_ordinary(x, y, 0, z.shape[0]):
        for i in range(z.shape[0]):
            z[i] = pow_of_ordinary(x[i], y[i])
    else:
        for i in range(z.shape[0]):
            z[i] = pow(x[i], y[i])

cdef void power_grad_x(real[::1] g, real[::1] x, real[::1] y, real[::1] dx) noexcept nogil:
    cdef real derivative
    if all_pairs_ordinary(x, y, 1, dx.shape[0]):
        for i in range(dx.shape[0]):
            derivative = g[i] * (y[i] * pow_of_ordinary(x[i], y[i] - 1))
            dx[i] = 0 if y[i] == 0 else derivative  # both sides are computed: a select is a vector instruction
    else:
        for i in range(dx.shape[0]):
            derivative = g[i] * (y[i] * pow(x[i], y[i] - 1))
            dx[i] = 0 if y[i] == 0 else derivative

cdef void power_grad_y(real[::1] g, real[::1] x, real[::1] z, real[::1] dy) noexcept nogil:
    cdef real derivative
    for i in range(dy.shape[0]):                    # 0^y is 0 or 1 for y >= 0, with derivative 0
        derivative = g[i] * (z[i] * log(x[i]))
        dy[i] = 0 if (x[i] == 0) & ((z[i] == 0) | (z[i] == 1)) else derivative

cdef void square_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = x[i] * x[i]

cdef void square_grad(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (2 * x[i])

cdef void sqrt_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = sqrt(x[i])

cdef void sqrt_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] / (2 * y[i])

cdef void rsqrt_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = 1 / sqrt(x[i])

cdef void rsqrt_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (<real>-0.5 * (y[i] * y[i] * y[i]))

cdef void reciprocal_(real[::1] x, real[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = 1 / x[i]

cdef void reciprocal_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    for i in range(dx.shape[0]):
        dx[i] = -g[i] * (y[i] * y[i])


cdef int table() except -1:
    driver.register("add", <void*>add_[float], <void*>add_[double], 3)
    driver.register("sub", <void*>sub_[float], <void*>sub_[double], 3)
    driver.register("mul", <void*>mul_[float], <void*>mul_[double], 3)
    driver.register("div", <void*>div_[float], <void*>div_[double], 3)
    driver.register("div_grad_y", <void*>div_grad_y[float], <void*>div_grad_y[double], 4)
    driver.register("floor_divide", <void*>floor_divide_[float], <void*>floor_divide_[double], 3, 4, 40)
    driver.register("remainder", <void*>remainder_[float], <void*>remainder_[double], 3, 4, 40)
    driver.register("remainder_grad_y", <void*>remainder_grad_y[float], <void*>remainder_grad_y[double], 4, 4, 40)
    driver.register("neg", <void*>neg_[float], <void*>neg_[double], 2)
    driver.register("copy", <void*>copy_[float], <void*>copy_[double], 2)
    driver.register("to_float32", <void*>copy_[float], <void*>cast[double, float], 2)
    driver.register("to_float64", <void*>cast[float, double], <void*>copy_[double], 2)
    driver.register("pow", <void*>pow_[float], <void*>pow_[double], 3, 5, 64, 1)
    driver.register("pow_grad", <void*>pow_grad[float], <void*>pow_grad[double], 4, 5, 64, 2)
    driver.register("power", <void*>power_[float], <void*>power_[double], 3, 5, 64)
    driver.register("power_grad_x", <void*>power_grad_x[float], <void*>power_grad_x[double], 4, 5, 64)
    driver.register("power_grad_y", <void*>power_grad_y[float], <void*>power_grad_y[double], 4, 8, 64)
    driver.register("square", <void*>square_[float], <void*>square_[double], 2)
    driver.register("square_grad", <void*>square_grad[float], <void*>square_grad[double], 3)
    driver.register("sqrt", <void*>sqrt_[float], <void*>sqrt_[double], 2)
    driver.register("sqrt_grad", <void*>sqrt_grad[float], <void*>sqrt_grad[double], 3)
    driver.register("rsqrt", <void*>rsqrt_[float], <void*>rsqrt_[double], 2)
    driver.register("rsqrt_grad", <void*>rsqrt_grad[float], <void*>rsqrt_grad[double], 3)
    driver.register("reciprocal", <void*>reciprocal_[float], <void*>reciprocal_[double], 2)
    driver.register("reciprocal_grad", <void*>reciprocal_grad[float], <void*>reciprocal_grad[double], 3)
    driver.register("abs", <void*>abs_[float], <void*>abs_[double], 2)
    driver.register("abs_code", <void*>abs_code[float], <void*>abs_code[double], 2)
    driver.register("abs_grad", <void*>abs_grad[float], <void*>abs_grad[double], 3)
    driver.register("sign", <void*>sign_[float], <void*>sign_[double], 2)
    driver.register("floor", <void*>floor_[float], <void*>floor_[double], 2)
    driver.register("ceil", <void*>ceil_[float], <void*>ceil_[double], 2)
    driver.register("trunc", <void*>trunc_[float], <void*>trunc_[double], 2)
    driver.register("round", <void*>round_[float], <void*>round_[double], 2)
    driver.register("zero", <void*>zero_[float], <void*>zero_[double], 2)

table()
