"""Patches of images as matrices: unfold, and fold, which adds them up."""

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.array cimport Array, is_real, itemsize
from cygrad.kernels.images.planes cimport Conv, set_planes
from cygrad.kernels.threads cimport threads_for
from cygrad.kernels.images.unfold cimport unfold_images
from cygrad.ops.images.pool cimport Pooling
from cygrad.ops.images.spatial cimport batched, read_sizes

from cygrad.core.errors import described
from cygrad.ops.shapes.shape import expand_dims, squeeze


cdef int refuse_dtype(Operator op) except -1 with gil:
    raise TypeError(f"{op.name} takes only floating-point tensors; cast x with astype")


cdef void describe(Conv* v, const void* attributes, const Array* x) noexcept nogil:
    """The patches of the images x."""
    v.dtype, v.n, v.groups, v.c, v.o = x.dtype, x.layout.shape[0], 1, x.layout.shape[1], 1
    v.taps = v.positions = 1
    for d in range(3):
        v.size[d], v.out[d] = (<Pooling>attributes).pool.size[d], (<Pooling>attributes).pool.out[d]
        v.kernel[d], v.stride[d] = (<Pooling>attributes).pool.kernel[d], (<Pooling>attributes).pool.stride[d]
        v.low[d], v.dilation[d] = (<Pooling>attributes).pool.low[d], (<Pooling>attributes).pool.dilation[d]
        v.taps *= v.kernel[d]
        v.positions *= v.out[d]
    v.own_bytes = v.workspace_bytes = 0
    set_planes(&v.x, x)


cdef size_t room(const Array* y, const void* attributes) noexcept nogil:
    """Bytes for each thread to pack the patches of one channel, if they are not dense."""
    cdef Py_ssize_t n = itemsize(y.dtype)
    if y.layout.dense: return 0
    for d in range(3): n *= (<Pooling>attributes).pool.kernel[d] * (<Pooling>attributes).pool.out[d]
    return (n + 63) // 64 * 64


cdef void fold_into(const void* attributes, const Array* y, const Array* x, char* workspace,
                    size_t nbytes) noexcept nogil:
    cdef Conv v
    describe(&v, attributes, x)
    v.own_bytes, v.workspace_bytes = room(y, attributes), nbytes
    unfold_images(&v, y, workspace, True)


cdef void unfold_into(const void* attributes, const Array* x, const Array* y) noexcept nogil:
    cdef Conv v
    describe(&v, attributes, x)
    unfold_images(&v, y, NULL, False)


cdef class Unfold(Operator):
    """y = x[c, p stride + k dilation - padding] at (c k, p)        dx = fold(g)"""
    lanes, tangent = "samples", "linear"
    traits = "fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[3]
        if not is_real(c.x[0].dtype): refuse_dtype(self)
        shape[0], shape[1], shape[2] = c.x[0].layout.shape[0], c.x[0].layout.shape[1], 1
        for d in range(3):
            shape[1] *= (<Pooling>c.attributes).pool.kernel[d]
            shape[2] *= (<Pooling>c.attributes).pool.out[d]
        c.y[0].layout, c.y[0].dtype = lay.dense(3, shape), c.x[0].dtype

    cdef int forward(self, Call* c) except -1 nogil:
        unfold_into(c.attributes, &c.x[0], &c.y[0])

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.workspace_bytes = room(&b.g[0], b.attributes) * threads_for(b.g[0].layout.size)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        fold_into(b.attributes, &b.g[0], &b.dx[0], b.workspace, b.stages[stage].workspace_bytes)

    cdef object formula(self, c, int i, g):
        return apply1(FOLD, g, c.attributes)


cdef class Fold(Operator):
    """y = sum of x over the elements of patches that lie there        dx = unfold(g)"""
    lanes, tangent = "samples", "linear"
    traits = "fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef Py_ssize_t shape[4]
        cdef Py_ssize_t taps = 1
        cdef int d
        if not is_real(c.x[0].dtype): refuse_dtype(self)
        for d in range(3): taps *= (<Pooling>c.attributes).pool.kernel[d]
        shape[0], shape[1] = c.x[0].layout.shape[0], c.x[0].layout.shape[1] // taps
        for d in range(2): shape[2 + d] = (<Pooling>c.attributes).pool.size[1 + d]
        c.y[0].layout, c.y[0].dtype = lay.dense(4, shape), c.x[0].dtype
        c.workspace_bytes = room(&c.x[0], c.attributes) * threads_for(c.x[0].layout.size)

    cdef int forward(self, Call* c) except -1 nogil:
        fold_into(c.attributes, &c.x[0], &c.y[0], c.workspace, c.workspace_bytes)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        unfold_into(b.attributes, &b.g[0], &b.dx[0])

    cdef object formula(self, c, int i, g):
        return apply1(UNFOLD, g, c.attributes)


cdef Operator UNFOLD = Unfold(), FOLD = Fold()
OPERATORS = {o.name: o for o in (UNFOLD, FOLD)}


cdef Pooling sliding(str name, planes, tuple size, kernel_size, dilation, padding, stride):
    """The attributes of both for `planes` channels of images of `size`. Raises ValueError if no patch fits, or if they
    have so many elements that sizes would overflow."""
    kernel, steps = read_sizes(name, "kernel_size", kernel_size, 2, 1), read_sizes(name, "stride", stride, 2, 1)
    low, wide = read_sizes(name, "padding", padding, 2, 0), read_sizes(name, "dilation", dilation, 2, 1)
    out = tuple([(size[d] + 2 * low[d] - wide[d] * (kernel[d] - 1) - 1) // steps[d] + 1 for d in range(2)])
    if min(out) < 1:
        raise ValueError(f"{name}: no patch of kernel_size {described(kernel_size)} with dilation "
                         f"{described(dilation)} fits into images of {size} with padding {described(padding)}")
    if planes * kernel[0] * kernel[1] * out[0] * out[1] > 1 << 56:
        raise ValueError(f"{name}: {planes} channels of all images have {out} patches of {kernel} elements; wanted at "
                         f"most 2^56 elements in total")
    return Pooling(kernel, steps, low, wide, size, out)


def unfold(x: Data, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
           padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """The patches of images: x is (n, channels, height, width) or without n; the result is (n, channels * elements of
    the kernel, patches), with a column for each patch. The arguments are integers or one for each dimension.
    float32 and float64. Raises ValueError if no patch fits, and for more than 2^56 elements. A convolution needs no
    unfold: it packs tiles of patches."""
    cdef Tensor t = batched("unfold", x, 2)
    cdef Pooling a = sliding("unfold", max(1, t.shape[0]) * t.shape[1], t.shape[2:], kernel_size, dilation, padding,
                             stride)
    y = apply1(UNFOLD, t, a)
    return y if t.ndim == ensure_tensor(x).ndim else squeeze(y, 0)


def fold(x: Data, output_size: int | Sequence[int], kernel_size: int | Sequence[int],
         dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
         stride: int | Sequence[int] = 1) -> Tensor:
    """Images of `output_size` that are the sums of patches: x is (n, channels * elements of the kernel, patches) or
    without n, as from unfold(). Where patches overlap they are added, so fold is the gradient of unfold and not its
    inverse. float32 and float64. Raises ValueError if the sizes do not fit."""
    cdef Tensor t = ensure_tensor(x)
    cdef Pooling a = sliding("fold", 1, read_sizes("fold", "output_size", output_size, 2, 1), kernel_size, dilation,
                             padding, stride)
    cdef Py_ssize_t taps = a.kernel[0] * a.kernel[1], patches = a.out[0] * a.out[1]
    if t.layout.ndim not in (2, 3) or t.shape[-1] != patches or t.shape[-2] == 0 or t.shape[-2] % taps:
        raise ValueError(f"fold: x is {t.shape}; wanted (n, channels * {taps}, {patches}), or the same without n")
    if t.layout.ndim == 3: return apply1(FOLD, t, a)
    return squeeze(apply1(FOLD, expand_dims(t, 0), a), 0)
