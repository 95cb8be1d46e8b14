"""Images of other sizes: interpolate, pixel_shuffle and pixel_unshuffle."""

import math

cimport cython

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, Stage, add_stage
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1
from cygrad.kernels.images cimport resize as kernels
from cygrad.kernels.array cimport Array, Layout, is_real
from cygrad.kernels.images.planes cimport set_planes
from cygrad.kernels.images.resize cimport Resize
from cygrad.kernels.threads cimport threads_for
from cygrad.ops.images.spatial cimport read_sizes

from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.ops.shapes.shape import permute, reshape

cdef dict MODES = {"nearest": (kernels.NEAREST, (1, 2, 3)), "linear": (kernels.LINEAR, (1,)),
                   "bilinear": (kernels.LINEAR, (2,)), "trilinear": (kernels.LINEAR, (3,)),
                   "bicubic": (kernels.CUBIC, (2,))}


@cython.no_gc
cdef class Resizing(Attributes):
    """The attributes of interpolate: the mode, whether corners are aligned, and for each spatial dimension the size
    before, the size after, and the number of elements before for one after."""
    cdef readonly str mode
    cdef readonly bint align_corners
    cdef readonly tuple size
    cdef readonly tuple out
    cdef readonly tuple scale
    cdef Resize resize

    def __cinit__(self, str mode, bint align_corners, tuple size, tuple out, tuple scale):
        cdef Resize* r = &self.resize
        cdef int d, i, nd = <int>len(size)
        self.mode, self.align_corners, self.size, self.out, self.scale = mode, align_corners, size, out, scale
        r.mode, r.corners = MODES[mode][0], align_corners
        for d in range(3):
            i = d - 3 + nd
            r.size[d], r.out[d], r.scale[d] = (size[i], out[i], scale[i]) if i >= 0 else (1, 1, 1)


cdef Resize resize_of(const void* attributes, const Array* x, const Array* y) noexcept nogil:
    """The job that relates the images x and y."""
    cdef Resize r = (<Resizing>attributes).resize
    r.dtype, r.n, r.channels = x.dtype, x.layout.shape[0], x.layout.shape[1]
    set_planes(&r.x, x)
    set_planes(&r.y, y)
    return r


cdef size_t workspace_of(const void* attributes, const Layout* images, int dtype) noexcept nogil:
    cdef Resize r = (<Resizing>attributes).resize
    cdef size_t shared, own
    r.dtype = dtype
    own = kernels.own_bytes(&r, &shared)
    return shared + own * threads_for(8 * images.shape[0] * images.shape[1] * r.out[0] * r.out[1]
                                      * max(r.out[2], r.size[2]))


cdef int infer_images(Operator op, Call* c, const Py_ssize_t* sizes) except -1 nogil:
    """The result has the images and channels of the input, and the last of three sizes."""
    cdef const Layout* x = c.x[0].layout
    cdef Py_ssize_t shape[5]
    cdef int d
    if not is_real(c.x[0].dtype):
        with gil: raise TypeError(f"{op.name} takes only floating-point tensors; cast x with astype")
    shape[0], shape[1] = x.shape[0], x.shape[1]
    for d in range(2, x.ndim): shape[d] = sizes[3 - x.ndim + d]
    c.y[0].layout, c.y[0].dtype = lay.dense(x.ndim, shape), c.x[0].dtype
    c.workspace_bytes = workspace_of(c.attributes, x, c.x[0].dtype)


cdef class Resampling(Operator):
    """A resize, or its transpose with `back`. The gradient of each is the other."""
    lanes, tangent = "samples", "linear"
    traits = "fused differentiable"
    cdef bint back

    def __cinit__(self, bint back):
        self.name = "interpolate_back" if back else "interpolate"
        self.back = back

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Resize* r = &(<Resizing>c.attributes).resize
        if self.back: return infer_images(self, c, r.size)
        return infer_images(self, c, r.out)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Resize r = (resize_of(c.attributes, &c.y[0], &c.x[0]) if self.back else
                         resize_of(c.attributes, &c.x[0], &c.y[0]))
        kernels.resize(&r, self.back, c.workspace, c.workspace_bytes)

    cdef int plan_backward(self, BackwardCall* b) noexcept nogil:
        cdef Stage* s = add_stage(b, 1)
        s.workspace_bytes = workspace_of(b.attributes, b.x[0], b.dtype)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Resize r = (resize_of(b.attributes, &b.g[0], &b.dx[0]) if self.back else
                         resize_of(b.attributes, &b.dx[0], &b.g[0]))
        kernels.resize(&r, not self.back, b.workspace, b.stages[stage].workspace_bytes)

    cdef object formula(self, c, int i, g):
        return apply1(INTERPOLATE if self.back else INTERPOLATE_BACK, g, c.attributes)


cdef class Interpolate(Resampling):
    """y = sum of x[k] w(p, k)        dx = sum of g[p] w(p, k)

    The weights w follow from the sizes, so nothing is kept."""
    functions = {"interpolate_scaled": "x"}

    cdef tuple row_of(self, attributes):
        """The scale is an argument unless it follows from the sizes."""
        cdef Resizing a = attributes
        arguments = {"size": a.out, "scale": a.scale, "mode": a.mode, "align_corners": a.align_corners}
        natural = [n / m for n, m in zip(a.size, a.out, strict=True)]
        if a.align_corners: natural = [(n - 1) / (m - 1) if m > 1 else 0.0 for n, m in zip(a.size, a.out, strict=True)]
        if a.scale != tuple(natural): return "interpolate_scaled", arguments
        if a.mode == "nearest": del arguments["align_corners"]
        return "interpolate", arguments


cdef class InterpolateBack(Resampling):
    """x = sum of y[p] w(p, k)        dy = sum of g[k] w(p, k)

    The gradient of interpolate, of which its formula is made."""
    operands = "y"


cdef Operator INTERPOLATE = Interpolate(False), INTERPOLATE_BACK = InterpolateBack(True)
OPERATORS = {o.name: o for o in (INTERPOLATE, INTERPOLATE_BACK)}


cdef Resizing sizes_of(tuple size, wanted, factor, str mode, bint corners):
    """The attributes for images of `size`. Raises ValueError unless exactly one of `size` and `scale_factor` is given,
    and for sizes below 1."""
    cdef int nd = <int>len(size)
    if (wanted is None) == (factor is None):
        given = "both" if factor is not None else "none of them"
        raise ValueError(f"interpolate: give either size or scale_factor, got {given}")
    if factor is None: out, factors = read_sizes("interpolate", "size", wanted, nd, 1), (None,) * nd
    else:
        factors = tuple(factor) if isinstance(factor, (tuple, list)) else (factor,) * nd
        if len(factors) != nd:
            raise ValueError(f"interpolate: scale_factor is {described(factor)}; wanted a number, or a tuple of {nd}")
        for f in factors:
            if isinstance(f, bool) or not isinstance(f, (int, float)) or not 0 < f < math.inf:
                raise ValueError(f"interpolate: scale_factor is {described(factor)}; wanted positive numbers")
        if max(factors) >= 0x80000000 or max([n * f for n, f in zip(size, factors)]) >= 0x80000000:
            raise ValueError(f"interpolate: scale_factor is {described(factor)}, for images of {size}; the sizes of "
                             f"the result must fit into 32 bits")
        out = tuple([math.floor(n * f) for n, f in zip(size, factors)])
    if 0 in size or min(out) < 1:
        raise ValueError(f"interpolate: images of {size} cannot be resized to {out}; wanted sizes of at least 1")
    scale = []
    for n, m, f in zip(size, out, factors):
        if corners: scale.append((n - 1) / (m - 1) if m > 1 else 0.0)
        else: scale.append(n / m if f is None else 1 / f)
    return Resizing(mode, corners, size, out, tuple(scale))


cdef int check_mode(str name, Tensor t, mode) except -1:
    """Raise ValueError for another mode, or one that does not fit the dimensions of `t`."""
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"{name}: mode must be one of {', '.join(map(repr, MODES))}, got {described(mode)}")
    if t.layout.ndim - 2 in MODES[mode][1]: return 0
    wanted = " or ".join([str(n + 2) for n in MODES[mode][1]])
    raise ValueError(f"{name}: x is {t.shape}; mode {mode!r} needs {wanted} dimensions, with images and channels first")


def interpolate(x: Data, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: Literal["nearest", "linear", "bilinear", "bicubic", "trilinear"] = "nearest",
                align_corners: bool | None = None) -> Tensor:
    """Images of another size: x is (n, channels, width), (n, channels, height, width) or (n, channels, depth, height,
    width), and the result has `size`, or floor(scale_factor * size of x), for each of the spatial dimensions.

    `mode` is "nearest", or a polynomial between elements: "linear" for widths, "bilinear" or "bicubic" (Keys 1981, a =
    -3/4) for images, "trilinear" for volumes. With align_corners, which "nearest" does not have, the centers of the
    corner elements stay at the corners; otherwise their outer corners do. With a scale_factor, elements are 1 /
    scale_factor apart, even if the size is rounded. These are PyTorch's definitions, except that some of its modes copy
    along a dimension whose rounded size is that of x. There is no anti-aliasing.

    float32 and float64. Raises ValueError for a mode that does not fit the dimensions, and for sizes below 1."""
    cdef Tensor t = ensure_tensor(x)
    check_mode("interpolate", t, mode)
    if mode == "nearest" and align_corners is not None:
        raise ValueError("interpolate: mode 'nearest' has no align_corners; leave it None")
    return apply1(INTERPOLATE, t, sizes_of(t.shape[2:], size, scale_factor, mode, bool(align_corners)))


def interpolate_back(y: Data, size: Sequence[int], mode: str = "nearest", align_corners: bool = False,
                     scale: Sequence[float] | None = None) -> Tensor:
    """The gradient of interpolate for images of `size` (a tuple) if the result has gradient `y`. `scale` is the number
    of their elements for one of y, along each dimension."""
    cdef Tensor t = ensure_tensor(y)
    check_mode("interpolate_back", t, mode)
    whole = read_sizes("interpolate_back", "size", size, t.layout.ndim - 2, 1)
    if scale is None: return apply1(INTERPOLATE_BACK, t, sizes_of(whole, t.shape[2:], None, mode, align_corners))
    return apply1(INTERPOLATE_BACK, t, scaled("interpolate_back", whole, t.shape[2:], mode, align_corners, scale))


def interpolate_scaled(x: Data, size: Sequence[int], scale: Sequence[float], mode: str = "nearest",
                       align_corners: bool = False) -> Tensor:
    """interpolate to images of `size`, with `scale` elements of x for one of the result, along each dimension."""
    cdef Tensor t = ensure_tensor(x)
    check_mode("interpolate_scaled", t, mode)
    whole = read_sizes("interpolate_scaled", "size", size, t.layout.ndim - 2, 1)
    return apply1(INTERPOLATE, t, scaled("interpolate_scaled", t.shape[2:], whole, mode, align_corners, scale))


cdef Resizing scaled(str name, tuple size, tuple out, str mode, bint corners, scale):
    """The attributes with this scale. Raises ValueError if the result would read beyond the images."""
    fits = isinstance(scale, (tuple, list)) and len(scale) == len(size) and 0 not in size + out
    for s, n, m in zip(scale, size, out) if fits else ():
        least, most = (m - 1, n - 1) if corners else (m, n)
        fits = (fits and isinstance(s, (int, float)) and not isinstance(s, bool) and 0 <= s * least <= most * (1 + 1e-9)
                and (corners or s > 0))
    if not fits:
        raise ValueError(f"{name}: scale is {described(scale)}, for images of {size} and results of {out}; wanted the "
                         f"number of elements before for one after, for each dimension")
    return Resizing(mode, corners, size, out, tuple([float(s) for s in scale]))


@composed
def pixel_shuffle(x: Data, upscale_factor: int) -> Tensor:
    """Channels as pixels: (..., channels r r, height, width) becomes (..., channels, r height, r width), where r is
    `upscale_factor`. Raises ValueError if r r does not divide the channels."""
    cdef Tensor t = ensure_tensor(x)
    (r,) = read_sizes("pixel_shuffle", "upscale_factor", upscale_factor, 1, 1)
    if t.layout.ndim < 3 or t.shape[-3] % (r * r):
        raise ValueError(f"pixel_shuffle: x is {t.shape}; wanted (..., channels * {r * r}, height, width)")
    *first, c, h, w = t.shape
    n = len(first)
    y = permute(reshape(t, (*first, c // (r * r), r, r, h, w)), (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return reshape(y, (*first, c // (r * r), h * r, w * r))


@composed
def pixel_unshuffle(x: Data, downscale_factor: int) -> Tensor:
    """Pixels as channels, the inverse of pixel_shuffle: (..., channels, r height, r width) becomes (..., channels r r,
    height, width), where r is `downscale_factor`. Raises ValueError if r does not divide height and width."""
    cdef Tensor t = ensure_tensor(x)
    (r,) = read_sizes("pixel_unshuffle", "downscale_factor", downscale_factor, 1, 1)
    if t.layout.ndim < 3 or t.shape[-1] % r or t.shape[-2] % r:
        raise ValueError(f"pixel_unshuffle: x is {t.shape}; wanted (..., channels, height, width), both sizes "
                         f"divisible by {r}")
    *first, c, h, w = t.shape
    n = len(first)
    y = permute(reshape(t, (*first, c, h // r, r, w // r, r)), (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return reshape(y, (*first, c * r * r, h // r, w // r))
