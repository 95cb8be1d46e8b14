"""Normalization of rows: layer_norm."""

from cython cimport final
from libc.stdint cimport uint64_t

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage, output_bit, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport ensure_tensor
from cygrad.core.execute.run cimport apply3
from cygrad.kernels cimport normalize as kernels
from cygrad.kernels.array cimport FLOAT32, Array, Layout, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reduce cimport sum_to as sum_rows

from cygrad.core.errors import described
from cygrad.ops.functions import rsqrt, square
from cygrad.ops.reduce import mean, sum_to

cdef enum:
    PARTS = 16              # the gradients of weight and bias are summed in at most this many parts
    PART = 16384            # of at least this many elements


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


cdef class Epsilon(Attributes):
    """The attributes of layer_norm: eps, which is added to the variance."""
    cdef readonly double eps

    def __cinit__(self, double eps=0):
        self.eps = eps


@final
cdef class LayerNorm(Operator):
    """y = z weight + bias, z = (x - mean) rate, rate = 1 / sqrt(var + eps)        dweight = sum g z
    dx = rate (g weight - mean(g weight) - z mean(g weight z))        dbias = sum g

    Backward keeps x, the rate of each row (a hidden output) and, for dx, weight."""

    def __cinit__(self):
        self.name = "layer_norm"
        self.promotes = self.promotes_to_float = self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* w = c.x[1].layout
        cdef int d, extra = x.ndim - w.ndim
        cdef bint fits = w.ndim > 0 and extra >= 0 and lay.same_shape(w, c.x[2].layout)
        for d in range(w.ndim if fits else 0): fits = fits and w.shape[d] == x.shape[extra + d]
        if not fits:
            with gil: raise ValueError(f"layer_norm: x is {lay.shape_tuple(x)}, weight {lay.shape_tuple(w)} and bias "
                                       f"{lay.shape_tuple(c.x[2].layout)}; weight and bias must have the shape of the "
                                       f"last dimensions of x, which are normalized")
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        if c.wanted & 3:
            c.n_out, c.hidden = 2, 1
            c.y[1].layout, c.y[1].dtype = lay.dense(extra, x.shape), c.x[0].dtype
        c.workspace_bytes = capacity(&c.x[1]) + capacity(&c.x[2])
        return 0

    cdef int forward(self, Call* c) except -1 nogil:
        cdef const Layout* l = c.y[0].layout
        cdef Py_ssize_t columns = c.x[1].layout.size
        cdef char* workspace = c.workspace
        cdef const char* x = c.x[0].data
        if l.size == 0: return 0
        if not c.x[0].layout.dense:
            gather(c.y[0].data, &c.x[0], 0, l.size)
            x = c.y[0].data
        kernels.layer_norm(c.y[0].dtype, l.size // columns, columns, x, dense(&c.x[1], &workspace),
                           dense(&c.x[2], &workspace), (<Epsilon>c.attributes).eps,
                           c.y[1].data if c.hidden else NULL, c.y[0].data)
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 1 | 2 | output_bit(1) if wanted & 1 else 1 | output_bit(1) if wanted & 2 else 0

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        """One stage: the pass that computes dx also sums dweight and dbias."""
        cdef bint first = b.want[0] or b.want[1]
        cdef Stage* s = add_stage(b, 7)
        cdef Array x, w
        s.saved = self.keeps(NULL, b.want[0] | b.want[1] << 1)
        if not first: return 0                      # only dbias
        x = saved(b, 0)
        s.workspace_bytes = capacity(&b.g[0]) + capacity(&x) + 64
        if b.want[0]:
            w = saved(b, 1)
            s.workspace_bytes += capacity(&w)
            s.donated_saved, s.donated_gradients = 1, 1
        if b.want[1] or b.want[2]: s.workspace_bytes += parts_of(b) * 4 * columns_of(b) * 8
        return 0

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Py_ssize_t columns = columns_of(b), n = b.g[0].layout.size, j
        cdef bint adds = b.want[1] or b.want[2]
        cdef int parts = parts_of(b), i
        cdef double* sums = <double*>b.workspace
        cdef char* free = b.workspace
        cdef Array x, w
        cdef const char* weight = NULL
        cdef const char* xs
        cdef const char* g
        if not b.want[0] and not b.want[1]: return sum_rows(&b.g[0], &b.dx[2])
        x = saved(b, 0)
        if adds: free += parts * 4 * columns * 8
        for j in range(2 * columns if adds else 0): sums[j] = 0
        if n:
            g = dense(&b.g[0], &free)
            xs = dense(&x, &free)
            if b.want[0]:
                w = saved(b, 1)
                weight = dense(&w, &free)
            kernels.layer_norm_grad(b.dtype, n // columns, columns, g, xs, weight, saved(b, OWN | 1).data,
                                    b.dx[0].data if b.want[0] else NULL, parts if adds else PARTS,
                                    b.workspace if adds else NULL)
        for i in range(1, 3):
            if not b.want[i]: continue
            for j in range(columns):
                if b.dtype == FLOAT32: (<float*>b.dx[i].data)[j] = <float>sums[(i - 1) * columns + j]
                else:                  (<double*>b.dx[i].data)[j] = sums[(i - 1) * columns + j]
        return 0

    cdef object formula(self, c, int i, g):
        if i == 2: return sum_to(g, c.shape(2))
        shape = c.input(1).shape if i == 0 else c.shape(1)          # (shape() works only for wanted gradients)
        x, axes = c.input(0), tuple(range(-len(shape), 0))
        z = x - mean(x, axes, True)
        rate = rsqrt(mean(square(z), axes, True) + c.attributes.eps)
        z = z * rate
        if i == 1: return sum_to(g * z, shape)
        g = g * c.input(1)
        return rate * (g - mean(g, axes, True) - z * mean(g * z, axes, True))


cdef Py_ssize_t columns_of(const BackwardCall* b) noexcept nogil:
    """The number of elements in one row."""
    return saved(b, 1).layout.size if b.want[0] else b.x[1 if b.want[1] else 2].size


cdef int parts_of(const BackwardCall* b) noexcept nogil:
    """The number of parts in which the gradients of weight and bias are summed."""
    cdef Py_ssize_t parts = b.g[0].layout.size // PART
    return <int>max(<Py_ssize_t>1, min(<Py_ssize_t>PARTS, parts))


cdef Operator LAYER_NORM = LayerNorm()
OPERATORS = {o.name: o for o in (LAYER_NORM,)}


def layer_norm(x: Data, weight: Data, bias: Data, eps: float = 1e-5) -> Tensor:
    """Normalize `x` to mean 0 and variance 1 over its last dimensions, which are those of `weight` and `bias`, then
    multiply by `weight` and add `bias`. `eps` is added to the variance."""
    if isinstance(eps, bool) or not isinstance(eps, (int, float)):
        raise TypeError(f"layer_norm: eps must be a number, got {described(eps)}")
    cdef Epsilon epsilon = Epsilon.__new__(Epsilon)
    epsilon.eps = eps
    return apply3(LAYER_NORM, ensure_tensor(x), weight, bias, epsilon)
