"""Normalisation of rows: layer_norm."""

from cython cimport final
from libc.stdint cimport uint32_t

from cygrad.core cimport layout as lay
from cygrad.core.graph cimport OUTPUT, OWN, Backward, Call, Operator, ensure_tensor
from cygrad.core.memory cimport WORKSPACE, Buffer, allocate, drop
from cygrad.core.run cimport apply3
from cygrad.kernels cimport normalize as kernels
from cygrad.kernels.array cimport FLOAT32, Array, Layout, itemsize
from cygrad.kernels.driver cimport gather
from cygrad.kernels.reduce cimport sum_to as sum_rows

from cygrad.core.errors import described
from cygrad.ops.functions import rsqrt, square
from cygrad.ops.reduce import mean, sum_to

cdef enum:
    PARTS = 16              # parts that gradients of weight and bias are added up in, at most,
    PART = 16384            # and elements of a part, at least


cdef const char* dense(const Array* x, char** workspace) noexcept:
    """The memory of x, row-major: its own, or a copy in the workspace, which moves on."""
    cdef char* copy = workspace[0]
    if x.layout.dense: return x.data
    gather(copy, x, 0, x.layout.size)
    workspace[0] += (x.layout.size * itemsize(x.dtype) + 63) // 64 * 64
    return copy


cdef size_t room(const Array* x) noexcept:
    """What dense() may take of the workspace."""
    return 0 if x.layout.dense else (x.layout.size * itemsize(x.dtype) + 63) // 64 * 64


@final
cdef class LayerNorm(Operator):
    """y = z weight + bias, z = (x - mean) rate, rate = 1 / sqrt(var + eps)        dweight = sum g z
    dx = rate (g weight - mean(g weight) - z mean(g weight z))        dbias = sum g

    Keeps x and, of every row, its rate (a hidden output)."""

    def __cinit__(self):
        self.name = "layer_norm"
        self.promotes = self.floats = self.fused = self.differentiable = True

    cdef int infer(self, Call* c) except -1:
        cdef const Layout* x = c.x[0].layout
        cdef const Layout* w = c.x[1].layout
        cdef int d, extra = x.ndim - w.ndim
        cdef bint fits = w.ndim > 0 and extra >= 0 and lay.same_shape(w, c.x[2].layout)
        for d in range(w.ndim if fits else 0): fits = fits and w.shape[d] == x.shape[extra + d]
        if not fits:
            raise ValueError(f"layer_norm: x is {lay.shape_tuple(x)}, weight {lay.shape_tuple(w)} and bias "
                             f"{lay.shape_tuple(c.x[2].layout)}; weight and bias must have the shape of the last "
                             f"dimensions of x, those that are normalised")
        c.y[0].layout, c.y[0].dtype = lay.dense_like(x), c.x[0].dtype
        if c.wanted & 3:
            c.n_out, c.hidden = 2, 1
            c.y[1].layout, c.y[1].dtype = lay.dense(extra, x.shape), c.x[0].dtype
        c.workspace_bytes = room(&c.x[1]) + room(&c.x[2])
        return 0

    cdef int forward(self, Call* c) except -1:
        cdef const Layout* l = c.y[0].layout
        cdef Py_ssize_t columns = c.x[1].layout.size
        cdef char* workspace = c.workspace
        cdef const char* x = c.x[0].data
        if l.size == 0: return 0
        if not c.x[0].layout.dense:
            gather(c.y[0].data, &c.x[0], 0, l.size)
            x = c.y[0].data
        kernels.layer_norm(c.y[0].dtype, l.size // columns, columns, x, dense(&c.x[1], &workspace),
                           dense(&c.x[2], &workspace), <object>c.attributes,
                           c.y[1].data if c.hidden else NULL, c.y[0].data)
        return 0

    cdef uint32_t keeps(self, const Call* c, uint32_t wanted) noexcept:
        return 1 | 2 | 2 << OUTPUT if wanted & 1 else 1 | 2 << OUTPUT if wanted & 2 else 0

    cdef int backward(self, Backward b) except -1:
        cdef const Layout* shape = b.kept(1).layout if b.want[0] else b.input_layout(1 if b.want[1] else 2)
        cdef int dtype = b.node.dtype, parts = 0, i
        cdef Array g = b.gradient(0), x = g, w = g, rate = g, dx = g, out
        cdef Py_ssize_t columns = shape.size, n = g.layout.size, j
        cdef bint adds = b.want[1] or b.want[2]
        cdef size_t nbytes = room(&g)
        cdef Buffer* workspace = NULL
        cdef double* sums
        cdef char* free
        if not b.want[0] and not b.want[1]:
            out = b.make(2, shape, dtype)
            sum_rows(&g, &out)
            b.done_gradient(0)
            return 0
        x, rate = b.kept(0), b.kept(OWN | 1)
        nbytes += room(&x)
        if b.want[0]:
            w = b.kept(1)
            nbytes += room(&w)
            if not b.over(0, 0, &dx) and not b.over_gradient(0, &dx): dx = b.make(0, x.layout, dtype)
        if adds:
            parts = <int>max(1, min(PARTS, n // PART))
            nbytes += parts * 4 * columns * 8
        workspace = allocate(nbytes + 64, WORKSPACE)
        try:
            sums = <double*>workspace.data
            for j in range(2 * columns if adds else 0): sums[j] = 0
            free = workspace.data + parts * 4 * columns * 8 if adds else workspace.data
            if n:
                kernels.layer_norm_grad(dtype, n // columns, columns, dense(&g, &free), dense(&x, &free),
                                        dense(&w, &free) if b.want[0] else NULL, rate.data,
                                        dx.data if b.want[0] else NULL, parts if adds else PARTS,
                                        workspace.data if adds else NULL)
            for i in range(1, 3):
                if not b.want[i]: continue
                out = b.make(i, shape, dtype)
                for j in range(columns):
                    if dtype == FLOAT32: (<float*>out.data)[j] = <float>sums[(i - 1) * columns + j]
                    else:                (<double*>out.data)[j] = sums[(i - 1) * columns + j]
        finally:
            drop(workspace)
        b.done(0)
        if b.want[0]: b.done(1)
        b.done(OWN | 1)
        b.done_gradient(0)
        return 0

    cdef object formula(self, c, int i, g):
        if i == 2: return sum_to(g, c.shape(2))
        shape = c.input(1).shape if i == 0 else c.shape(1)          # (what is not wanted is not known)
        x, axes = c.input(0), tuple(range(-len(shape), 0))
        z = x - mean(x, axes, True)
        rate = rsqrt(mean(square(z), axes, True) + c.attributes)
        z = z * rate
        if i == 1: return sum_to(g * z, shape)
        g = g * c.input(1)
        return rate * (g - mean(g, axes, True) - z * mean(g * z, axes, True))


cdef Operator LAYER_NORM = LayerNorm()
OPERATORS = {o.name: o for o in (LAYER_NORM,)}


def layer_norm(x, weight, bias, eps=1e-5):
    """`x` with mean 0 and variance 1 over its last dimensions, those that `weight` and `bias` have, times `weight`,
    plus `bias`. `eps` is added to the variance."""
    if isinstance(eps, bool) or not isinstance(eps, (int, float)):
        raise TypeError(f"layer_norm: eps is a number that is added to the variance, got {described(eps)}")
    return apply3(LAYER_NORM, ensure_tensor(x), weight, bias, float(eps))
