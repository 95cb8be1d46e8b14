"""Strip kernels, elementwise: each is the formula in one loop over contiguous memory.

Operands come in the order of the formula, the result last. The result may be an operand: each element is read before
it is written. A `_grad` kernel takes the output's gradient g first. The table at the end gives each its name."""

from libc cimport math

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real


cdef inline real exp(real x) noexcept nogil:   return math.expf(x) if real is float else math.exp(x)
cdef inline real log(real x) noexcept nogil:   return math.logf(x) if real is float else math.log(x)
cdef inline real tanh(real x) noexcept nogil:  return math.tanhf(x) if real is float else math.tanh(x)
cdef inline real sqrt(real x) noexcept nogil:  return math.sqrtf(x) if real is float else math.sqrt(x)
cdef inline real pow(real x, real p) noexcept nogil: return math.powf(x, p) if real is float else math.pow(x, p)


# ---- arithmetic ------------------------------------------------------------------------------------------------------

cdef void add_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        z[i] = x[i] + y[i]

cdef void sub_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        z[i] = x[i] - y[i]

cdef void mul_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        z[i] = x[i] * y[i]

cdef void div_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        z[i] = x[i] / y[i]

cdef void div_grad_y(real[::1] g, real[::1] y, real[::1] z, real[::1] dy) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(dy.shape[0]):
        dy[i] = -g[i] * z[i] / y[i]

cdef void neg_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = -x[i]

cdef void copy_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = x[i]


# ---- powers and exponentials -----------------------------------------------------------------------------------------

cdef void pow_(real[::1] x, real[::1] p, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    cdef real e
    if y.shape[0] == 0: return
    e = p[0]                                        # a scalar: the strip holds it everywhere
    if e == 2:
        for i in range(y.shape[0]):
            y[i] = x[i] * x[i]
    elif e == 1:
        for i in range(y.shape[0]):
            y[i] = x[i]
    elif e == 0.5:
        for i in range(y.shape[0]):
            y[i] = sqrt(x[i])
    else:
        for i in range(y.shape[0]):
            y[i] = pow(x[i], e)

cdef void pow_grad(real[::1] g, real[::1] x, real[::1] p, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i
    cdef real e
    if dx.shape[0] == 0: return
    e = p[0]
    if e == 2:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (2 * x[i])
    else:
        for i in range(dx.shape[0]):
            dx[i] = g[i] * (e * pow(x[i], e - 1))

cdef void exp_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = exp(x[i])

cdef void log_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = log(x[i])

cdef void tanh_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = tanh(x[i])

cdef void tanh_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (1 - y[i] * y[i])


# ---- choices ---------------------------------------------------------------------------------------------------------

cdef void relu_(real[::1] x, real[::1] y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(y.shape[0]):
        y[i] = 0 if x[i] <= 0 else x[i]             # a NaN stays a NaN

cdef void relu_grad(real[::1] g, real[::1] y, real[::1] dx) noexcept nogil:
    cdef Py_ssize_t i
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]                                    # read in any case: a branch here costs a miss for every second sign
        dx[i] = 0 if y[i] <= 0 else v


cdef int table() except -1:
    driver.enter("add", <void*>add_[float], <void*>add_[double], 3)
    driver.enter("sub", <void*>sub_[float], <void*>sub_[double], 3)
    driver.enter("mul", <void*>mul_[float], <void*>mul_[double], 3)
    driver.enter("div", <void*>div_[float], <void*>div_[double], 3)
    driver.enter("div_grad_y", <void*>div_grad_y[float], <void*>div_grad_y[double], 4)
    driver.enter("neg", <void*>neg_[float], <void*>neg_[double], 2)
    driver.enter("copy", <void*>copy_[float], <void*>copy_[double], 2)
    driver.enter("pow", <void*>pow_[float], <void*>pow_[double], 3)
    driver.enter("pow_grad", <void*>pow_grad[float], <void*>pow_grad[double], 4)
    driver.enter("exp", <void*>exp_[float], <void*>exp_[double], 2)
    driver.enter("log", <void*>log_[float], <void*>log_[double], 2)
    driver.enter("tanh", <void*>tanh_[float], <void*>tanh_[double], 2)
    driver.enter("tanh_grad", <void*>tanh_grad[float], <void*>tanh_grad[double], 3)
    driver.enter("relu", <void*>relu_[float], <void*>relu_[double], 2)
    driver.enter("relu_grad", <void*>relu_grad[float], <void*>relu_grad[double], 3)
    return 0

table()
