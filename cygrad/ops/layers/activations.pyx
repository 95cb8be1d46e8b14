"""Activations besides those of ops/elementwise/functions.pyx. The module is loaded at the first use of one of them. See
ops/elementwise/elementwise.pyx for how an operator is written. Integers are cast to the default dtype first."""

from libc.stdint cimport uint8_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, saved, saved_bits
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2, apply3
from cygrad.kernels cimport driver
from cygrad.kernels.layers cimport activations as kernels     # (its strip kernels are registered now)
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, itemsize
from cygrad.kernels.driver cimport LoopCall
from cygrad.ops.elementwise.base cimport OUT, Axis, Elementwise, Number, axis_number, number_array, number_of, set_coded

from cygrad.core.errors import as_float, described
from cygrad.ops.elementwise.compare import where
from cygrad.ops.elementwise.elementwise import square
from cygrad.ops.elementwise.functions import exp, expm1, sigmoid
from cygrad.ops.shapes.join import concat, split
from cygrad.ops.shapes.shape import reshape

cdef double SCALE = 1.0507009873554804934193349852946
cdef double SCALE_ALPHA = 1.7580993408473768599402175208123
cdef driver.Loop* LEAKY_CODED = driver.find("leaky_relu_grad_coded")


# ---- with a kink -----------------------------------------------------------------------------------------------------

cdef class LeakyRelu(Elementwise):
    """y = x where x > 0, else p x, p >= 0 a number        dx = g where y > 0, else p g"""
    traits = "signs"
    number = "negative_slope"
    result_may_change = True
    dx = "leaky_relu_grad g out p"

    cdef bint backward_loop(self, const BackwardCall* b, int stage, LoopCall* l) noexcept nogil:
        cdef const uint8_t* bits = saved_bits(b, OUT)
        if bits == NULL: return Elementwise.backward_loop(self, b, stage, l)
        set_coded(l, LEAKY_CODED, bits, b)
        l.a[3], l.a[2] = l.a[2], number_array(&l.number, (<Number>b.attributes).value, b.dtype)
        return True

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(c.output(0).detach() <= 0, g * c.attributes.number, g))


cdef class Prelu(Elementwise):
    """y = x where x > 0, else w x        dx = g where x > 0, else w g        dw = 0 where x > 0, else g x

    w is the weight."""
    row, operands, functions = "prelu_broadcast", "x weight", {"prelu": "x weight"}
    dx = "prelu_grad_x g x weight"
    dweight = "prelu_grad_w g x"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        return c.locally_constant(where(x > 0, g, g * c.input(1)) if i == 0 else where(x > 0, 0, g * x))


cdef class Threshold(Elementwise):
    """y = x where x > threshold, else value, numbers        dx = g where x > threshold, else 0"""
    operands = "x threshold value"
    code = "threshold_code"
    dx = "chosen_1 code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 1), g, 0))


cdef class Hardtanh(Elementwise):
    """y = min(max(x, min_val), max_val), numbers        dx = g where min_val < x < max_val, else 0"""
    operands = "x min_val? max_val?"
    code = "hardtanh_code"
    dx = "chosen_1 code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 1), g, 0))


cdef class Hardsigmoid(Elementwise):
    """y = min(max(x + 3, 0), 6) / 6        dx = g / 6 where -3 < x < 3, else 0"""
    code = "hardsigmoid_code"
    dx = "hardsigmoid_grad code g"

    cdef object formula(self, c, int i, g):
        return c.locally_constant(where(self.where_code(c, 1), g / 6, 0))


cdef class Hardswish(Elementwise):
    """y = x min(max(x + 3, 0), 6) / 6        dx = 0 where x <= -3, g where x >= 3, else g (x / 3 + 1/2)"""
    dx = "hardswish_grad g x"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        return g * where(x <= -3, 0, where(x >= 3, 1, x / 3 + 0.5))


# ---- smooth ----------------------------------------------------------------------------------------------------------

cdef class Elu(Elementwise):
    """y = x where x > 0, else p (e^x - 1), p >= 0 a number        dx = g where y > 0, else g (y + p)"""
    number = "alpha"
    result_may_change = True
    dx = "elu_grad g out p"

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        return g * where(y > 0, 1, below(y) + c.attributes.number)


cdef class Selu(Elementwise):
    """y = s x where x > 0, else s a (e^x - 1)        dx = s g where y > 0, else g (y + s a)

    with s = 1.0507..., a = 1.6732...; Klambauer and others, https://arxiv.org/abs/1706.02515"""
    dx = "selu_grad g out"
    result_may_change = True

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        return g * where(y > 0, SCALE, below(y) + SCALE_ALPHA)


cdef class Celu(Elementwise):
    """y = x where x > 0, else p (e^(x / p) - 1), p a number        dx = g where y > 0, else g (1 + y / p)"""
    number = "alpha"
    result_may_change = True
    dx = "celu_grad g out p"

    cdef object formula(self, c, int i, g):
        y = c.output(0)
        return g * where(y > 0, 1, 1 + below(y) / c.attributes.number)


cdef class Softsign(Elementwise):
    """y = x / (1 + |x|)        dx = g (1 - |y|)^2"""
    dx = "softsign_grad g out"
    result_may_change = True

    cdef object formula(self, c, int i, g):
        return g * square(1 - abs(c.output(0)))


cdef class Logsigmoid(Elementwise):
    """y = -log(1 + e^-x)        dx = g (1 - e^y)"""
    dx = "logsigmoid_grad g out"
    result_may_change = True

    cdef object formula(self, c, int i, g):
        return -g * expm1(c.output(0))


cdef class Mish(Elementwise):
    """y = x t, t = tanh(log(1 + e^x))        dx = g (t + x s (1 - t^2)), s = sigmoid(x)"""
    dx = "mish_grad g x"

    cdef object formula(self, c, int i, g):
        x = c.input(0)
        e = exp(where(x > 40, 40, x))               # beyond it t is 1; the square of e^x could overflow
        n = e * (e + 2)
        return g * where(x > 40, 1, n / (n + 2) + x * (4 * e * (1 + e)) / square(n + 2))


cdef object below(y):
    """y where it is below 0, else 0. So the second derivative at 0 is 0, as in PyTorch."""
    return where(y >= 0, 0, y)


# ---- glu -------------------------------------------------------------------------------------------------------------

cdef class Glu(Operator):
    """y = a sigmoid(b), x = [a, b]        dx = [g s, g a s (1 - s)], s = sigmoid(b)        (along an axis)"""
    lanes = "shifting"
    traits = "promotes promotes_to_float fused differentiable"
    reads = "x"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef int d, axis = (<Axis>c.attributes).axis
        if x.shape[axis] % 2:
            with gil: raise ValueError(f"glu: x is {lay.shape_tuple(x)}, so axis {axis} has size {x.shape[axis]}; it "
                                       f"is cut in halves and must have an even size")
        for d in range(x.ndim): shape[d] = x.shape[d]
        shape[axis] = x.shape[axis] // 2
        c.y[0].layout, c.y[0].dtype = lay.dense(x.ndim, shape), c.x[0].dtype
        c.workspace_bytes = 0 if x.dense else x.size * itemsize(c.x[0].dtype)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t half = half_of(c.y[0].layout, c.attributes)
        cdef const char* x = c.x[0].data
        if half == 0: return 0
        if not c.x[0].layout.dense:
            driver.gather(c.workspace, &c.x[0], 0, c.x[0].layout.size)
            x = c.workspace
        kernels.glu(c.y[0].dtype, c.y[0].layout.size // half, half, x, c.y[0].data)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.donated_saved = 1
        if not b.g[0].layout.dense: s.workspace_bytes = b.y.size * itemsize(b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Py_ssize_t half = half_of(b.y, b.attributes)
        cdef Array x = saved(b, 0)
        cdef const char* g = b.g[0].data
        if half == 0: return 0
        if not b.g[0].layout.dense:
            driver.gather(b.workspace, &b.g[0], 0, b.y.size)
            g = b.workspace
        if not x.layout.dense:                      # packed into the result
            driver.gather(b.dx[0].data, &x, 0, x.layout.size)
            x.data = b.dx[0].data
        kernels.glu_grad(b.dtype, b.y.size // half, half, g, x.data, b.dx[0].data)

    cdef object formula(self, c, int i, g):
        axis = c.attributes.axis
        a, b = split(c.input(0), 2, axis)
        s = sigmoid(b)
        return concat([g * s, g * (a * (s * (1 - s)))], axis)


cdef Py_ssize_t half_of(const Layout* y, const void* attributes) noexcept nogil:
    """The number of elements of the result for each index before the axis, which are contiguous; 0 if it is empty."""
    cdef Py_ssize_t half = 1
    for d in range((<Axis>attributes).axis, y.ndim): half *= y.shape[d]
    return half if y.size else 0


cdef Operator LEAKY_RELU = LeakyRelu(), PRELU = Prelu(), THRESHOLD = Threshold(), HARDTANH = Hardtanh()
cdef Operator HARDSIGMOID = Hardsigmoid(), HARDSWISH = Hardswish(), ELU = Elu(), SELU = Selu(), CELU = Celu()
cdef Operator SOFTSIGN = Softsign(), LOGSIGMOID = Logsigmoid(), MISH = Mish(), GLU = Glu()
OPERATORS = {o.name: o for o in (
    LEAKY_RELU, PRELU, THRESHOLD, HARDTANH, HARDSIGMOID, HARDSWISH, ELU, SELU, CELU, SOFTSIGN, LOGSIGMOID, MISH, GLU)}


cdef object number(str function, str name, value):
    """`value`, if it is a Python number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{function}: {name} must be a Python number, got {described(value)}")
    if isinstance(value, int): as_float(value, f"{function}: {name}")
    return value

def leaky_relu(x: Data, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, else negative_slope x, elementwise; the gradient at 0 is negative_slope.

    Backward saves one bit for each element, unless the output is kept anyway. Raises TypeError if negative_slope is
    not a Python number."""
    number("leaky_relu", "negative_slope", negative_slope)
    if negative_slope >= 0: return apply1(LEAKY_RELU, x, number_of(negative_slope))
    x = ensure_tensor(x)                            # the sign of the result is not that of x
    return where(x > 0, x, x * negative_slope)

def prelu(x: Data, weight: Data) -> Tensor:
    """x where x > 0, else weight x; the gradient at 0 is that of the second line. `weight` has one element, or one for
    each channel of x, which is axis 1. Raises ValueError for another shape.

    He and others, https://arxiv.org/abs/1502.01852"""
    cdef Tensor t = ensure_tensor(x), w = ensure_tensor(weight)
    cdef Py_ssize_t n = w.layout.size
    if w.layout.ndim > 1 or n != 1 and (t.layout.ndim < 2 or t.layout.shape[1] != n):
        raise ValueError(f"prelu: x is {t.shape} and weight is {w.shape}; wanted one weight, or one for each channel "
                         f"of x, which is axis 1")
    if n == 1 and w.layout.ndim: w = reshape(w, ())
    elif n != 1 and t.layout.ndim > 2: w = reshape(w, (n,) + (1,) * (t.layout.ndim - 2))
    return apply2(PRELU, t, w, None)

def prelu_broadcast(x: Data, weight: Data) -> Tensor:
    """prelu() with a weight that broadcasts, such as (channels, 1, 1)."""
    return apply2(PRELU, x, weight, None)

def threshold(x: Data, threshold: float, value: float) -> Tensor:
    """x where x > threshold, else value, elementwise; nan stays. The gradient at the threshold is 0.

    Backward saves one bit for each element. Raises TypeError if threshold or value is not a Python number."""
    return apply3(THRESHOLD, ensure_tensor(x), number("threshold", "threshold", threshold),
                  number("threshold", "value", value), None)

def hardtanh(x: Data, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to the range from min_val to max_val, elementwise; the gradient at both is 0 (clip's is not).

    Backward saves one bit for each element. Raises TypeError if min_val or max_val is not a Python number, ValueError
    if min_val is above max_val."""
    number("hardtanh", "min_val", min_val)
    if min_val > number("hardtanh", "max_val", max_val):
        raise ValueError(f"hardtanh: min_val is {min_val} and max_val is {max_val}; min_val must not be larger")
    return apply3(HARDTANH, ensure_tensor(x), min_val, max_val, None)

def hardsigmoid(x: Data) -> Tensor:
    """x + 3 limited to the range from 0 to 6, divided by 6, elementwise; the gradient at -3 and 3 is 0.

    Backward saves one bit for each element."""
    return apply1(HARDSIGMOID, x, None)

def hardswish(x: Data) -> Tensor:
    """x hardsigmoid(x), elementwise; the gradient is 0 at -3 and 1 at 3.

    Howard and others, https://arxiv.org/abs/1905.02244"""
    return apply1(HARDSWISH, x, None)

def elu(x: Data, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e^x - 1), elementwise; the gradient at 0 is alpha.

    Raises TypeError if alpha is not a Python number. Clevert and others, https://arxiv.org/abs/1511.07289"""
    if number("elu", "alpha", alpha) >= 0: return apply1(ELU, x, number_of(alpha))
    x = ensure_tensor(x)                            # the sign of the result is not that of x
    return where(x > 0, x, alpha * expm1(where(x > 0, 0, x)))

def selu(x: Data) -> Tensor:
    """1.0507... elu(x, 1.6732...), elementwise, which keeps the mean 0 and the variance 1 of normalized layers.

    Klambauer and others, https://arxiv.org/abs/1706.02515"""
    return apply1(SELU, x, None)

def celu(x: Data, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (e^(x / alpha) - 1), elementwise; the gradient at 0 is 1.

    Raises TypeError if alpha is not a Python number, ValueError if it is 0. Barron, https://arxiv.org/abs/1704.07483"""
    if number("celu", "alpha", alpha) == 0:
        raise ValueError("celu: alpha must not be 0, because x is divided by it")
    return apply1(CELU, x, number_of(alpha))

def softsign(x: Data) -> Tensor:
    """x / (1 + |x|), elementwise."""
    return apply1(SOFTSIGN, x, None)

def logsigmoid(x: Data) -> Tensor:
    """log(sigmoid(x)), elementwise, without overflow and without cancellation."""
    return apply1(LOGSIGMOID, x, None)

def mish(x: Data) -> Tensor:
    """x tanh(softplus(x)), elementwise. Misra, https://arxiv.org/abs/1908.08681"""
    return apply1(MISH, x, None)

def glu(x: Data, axis: int = -1) -> Tensor:
    """The first half of x along `axis` times the sigmoid of the second half.

    Raises IndexError if the axis is out of range, ValueError if its size is odd. Dauphin and others,
    https://arxiv.org/abs/1612.08083"""
    cdef Tensor t = ensure_tensor(x)
    return apply1(GLU, t, axis_number(lay.read_axis(axis, t.layout.ndim)))
