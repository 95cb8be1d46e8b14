"""The base of elementwise losses: one value for each element, then their mean or sum, without storing the values."""

from libc.stdint cimport uint64_t, uint8_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport (
    BackwardCall, Call, Operator, Stage, add_stage, input_bit, output_bit, saved,
)
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.source cimport warn_here
from cygrad.kernels cimport by_dtype, driver
from cygrad.kernels.losses cimport criteria as kernels
from cygrad.kernels.array cimport Array, Layout, is_floating
from cygrad.kernels.by_dtype cimport put_number
from cygrad.kernels.codes cimport packed_bytes
from cygrad.kernels.losses.criteria cimport G, OPERANDS, T, V, W, X, Terms
from cygrad.kernels.driver cimport Loop
from cygrad.ops.elementwise.base cimport CODE, has_code, hide_bytes, number_array, packed

import numpy as np

import cygrad.kernels.losses.distances, cygrad.kernels.losses.likelihoods  # no-cython-lint: they register their kernels
from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import as_float, described
from cygrad.core.interop.numpy import tensor
from cygrad.ops.elementwise.compare import where
from cygrad.ops.reductions.reduce import mean, sum
from cygrad.ops.shapes.shape import broadcast_to

cdef tuple NAMES = ("none", "mean", "sum", "batchmean")         # in the order of the constants
cdef dict ROLES = {"x": X, "target": T, "var": V, "weight": V, "pos_weight": W}     # the operands of the kernels


# ---- attributes ------------------------------------------------------------------------------------------------------

cdef class Settings(Attributes):
    """The attributes of an elementwise loss: the reduction, the variant, the numbers and the operands."""

    def __cinit__(self, str reduction=None, int variant=0, tuple numbers=(), tuple operands=()):
        if reduction is None: return
        if len(numbers) > 2 or len(operands) > 4 or not 0 <= variant < 2 or any([not X <= k <= W for k in operands]):
            raise ValueError(f"a loss has up to 2 numbers, 4 operands from {int(X)} to {int(W)}, and 2 variants; got "
                             f"{described(numbers)}, {described(operands)} and {variant}")
        set_fields(self, reduction, variant, numbers, operands)


cdef int set_fields(Settings s, str reduction, int variant, tuple numbers, tuple operands) except -1:
    s.reduction, s.variant, s.numbers, s.operands = reduction, variant, numbers, operands
    s.plan.kind, s.plan.variant, s.plan.n = NAMES.index(reduction), variant, len(operands)
    for i in range(len(numbers)): s.plan.p[i] = numbers[i]
    for i in range(len(operands)): s.plan.operands[i] = operands[i]


cdef Settings settings(str name, reduction, int variant, tuple numbers, tuple operands):
    """The attributes of a call. Raises ValueError if `reduction` is not one of the names."""
    cdef Settings s = Settings.__new__(Settings)
    names = NAMES if name == "kl_div" else NAMES[:3]
    if not isinstance(reduction, str) or reduction not in names:
        raise ValueError(f"{name}: reduction must be one of {', '.join(names)}; got {described(reduction)}")
    set_fields(s, reduction, variant, numbers, operands)
    return s


cdef double number(str name, str what, value) except? -1:
    """`value` as a number. Raises TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}: {what} must be a Python number, got {type(value).__name__}")
    return as_float(value, f"{name}: {what}") if isinstance(value, int) else value


cdef double positive(str name, str what, value, bint or_zero=False) except -1:
    """`value` as a number above 0, or 0 if `or_zero`. Raises TypeError or ValueError for another."""
    number(name, what, value)
    if not (value > 0 or or_zero and value == 0):
        raise ValueError(f"{name}: {what} is {value}; it must be {'at least' if or_zero else 'above'} 0")
    return value


# ---- operators -------------------------------------------------------------------------------------------------------

cdef inline double divisor(const Plan* s, const Layout* x) noexcept nogil:
    """The sum is divided by this."""
    if s.kind == MEAN: return <double>x.size
    return <double>x.shape[0] if s.kind == BATCHMEAN else 1


cdef Array incoming(const BackwardCall* b, const Plan* s, const Layout* x, double* bits) noexcept nogil:
    """The gradient of each element: g itself without a reduction, else one number."""
    cdef double g, n
    if s.kind == NONE: return b.g[0]
    g = by_dtype.number(b.g[0].dtype, b.g[0].data, 0)
    n = divisor(s, x)
    return number_array(bits, g / n if n else g, b.g[0].dtype)


cdef object over_elements(c, g, tuple shape):
    """incoming() over tensors, for formulas."""
    cdef int kind = (<Settings>c.attributes).plan.kind
    cdef Py_ssize_t n = 1
    if kind == MEAN:
        for size in shape: n *= size
    elif kind == BATCHMEAN: n = shape[0]
    return g / n if n > 1 else g


cdef class Criterion(Operator):
    """y = the mean, the sum or each of the values of a kernel. A class declares

        variants    for each variant the names of the kernels: of the value, then of the gradient for each operand
        second      of two variants, the argument of the public function that selects the second one, and its value
        numbers     what the function calls the numbers; a name ends with "?" if it is a bool, which is False for 0

    and its formula. All inputs have one shape; the public function
    broadcasts them. Backward keeps the inputs that the kernels of the wanted gradients read."""
    lanes = "reducing_elements"
    operands, numbers = "x target", ""
    traits = "promotes promotes_to_float fused differentiable"
    variants, second = (), None

    def __cinit__(self):
        cls = type(self)
        for v, names in enumerate(cls.variants):
            self.value[v] = kernels.find(names[0])
            for k, name in enumerate(names[1:]): self.slopes[v][k] = kernels.find(name)

    cdef int infer(self, Call* c) except -1 nogil:
        for i in range(1, c.n_in):
            if not lay.same_shape(c.x[0].layout, c.x[i].layout):
                with gil: raise ValueError(f"{self.name}: input 0 is {lay.shape_tuple(c.x[0].layout)} but input {i} is "
                                           f"{lay.shape_tuple(c.x[i].layout)}; the shapes must be equal")
        c.y[0].layout = (lay.dense_like(c.x[0].layout) if (<Settings>c.attributes).plan.kind == NONE else
                         lay.incref(lay.SCALAR))
        c.y[0].dtype = c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        return self.compute(c, NULL, NULL)

    cdef int compute(self, Call* c, const Terms* signs, uint8_t* codes) except -1 nogil:
        """The value, and the codes of `signs` unless it is NULL."""
        cdef const Plan* s = &(<Settings>c.attributes).plan
        cdef Array a[OPERANDS]
        cdef double one, total
        cdef bint bad
        for i in range(OPERANDS): a[i] = number_array(&one, 1, c.x[0].dtype)
        for i in range(s.n): a[s.operands[i]] = c.x[i]
        if s.kind == NONE: bad = kernels.each(self.value[s.variant], signs, a, s.p, codes, &c.y[0])
        else:
            bad = kernels.total_of(self.value[s.variant], signs, a, s.p, codes, &total)
            total /= divisor(s, c.x[0].layout)
            put_number(c.y[0].dtype, c.y[0].data, 0, total)
        if bad:
            with gil: self.refuse(c)

    cdef int refuse(self, Call* c) except -1:
        """Raise the error for a value out of range."""
        raise NotImplementedError(f"{self.name} has no refuse")

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef const Plan* s = &(<Settings>c.attributes).plan
        cdef uint64_t mask = 0
        cdef int i
        for i in range(s.n):
            if wanted >> i & 1: mask |= reads(s, self.slopes[s.variant][s.operands[i]])
        return mask

    cdef tuple row_of(self, attributes):
        cls, arguments = type(self), {"reduction": attributes.reduction}
        for name, value in zip(cls.numbers.split(), attributes.numbers, strict=True):
            arguments[name.strip("?")] = value != 0 if name[-1] == "?" else value
        if cls.second: arguments[cls.second[0]] = (attributes.variant == 1) == cls.second[1]
        return self.row, arguments

    cdef tuple call_of(self, operands, arguments):
        name, value = type(self).second or ("", True)
        given = [i for i, operand in enumerate(operands) if operand is not None]
        return given, Settings("none", bool(arguments.get(name, not value)) == value, (),
                               tuple([ROLES[operands[i]] for i in given]))

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef const Plan* s = &(<Settings>b.attributes).plan
        cdef Stage* stage
        for i in range(s.n):
            if not b.want[i]: continue
            stage = add_stage(b, input_bit(i))
            stage.saved = stage.donated_saved = reads(s, self.slopes[s.variant][s.operands[i]])

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const Plan* s = &(<Settings>b.attributes).plan
        cdef int i = input_of(b, stage), k
        cdef const Terms* slope = self.slopes[s.variant][s.operands[i]]
        cdef Array a[OPERANDS]
        cdef double one, g
        for k in range(OPERANDS): a[k] = number_array(&one, 1, b.dtype)
        for k in range(s.n):
            if slope.reads >> s.operands[k] & 1: a[s.operands[k]] = saved(b, k)
        a[G] = incoming(b, s, b.dx[i].layout, &g)
        kernels.each(slope, NULL, a, s.p, NULL, &b.dx[i])


cdef inline uint64_t reads(const Plan* s, const Terms* slope) noexcept nogil:
    """Mask of the inputs that a kernel reads."""
    cdef uint64_t mask = 0
    cdef int i
    for i in range(s.n):
        if slope.reads >> s.operands[i] & 1: mask |= input_bit(i)
    return mask


cdef inline int input_of(const BackwardCall* b, int stage) noexcept nogil:
    """The input whose gradient a stage computes."""
    cdef int i = 0
    while not b.stages[stage].computes >> i & 1: i += 1
    return i


cdef Loop* BY_CODE = driver.find("abs_grad")
cdef Loop* NEGATIVE_BY_CODE = driver.find("negative_by_code")


cdef class Signed(Criterion):
    """The base of losses whose gradient is g, -g or 0 for each element. Backward keeps two bits for each: the sign of
    what the kernel `sign` computes. The gradient of the target, if there is one, has the opposite sign."""
    sign = ""

    def __cinit__(self):
        self.signs = kernels.find(type(self).sign)

    cdef int infer(self, Call* c) except -1 nogil:
        Criterion.infer(self, c)
        return hide_bytes(c, packed_bytes(c.x[0].layout.size, 2)) if c.wanted else 0

    cdef int forward(self, Call* c) except -1 nogil:
        if not c.hidden: return self.compute(c, NULL, NULL)
        return self.compute(c, self.signs, <uint8_t*>c.y[1].data)

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return output_bit(1)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        for i in range(2):
            if b.want[i]: add_stage(b, input_bit(i)).saved = output_bit(1)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef int i = input_of(b, stage)
        cdef const Layout* l = b.dx[i].layout
        cdef Array a[3]
        cdef double g
        a[0] = packed(saved(b, CODE).data, l, 2)
        a[1] = incoming(b, &(<Settings>b.attributes).plan, l, &g)
        a[2] = b.dx[i]
        return driver.each_coded(BY_CODE if i == 0 else NEGATIVE_BY_CODE, a)

    cdef object formula(self, c, int i, g):
        cdef tuple shape = c.shape(i)
        cdef Layout* l = lay.from_shape(shape)
        g = over_elements(c, g, shape)
        try: above, below = has_code(c, l, 2, 1), has_code(c, l, 2, 2)
        finally: lay.decref(l)
        if i: above, below = below, above
        return c.locally_constant(where(above, g, where(below, -g, 0)))


# ---- arguments -------------------------------------------------------------------------------------------------------

cdef Tensor operand_like(v, Tensor x):
    """`v` as a tensor; a Python number has the dtype of x."""
    if isinstance(v, (int, float)): return tensor(v, DTYPES[x.dtype] if is_floating(x.dtype) else None)
    return ensure_tensor(v)


cdef tuple pair(str name, x, target):
    """x and the target with a common shape. Warns if it is larger than both."""
    cdef Tensor s = ensure_tensor(x), t = operand_like(target, s)
    cdef const Layout* l
    if lay.same_shape(s.layout, t.layout): return s, t
    l = lay.broadcast(name, s.layout, t.layout)
    try: shape, size = lay.shape_tuple(l), l.size
    finally: lay.decref(l)
    if size > s.layout.size and size > t.layout.size:
        warn_here(f"{name}: x is {s.shape} and target is {t.shape}, which broadcast to {shape}; reshape one of them to "
                  f"compare element by element", UserWarning)
    return (s if s.shape == shape else broadcast_to(s, shape)), (t if t.shape == shape else broadcast_to(t, shape))


cdef Tensor widened_to(str name, str what, Tensor v, Tensor x):
    """`v` broadcast to the shape of x. Raises ValueError if it does not fit."""
    cdef const Layout* l
    if lay.same_shape(v.layout, x.layout): return v
    try:
        l = lay.broadcast(name, v.layout, x.layout)
        shape = lay.shape_tuple(l)
        lay.decref(l)
    except ValueError: shape = None
    if shape != x.shape:
        raise ValueError(f"{name}: {what} has shape {v.shape} and x has {x.shape}; {what} must broadcast to the shape "
                         f"of x")
    return broadcast_to(v, x.shape)


cdef object reduced(values, str name, reduction):
    """The values, their mean or their sum."""
    cdef int kind = settings(name, reduction, 0, (), ()).plan.kind
    return values if kind == NONE else mean(values) if kind == MEAN else sum(values)
