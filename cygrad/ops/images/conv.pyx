"""Convolutions of one to three dimensions: conv1d, conv2d, conv3d and conv_transpose1d, 2d, 3d.

A convolution relates images X, images Y and weights V, each of which is bilinear in the other two
(kernels/images/conv.pxd). So there are three operators, which compute Y, X or V, and the gradients of each are the
other two."""

cimport cython

from libc.stdint cimport uint32_t, uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.store.layout cimport LocalLayout
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport (
    ADDING, OVER_GRAD, SIGNS_ALONE, BackwardCall, Call, Operator, Stage, add_stage, adds, factor, output_bit,
    reads_temporary, saved, temporary,
)
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply_list
from cygrad.kernels cimport driver
from cygrad.kernels.array cimport MAX_NDIM, Array, Layout, is_real, itemsize
from cygrad.kernels.linalg.blas cimport check_sizes
from cygrad.kernels.by_dtype cimport kernel_of
from cygrad.kernels.images.conv cimport convolve, make_plan
from cygrad.kernels.driver cimport gather
from cygrad.kernels.images.planes cimport Conv, Role, V, X, Y, set_planes
from cygrad.kernels.reductions.reduce cimport sum_to
from cygrad.ops.linalg.linalg cimport times_derivative
from cygrad.ops.images.spatial cimport batched, read_sizes

from math import prod

from cygrad.core.errors import described
from cygrad.ops.elementwise.elementwise import square
from cygrad.ops.elementwise.functions import relu_gradient
from cygrad.ops.linalg.linalg import ACTIVATIONS
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import squeeze

cdef driver.Loop* VALUES[3]
VALUES[0], VALUES[1], VALUES[2] = driver.find("relu"), driver.find("tanh"), driver.find("sigmoid")


cdef struct Slide:          # the attributes for kernels; missing spatial dimensions come first
    int nd
    int kind                # index in ACTIVATIONS; -1: no activation
    Py_ssize_t groups
    Py_ssize_t stride[3]
    Py_ssize_t low[3]
    Py_ssize_t dilation[3]
    Py_ssize_t size[3]


@cython.no_gc
cdef class Sliding(Attributes):
    """The attributes of convolutions: for each spatial dimension the stride, the zeros before X, the dilation of the
    kernel and the size of the result; the number of groups; the name of an activation, or None. `given` is what the
    public function computes that size from: its padding or, if it is transposed, its output_padding. None: a formula
    gave the size."""
    cdef readonly tuple stride
    cdef readonly tuple low
    cdef readonly tuple dilation
    cdef readonly tuple size
    cdef readonly Py_ssize_t groups
    cdef readonly str activation
    cdef readonly object given
    cdef Slide slide

    def __cinit__(self, tuple stride, tuple low, tuple dilation, tuple size, Py_ssize_t groups, activation,
                  given=None):
        cdef Slide* s = &self.slide
        cdef int d, i
        self.stride, self.low, self.dilation, self.size = stride, low, dilation, size
        self.groups, self.activation, self.given = groups, activation, given
        s.nd, s.groups = <int>len(stride), groups
        s.kind = -1 if activation is None else ACTIVATIONS.index(activation)
        for d in range(3):
            i = d - 3 + s.nd
            s.stride[d], s.low[d], s.dilation[d], s.size[d] = (
                (stride[i], low[i], dilation[i], size[i]) if i >= 0 else (1, 0, 1, 1))


# ---- the operators ---------------------------------------------------------------------------------------------------

cdef void describe(Conv* v, const Slide* s, Role role, Array* a) noexcept nogil:
    """The convolution that computes `role` from the other two arrays of X, Y and V, and its plan."""
    cdef const Py_ssize_t* size = a[<int>X].layout.shape
    cdef const Py_ssize_t* out = a[<int>Y].layout.shape
    cdef const Py_ssize_t* kernel = a[<int>V].layout.shape
    cdef int d, i
    v.role, v.dtype, v.n, v.groups = role, a[<int>role].dtype, size[0], s.groups
    v.c, v.o = size[1] // s.groups, out[1] // s.groups
    for d in range(3):
        i = d - 3 + s.nd + 2                        # the dimension of the arrays
        v.stride[d], v.low[d], v.dilation[d] = s.stride[d], s.low[d], s.dilation[d]
        v.size[d] = v.out[d] = v.kernel[d] = 1
        if i >= 2: v.size[d], v.out[d], v.kernel[d] = size[i], out[i], kernel[i]
    set_planes(&v.x, &a[<int>X])
    set_planes(&v.y, &a[<int>Y])
    v.v, v.bias, v.activation, v.adds, v.factor = a[<int>V].data, NULL, NULL, False, 1
    make_plan(v)


cdef size_t weight_bytes(const Conv* v, const Array* a) noexcept nogil:
    """Bytes to pack the weights if they are not dense."""
    if v.role == V or a[<int>V].layout.dense: return 0
    return (a[<int>V].layout.size * itemsize(v.dtype) + 63) // 64 * 64


cdef int compute(Conv* v, const Array* a, char* workspace, size_t nbytes) except -1 nogil:
    """Run the convolution in `nbytes` of workspace."""
    cdef size_t packed = weight_bytes(v, a)
    if packed:
        gather(workspace, &a[<int>V], 0, a[<int>V].layout.size)
        v.v = workspace
    return convolve(v, workspace + packed, nbytes - packed)


cdef class Bilinear(Operator):
    """The base of the three. `place` has the role of each input and of the output."""
    lanes, tangent = "convolving", "affine"
    operands, reads = "x weight bias?", {"x": "weight", "weight": "x"}
    traits = "promotes fused differentiable"
    cdef Role place[3]

    def __cinit__(self, str name):
        self.name = name

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Slide* s = &(<Sliding>c.attributes).slide
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* w = c.x[1].layout
        cdef Py_ssize_t shape[MAX_NDIM]
        cdef Py_ssize_t plane = 1
        cdef Array a[3]
        cdef Conv v
        cdef int d
        if not is_real(c.x[0].dtype):
            with gil: raise TypeError(f"{self.name} takes only floating-point tensors; cast x and weight with astype")
        shape[0] = w.shape[1] if self.place[2] == V else x.shape[0]
        shape[1] = w.shape[0] if self.place[2] == Y else w.shape[1] * s.groups
        if self.place[2] == V: shape[1] = x.shape[1] // s.groups
        for d in range(s.nd):
            shape[2 + d] = s.size[3 - s.nd + d]
            plane *= shape[2 + d]
        c.y[0].layout, c.y[0].dtype = lay.dense(2 + s.nd, shape), c.x[0].dtype
        for d in range(2): a[<int>self.place[d]] = c.x[d]
        a[<int>self.place[2]] = c.y[0]
        describe(&v, s, self.place[2], a)
        check_sizes(v.o, plane, v.rows)
        c.workspace_bytes = weight_bytes(&v, a) + v.workspace_bytes
        c.work = work_of(&v)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Slide* s = &(<Sliding>c.attributes).slide
        cdef Array a[3]
        cdef Conv v
        for d in range(2): a[<int>self.place[d]] = c.x[d]
        a[<int>self.place[2]] = c.y[0]
        describe(&v, s, self.place[2], a)
        if c.n_in == 3: v.bias, v.bias_step = c.x[2].data, c.x[2].layout.strides[0]
        if s.kind >= 0: v.activation = kernel_of(&VALUES[s.kind].kernels, v.dtype)
        return compute(&v, a, c.workspace, c.workspace_bytes)

    @property
    def functions(self):
        return {self.name + "_sized": "x weight"} if self.place[2] != V else {}

    cdef tuple row_of(self, attributes):
        cdef dict arguments = attributes.arguments()
        if self.place[2] == V: return self.row, arguments
        if attributes.given is None: return self.name + "_sized", arguments
        if self.place[2] == Y: return self.row, arguments | {"padding": attributes.given}
        return self.row, arguments | {"padding": attributes.low, "output_padding": attributes.given}

    cdef tuple call_of(self, operands, arguments):
        return range(len(operands)), Sliding((), (), (), (), 1, arguments.get("activation"))

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        cdef uint64_t inputs = Operator.keeps(self, c, wanted)
        cdef int kind = (<Sliding>c.attributes).slide.kind
        if kind < 0: return inputs
        return inputs | output_bit(0) | (SIGNS_ALONE if kind == 0 else 0)

    cdef void arrays(self, const BackwardCall* b, int i, const Array* g, const Array* dx, Array* a) noexcept nogil:
        """The arrays by role for the gradient of input i."""
        a[<int>self.place[i]], a[<int>self.place[1 - i]] = dx[0], saved(b, 1 - i)
        a[<int>self.place[2]] = g[0]

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """With an activation, first s, a temporary that may overwrite g. Then dw, db and dx."""
        cdef const Slide* slide = &(<Sliding>b.attributes).slide
        cdef uint32_t source = 1 if slide.kind < 0 else reads_temporary(0)
        cdef Array g = b.g[0], dx
        cdef Array a[3]
        cdef Stage* s
        cdef Conv v
        cdef int i
        if source != 1:
            s = add_stage(b, temporary(0))
            s.saved, s.like, s.donated_gradients = output_bit(0), b.y, 1
            g.layout = b.y
        for i in range(2, -1, -1):
            if i >= b.n_in or not b.want[i]: continue
            s = add_stage(b, 1 << i)
            s.gradients = source
            if i == 2:
                s.writes = OVER_GRAD
                continue
            dx.data, dx.layout, dx.dtype = NULL, b.x[i], b.dtype
            self.arrays(b, i, &g, &dx, a)
            describe(&v, slide, self.place[i], a)
            b.work = max(b.work, work_of(&v))
            s.writes, s.workspace_bytes = ADDING, weight_bytes(&v, a) + v.workspace_bytes
            if v.role == V: s.multiplies = 1 << i

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef const Slide* slide = &(<Sliding>b.attributes).slide
        cdef const Stage* s = &b.stages[stage]
        cdef Array g = b.temporaries[0] if s.gradients != 1 else b.g[0]
        cdef Array a[3]
        cdef Conv v
        cdef int i = 2 if s.computes == 4 else 1 if s.computes == 2 else 0
        if s.computes == temporary(0): return times_derivative(b, slide.kind)
        if i == 2: return sum_of_channels(&g, &b.dx[2])
        self.arrays(b, i, &g, &b.dx[i], a)
        describe(&v, slide, self.place[i], a)
        v.adds, v.factor = adds(b, i), factor(b, i)
        return compute(&v, a, b.workspace, s.workspace_bytes)

    cdef object formula(self, c, int i, g):
        cdef Sliding s = c.attributes
        y = None if s.activation is None else c.output(0)
        if s.activation == "relu": g = c.locally_constant(relu_gradient(g, y.detach()))
        elif s.activation == "tanh": g = g * (1 - square(y))
        elif s.activation == "sigmoid": g = g * (y * (1 - y))
        if i == 2: return sum(g, (0, *range(2, g.ndim)))
        cdef list a = [None] * 3
        a[<int>self.place[2]], a[<int>self.place[1 - i]] = g, c.input(1 - i)
        return by_role(self.place[i], a, Sliding(s.stride, s.low, s.dilation, c.shape(i)[2:], s.groups, None))


cdef Py_ssize_t work_of(const Conv* v) noexcept nogil:
    """In elements of an elementwise operation; one counts as eight multiplications."""
    return v.n * v.positions * v.groups * v.o // 8 * v.rows


cdef int sum_of_channels(const Array* g, const Array* db) except -1 nogil:
    """db = the sum of g over all but its channels."""
    cdef LocalLayout l
    cdef Array y = db[0]
    lay.local(&l).ndim = g.layout.ndim - 1
    for d in range(l.layout.ndim): l.shape[d], l.strides[d] = 1, 0
    l.shape[0], l.strides[0] = db.layout.shape[0], db.layout.strides[0]
    y.layout = lay.finish(&l.layout)
    return sum_to(g, &y)


cdef class Convolution(Bilinear):
    """y = a(sum of x[p stride + k dilation - padding] w[k] + b)        dx = s convolved transposed with w
    dw = sum of s[p] x[p stride + k dilation - padding]        db = sum of s
    s = g a', where the derivative a' of the activation is computed from y (without an activation s = g)

    x is packed tile by tile with the zeros around it; patches are places in it (kernels/images/conv.pyx). Bias and
    activation are applied to each tile. Backward keeps w for dx and x for dw; with an activation also y, of relu one
    bit for each element."""

    def __cinit__(self, str name):
        self.place[0], self.place[1], self.place[2] = X, V, Y


cdef class TransposedConvolution(Bilinear):
    """y = a(z + b), where z[p stride + k dilation - padding] is the sum of x[p] w[k]        dx = s convolved with w
    dw = sum of x[p] s[p stride + k dilation - padding]        db = sum of s
    s = g a', where the derivative a' of the activation is computed from y (without an activation s = g)

    It runs the kernels of the gradients of a convolution."""

    def __cinit__(self, str name):
        self.place[0], self.place[1], self.place[2] = Y, V, X


cdef class WeightGradient(Bilinear):
    """w = sum of y[p] x[p stride + k dilation - padding]        dx = y convolved transposed with g
    dy = x convolved with g

    The gradient of the weights of a convolution, of which formulas are made."""
    lanes, tangent = "gradients_of_weights", "bilinear"
    operands, reads = "x y", {"x": "y", "y": "x"}

    def __cinit__(self, str name):
        self.place[0], self.place[1], self.place[2] = X, Y, V


cdef list CONV = [Convolution(f"conv{d}d") for d in (1, 2, 3)]
cdef list TRANSPOSED = [TransposedConvolution(f"conv_transpose{d}d") for d in (1, 2, 3)]
cdef Operator WEIGHT_GRADIENT = WeightGradient("conv_weight")
OPERATORS = {(<Operator>o).name: o for o in (*CONV, *TRANSPOSED, WEIGHT_GRADIENT)}


cdef object by_role(Role role, list a, Sliding s):
    """The tensor of that role, from the two others in the list of X, Y and V."""
    cdef int nd = s.slide.nd
    if role == Y: return apply_list(CONV[nd - 1], [a[<int>X], a[<int>V]], s)
    if role == X: return apply_list(TRANSPOSED[nd - 1], [a[<int>Y], a[<int>V]], s)
    return apply_list(WEIGHT_GRADIENT, [a[<int>X], a[<int>Y]], s)


# ---- public functions ------------------------------------------------------------------------------------------------

cdef object check_activation(str name, activation):
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(f"{name}: activation must be 'relu', 'tanh', 'sigmoid' or None, got {described(activation)}")


cdef list operands(str name, Tensor x, Tensor w, bias, Py_ssize_t channels):
    """The inputs of the operator. Raises ValueError if `bias` does not have a number for each channel."""
    if bias is None: return [x, w]
    cdef Tensor b = ensure_tensor(bias)
    if b.layout.ndim != 1 or b.layout.shape[0] != channels:
        raise ValueError(f"{name}: bias is {b.shape}; wanted ({channels},), a number for each channel of the result")
    return [x, w, b]


cdef Tensor weights(str name, weight, int nd, str wanted):
    """The weights. Raises ValueError for another number of dimensions, or for a size of 0."""
    cdef Tensor w = ensure_tensor(weight)
    if w.layout.ndim != nd + 2 or 0 in w.shape:
        raise ValueError(f"{name}: weight is {w.shape}; wanted ({wanted}, {', '.join(NAMES[3 - nd:])} of the kernel), "
                         f"none of them 0")
    return w


cdef tuple NAMES = ("depth", "height", "width")


cdef int check_cover(str name, size, low, wide, kernel, steps) except -1:
    """Raise ValueError for a padded image so large that sizes of workspace would overflow."""
    cdef list cover = [n + 2 * p + w * (k - 1) + s for n, p, w, k, s in zip(size, low, wide, kernel, steps)]
    if prod(cover) > 1 << 40:
        raise ValueError(f"{name}: size of the images, twice the padding, dilation (kernel - 1) and stride add up to "
                         f"{tuple(cover)}; wanted a product of at most 2^40")


cdef object convolved(int nd, x, weight, bias, stride, padding, dilation, groups, activation):
    """conv1d, conv2d or conv3d."""
    cdef str name = f"conv{nd}d"
    cdef Tensor w = weights(name, weight, nd, "outputs, channels / groups"), t = batched(name, x, nd)
    (count,) = read_sizes(name, "groups", groups, 1, 1)
    steps, wide = read_sizes(name, "stride", stride, nd, 1), read_sizes(name, "dilation", dilation, nd, 1)
    check_activation(name, activation)
    shape, kernel = t.shape[2:], w.shape[2:]
    if t.shape[1] != w.shape[1] * count or w.shape[0] % count:
        raise ValueError(f"{name}: x is {ensure_tensor(x).shape}, weight {w.shape} and groups {count}; x must have "
                         f"{w.shape[1]} * {count} channels, and {count} must divide the {w.shape[0]} outputs")
    whole = [wide[d] * (kernel[d] - 1) for d in range(nd)]
    if padding == "same":
        if steps != (1,) * nd: raise ValueError(f"{name}: padding 'same' needs stride 1, got {described(stride)}")
        low, both = tuple([n // 2 for n in whole]), whole
    elif padding == "valid" or not isinstance(padding, str):
        low = (0,) * nd if isinstance(padding, str) else read_sizes(name, "padding", padding, nd, 0)
        both = [2 * n for n in low]
    else:
        raise ValueError(f"{name}: padding must be 'same', 'valid' or integers, got {described(padding)}")
    size = tuple([(shape[d] + both[d] - whole[d] - 1) // steps[d] + 1 for d in range(nd)])
    if min(size) < 1:
        raise ValueError(f"{name}: x is {ensure_tensor(x).shape} and weight {w.shape}; the kernel must fit into x with "
                         f"its padding {both} in total; it covers {[n + 1 for n in whole]}")
    check_cover(name, shape, low, wide, kernel, steps)
    y = apply_list(CONV[nd - 1], operands(name, t, w, bias, w.shape[0]),
                   Sliding(steps, low, wide, size, count, activation, padding if padding == "same" else low))
    return y if t.ndim == ensure_tensor(x).ndim else squeeze(y, 0)


cdef object transposed(int nd, x, weight, bias, stride, padding, output_padding, groups, dilation, activation):
    """conv_transpose1d, 2d or 3d."""
    cdef str name = f"conv_transpose{nd}d"
    cdef Tensor w = weights(name, weight, nd, "channels, outputs / groups"), t = batched(name, x, nd)
    (count,) = read_sizes(name, "groups", groups, 1, 1)
    steps, wide = read_sizes(name, "stride", stride, nd, 1), read_sizes(name, "dilation", dilation, nd, 1)
    low, extra = read_sizes(name, "padding", padding, nd, 0), read_sizes(name, "output_padding", output_padding, nd, 0)
    check_activation(name, activation)
    shape, kernel = t.shape[2:], w.shape[2:]
    if t.shape[1] != w.shape[0] or w.shape[0] % count:
        raise ValueError(f"{name}: x is {ensure_tensor(x).shape}, weight {w.shape} and groups {count}; x must have "
                         f"{w.shape[0]} channels, and {count} must divide them")
    for d in range(nd):
        if extra[d] >= max(steps[d], wide[d]):
            raise ValueError(f"{name}: output_padding is {described(output_padding)}; it must be below the stride or "
                             f"the dilation, {described(stride)} and {described(dilation)}")
    size = tuple([(shape[d] - 1) * steps[d] - 2 * low[d] + wide[d] * (kernel[d] - 1) + 1 + extra[d] for d in range(nd)])
    if min(size) < 1:
        raise ValueError(f"{name}: x is {ensure_tensor(x).shape} and weight {w.shape}; with padding "
                         f"{described(padding)} the result would have size {size}; wanted sizes of at least 1")
    check_cover(name, size, low, wide, kernel, steps)
    y = apply_list(TRANSPOSED[nd - 1], operands(name, t, w, bias, w.shape[1] * count),
                   Sliding(steps, low, wide, size, count, activation, extra))
    return y if t.ndim == ensure_tensor(x).ndim else squeeze(y, 0)


cdef object related(Role role, str name, int nd, x, y, size, stride, low, dilation, groups):
    """The tensor of that role, of this spatial size, from the two others (X before Y, the weights last). Raises
    ValueError unless the public functions could relate three such tensors."""
    cdef Tensor s = ensure_tensor(x), t = ensure_tensor(y)
    cdef list a = [None] * 3
    fits = s.layout.ndim == nd + 2 == t.layout.ndim and 0 not in s.shape[1:] + (t.shape[1:] if role == V else t.shape)
    (count,) = read_sizes(name, "groups", groups, 1, 1)
    steps, wide = read_sizes(name, "stride", stride, nd, 1), read_sizes(name, "dilation", dilation, nd, 1)
    before, wanted = read_sizes(name, "low", low, nd, 0), read_sizes(name, "size", size, nd, 1)
    if fits:
        if role == V: fits = s.shape[0] == t.shape[0] and s.shape[1] % count == 0 and t.shape[1] % count == 0
        elif role == Y: fits = s.shape[1] == t.shape[1] * count and t.shape[0] % count == 0
        else: fits = s.shape[1] == t.shape[0] and t.shape[0] % count == 0
        a[<int>role], a[<int>(X if role != X else Y)] = wanted, s.shape[2:]
        a[<int>(V if role != V else Y)] = t.shape[2:]
        for d in range(nd):                         # the zeros after X: at most one more than those before
            n, kernel, out = a[<int>X][d], a[<int>V][d], a[<int>Y][d]
            after = (out - 1) * steps[d] + wide[d] * (kernel - 1) + 1 - before[d] - n
            fits = fits and before[d] - max(steps[d], wide[d]) < after <= before[d] + 1
    if not fits:
        raise ValueError(f"{name}: tensors of shapes {s.shape} and {t.shape} do not give a result of size "
                         f"{described(size)} with stride {described(stride)}, padding {described(low)}, dilation "
                         f"{described(dilation)} and groups {described(groups)}")
    check_cover(name, a[<int>X], before, wide, a[<int>V], steps)
    how = Sliding(steps, before, wide, wanted, count, None)
    a[<int>(X if role != X else Y)], a[<int>(V if role != V else Y)] = s, t
    return by_role(role, a, how)


def _sized(Role role, int nd, str name):
    """The function of that name, which gives a result of a size, as the gradient of the other direction needs it."""
    def sized(x: Data, weight: Data, size: Sequence[int], stride: Sequence[int], low: Sequence[int],
              dilation: Sequence[int], groups: int = 1) -> Tensor:
        return related(role, name, nd, x, weight, size, stride, low, dilation, groups)

    sized.__name__ = sized.__qualname__ = name
    sized.__doc__ = f"{name.removesuffix('_sized')}() with a result of this size."
    globals()[name] = sized


for _nd in (1, 2, 3):
    _sized(Y, _nd, f"conv{_nd}d_sized")
    _sized(X, _nd, f"conv_transpose{_nd}d_sized")


def conv1d(x: Data, weight: Data, bias: Data | None = None, stride: int | Sequence[int] = 1,
           padding: int | Sequence[int] | Literal["same", "valid"] = 0, dilation: int | Sequence[int] = 1,
           groups: int = 1, *, activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """The convolution (as in all nets, a cross-correlation) of rows: x is (n, channels, width) or (channels, width),
    weight is (outputs, channels / groups, width of the kernel), bias is (outputs,) or None. See conv2d."""
    return convolved(1, x, weight, bias, stride, padding, dilation, groups, activation)


def conv2d(x: Data, weight: Data, bias: Data | None = None, stride: int | Sequence[int] = 1,
           padding: int | Sequence[int] | Literal["same", "valid"] = 0, dilation: int | Sequence[int] = 1,
           groups: int = 1, *, activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """The convolution (as in all nets, a cross-correlation) of images: x is (n, channels, height, width) or without n,
    weight is (outputs, channels / groups, height and width of the kernel), bias is (outputs,) or None.

    `stride`, `padding` and `dilation` are integers for all dimensions or one for each. The result has size
    (size + 2 padding - dilation (kernel - 1) - 1) // stride + 1. padding="same" gives it the size of x (stride 1 only;
    an odd zero comes last), "valid" is 0. With `groups`, each of the equal parts of the channels has its own outputs.
    `activation` is applied in the same operation, without an intermediate tensor. float32 and float64. Raises
    ValueError for shapes that do not fit. Padded images are packed tile by tile, into at most 1 MiB for each thread.
    See V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning" (2016)."""
    return convolved(2, x, weight, bias, stride, padding, dilation, groups, activation)


def conv3d(x: Data, weight: Data, bias: Data | None = None, stride: int | Sequence[int] = 1,
           padding: int | Sequence[int] | Literal["same", "valid"] = 0, dilation: int | Sequence[int] = 1,
           groups: int = 1, *, activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """The convolution (as in all nets, a cross-correlation) of volumes: x is (n, channels, depth, height, width) or
    without n, weight is (outputs, channels / groups, sizes of the kernel), bias is (outputs,) or None. See conv2d."""
    return convolved(3, x, weight, bias, stride, padding, dilation, groups, activation)


def conv_transpose1d(x: Data, weight: Data, bias: Data | None = None, stride: int | Sequence[int] = 1,
                     padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
                     dilation: int | Sequence[int] = 1, *,
                     activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """The transposed convolution of rows: x is (n, channels, width) or (channels, width), weight is (channels, outputs
    / groups, width of the kernel), bias is (outputs,) or None. See conv_transpose2d."""
    return transposed(1, x, weight, bias, stride, padding, output_padding, groups, dilation, activation)


def conv_transpose2d(x: Data, weight: Data, bias: Data | None = None, stride: int | Sequence[int] = 1,
                     padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
                     dilation: int | Sequence[int] = 1, *,
                     activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """The transposed convolution of images, which is the gradient of the input of conv2d: x is (n, channels, height,
    width) or without n, weight is (channels, outputs / groups, height and width of the kernel), bias is (outputs,) or
    None.

    The result has size (size - 1) stride - 2 padding + dilation (kernel - 1) + 1 + output_padding, where output_padding
    is below the stride or the dilation. `groups` and `activation` are those of conv2d. float32 and float64. Raises
    ValueError for shapes that do not fit."""
    return transposed(2, x, weight, bias, stride, padding, output_padding, groups, dilation, activation)


def conv_transpose3d(x: Data, weight: Data, bias: Data | None = None, stride: int | Sequence[int] = 1,
                     padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
                     dilation: int | Sequence[int] = 1, *,
                     activation: Literal["relu", "tanh", "sigmoid"] | None = None) -> Tensor:
    """The transposed convolution of volumes: x is (n, channels, depth, height, width) or without n, weight is
    (channels, outputs / groups, sizes of the kernel), bias is (outputs,) or None. See conv_transpose2d."""
    return transposed(3, x, weight, bias, stride, padding, output_padding, groups, dilation, activation)


def conv_weight(x: Data, y: Data, size: Sequence[int], stride: Sequence[int], low: Sequence[int],
                dilation: Sequence[int], groups: int = 1) -> Tensor:
    """The weights of a kernel of `size` that are the gradient of a convolution of `x` whose output has the gradient
    `y`: (channels of y, channels of x / groups, sizes). `low` is the number of zeros before each dimension of x. The
    other sequences have one number for each dimension, as tuples."""
    cdef int nd = ensure_tensor(x).ndim - 2
    if not 1 <= nd <= 3: raise ValueError(f"conv_weight: x is {x.shape}; wanted 1 to 3 spatial dimensions")
    return related(V, "conv_weight", nd, x, y, size, stride, low, dilation, groups)
