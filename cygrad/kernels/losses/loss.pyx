"""Kernels of losses: strip kernels of their values and gradients, and sums of values."""

from libc.stdint cimport uint8_t

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport Array, itemsize, real
from cygrad.kernels.by_dtype cimport call_double, kernel_of, vector
from cygrad.kernels.driver cimport STRIP, Loop, gather
from cygrad.kernels.threads cimport parallel_for, threads_for
from cygrad.kernels.lanes cimport sum_of
from cygrad.kernels.mathematics cimport exp, fabs, log1p, logistic

ctypedef void (*binary_t)(char[::1], char[::1], char[::1]) noexcept nogil


cdef void square_derivative(real[::1] g, real[::1] x, real[::1] dx) noexcept nogil:
    """dx = 2 g x"""
    for i in range(dx.shape[0]):
        dx[i] = 2 * g[i] * x[i]

cdef void bce_(real[::1] x, real[::1] t, real[::1] y) noexcept nogil:
    """y = max(x, 0) - x t + log(1 + e^-|x|)"""
    for i in range(y.shape[0]):
        y[i] = (0 if x[i] < 0 else x[i]) - x[i] * t[i] + log1p(exp(-fabs(x[i])))

cdef void bce_derivative(real[::1] g, real[::1] x, real[::1] t, real[::1] dx) noexcept nogil:
    """dx = g (1 / (1 + e^-x) - t)"""
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (logistic(x[i]) - t[i])

cdef void bce_derivative_hard(real[::1] g, uint8_t[::1] t, real[::1] x, real[::1] dx) noexcept nogil:
    """The same for targets that are 0 or 1, saved as packed bits"""
    for i in range(dx.shape[0]):
        dx[i] = g[i] * (logistic(x[i]) - <real>t[i])

cdef void bce_derivative_t(real[::1] g, real[::1] x, real[::1] dt) noexcept nogil:
    """dt = -g x"""
    for i in range(dt.shape[0]):
        dt[i] = -g[i] * x[i]


# ---- sums of values that are not stored ------------------------------------------------------------------------------

cdef enum:
    PART = 64 * STRIP       # the least number of elements of a part
    PARTS = 64              # the largest number of parts

cdef struct Totals:
    const Loop* loop
    const Array* x
    const Array* y
    Py_ssize_t part
    double* totals          # the total of each part


cdef double total_of(const Loop* loop, const Array* x, const Array* y) noexcept nogil:
    """The sum of loop(x, y) over all elements, without storing the values. x and y have the same shape. The division
    into parts depends only on the size."""
    cdef double totals[PARTS]
    cdef Py_ssize_t n = x.layout.size, strips = (n + STRIP - 1) // STRIP
    cdef Py_ssize_t part = max(<Py_ssize_t>PART, (strips + PARTS - 1) // PARTS * STRIP)
    cdef Totals job = Totals(loop, x, y, part, &totals[0])
    cdef double total = 0
    parallel_for(totals_range, &job, n, part, threads_for(2 * n))
    for i in range((n + part - 1) // part): total += totals[i]
    return total


cdef void totals_range(void* job, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """The sum of one part, by strips."""
    cdef const Totals* t = <const Totals*>job
    cdef char scratch[3][STRIP * 8]
    cdef Py_ssize_t i = start, count
    cdef int dtype = t.x.dtype, size = itemsize(dtype)
    cdef const char* p
    cdef const char* q
    cdef double total = 0
    while i < stop:
        count = min(stop - i, <Py_ssize_t>STRIP)
        p, q = t.x.data + i * size, t.y.data + i * size
        if not t.x.layout.dense:
            gather(&scratch[0][0], t.x, i, count)
            p = &scratch[0][0]
        if not t.y.layout.dense:
            gather(&scratch[1][0], t.y, i, count)
            q = &scratch[1][0]
        (<binary_t>kernel_of(&t.loop.kernels, dtype))(vector(dtype, p, count), vector(dtype, q, count),
                                                      vector(dtype, &scratch[2][0], count))
        total += call_double(dtype, sum_of[float], sum_of[double], <void*>&scratch[2][0], count)
        i += count
    t.totals[start // t.part] = total


cdef int table() except -1:
    driver.register("square_derivative", <void*>square_derivative[float], <void*>square_derivative[double], 3)
    driver.register("bce", <void*>bce_[float], <void*>bce_[double], 3, 4, 24)
    driver.register("bce_derivative", <void*>bce_derivative[float], <void*>bce_derivative[double], 4)
    driver.register("bce_derivative_hard", <void*>bce_derivative_hard[float], <void*>bce_derivative_hard[double], 4)
    driver.register("bce_derivative_t", <void*>bce_derivative_t[float], <void*>bce_derivative_t[double], 3)

table()
