"""Strip kernels of comparisons, logic and selection. Comparisons and logic support int64 and bool too. They write
bools of 0 or 1, but read any byte as a bool, because arrays of other libraries can contain other bytes."""

from libc cimport math
from libc.stdint cimport int64_t, uint8_t, uint64_t

from cygrad.kernels cimport driver
from cygrad.kernels.array cimport real
from cygrad.kernels.codes cimport WORD, at_least, greater, nonzero
from cygrad.kernels.mathematics cimport fabs

ctypedef fused number:
    float
    double
    int64_t
    uint8_t


# ---- comparisons -----------------------------------------------------------------------------------------------------

cdef inline number value(number x) noexcept nogil:
    """x; for a bool, 1 if the byte is not 0."""
    if number is uint8_t: return x != 0
    else: return x

cdef void less_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = value(x[i]) < value(y[i])

cdef void less_equal_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = value(x[i]) <= value(y[i])

cdef void equal_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = value(x[i]) == value(y[i])

cdef void not_equal_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = value(x[i]) != value(y[i])

cdef void greater_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = value(x[i]) > value(y[i])

cdef void greater_equal_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = value(x[i]) >= value(y[i])

cdef void isnan_(real[::1] x, uint8_t[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = x[i] != x[i]

cdef void isinf_(real[::1] x, uint8_t[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = fabs(x[i]) == math.INFINITY

cdef void isfinite_(real[::1] x, uint8_t[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = fabs(x[i]) < math.INFINITY


# ---- logic -----------------------------------------------------------------------------------------------------------

cdef void logical_and_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = (x[i] != 0) & (y[i] != 0)

cdef void logical_or_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = (x[i] != 0) | (y[i] != 0)

cdef void logical_xor_(number[::1] x, number[::1] y, uint8_t[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = (x[i] != 0) ^ (y[i] != 0)

cdef void logical_not_(number[::1] x, uint8_t[::1] y) noexcept nogil:
    for i in range(y.shape[0]):
        y[i] = x[i] == 0


# ---- selection -------------------------------------------------------------------------------------------------------
# Both operands are always read: a branch would be mispredicted for half of the elements of a random mask.

cdef inline real larger(real a, real b) noexcept nogil:
    b = a if a > b else b                           # two selects: `or` would be a branch
    return a if a != a else b                       # NaN if either is NaN

cdef inline real smaller(real a, real b) noexcept nogil:
    b = a if a < b else b
    return a if a != a else b

cdef inline real clipped(real v, real low, real high) noexcept nogil:
    v = low if v < low else v
    v = low if low != low else v
    v = high if v > high else v
    return high if high != high else v

cdef void maximum_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = larger(x[i], y[i])

cdef void minimum_(real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    for i in range(z.shape[0]):
        z[i] = smaller(x[i], y[i])

# A kernel with _code in its name also writes codes for its gradient: for 64 elements one word for each bit.

cdef void maximum_code(real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where z is x, 2 where z is y, 3 where they are equal, 0 where one is NaN."""
    cdef Py_ssize_t i, k
    for k in range(z.shape[0] // WORD):
        c[2 * k] = at_least(&x[WORD * k], &y[WORD * k])
        c[2 * k + 1] = at_least(&y[WORD * k], &x[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            z[i] = larger(x[i], y[i])

cdef void minimum_code(real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] c) noexcept nogil:
    cdef Py_ssize_t i, k
    for k in range(z.shape[0] // WORD):
        c[2 * k] = at_least(&y[WORD * k], &x[WORD * k])
        c[2 * k + 1] = at_least(&x[WORD * k], &y[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            z[i] = smaller(x[i], y[i])

cdef void maximum_grad_x(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    """dx = g where the code is 1 or 0, g / 2 where it is 3, else 0; with NaN, dx and dy both get all of g."""
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]
        v = v * <real>0.5 if c[i] == 3 else v
        dx[i] = 0 if c[i] == 2 else v

cdef void maximum_grad_y(uint8_t[::1] c, real[::1] g, real[::1] dy) noexcept nogil:
    cdef real v
    for i in range(dy.shape[0]):
        v = g[i]
        v = v * <real>0.5 if c[i] == 3 else v
        dy[i] = 0 if c[i] == 1 else v

cdef void clip_(real[::1] x, real[::1] y, real[::1] z, real[::1] out) noexcept nogil:
    for i in range(out.shape[0]):
        out[i] = clipped(x[i], y[i], z[i])

cdef inline uint64_t within(const real* x, const real* y, const real* z) noexcept nogil:
    """Which of 64 results are x; below: the lower bound y; beyond: the upper bound z."""
    return at_least(x, y) & at_least(z, x)

cdef inline uint64_t below(const real* x, const real* y, const real* z) noexcept nogil:
    return greater(y, x) & greater(z, y)

cdef inline uint64_t beyond(const real* x, const real* y, const real* z) noexcept nogil:
    return greater(x, z) | greater(y, z)

cdef void clip_code(real[::1] x, real[::1] y, real[::1] z, real[::1] out, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where the result is x (also at the bounds), 2 where y, 3 where z; 0 for NaN or equal bounds."""
    cdef Py_ssize_t i, k
    cdef uint64_t three
    for k in range(out.shape[0] // WORD):           # no two of these are true at once
        i = WORD * k
        three = beyond(&x[i], &y[i], &z[i])
        c[2 * k] = within(&x[i], &y[i], &z[i]) | three
        c[2 * k + 1] = below(&x[i], &y[i], &z[i]) | three
        for i in range(WORD * k, WORD * k + WORD):
            out[i] = clipped(x[i], y[i], z[i])

cdef void clip_code_x(real[::1] x, real[::1] y, real[::1] z, real[::1] out, uint64_t[::1] c) noexcept nogil:
    """The code is 1 where the result is x."""
    cdef Py_ssize_t i, k
    for k in range(out.shape[0] // WORD):
        c[k] = within(&x[WORD * k], &y[WORD * k], &z[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            out[i] = clipped(x[i], y[i], z[i])

cdef void clip_code_y(real[::1] x, real[::1] y, real[::1] z, real[::1] out, uint64_t[::1] c) noexcept nogil:
    cdef Py_ssize_t i, k
    for k in range(out.shape[0] // WORD):
        c[k] = below(&x[WORD * k], &y[WORD * k], &z[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            out[i] = clipped(x[i], y[i], z[i])

cdef void clip_code_z(real[::1] x, real[::1] y, real[::1] z, real[::1] out, uint64_t[::1] c) noexcept nogil:
    cdef Py_ssize_t i, k
    for k in range(out.shape[0] // WORD):
        c[k] = beyond(&x[WORD * k], &y[WORD * k], &z[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            out[i] = clipped(x[i], y[i], z[i])

cdef void chosen_1(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    """dx = g where the code is 1, else 0"""
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]
        dx[i] = v if c[i] == 1 else 0

cdef void chosen_2(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]
        dx[i] = v if c[i] == 2 else 0

cdef void chosen_3(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]
        dx[i] = v if c[i] == 3 else 0

cdef void where_(uint8_t[::1] c, real[::1] x, real[::1] y, real[::1] z) noexcept nogil:
    cdef real a, b
    for i in range(z.shape[0]):
        a, b = x[i], y[i]
        z[i] = a if c[i] else b

cdef void where_code(uint8_t[::1] c, real[::1] x, real[::1] y, real[::1] z, uint64_t[::1] code) noexcept nogil:
    """The code is 1 where the condition is true."""
    cdef Py_ssize_t i, k
    cdef real a, b
    for k in range(z.shape[0] // WORD):
        code[k] = nonzero(&c[WORD * k])
        for i in range(WORD * k, WORD * k + WORD):
            a, b = x[i], y[i]
            z[i] = a if c[i] else b

cdef void where_grad_x(uint8_t[::1] c, real[::1] g, real[::1] dx) noexcept nogil:
    cdef real v
    for i in range(dx.shape[0]):
        v = g[i]
        dx[i] = v if c[i] else 0

cdef void where_grad_y(uint8_t[::1] c, real[::1] g, real[::1] dy) noexcept nogil:
    cdef real v
    for i in range(dy.shape[0]):
        v = g[i]
        dy[i] = 0 if c[i] else v


cdef int table() except -1:
    driver.register_all_dtypes("less", <void*>less_[float], <void*>less_[double],
                               <void*>less_[int64_t], <void*>less_[uint8_t], 3)
    driver.register_all_dtypes("less_equal", <void*>less_equal_[float], <void*>less_equal_[double],
                               <void*>less_equal_[int64_t], <void*>less_equal_[uint8_t], 3)
    driver.register_all_dtypes("equal", <void*>equal_[float], <void*>equal_[double],
                               <void*>equal_[int64_t], <void*>equal_[uint8_t], 3)
    driver.register_all_dtypes("not_equal", <void*>not_equal_[float], <void*>not_equal_[double],
                               <void*>not_equal_[int64_t], <void*>not_equal_[uint8_t], 3)
    driver.register_all_dtypes("greater", <void*>greater_[float], <void*>greater_[double],
                               <void*>greater_[int64_t], <void*>greater_[uint8_t], 3)
    driver.register_all_dtypes("greater_equal", <void*>greater_equal_[float], <void*>greater_equal_[double],
                               <void*>greater_equal_[int64_t], <void*>greater_equal_[uint8_t], 3)
    driver.register("isnan", <void*>isnan_[float], <void*>isnan_[double], 2)
    driver.register("isinf", <void*>isinf_[float], <void*>isinf_[double], 2)
    driver.register("isfinite", <void*>isfinite_[float], <void*>isfinite_[double], 2)
    driver.register_all_dtypes("logical_and", <void*>logical_and_[float], <void*>logical_and_[double],
                               <void*>logical_and_[int64_t], <void*>logical_and_[uint8_t], 3)
    driver.register_all_dtypes("logical_or", <void*>logical_or_[float], <void*>logical_or_[double],
                               <void*>logical_or_[int64_t], <void*>logical_or_[uint8_t], 3)
    driver.register_all_dtypes("logical_xor", <void*>logical_xor_[float], <void*>logical_xor_[double],
                               <void*>logical_xor_[int64_t], <void*>logical_xor_[uint8_t], 3)
    driver.register_all_dtypes("logical_not", <void*>logical_not_[float], <void*>logical_not_[double],
                               <void*>logical_not_[int64_t], <void*>logical_not_[uint8_t], 2)
    driver.register("maximum", <void*>maximum_[float], <void*>maximum_[double], 3)
    driver.register("minimum", <void*>minimum_[float], <void*>minimum_[double], 3)
    driver.register("maximum_code", <void*>maximum_code[float], <void*>maximum_code[double], 3)
    driver.register("minimum_code", <void*>minimum_code[float], <void*>minimum_code[double], 3)
    driver.register("maximum_grad_x", <void*>maximum_grad_x[float], <void*>maximum_grad_x[double], 3)
    driver.register("maximum_grad_y", <void*>maximum_grad_y[float], <void*>maximum_grad_y[double], 3)
    driver.register("clip", <void*>clip_[float], <void*>clip_[double], 4)
    driver.register("clip_code", <void*>clip_code[float], <void*>clip_code[double], 4)
    driver.register("clip_code_x", <void*>clip_code_x[float], <void*>clip_code_x[double], 4)
    driver.register("clip_code_y", <void*>clip_code_y[float], <void*>clip_code_y[double], 4)
    driver.register("clip_code_z", <void*>clip_code_z[float], <void*>clip_code_z[double], 4)
    driver.register("chosen_1", <void*>chosen_1[float], <void*>chosen_1[double], 3)
    driver.register("chosen_2", <void*>chosen_2[float], <void*>chosen_2[double], 3)
    driver.register("chosen_3", <void*>chosen_3[float], <void*>chosen_3[double], 3)
    driver.register("where", <void*>where_[float], <void*>where_[double], 4)
    driver.register("where_code", <void*>where_code[float], <void*>where_code[double], 4)
    driver.register("where_grad_x", <void*>where_grad_x[float], <void*>where_grad_x[double], 3)
    driver.register("where_grad_y", <void*>where_grad_y[float], <void*>where_grad_y[double], 3)

table()
