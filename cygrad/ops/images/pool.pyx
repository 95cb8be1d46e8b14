"""Pooling: the maximum or the mean of windows of images, of one to three dimensions."""

cimport cython

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport BackwardCall, Call, Operator, hide, saved
from cygrad.core.graph.slots cimport OWN
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.core.execute.run cimport apply1, apply2
from cygrad.kernels.images cimport pool as kernels
from cygrad.kernels.array cimport MAX_NDIM, UINT16, UINT32, UINT8, Array, is_real
from cygrad.kernels.images.planes cimport set_planes
from cygrad.kernels.images.windows cimport Pool
from cygrad.ops.images.spatial cimport batched, read_sizes

import math

from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.ops.elementwise.elementwise import power
from cygrad.ops.shapes.shape import squeeze

cdef Py_ssize_t MAX_PLACES = <Py_ssize_t>1 << 32      # elements of a window, of which backward keeps a 32-bit number


@cython.no_gc
cdef class Pooling(Attributes):
    """The attributes of pooling: for each spatial dimension the kernel, the stride, the zeros before X, the dilation,
    and the sizes of X and Y; whether the windows are adaptive, whether a mean counts the padding, and what it divides
    by (0: the elements of the window)."""

    def __cinit__(self, tuple kernel, tuple stride, tuple low, tuple dilation, tuple size, tuple out,
                  bint adaptive=False, bint padding_counts=True, Py_ssize_t divisor=0):
        cdef Pool* p = &self.pool
        cdef int d, i
        self.kernel, self.stride, self.low, self.dilation = kernel, stride, low, dilation
        self.size, self.out, self.nd = size, out, <int>len(size)
        self.adaptive, self.padding_counts, self.divisor = adaptive, padding_counts, divisor
        p.taps, p.adaptive, p.padding_counts, p.divisor = 1, adaptive, padding_counts, divisor
        for d in range(3):
            i = d - 3 + self.nd
            p.kernel[d], p.stride[d], p.low[d], p.dilation[d], p.size[d], p.out[d] = (
                (kernel[i], stride[i], low[i], dilation[i], size[i], out[i]) if i >= 0 else (1, 1, 0, 1, 1, 1))
            p.taps = min(p.taps * p.kernel[d], MAX_PLACES + 1)
        p.width = 1 if p.taps <= 256 else 2 if p.taps <= 65536 else 4

    cdef dict keywords(self):
        """Those of all functions: pools, their gradients, fold and unfold. Each takes the ones that it has."""
        override = {"divisor_override": self.divisor} if self.divisor else {}
        return override | {
            "kernel": self.kernel, "kernel_size": self.kernel, "stride": self.stride, "padding": self.low,
            "dilation": self.dilation, "size": self.size, "output_size": self.out if self.adaptive else self.size,
            "adaptive": self.adaptive, "ceil_mode": not self.adaptive and leaves_images(&self.pool, self.nd),
            "padding_counts": self.padding_counts, "count_include_pad": self.padding_counts,
            "divisor": self.divisor or None}


cdef bint leaves_images(const Pool* p, int nd) noexcept:
    """Whether a window leaves the images, so that the sizes of the result were rounded up."""
    for d in range(3 - nd, 3):
        if (p.out[d] - 1) * p.stride[d] > p.size[d] + 2 * p.low[d] - p.dilation[d] * (p.kernel[d] - 1) - 1: return True
    return False


cdef Pool pool_of(const void* attributes, const Array* x, const Array* y, const char* places) noexcept nogil:
    """The arguments of a kernel."""
    cdef Pool p = (<Pooling>attributes).pool
    p.dtype, p.n, p.channels, p.places = x.dtype, x.layout.shape[0], x.layout.shape[1], <char*>places
    set_planes(&p.x, x)
    set_planes(&p.y, y)
    return p


cdef int infer_planes(Call* c, const Py_ssize_t* size) except -1 nogil:
    """The output has the images and channels of the input and this size, whose missing dimensions come first."""
    cdef Py_ssize_t shape[MAX_NDIM]
    cdef int d, nd = (<Pooling>c.attributes).nd
    if not is_real(c.x[0].dtype):
        with gil: raise TypeError("gradients of pooling take only floating-point tensors; cast the first with astype")
    shape[0], shape[1] = c.x[0].layout.shape[0], c.x[0].layout.shape[1]
    for d in range(nd): shape[2 + d] = size[3 - nd + d]
    c.y[0].layout, c.y[0].dtype = lay.dense(2 + nd, shape), c.x[0].dtype


cdef class Pools(Operator):
    """The base of all: one floating input, or one and the places of maxima."""
    lanes = "samples"
    traits = "fused differentiable"

    def __cinit__(self, str name):
        self.name = name


# ---- maxima ----------------------------------------------------------------------------------------------------------

cdef class MaxPool(Pools):
    """y = largest x in each window        dx = sum of g over the windows of which x is the first largest

    Backward keeps the place of the maximum in its window, a hidden output: a byte for windows of at most 256
    elements."""
    hidden = reads = "place"
    traits = "promotes promotes_to_float fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Pool* p = &(<Pooling>c.attributes).pool
        infer_planes(c, p.out)
        if c.wanted:
            check_places(self.name, c.attributes)
            hide(c, lay.incref(c.y[0].layout), UINT8 if p.width == 1 else UINT16 if p.width == 2 else UINT32)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Pool p = pool_of(c.attributes, &c.x[0], &c.y[0], c.y[1].data if c.hidden else NULL)
        kernels.max_pool(&p)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Pool p = pool_of(b.attributes, &b.dx[0], &b.g[0], saved(b, OWN | 1).data)
        kernels.put_places(&p)

    cdef object formula(self, c, int i, g):
        return c.locally_constant(apply2(POOL_PUT, g, c.output(1).detach(), c.attributes))


cdef int check_places(str name, const void* attributes) except -1 nogil:
    """Raise ValueError if the number of a place in a window does not fit into 32 bits."""
    if (<Pooling>attributes).pool.taps <= MAX_PLACES: return 0
    with gil: raise ValueError(f"{name}: windows of {(<Pooling>attributes).kernel} elements cannot have a gradient; "
                               f"wanted at most 2^32 elements, whose places fit into 32 bits")


cdef class Places(Pools):
    """The base of pool_put and pool_take: an input of images, and the places. The gradient of each is the other."""
    lanes = "pairs_of_samples"
    no_gradient = reads = "place"
    cdef bint puts

    def __cinit__(self, str name):
        self.puts = name == "pool_put"

    cdef int infer(self, Call* c) except -1 nogil:
        cdef const Pool* p = &(<Pooling>c.attributes).pool
        check_places(self.name, c.attributes)
        if self.puts: return infer_planes(c, p.size)
        return infer_planes(c, p.out)

    cdef int forward(self, Call* c) except -1 nogil:
        return put_or_take(c.attributes, &c.x[0], &c.y[0], c.x[1].data, self.puts)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        return put_or_take(b.attributes, &b.g[0], &b.dx[0], saved(b, 1).data, not self.puts)

    cdef object formula(self, c, int i, g):
        return apply2(POOL_TAKE if self.puts else POOL_PUT, g, c.input(1), c.attributes)


cdef int put_or_take(const void* attributes, const Array* given, const Array* made, char* places,
                     bint puts) noexcept nogil:
    """Put `given` at the places of `made`, or take `made` from the places of `given`."""
    cdef Pool p = pool_of(attributes, made if puts else given, given if puts else made, places)
    if puts: kernels.put_places(&p)
    else: kernels.take_places(&p)
    return 0


cdef class PoolPut(Places):
    """x = sum of y over the windows with this place        dy = g at the places

    The inputs are y and the places. The gradient of max_pool, of which its formula is made."""
    operands = "y place"


cdef class PoolTake(Places):
    """y = x at the place of each window        dx = sum of g over the windows with this place

    The inputs are x and the places. The gradient of pool_put."""
    operands = "x place"


# ---- means -----------------------------------------------------------------------------------------------------------

cdef class AvgPool(Pools):
    """y = mean of x in each window        dx = sum of g / elements of the window, over the windows that x is in"""
    tangent = "linear"
    traits = "promotes promotes_to_float fused differentiable"

    cdef int infer(self, Call* c) except -1 nogil:
        return infer_planes(c, (<Pooling>c.attributes).pool.out)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Pool p = pool_of(c.attributes, &c.x[0], &c.y[0], NULL)
        kernels.mean_pool(&p)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Pool p = pool_of(b.attributes, &b.dx[0], &b.g[0], NULL)
        kernels.spread_means(&p)

    cdef object formula(self, c, int i, g):
        return apply1(AVG_SPREAD, g, c.attributes)


cdef class AvgSpread(Pools):
    """x = sum of y / elements of the window, over the windows that x is in        dy = mean of g in each window

    The gradient of avg_pool, of which its formula is made."""
    tangent = "linear"
    operands = "y"

    cdef int infer(self, Call* c) except -1 nogil:
        return infer_planes(c, (<Pooling>c.attributes).pool.size)

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Pool p = pool_of(c.attributes, &c.y[0], &c.x[0], NULL)
        kernels.spread_means(&p)

    cdef int run_backward(self, BackwardCall* b, int stage) except -1 nogil:
        cdef Pool p = pool_of(b.attributes, &b.g[0], &b.dx[0], NULL)
        kernels.mean_pool(&p)

    cdef object formula(self, c, int i, g):
        cdef Pooling a = c.attributes
        return apply1((ADAPTIVE_AVG if a.adaptive else AVG_POOL)[a.nd - 1], g, a)


cdef list MAX_POOL = [MaxPool(f"max_pool{d}d") for d in (1, 2, 3)]
cdef list AVG_POOL = [AvgPool(f"avg_pool{d}d") for d in (1, 2, 3)]
cdef list ADAPTIVE_MAX = [MaxPool(f"adaptive_max_pool{d}d") for d in (1, 2, 3)]
cdef list ADAPTIVE_AVG = [AvgPool(f"adaptive_avg_pool{d}d") for d in (1, 2, 3)]
cdef Operator POOL_PUT = PoolPut("pool_put"), POOL_TAKE = PoolTake("pool_take"), AVG_SPREAD = AvgSpread("avg_spread")
OPERATORS = {(<Operator>o).name: o for o in (*MAX_POOL, *AVG_POOL, *ADAPTIVE_MAX, *ADAPTIVE_AVG, POOL_PUT, POOL_TAKE,
                                             AVG_SPREAD)}


# ---- public functions ------------------------------------------------------------------------------------------------

cdef Py_ssize_t read_divisor(str name, divisor) except? -1:
    """divisor_override; 0 for None."""
    if divisor is None: return 0
    if isinstance(divisor, bool) or not hasattr(divisor, "__index__"):
        raise TypeError(f"{name}: divisor_override must be an integer or None, got {described(divisor)}")
    if divisor == 0: raise ValueError(f"{name}: divisor_override must not be 0")
    if abs(int(divisor)) > MAX_PLACES:
        raise ValueError(f"{name}: divisor_override is {described(divisor)}; wanted an integer from -2^32 to 2^32")
    return divisor


cdef object pooled(list operators, int nd, x, kernel_size, stride, padding, dilation, ceil_mode, bint counts,
                   divisor_override, str caller=None):
    """Pooling with windows of one size. `caller` is the name in messages; None: that of the operator."""
    cdef Operator op = operators[nd - 1]
    cdef str name = caller or op.name
    cdef Tensor t = batched(name, x, nd)
    kernel = read_sizes(name, "kernel_size", kernel_size, nd, 1)
    steps = kernel if stride is None else read_sizes(name, "stride", stride, nd, 1)
    low, wide = read_sizes(name, "padding", padding, nd, 0), read_sizes(name, "dilation", dilation, nd, 1)
    divisor = read_divisor(name, divisor_override)
    size = t.shape[2:]
    cover = [wide[d] * (kernel[d] - 1) + 1 for d in range(nd)]
    out = []
    for d in range(nd):
        if 2 * low[d] > cover[d]:
            raise ValueError(f"{name}: padding is {described(padding)}; it must be at most half of the {cover[d]} that "
                             f"the kernel covers")
        free = size[d] + 2 * low[d] - cover[d]
        n = (free + (steps[d] - 1 if ceil_mode else 0)) // steps[d] + 1
        if ceil_mode and (n - 1) * steps[d] >= size[d] + low[d]: n -= 1     # this window would begin in the padding
        out.append(n)
    if min(out) < 1:
        raise ValueError(f"{name}: x is {ensure_tensor(x).shape}; a window covers {cover} and must fit into x with "
                         f"padding {described(padding)}")
    y = apply1(op, t, Pooling(kernel, steps, low, wide, size, tuple(out), False, counts, divisor))
    return y if t.ndim == ensure_tensor(x).ndim else squeeze(y, 0)


cdef Py_ssize_t widest(Py_ssize_t n, Py_ssize_t parts):
    """An upper bound of the elements of a window that is one of `parts` parts of `n` elements."""
    return min(n, (n + parts - 1) // parts + 1) if parts else 1


cdef object adapted(list operators, int nd, x, output_size):
    """Pooling to an output of a given size; None keeps the size of x."""
    cdef Operator op = operators[nd - 1]
    cdef str name = op.name
    cdef Tensor t = batched(name, x, nd)
    size, ones = t.shape[2:], (1,) * nd
    wanted = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * nd
    if len(wanted) == nd: wanted = tuple([n if m is None else m for m, n in zip(wanted, size)])
    out = read_sizes(name, "output_size", wanted, nd, 0)
    kernel = tuple([widest(size[d], out[d]) for d in range(nd)])
    y = apply1(op, t, Pooling(kernel, ones, (0,) * nd, ones, size, out, True, False, 0))
    return y if t.ndim == ensure_tensor(x).ndim else squeeze(y, 0)


cdef object normed(int nd, x, norm_type, kernel_size, stride, ceil_mode):
    """lp_pool1d, 2d or 3d."""
    cdef str name = f"lp_pool{nd}d"
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)) or norm_type == 0:
        raise TypeError(f"{name}: norm_type must be a number other than 0, got {described(norm_type)}")
    if not -1e300 <= norm_type <= 1e300:
        raise ValueError(f"{name}: norm_type is {described(norm_type)}; wanted a number from -1e300 to 1e300")
    n = float(math.prod(read_sizes(name, "kernel_size", kernel_size, nd, 1)))
    y = pooled(AVG_POOL, nd, power(x, float(norm_type)), kernel_size, stride, 0, 1, ceil_mode, True, None, name)
    return power(y * n, 1 / norm_type)


def max_pool1d(x: Data, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
               padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
               ceil_mode: bool = False) -> Tensor:
    """The largest element of each window of rows, (n, channels, width) or without n. See max_pool2d."""
    return pooled(MAX_POOL, 1, x, kernel_size, stride, padding, dilation, ceil_mode, True, None)


def max_pool2d(x: Data, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
               padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
               ceil_mode: bool = False) -> Tensor:
    """The largest element of each window of images, (n, channels, height, width) or without n. A NaN is the largest.

    `kernel_size`, `stride` (None: the kernel size), `padding` and `dilation` are integers for all dimensions or one for
    each. Padding never is the largest; it is at most half of what the kernel covers, dilation (kernel - 1) + 1. With
    `ceil_mode` the last window may leave x. Of equal elements the first gets the gradient. A window without an element
    of x, which only dilation can give, has the maximum -inf and no gradient. float32 and float64. Raises ValueError for
    windows that do not fit, and of more than 2^32 elements if a gradient is recorded."""
    return pooled(MAX_POOL, 2, x, kernel_size, stride, padding, dilation, ceil_mode, True, None)


def max_pool3d(x: Data, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
               padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
               ceil_mode: bool = False) -> Tensor:
    """The largest element of each window of volumes, (n, channels, depth, height, width) or without n. See
    max_pool2d."""
    return pooled(MAX_POOL, 3, x, kernel_size, stride, padding, dilation, ceil_mode, True, None)


def avg_pool1d(x: Data, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
               padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window of rows, (n, channels, width) or without n. See avg_pool2d."""
    return pooled(AVG_POOL, 1, x, kernel_size, stride, padding, 1, ceil_mode, bool(count_include_pad), None)


def avg_pool2d(x: Data, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
               padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """The mean of each window of images, (n, channels, height, width) or without n.

    The windows are those of max_pool2d. Zeros of the padding count as elements if `count_include_pad` is set; what is
    beyond the padding, with `ceil_mode`, never does. `divisor_override` replaces the number of elements. float32 and
    float64. Raises ValueError for windows that do not fit."""
    return pooled(AVG_POOL, 2, x, kernel_size, stride, padding, 1, ceil_mode, bool(count_include_pad), divisor_override)


def avg_pool3d(x: Data, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
               padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """The mean of each window of volumes, (n, channels, depth, height, width) or without n. See avg_pool2d."""
    return pooled(AVG_POOL, 3, x, kernel_size, stride, padding, 1, ceil_mode, bool(count_include_pad), divisor_override)


def adaptive_max_pool1d(x: Data, output_size: int | Sequence[int]) -> Tensor:
    """The largest elements of windows that divide rows into `output_size` parts. See adaptive_max_pool2d."""
    return adapted(ADAPTIVE_MAX, 1, x, output_size)


def adaptive_max_pool2d(x: Data, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The largest elements of windows that divide images into `output_size` parts, an integer or one for each
    dimension; None keeps a size, and of 0 parts the result is empty. Window i begins at i size / parts and ends at
    (i + 1) size / parts, rounded outwards."""
    return adapted(ADAPTIVE_MAX, 2, x, output_size)


def adaptive_max_pool3d(x: Data, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The largest elements of windows that divide volumes into `output_size` parts. See adaptive_max_pool2d."""
    return adapted(ADAPTIVE_MAX, 3, x, output_size)


def adaptive_avg_pool1d(x: Data, output_size: int | Sequence[int]) -> Tensor:
    """The means of windows that divide rows into `output_size` parts. See adaptive_max_pool2d."""
    return adapted(ADAPTIVE_AVG, 1, x, output_size)


def adaptive_avg_pool2d(x: Data, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that divide images into `output_size` parts. See adaptive_max_pool2d."""
    return adapted(ADAPTIVE_AVG, 2, x, output_size)


def adaptive_avg_pool3d(x: Data, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that divide volumes into `output_size` parts. See adaptive_max_pool2d."""
    return adapted(ADAPTIVE_AVG, 3, x, output_size)


@composed
def lp_pool1d(x: Data, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window of rows, where p is `norm_type`. See lp_pool2d."""
    return normed(1, x, norm_type, kernel_size, stride, ceil_mode)


@composed
def lp_pool2d(x: Data, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window of images, where p is `norm_type`: 1 gives sums, a large number nearly the
    maximum. The windows are those of max_pool2d. The derivative at a sum of 0 is NaN, as in PyTorch. Composed of other
    operators."""
    return normed(2, x, norm_type, kernel_size, stride, ceil_mode)


@composed
def lp_pool3d(x: Data, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(sum of x^p)^(1/p) over each window of volumes, where p is `norm_type`. See lp_pool2d."""
    return normed(3, x, norm_type, kernel_size, stride, ceil_mode)


cdef Pooling geometry(str name, Tensor x, kernel, stride, padding, dilation, size, out, bint adaptive, bint counts,
                      divisor):
    """The attributes of a gradient of pooling. Raises ValueError unless a public function could use such windows."""
    cdef int nd = <int>len(size), d
    fits = 1 <= nd <= 3 and len(out) == nd == x.layout.ndim - 2
    nd = max(1, min(nd, 3))
    wide, low = read_sizes(name, "kernel", kernel, nd, 1), read_sizes(name, "padding", padding, nd, 0)
    steps, gaps = read_sizes(name, "stride", stride, nd, 1), read_sizes(name, "dilation", dilation, nd, 1)
    for d in range(nd if fits else 0):
        n, m, cover = size[d], out[d], gaps[d] * (wide[d] - 1) + 1
        free = n + 2 * low[d] - cover
        fits = fits and n >= 1 and m >= (0 if adaptive else 1)
        if not fits: break
        if adaptive: fits = (wide[d], steps[d], low[d], gaps[d]) == (widest(n, m), 1, 0, 1)
        else: fits = 2 * low[d] <= cover and free >= 0 and m - free // steps[d] - 1 in (0, 1)
    if not fits:
        raise ValueError(f"{name}: the tensor is {x.shape}; windows of kernel {described(kernel)}, stride "
                         f"{described(stride)}, padding {described(padding)} and dilation {described(dilation)} do not "
                         f"relate images of size {described(size)} and results of size {out}")
    return Pooling(wide, steps, low, gaps, tuple(size), tuple(out), adaptive, counts, read_divisor(name, divisor))


cdef object with_places(Operator op, x, place, kernel, stride, padding, dilation, size, out, bint adaptive):
    """pool_put or pool_take. Raises ValueError unless the places are dense and have the width of the kernel's."""
    cdef Tensor t = ensure_tensor(x), p = ensure_tensor(place)
    cdef Pooling a = geometry(op.name, t, kernel, stride, padding, dilation, size, out, adaptive, not adaptive, None)
    cdef int wanted = UINT8 if a.pool.width == 1 else UINT16 if a.pool.width == 2 else UINT32
    if p.dtype != wanted or not p.layout.dense or p.shape != (*t.shape[:2], *out):
        raise ValueError(f"{op.name}: place has the wrong dtype or strides, or its shape {p.shape} does not fit to "
                         f"{out}; wanted dense places of uint{8 * a.pool.width}")
    return apply2(op, t, p, a)


def pool_put(y: Data, place: Data, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
             dilation: Sequence[int], size: Sequence[int], adaptive: bool = False) -> Tensor:
    """Images of `size` with the elements of `y` added at each window's `place`, as the gradient of max_pool adds them.
    The places are dense, in the smallest unsigned dtype for the kernel; one outside of its window counts as
    none. The sequences are tuples."""
    size = read_sizes("pool_put", "size", size, max(1, ensure_tensor(y).ndim - 2), 1)
    return with_places(POOL_PUT, y, place, kernel, stride, padding, dilation, size, ensure_tensor(y).shape[2:],
                       adaptive)


def pool_take(x: Data, place: Data, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
              dilation: Sequence[int], adaptive: bool = False) -> Tensor:
    """The elements of `x` at each window's `place`, as for pool_put."""
    return with_places(POOL_TAKE, x, place, kernel, stride, padding, dilation, ensure_tensor(x).shape[2:],
                       ensure_tensor(place).shape[2:], adaptive)


def avg_spread(y: Data, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], size: Sequence[int],
               adaptive: bool = False, padding_counts: bool = True, divisor: int | None = None) -> Tensor:
    """Images of `size` to which each window adds its element of `y` in equal parts, as the gradient of avg_pool does.
    The sequences are tuples."""
    cdef Tensor t = ensure_tensor(y)
    size = read_sizes("avg_spread", "size", size, max(1, t.layout.ndim - 2), 1)
    return apply1(AVG_SPREAD, t, geometry("avg_spread", t, kernel, stride, padding, 1, size, t.shape[2:], adaptive,
                                          padding_counts, divisor))
