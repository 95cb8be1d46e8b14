"""Adapters from PyTorch's calling conventions to those of cygrad's functions, for counterparts.py."""

import math

import numpy as np

import cygrad as cg


class Unsupported(Exception):
    """A sample that cygrad refuses by design, with the reason."""


def refuse(condition, why):
    if condition:
        raise Unsupported(why)


def has_nan(x):
    return bool(np.isnan(x.detach().numpy()).any())


def has_inf(x):
    return bool(np.isinf(x.detach().numpy()).any())


NO_AXIS = "axis of a 0-d tensor"
DTYPE = "dtype="


def axes(x, dim):
    """dim as axis. NumPy has no axis 0 of a 0-d tensor. In PyTorch, an empty list of axes means all axes."""
    if dim is None or dim == () or dim == []:
        return None
    refuse(not x.shape, NO_AXIS)
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def scaled(f):                                      # alpha times the second operand
    return lambda x, y, alpha=1: f(x, y if alpha == 1 else y * alpha)


def divided(f):
    return lambda x, y, rounding_mode=None: f(x, y)


def reduced(f):
    def call(x, dim=None, keepdim=False, dtype=None):
        return f(x, axis=axes(x, dim), keepdims=keepdim)
    return call


def along(f):                                       # one axis, the result of x's shape
    def call(x, dim, dtype=None):
        refuse(dtype is not None and str(dtype) != "torch.float64", DTYPE)
        refuse(not x.shape, NO_AXIS)
        return f(x, axis=dim)
    return call


def spread(f):                                      # var, std
    def call(x, dim=None, unbiased=None, keepdim=False, correction="given"):
        if isinstance(dim, bool):                   # (torch.var(x, unbiased))
            dim, unbiased = None, dim
        if correction == "given":
            correction = 1 if unbiased is None else int(unbiased)
        elif correction is None:
            correction = 1
        n = np.prod([x.shape[d] for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
                    if dim is not None and x.shape and dim != () else x.shape)
        refuse(n - correction <= 0, "no degrees of freedom left")
        return f(x, axis=axes(x, dim), keepdims=keepdim, correction=correction)
    return call


def permuted(f):
    return lambda x, *dims: f(x, dims[0] if dims and isinstance(dims[0], tuple) else dims)


def swapped(f):
    def call(x, a, b):
        refuse(not x.shape, NO_AXIS)
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
        return f(x, tuple(order))
    return call


def moved(f):
    def call(x, source, destination):
        refuse(not x.shape, NO_AXIS)
        order = np.moveaxis(np.empty(range(x.ndim)), source, destination).shape     # (of sizes 0, 1, 2...)
        return f(x, order)
    return call


def off_poles(f):
    def call(x):
        values = x.detach().numpy()
        refuse(((values <= 0) & (values == np.floor(values))).any(), "poles, where PyTorch's gradient is finite")
        return f(x)
    return call


def off_zero(f):
    def call(x):
        refuse((x.detach().numpy() == 0).any(), "0, where PyTorch's second derivative is nan")
        return f(x)
    return call


def expanded(f):
    def call(x, shape):
        given = [1] * (len(shape) - x.ndim) + list(x.shape)
        return f(x, tuple(m if n == -1 else n for n, m in zip(shape, given, strict=True)))
    return call


def cast_to(dtype):
    return lambda f: lambda x, memory_format=None: f(x, dtype)


def indexed(f):
    return lambda x, index: x[index]


def selected(f):
    return lambda x, dim, i: x[(slice(None),) * (dim % x.ndim) + (i,)]


def narrowed(f):
    def call(x, dim, start, length):
        start = int(start) % x.shape[dim] if x.shape[dim] else 0
        return x[(slice(None),) * (dim % x.ndim) + (slice(start, start + length),)]
    return call


def plain(f):                                       # cygrad has no inplace=
    return lambda x, inplace=False: f(x)


def without_format(f):                              # cygrad has no memory_format=
    return lambda x, memory_format=None: f(x)


def to_a_power(f):
    def call(x, y):
        zeros = isinstance(x, cg.Tensor) and not x.detach().numpy().all()
        refuse(zeros, "0 to a power, whose second derivative is 0 or nan")
        return f(x, y)
    return call


def reversed_power(f):
    return lambda x, y: to_a_power(f)(y, x)


def with_numbers(f):                                # plain() for functions of numbers too
    return lambda x, *numbers, inplace=False, **named: f(x, *numbers, **named)


def sixfold(f):                                     # hardsigmoid as relu6: its own has no second derivative
    def call(x, inplace=False):
        refuse(has_nan(x), NAN_SLOPE)
        return 6 * f(x - 3)
    return call


def within(f):
    def call(x, inplace=False):
        refuse(bool((abs(x.detach().numpy()) > 700).any()), "large numbers, where PyTorch's second derivative is nan")
        return f(x)
    return call


NAN_SLOPE = "nan, where PyTorch's gradient is not nan"


def with_slopes(f):
    def call(x, *numbers, inplace=False, **named):
        refuse(has_nan(x), NAN_SLOPE)
        return f(x, *numbers, **named)
    return call


def with_alpha(f):
    def call(x, alpha=1.0, inplace=False):
        refuse(alpha != float(np.float32(alpha)), "alpha, which PyTorch rounds to float32")
        refuse(has_nan(x), NAN_SLOPE)
        return f(x, alpha)
    return call


def halved(f):
    def call(x, dim=-1):
        return f(x, axis=dim)
    return call


def approximated(f):
    return lambda x, approximate="none": f(x, approximate=approximate)


def raised(p):                                      # with a number as the exponent
    return lambda f: lambda x: f(x, p)


def chosen(f):                                      # where, as PyTorch's method
    return lambda x, condition, y: f(condition, x, y)


def clipped(f):
    return lambda x, low=None, high=None: f(x, low, high)


def clipped_below(f):
    def call(x, low):
        refuse(has_inf(low), "an infinite bound")   # (no upper bound is one of infinity)
        return f(x, low, None)
    return call


def clipped_above(f):
    def call(x, high):
        refuse(has_inf(high), "an infinite bound")
        return f(x, None, high)
    return call


def normed(f):
    def call(x, ord=2, dim=None, keepdim=False, dtype=None):
        return f(x, ord=ord, axis=axes(x, dim), keepdims=keepdim)
    return call


def cumulated(f):
    return along(f)


def squeezed(f):
    def call(x, dim=None):
        if dim is None: return f(x)
        refuse(not x.shape, NO_AXIS)
        given = dim if isinstance(dim, tuple) else (dim,)
        refuse(any(x.shape[d] != 1 for d in given), "squeezing an axis longer than 1, which PyTorch lets be")
        return f(x, axis=given)
    return call


def joined(f):
    def call(xs, dim=0):
        refuse(any(x.shape == (0,) for x in xs) and any(x.ndim > 1 for x in xs), "an empty tensor of another rank")
        return f(xs, axis=dim)
    return call


def cut_evenly(f):                                  # PyTorch takes the size of pieces, NumPy the positions of cuts
    def call(x, size, dim=0):
        if isinstance(size, tuple): return f(x, np.cumsum(size)[:-1].tolist(), axis=dim)
        return f(x, list(range(size, x.shape[dim], size)), axis=dim)
    return call


def cut(f):
    def call(x, sections, dim=0):
        if isinstance(sections, cg.Tensor): sections = sections.tolist()
        refuse(isinstance(sections, int) and x.shape[dim] % sections, "sections of unequal size")
        return f(x, list(sections) if isinstance(sections, tuple) else sections, axis=dim)
    return call


def flipped(f):
    return lambda x, dims: f(x, axis=dims)


PADDING = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(f):
    def call(x, pad, mode="constant", value=None):
        refuse(any(n < 0 for n in pad), "negative widths")
        width = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2], strict=True))
        return f(x, width, mode=PADDING[mode], value=value or 0)
    return call


def triangle(f):
    return lambda x, diagonal=0: f(x, diagonal)


def taken(f):                                       # of the flat tensor
    return lambda x, index: f(x.reshape(-1), index)


def taken_along(f):
    def call(x, dim, index):
        refuse(not x.shape, NO_AXIS)
        return f(x, index, axis=dim)
    return call


def gathered(f):
    def call(x, dim, index):
        refuse(not x.shape, NO_AXIS)
        refuse(index.ndim != x.ndim, "an empty index of another rank")
        return f(x, dim, index)
    return call


def added_to(f):                                    # index_add
    def call(x, dim, index, source, alpha=1):
        refuse(not x.shape, NO_AXIS)
        return f(x, dim % x.ndim, source * alpha, index)
    return call


def masked(f):
    def call(x, mask):
        refuse(mask.shape != x.shape, "a mask that is broadcast")
        return x[mask]
    return call


def filled(f):
    def call(x, mask, value):
        refuse(mask.shape != x.shape, "a mask that is broadcast")
        y = x * 1.0
        y[mask] = value
        return y
    return call


def added_at(f):
    def call(x, dim, index, source):
        refuse(not x.shape, NO_AXIS)
        return f(x, dim, index, source)
    return call


def ordered(f):
    def call(x, dim=-1, descending=False, stable=False):
        refuse(not x.shape, NO_AXIS)
        return f(x, axis=dim, descending=descending)
    return call


def best(f):
    def call(x, k, dim=-1, largest=True, sorted=True):
        refuse(not x.shape, NO_AXIS)
        return f(x, k, axis=dim, largest=largest)
    return call


def encoded(f):
    def call(x, num_classes=-1):
        return f(x, num_classes if num_classes != -1 else int(x.numpy().max()) + 1, "int64")
    return call


def summed(f):                                      # einsum
    def call(xs, equation):
        refuse("..." in equation and "..." not in equation.partition("->")[2], "... on the left alone")
        return f(equation, *xs)
    return call


def looked_up(f):                                   # the OpInfo passes the weight first
    def call(weight, indices, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        refuse(max_norm is not None, "max_norm=")
        refuse(scale_grad_by_freq, "scale_grad_by_freq=")
        return f(indices, weight, padding_idx, sparse)
    return call


def decomposed(f):                                  # svd; the signs of the vectors are arbitrary
    def call(x, full_matrices=True):
        refuse(full_matrices and x.shape[-2] != x.shape[-1], "full matrices have no derivative")
        return signless(f(x, full_matrices))
    return call


def signless(ys):
    return [abs(y) for y in ys]


def inverted(f):                                    # pinv
    def call(x, rtol=None, **more):
        refuse(more.get("atol") is not None, "atol=")
        refuse(hasattr(rtol, "shape"), "rtol as a tensor")
        return f(x, rtol)
    return call


def systems(f):                                     # solve; PyTorch reads (n, n) with (n,) as vectors in batches too
    def call(x, b):
        return f(x, b[..., None])[..., 0] if b.ndim > 1 and b.shape == x.shape[:-1] else f(x, b)
    return call


def solved(f):                                      # lstsq
    return lambda x, b, rcond=None, driver=None: f(x, b, rcond).x


def of_numbers(f):                                  # the sign of nan is nan, as in NumPy; PyTorch's is 0
    def call(x):
        refuse(has_nan(x), "nan")
        return f(x)
    return call


def squared_error(f):
    def call(x, target, reduction="mean", weight=None):
        refuse(weight is not None, "weight=")
        return f(x, target, reduction=reduction)
    return call


def with_logits(f):
    def call(x, target, weight=None, reduction="mean", pos_weight=None):
        refuse(weight is not None, "weight=")
        refuse(pos_weight is not None, "pos_weight=")
        return f(x, target, reduction=reduction)
    return call


def attending(f):
    def call(query, key, value, dropout_p=0.0, **kwargs):
        refuse(dropout_p != 0, "dropout_p=")
        return f(query, key, value, **kwargs)
    return call


def normalised(f):
    def call(x, shape, weight=None, bias=None, eps=1e-5):
        return f(x, weight, bias, eps, axes=tuple(range(-len(shape), 0)))
    return call


def scaled_rows(f):                                 # rms_norm
    def call(x, shape, weight=None, eps=None):
        return f(x, weight, eps, axes=tuple(range(-len(shape), 0)))
    return call


def of_instances(f):
    def call(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1,
             eps=1e-5):
        refuse(running_mean is not None, "running_mean=")
        return f(x, weight, bias, eps)
    return call


def of_batches(f):
    def call(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
        refuse(x.ndim < 2, "x without channels")
        refuse(training and math.prod(x.shape) == x.shape[1], "one element for each channel")
        return f(x, running_mean, running_var, weight, bias, training, momentum, eps)
    return call


def put(f):
    def call(x, index, values, accumulate=False):
        refuse(accumulate, "accumulate=True")
        y = x * 1.0
        y[index] = values
        return y
    return call


def convolved(f):
    def call(x, weight, bias=None, **how):
        refuse(0 in weight.shape, "a kernel or channels of size 0")
        refuse(x.dtype.kind != "f", "integers")
        return f(x, weight, bias, **how)
    return call


def max_pooled(f):
    return lambda x, kernel_size, return_indices=False, **how: f(x, kernel_size, **how)


def averaged(f):                                    # an empty stride is the kernel's
    return lambda x, kernel_size, stride=(), *args, **how: f(x, kernel_size, stride or None, *args, **how)


def resized(f):
    def call(x, size=None, scale_factor=None, recompute_scale_factor=None, **how):
        if recompute_scale_factor: size, scale_factor = [int(n * scale_factor) for n in x.shape[2:]], None
        return f(x, size, scale_factor, **how)
    return call


def max_adapted(f):
    return lambda x, output_size, return_indices=False: f(x, output_size)


def alone(y):                                       # without the indices
    return y[0] if isinstance(y, tuple) else y
