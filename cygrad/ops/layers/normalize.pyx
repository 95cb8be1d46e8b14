"""Normalization of rows: layer_norm and rms_norm."""

from libc.float cimport DBL_MAX
from libc.stdint cimport uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, hide, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.backward.formula cimport Context
from cygrad.core.execute.run cimport apply3, apply_list
from cygrad.kernels.layers cimport normalize as kernels
from cygrad.kernels.array cimport Array, Layout, itemsize
from cygrad.kernels.by_dtype cimport epsilon, put_number
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reductions.reduce cimport sum_to as sum_rows

from cygrad.core.errors import described
from cygrad.ops.elementwise.elementwise import rsqrt, square
from cygrad.ops.reductions.reduce import mean, sum_to
from cygrad.ops.shapes.shape import transpose

cdef enum:
    PARTS = 16              # the gradients of weight and bias are summed in at most this many parts
    PART = 16384            # least number of elements of a part


cdef const char* dense(const Array* x, char** workspace) noexcept nogil:
    """Row-major memory of x: its own, or a copy in the workspace, whose pointer is advanced."""
    cdef char* copy = workspace[0]
    if x.layout.dense: return x.data
    gather(copy, x, 0, x.layout.size)
    workspace[0] += (x.layout.size * itemsize(x.dtype) + 63) // 64 * 64
    return copy


cdef size_t capacity(const Array* x) noexcept nogil:
    """Bytes of workspace that dense() needs."""
    return 0 if x.layout.dense else (x.layout.size * itemsize(x.dtype) + 63) // 64 * 64


cdef class Rows(Attributes):
    """The attributes of layer_norm and rms_norm: eps, and how many of the last dimensions make a row."""
    cdef readonly double eps
    cdef readonly int ndim

    def __cinit__(self, double eps=0, int ndim=1):
        self.eps, self.ndim = eps, ndim

    cdef dict keywords(self):
        """The axes, if they are more than the last."""
        return {"eps": self.eps} if self.ndim == 1 else {"eps": self.eps, "axes": tuple(range(-self.ndim, 0))}


cdef class RowNorm(Operator):
    """The base of normalizations of rows, with an optional weight, and then an optional bias, for each element of a
    row.

    Backward keeps x, the rate of each row (a hidden output) and, for dx, weight."""
    lanes = "normalizing_rows"
    traits = "promotes promotes_to_float fused differentiable"
    hidden, reads = "rates", {"x": "x weight rates", "weight": "x rates"}
    cdef bint centred

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* w = c.x[1].layout if c.n_in > 1 else NULL
        cdef int d, rows = x.ndim - (<Rows>c.attributes).ndim
        cdef bint fits = w == NULL or w.ndim == (<Rows>c.attributes).ndim and w.ndim > 0 and rows >= 0
        if w != NULL and fits:
            fits = c.n_in < 3 or lay.same_shape(w, c.x[2].layout)
            for d in range(w.ndim): fits = fits and w.shape[d] == x.shape[rows + d]
        if not fits:
            with gil: refuse_weight(self.name, c)
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        if c.wanted & 3:
            hide(c, lay.dense(rows, x.shape), c.x[0].dtype)
        c.workspace_bytes = 0
        for d in range(1, c.n_in): c.workspace_bytes += capacity(&c.x[d])

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* l = c.y[0].layout
        cdef Py_ssize_t columns = row_size(l, c.attributes)
        cdef char* workspace = c.workspace
        cdef const char* x = c.x[0].data
        if l.size == 0: return 0
        if not c.x[0].layout.dense:
            gather(c.y[0].data, &c.x[0], 0, l.size)
            x = c.y[0].data
        kernels.row_norm(c.y[0].dtype, self.centred, l.size // columns, columns, x,
                         dense(&c.x[1], &workspace) if c.n_in > 1 else NULL,
                         dense(&c.x[2], &workspace) if c.n_in > 2 else NULL, (<Rows>c.attributes).eps,
                         c.y[1].data if c.hidden else NULL, c.y[0].data)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """One stage: the pass that computes dx also sums dweight and dbias."""
        cdef Stage* s = add_stage(b, <uint64_t>7 >> (3 - b.n_in))
        cdef bint to_sum = b.n_in > 1 and b.want[1] or b.n_in > 2 and b.want[2]
        cdef Array x, w
        if s.saved == 0: return 0                   # only dbias
        x = saved(b, 0)
        s.workspace_bytes = capacity(&b.g[0]) + capacity(&x) + 64
        if b.want[0]:
            if b.n_in > 1:
                w = saved(b, 1)
                s.workspace_bytes += capacity(&w)
            s.donated_saved, s.donated_gradients = 1, 1
        if to_sum: s.workspace_bytes += parts_of(b) * 4 * row_size(b.y, b.attributes) * 8

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Py_ssize_t columns = row_size(b.y, b.attributes), n = b.g[0].layout.size, j
        cdef bint adds = b.n_in > 1 and b.want[1] or b.n_in > 2 and b.want[2]
        cdef int parts = parts_of(b), i
        cdef double* sums = <double*>b.workspace
        cdef char* free = b.workspace
        cdef Array x, w
        cdef const char* weight = NULL
        cdef const char* xs
        cdef const char* g
        if b.stages[stage].saved == 0: return sum_rows(&b.g[0], &b.dx[2])
        x = saved(b, 0)
        if adds: free += parts * 4 * columns * 8
        for j in range(2 * columns if adds else 0): sums[j] = 0
        if n:
            g = dense(&b.g[0], &free)
            xs = dense(&x, &free)
            if b.want[0] and b.n_in > 1:
                w = saved(b, 1)
                weight = dense(&w, &free)
            kernels.row_norm_grad(b.dtype, self.centred, n // columns, columns, g, xs, weight,
                                  saved(b, OWN | 1).data, b.dx[0].data if b.want[0] else NULL,
                                  parts if adds else PARTS, b.workspace if adds else NULL)
        for i in range(1, b.n_in):
            if not b.want[i]: continue
            for j in range(columns):
                put_number(b.dtype, b.dx[i].data, j, sums[(i - 1) * columns + j])

    cdef object formula(self, c, int i, g):
        if i == 2: return sum_to(g, c.shape(2))
        axes = tuple(range(-c.attributes.ndim, 0))
        x = c.input(0)
        z = x - mean(x, axes, True) if self.centred else x
        rate = rsqrt(mean(square(z), axes, True) + c.attributes.eps)
        z = z * rate
        if i == 1: return sum_to(g * z, x.shape[x.ndim - c.attributes.ndim:])
        if (<Context>c).b.node.n_in > 1: g = g * c.input(1)
        g = g - mean(g, axes, True) if self.centred else g
        return rate * (g - z * mean(g * z, axes, True))


cdef int refuse_weight(str name, const Call* c) except -1:
    """Raise ValueError: the weight or the bias has another shape than the rows."""
    what, them = f"weight {lay.shape_tuple(c.x[1].layout)}", "weight"
    if c.n_in > 2: what, them = f"{what} and bias {lay.shape_tuple(c.x[2].layout)}", "weight and bias"
    raise ValueError(f"{name}: x is {lay.shape_tuple(c.x[0].layout)}, {what}; {them} must have the shape of the last "
                     f"dimensions of x, which are normalized")


cdef Py_ssize_t row_size(const Layout* x, const void* attributes) noexcept nogil:
    """The number of elements in one row."""
    cdef Py_ssize_t size = 1
    for d in range(x.ndim - (<Rows>attributes).ndim, x.ndim): size *= x.shape[d]
    return size


cdef int parts_of(const BackwardCall* b) noexcept nogil:
    """The number of parts in which the gradients of weight and bias are summed."""
    cdef Py_ssize_t parts = b.g[0].layout.size // PART
    return <int>max(<Py_ssize_t>1, min(<Py_ssize_t>PARTS, parts))


cdef class LayerNorm(RowNorm):
    """y = z weight + bias, z = (x - mean) rate, rate = 1 / sqrt(var + eps)        dweight = sum g z
    dx = rate (g weight - mean(g weight) - z mean(g weight z))        dbias = sum g"""
    operands = "x weight? bias?"

    def __cinit__(self):
        self.centred = True


cdef class RmsNorm(RowNorm):
    """y = z weight, z = x rate, rate = 1 / sqrt(mean(x^2) + eps)        dweight = sum g z
    dx = rate (g weight - z mean(g weight z))"""
    operands = "x weight?"


cdef Operator LAYER_NORM = LayerNorm(), RMS_NORM = RmsNorm()
OPERATORS = {o.name: o for o in (LAYER_NORM, RMS_NORM)}


cdef int refuse_shape(str name, Tensor x, weight, eps) except -1:
    """Raise TypeError for PyTorch's normalized_shape in the place of the weight: integers that are the shape of the
    last dimensions of x, and that are no weight for it."""
    shape = (weight,) if isinstance(weight, int) else weight
    if not isinstance(shape, (tuple, list)) or not shape or not all([type(n) is int for n in shape]): return 0
    n = len(shape)
    if tuple(shape) != x.shape[-n:] or (n == x.shape[-1] and not isinstance(eps, Tensor)): return 0
    rest = "weight, bias" if name == "layer_norm" else "weight"
    raise TypeError(f"{name} takes no normalized_shape, which is the shape of the weight: {name}(x, {rest}), or "
                    f"{name}(x, axes={tuple(range(-n, 0))}) without a weight")


cdef double read_eps(str name, eps) except? -1:
    if isinstance(eps, bool) or not isinstance(eps, (int, float)):
        raise TypeError(f"{name}: eps must be a number, got {described(eps)}")
    if not -DBL_MAX <= eps <= DBL_MAX: raise ValueError(f"{name}: eps is {described(eps)}; wanted a finite number")
    return eps


cdef list read_axes(str name, axes, int ndim):
    """Axes in order, as numbers from 0 on. Raises ValueError if there is none or one occurs twice."""
    cdef list found = []
    if hasattr(axes, "__index__"): axes = (axes,)
    if not isinstance(axes, (tuple, list)):
        raise TypeError(f"{name}: axes must be an integer or a sequence of integers, got {described(axes)}")
    for a in axes:
        a = lay.read_axis(a, ndim)
        if a in found: raise ValueError(f"{name}: duplicate axis {a} in {described(axes)}")
        found.append(a)
    if not found: raise ValueError(f"{name}: axes is empty; wanted at least one axis")
    return sorted(found)


cdef object rows(Operator op, x, weight, bias, eps, axes):
    """layer_norm and rms_norm. Axes that are not the last ones are moved there, and back."""
    cdef Tensor t = ensure_tensor(x)
    cdef Rows a = Rows.__new__(Rows)
    a.eps = eps
    if weight is not None: weight = ensure_tensor(weight)
    if bias is not None: bias = ensure_tensor(bias)
    given = weight if weight is not None else bias
    order = None
    if axes is not None:
        axes = read_axes(op.name, axes, t.layout.ndim)
        order = [d for d in range(t.layout.ndim) if d not in axes] + axes
        if order == sorted(order): order = None
    a.ndim = len(axes) if axes is not None else given.ndim if given is not None else 1
    if given is None: lay.read_axis(-a.ndim, t.layout.ndim)
    if order is not None: t = transpose(t, order)
    if weight is None and bias is not None and bias.shape != t.shape[max(0, t.ndim - a.ndim):]:
        raise ValueError(f"{op.name}: x is {t.shape} and bias is {bias.shape}; bias must have the shape of the last "
                         f"dimensions of x, which are normalized")
    y = apply_list(op, [t] if weight is None else [t, weight] if bias is None else [t, weight, bias], a)
    if weight is None and bias is not None: y = y + bias
    return y if order is None else transpose(y, [order.index(d) for d in range(len(order))])


def layer_norm(x: Data, weight: Data | None = None, bias: Data | None = None, eps: float = 1e-5,
               axes: int | Sequence[int] | None = None) -> Tensor:
    """Normalize `x` to mean 0 and variance 1 over `axes`, then multiply by `weight` and add `bias`, which have the
    shape of x along these axes. None for axes: the last dimensions, as many as weight or bias has, or one. None for
    weight or bias: there is none. `eps` is added to the variance.

    Ba and others, https://arxiv.org/abs/1607.06450. Raises ValueError for a weight or a bias of another shape, an axis
    that occurs twice, or an eps that is not finite; IndexError for an axis that is out of range; TypeError
    if eps is not a number."""
    cdef double e
    cdef Tensor w
    cdef Rows a
    if type(weight) is not Tensor and weight is not None: refuse_shape("layer_norm", ensure_tensor(x), weight, eps)
    e = read_eps("layer_norm", eps)
    if axes is not None or weight is None or bias is None: return rows(LAYER_NORM, x, weight, bias, e, axes)
    w, a = ensure_tensor(weight), Rows.__new__(Rows)        # rows() would take 0.2 us longer
    a.eps, a.ndim = e, w.layout.ndim
    return apply3(LAYER_NORM, ensure_tensor(x), w, bias, a)


def rms_norm(x: Data, weight: Data | None = None, eps: float | None = None,
             axes: int | Sequence[int] | None = None) -> Tensor:
    """Divide `x` by its root mean square over `axes`, then multiply by `weight`, which has the shape of x along these
    axes. None for axes: the last dimensions, as many as weight has, or one. None for weight: there is none. `eps` is
    added to the mean square; None: the machine epsilon of x's dtype.

    Zhang and Sennrich, https://arxiv.org/abs/1910.07467. Raises the errors of layer_norm."""
    cdef Tensor t = ensure_tensor(x)
    if type(weight) is not Tensor and weight is not None: refuse_shape("rms_norm", t, weight, eps)
    if eps is None: eps = epsilon(t.dtype)
    return rows(RMS_NORM, t, weight, None, read_eps("rms_norm", eps), axes)
