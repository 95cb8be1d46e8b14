"""Variance, standard deviation and norms."""

import math

from libc.math cimport isinf
from libc.stdint cimport uint32_t, uint64_t

from cygrad.core.graph.operator cimport (
    BackwardCall, Call, Operator, Stage, add_stage, output_bit, reads_temporary, saved, temporary,
)
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels cimport driver
from cygrad.kernels.reductions cimport folds
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.driver cimport Loop
from cygrad.kernels.reductions.reduce cimport fold_into
from cygrad.ops.elementwise.base cimport number_array
from cygrad.ops.reductions.reduce cimport (
    Axes, Reduction, Spread, binary, check_any_elements, count, derivative, over, over_kept_input, read_into, scale,
)

from cygrad.core.errors import as_float, described
from cygrad.ops.elementwise.compare import equal, maximum, where
from cygrad.ops.elementwise.elementwise import abs, pow
from cygrad.ops.elementwise.elementwise import sign as sign_of
from cygrad.ops.reductions.reduce import kept_axes, mean, reduced, spread, sum
from cygrad.ops.shapes.shape import astype


cdef Loop* ADD_LOOP = driver.find("add")
cdef Loop* MUL_LOOP = driver.find("mul")
cdef Loop* POW_LOOP = driver.find("pow")
cdef Loop* RATIO_LOOP = driver.find("ratio")
cdef Loop* CENTRED_LOOP = driver.find("centred_derivative")
cdef Loop* SIGN_LOOP = driver.find("sign_derivative")


def divide(x, y, p=1):
    """x / y^p; where y is 0, the result and all its derivatives are 0."""
    zero = equal(y, 0)
    y = where(zero, 1, y)
    return where(zero, 0, x) / (y if p == 1 else pow(y, p))


# ---- var and std -----------------------------------------------------------------------------------------------------

cdef class Corrected(Axes):
    """The attributes of var and std: the axes, and the correction, which is subtracted from the number of elements."""
    cdef readonly double correction

    def __cinit__(self, uint32_t mask=0, bint keepdims=False, double correction=0):
        self.correction = correction


cdef class Spreading(Reduction):
    """The base of variance and standard deviation, in two passes: the mean, then the squared differences from it."""
    traits = "promotes promotes_to_float fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        Reduction.infer(self, c)
        c.workspace_bytes = c.y[0].layout.size * itemsize(c.y[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Array middle = c.y[0]
        cdef Py_ssize_t results = c.y[0].layout.size
        middle.data = c.workspace
        mean_into(&c.x[0], &middle, c.attributes)
        self.fold(c, &folds.SQUARES, &middle, &c.y[0])
        return scale(&c.y[0], &c.y[0], freedom(c.x[0].layout.size, results, c.attributes))

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """dx = (g factor / (n - correction)) (x - mean). The first stage computes two temporaries, the mean and, by
        self.factor(), the quotient; in the second, the gradient may overwrite the saved x."""
        cdef Stage* s = add_stage(b, temporary(0) | temporary(1))
        s.saved, s.like = self.saved_for[0], b.y
        s = over_kept_input(b)
        s.gradients = reads_temporary(0) | reads_temporary(1)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array x
        if stage == 1: return derivative(b, CENTRED_LOOP, &b.temporaries[1], &b.temporaries[0])
        x = saved(b, 0)
        mean_into(&x, &b.temporaries[0], b.attributes)
        self.factor(b, &b.temporaries[1])
        return scale(&b.temporaries[1], &b.temporaries[1], freedom(x.layout.size, b.y.size, b.attributes))

    cdef int factor(self, BackwardCall* b, Array* g) except -1 nogil:
        with gil: raise NotImplementedError(f"{self.name} has no factor")


cdef int mean_into(const Array* x, const Array* y, const void* axes) except -1 nogil:
    """y = the mean over the reduced axes: the first element plus the mean of the differences from it. If all elements
    are equal, this mean is exact, and the variance is exactly 0."""
    cdef Spread first, result
    cdef Array narrow
    cdef Array a[3]
    cdef Layout seen
    cdef Py_ssize_t strides[MAX_NDIM]
    cdef uint32_t mask = (<Axes>axes).mask
    cdef int d, k = 0
    first.array, first.layout = x[0], x.layout[0]
    first.array.layout, first.layout.strides, first.layout.dense = &first.layout, first.strides, False
    narrow, seen = x[0], y.layout[0]            # the first elements in the shape of the result
    narrow.layout, seen.strides, seen.dense = &seen, strides, False
    for d in range(x.layout.ndim):
        first.strides[d] = 0 if mask >> d & 1 else x.layout.strides[d]
        if (<Axes>axes).keepdims or not mask >> d & 1:
            strides[k] = first.strides[d]
            k += 1
    over(&result, y, x.layout, axes)
    fold_into(&folds.DIFFERENCES, x, &first.array, &result.array)
    if x.layout.size == 0: return 0
    scale(y, y, count(x.layout.size, y.layout.size))
    a[0], a[1], a[2] = y[0], narrow, y[0]
    return driver.each(ADD_LOOP, a)


cdef double freedom(Py_ssize_t of, Py_ssize_t results, const void* attributes) noexcept nogil:
    """n - correction, the divisor of the squares; at least 0, as in NumPy."""
    cdef double n = count(of, results) - (<Corrected>attributes).correction
    return 0 if n < 0 else n


def centred(c):
    """x - mean(x), with its graph."""
    x = c.input(0)
    return x - mean(x, reduced(c), True)


cdef class Var(Spreading):
    """y = sum of (x - mean)^2 / (n - correction)        dx = 2 g (x - mean) / (n - correction)"""
    reads = "x"

    cdef int factor(self, BackwardCall* b, Array* g) except -1 nogil:
        return binary(MUL_LOOP, &b.g[0], 2, g)

    cdef object formula(self, c, int i, g):
        cdef double n = freedom(math.prod(c.shape(0)), (<Tensor>g).layout.size, <void*>c.attributes)
        return centred(c) * spread(c, g * (2 / n))


cdef class Std(Spreading):
    """y = sqrt(sum of (x - mean)^2 / (n - correction))        dx = g (x - mean) / (n - correction) / y

    dx is 0 where y is 0."""
    reads = "x y"

    cdef int forward(self, Call* c) except -1 nogil:
        Spreading.forward(self, c)
        return binary(POW_LOOP, &c.y[0], 0.5, &c.y[0])

    cdef int factor(self, BackwardCall* b, Array* g) except -1 nogil:
        cdef Array a[3]
        a[0], a[1], a[2] = b.g[0], saved(b, OWN), g[0]
        return driver.each(RATIO_LOOP, a)

    cdef object formula(self, c, int i, g):
        cdef double n = freedom(math.prod(c.shape(0)), (<Tensor>g).layout.size, <void*>c.attributes)
        return centred(c) * spread(c, divide(g, c.output(0)) * (1 / n))


# ---- norm ------------------------------------------------------------------------------------------------------------

cdef class Ordered(Axes):
    """The attributes of norm: the axes, and the order."""
    cdef readonly double ord

    def __cinit__(self, uint32_t mask=0, bint keepdims=False, double ord=2):
        self.ord = ord


cdef class Norm(Reduction):
    """y = (sum of |x|^p)^(1/p)        dx = g sign(x) |x|^(p-1) / y^(p-1), 0 where y is 0

    For p = inf (-inf), y is the largest (smallest) |x|, and equal ones share g; for p = 0, the number of nonzeros."""
    traits = "promotes promotes_to_float fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        if isinf((<Ordered>c.attributes).ord): check_any_elements("norm", c.x[0].layout, c.attributes)
        return Reduction.infer(self, c)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef double p = (<Ordered>c.attributes).ord, bits
        cdef Array power = number_array(&bits, p, c.y[0].dtype)
        if isinf(p):
            return self.fold(c, &folds.SIZE_MAX if p > 0 else &folds.SIZE_MIN, NULL, &c.y[0])
        self.fold(c, &folds.POWERS, &power, &c.y[0])
        return 0 if p == 0 or p == 1 else binary(POW_LOOP, &c.y[0], 1 / p, &c.y[0])

    cdef tuple call_of(self, operands, arguments):
        return range(1), Ordered(0, False, arguments.get("ord", 2))

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef double p = (<Ordered>c.attributes).ord
        return 0 if p == 0 else 1 if p == 1 else 1 | output_bit(0)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """p = 1: g sign(x). p = 2: x times the temporary g / y. Other orders use the formula."""
        cdef double p = (<Ordered>b.attributes).ord
        cdef Stage* s
        if p == 2:
            s = add_stage(b, temporary(0))
            s.saved, s.like = output_bit(0), b.y
        if p == 2 or p == 1:
            s = over_kept_input(b)
            if p == 2: s.gradients = reads_temporary(0)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Array a[3]
        if b.n_stages == 1: return derivative(b, SIGN_LOOP, &b.g[0], NULL)
        if stage == 1: return derivative(b, MUL_LOOP, &b.temporaries[0], NULL)
        a[0], a[1], a[2] = b.g[0], saved(b, OWN), b.temporaries[0]
        return driver.each(RATIO_LOOP, a)

    cdef object formula(self, c, int i, g):
        p = c.attributes.ord
        if p == 0: return spread(c, g * 0.0)
        x = c.input(0)
        if p == 2: return x * spread(c, divide(g, c.output(0)))
        a = x.detach()
        sign = sign_of(a) + 0.0                     # the sign of -0.0 is -0.0
        if p == 1: return c.locally_constant(sign * spread(c, g))
        y = c.output(0)
        if math.isinf(p):
            largest = astype(equal(abs(a), kept_axes(c, y.detach())), a.dtype)
            share = largest / maximum(sum(largest, reduced(c), True), 1)
            return c.locally_constant(sign * share * spread(c, g))
        size = x * sign + astype(equal(a, 0), a.dtype)      # |x|, but 1 where x is 0; the factor sign is 0 there
        return sign * pow(size, p - 1) * spread(c, divide(g, y, p - 1))


cdef Operator VAR = Var(), STD = Std(), NORM = Norm()
OPERATORS = {o.name: o for o in (VAR, STD, NORM)}


def var(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """The variance over `axis` (an int, a tuple, or None for all): the sum of the squared differences from the mean,
    divided by n - correction. The default correction is 0, as in NumPy and the Array API; in PyTorch it is 1."""
    return spreading(VAR, x, axis, keepdims, correction)


def std(x: Data, axis: int | Sequence[int] | None = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """The standard deviation: the square root of var() with the same arguments. Where it is 0, the gradient is 0."""
    return spreading(STD, x, axis, keepdims, correction)


cdef object spreading(Operator op, x, axis, keepdims, correction):
    cdef Tensor t = ensure_tensor(x)
    cdef Corrected how = Corrected.__new__(Corrected)
    if isinstance(correction, bool) or not isinstance(correction, (int, float)):
        raise TypeError(f"{op.name}: correction must be a number, got {described(correction)}")
    read_into(how, t, axis, keepdims)
    how.correction = as_float(correction, f"{op.name}: correction")
    return apply1(op, t, how)


def norm(x: Data, ord: float = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The `ord`-norm of the vector of the elements over `axis` (an int, a tuple, or None for all): (sum of |x|^ord) to
    the power of 1/ord; for inf the largest |x|, for -inf the smallest, for 0 the number of elements that are not 0. The
    gradient is 0 where the norm is 0."""
    cdef Tensor t = ensure_tensor(x)
    cdef Ordered how = Ordered.__new__(Ordered)
    if isinstance(ord, bool) or not isinstance(ord, (int, float)) or ord != ord:
        raise TypeError(f"norm: ord must be a number, inf or -inf, got {described(ord)}")
    read_into(how, t, axis, keepdims)
    how.ord = as_float(ord, "norm: ord")
    return apply1(NORM, t, how)
