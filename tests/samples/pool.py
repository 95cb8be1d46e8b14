"""Sample calls and NumPy references of ops/images/pool and ops/images/patches."""

import itertools
import math

import numpy as np

from . import Sampled
from .conv import each, part_at
from .makers import call, real


def windows(size, kernel, stride, padding, dilation, ceil_mode):
    """For each window of one dimension its elements inside of x, and its extent inside of the padded x."""
    last = size + 2 * padding - dilation * (kernel - 1) - 1
    n = (math.ceil(last / stride) if ceil_mode else last // stride) + 1
    if ceil_mode and (n - 1) * stride >= size + padding: n -= 1
    for i in range(n):
        at = i * stride - padding
        inside = [e for e in range(at, at + kernel * dilation, dilation) if 0 <= e < size]
        yield inside, min(at + kernel, size + padding) - at


def parts(size, n):
    return [(list(range(i * size // n, -(-(i + 1) * size // n))), None) for i in range(n)]


def over_windows(x, dimensions, value):
    """value(elements of the window, its padded extents) for each window."""
    y = np.zeros((*x.shape[:-len(dimensions)], *map(len, dimensions)), x.dtype)
    for at in itertools.product(*[range(len(d)) for d in dimensions]):
        chosen = [d[i] for d, i in zip(dimensions, at, strict=True)]
        window = x[(..., *np.ix_(*[inside for inside, _ in chosen]))]
        rows = window.reshape(*window.shape[:-len(at)], math.prod(window.shape[-len(at):]))
        y[(..., *at)] = value(rows, [extent for _, extent in chosen])
    return y


def largest(window, _):
    return window.max(-1, initial=-np.inf)


def max_like(nd):
    def like(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        kernel = each(kernel_size, nd)
        steps = kernel if stride is None else each(stride, nd)
        return over_windows(x, [list(windows(*how, ceil_mode)) for how in zip(
            x.shape[-nd:], kernel, steps, each(padding, nd), each(dilation, nd), strict=True)], largest)
    return like


def avg_like(nd):
    def like(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        def mean(window, extents):
            n = math.prod(extents) if count_include_pad else window.shape[-1]
            return window.sum(-1) / (divisor_override or n)
        kernel = each(kernel_size, nd)
        steps = kernel if stride is None else each(stride, nd)
        return over_windows(x, [list(windows(*how, 1, ceil_mode)) for how in zip(
            x.shape[-nd:], kernel, steps, each(padding, nd), strict=True)], mean)
    return like


def adaptive_like(nd, value):
    def like(x, output_size):
        wanted = output_size if isinstance(output_size, tuple) else (output_size,) * nd
        sizes = [(n, n if m is None else m) for n, m in zip(x.shape[-nd:], wanted, strict=True)]
        return over_windows(x, [parts(*pair) for pair in sizes], value)
    return like


def places_of(places, kernel, stride, padding, dilation):
    """For each window the indices of the element at its place."""
    at = np.unravel_index(places.astype("int64"), kernel)
    starts = np.ogrid[tuple(map(slice, places.shape[2:]))]
    return tuple(start * s - p + k * d
                 for start, k, s, p, d in zip(starts, at, stride, padding, dilation, strict=True))


def take_like(x, place, kernel, stride, padding, dilation):
    n, c = np.ogrid[:x.shape[0], :x.shape[1]]
    wide = (..., *[None] * (x.ndim - 2))
    return x[(n[wide], c[wide], *places_of(place, kernel, stride, padding, dilation))]


def put_like(y, place, kernel, stride, padding, dilation, size):
    x = np.zeros((*y.shape[:2], *size), y.dtype)
    n, c = np.ogrid[:x.shape[0], :x.shape[1]]
    wide = (..., *[None] * (x.ndim - 2))
    np.add.at(x, (n[wide], c[wide], *places_of(place, kernel, stride, padding, dilation)), y)
    return x


def spread_like(y, kernel, stride, padding, size):
    x = np.zeros((*y.shape[:2], *size), y.dtype)
    dimensions = [list(windows(*how, 1, False)) for how in zip(size, kernel, stride, padding, strict=True)]
    for at in itertools.product(*[range(len(d)) for d in dimensions]):
        chosen = [d[i] for d, i in zip(dimensions, at, strict=True)]
        inside = (..., *np.ix_(*[e for e, _ in chosen]))
        x[inside] += y[(..., *at)][(..., *[None] * len(size))] / math.prod(extent for _, extent in chosen)
    return x


def unfold_like(x, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 3: return unfold_like(x[None], kernel_size, dilation, padding, stride)[0]
    kernel, wide, steps, low = (each(v, 2) for v in (kernel_size, dilation, stride, padding))
    x = np.pad(x, [(0, 0), (0, 0), *[(n, n) for n in low]])
    size = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[2:], wide, kernel, steps, strict=True)]
    y = np.stack([x[part_at(tap, steps, wide, size)] for tap in itertools.product(*map(range, kernel))], 2)
    return y.reshape(len(x), x.shape[1] * math.prod(kernel), math.prod(size))


def fold_like(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 2: return fold_like(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    kernel, wide, steps, low = (each(v, 2) for v in (kernel_size, dilation, stride, padding))
    whole = [n + 2 * p for n, p in zip(each(output_size, 2), low, strict=True)]
    size = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(whole, wide, kernel, steps, strict=True)]
    channels = x.shape[1] // math.prod(kernel)
    y = np.zeros((len(x), channels, *whole), x.dtype)
    x = x.reshape(len(x), channels, math.prod(kernel), *size)
    for i, tap in enumerate(itertools.product(*map(range, kernel))):
        y[part_at(tap, steps, wide, size)] += x[:, :, i]
    return y[(..., *[slice(p, n - p) for p, n in zip(low, whole, strict=True)])]


PLACES = np.array([[[[0, 3], [5, 1]], [[2, 2], [4, 0]]]], "uint8")       # of windows of 2 x 3 elements, each 3, 2 apart

SAMPLES = [
    Sampled("max_pool1d", max_like(1),
        lambda: [call(real(2, 2, 7), kernel_size=2),
         call(real(2, 9), kernel_size=3, stride=2, padding=1, ceil_mode=True),
         call(real(1, 2, 8), kernel_size=3, stride=1, dilation=2), call(real(0, 2, 5), kernel_size=2)], {"x": "taps"}),
    Sampled("max_pool2d", max_like(2),
        lambda: [call(real(2, 2, 4, 6), kernel_size=2), call(real(1, 2, 5, 7), kernel_size=2),
         call(real(2, 5, 6), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), ceil_mode=True),
         call(real(1, 1, 17, 18), kernel_size=16, stride=1), call(real(1, 1, 7, 17), kernel_size=2),
         call(real(0, 2, 4, 4), kernel_size=2)], {"x": "taps"}),
    Sampled("max_pool3d", max_like(3),
        lambda: [call(real(1, 2, 4, 3, 5), kernel_size=2), call(real(2, 3, 4, 3, seed=2), kernel_size=(2, 3, 1),
                                                                padding=(1, 1, 0), stride=1),
         call(real(0, 1, 2, 2, 2), kernel_size=2)], {"x": "taps"}),
    Sampled("avg_pool1d", avg_like(1),
        lambda: [call(real(2, 2, 7), kernel_size=2),
         call(real(2, 9), kernel_size=3, stride=2, padding=1, ceil_mode=True),
         call(real(1, 2, 8), kernel_size=3, stride=1, padding=1, count_include_pad=False),
         call(real(0, 2, 5), kernel_size=2)]),
    Sampled("avg_pool2d", avg_like(2),
        lambda: [call(real(2, 2, 4, 6), kernel_size=2),
         call(real(2, 5, 6), kernel_size=(3, 2), stride=(2, 3), padding=(1, 0), ceil_mode=True),
         call(real(1, 2, 5, 6), kernel_size=3, stride=2, padding=1, count_include_pad=False, ceil_mode=True),
         call(real(1, 1, 5, 6), kernel_size=3, divisor_override=7), call(real(0, 2, 4, 4), kernel_size=2)]),
    Sampled("avg_pool3d", avg_like(3),
        lambda: [call(real(1, 2, 4, 3, 5), kernel_size=2), call(real(2, 3, 4, 3), kernel_size=(2, 3, 1),
                                                                padding=(1, 1, 0), stride=1, count_include_pad=False),
         call(real(0, 1, 2, 2, 2), kernel_size=2)]),
    Sampled("adaptive_max_pool1d", adaptive_like(1, largest),
        lambda: [call(real(2, 2, 7), output_size=3), call(real(2, 5), output_size=8), call(real(2, 5), output_size=0),
         call(real(0, 2, 5), output_size=2)], {"x": "taps"}),
    Sampled("adaptive_max_pool2d", adaptive_like(2, largest),
        lambda: [call(real(2, 2, 5, 7), output_size=3), call(real(1, 4, 6), output_size=(None, 4)),
         call(real(2, 2, 3, 3), output_size=(0, 2)),
         call(real(0, 2, 4, 4), output_size=1)], {"x": "taps"}),
    Sampled("adaptive_max_pool3d", adaptive_like(3, largest),
        lambda: [call(real(1, 2, 3, 4, 5), output_size=2), call(real(0, 1, 2, 2, 2), output_size=(1, 2, 1))],
        {"x": "taps"}),
    Sampled("adaptive_avg_pool1d", adaptive_like(1, lambda window, _: window.mean(-1)),
        lambda: [call(real(2, 2, 7), output_size=3), call(real(2, 5), output_size=8), call(real(2, 5), output_size=0),
         call(real(0, 2, 5), output_size=2)]),
    Sampled("adaptive_avg_pool2d", adaptive_like(2, lambda window, _: window.mean(-1)),
        lambda: [call(real(2, 2, 5, 7), output_size=3), call(real(1, 4, 6), output_size=(None, 4)),
         call(real(2, 2, 3, 3), output_size=(0, 2)),
         call(real(0, 2, 4, 4), output_size=1)]),
    Sampled("adaptive_avg_pool3d", adaptive_like(3, lambda window, _: window.mean(-1)),
        lambda: [call(real(1, 2, 3, 4, 5), output_size=2), call(real(0, 1, 2, 2, 2), output_size=(1, 2, 1))]),
    Sampled("pool_put", put_like,
        lambda: [call(real(1, 2, 2, 2), PLACES, kernel=(2, 3), stride=(3, 2), padding=(0, 0), dilation=(1, 1),
              size=(5, 6)),
         call(real(0, 2, 2, 2), PLACES[:0], kernel=(2, 3), stride=(3, 2), padding=(0, 0), dilation=(1, 1),
              size=(5, 6))],
        {"y": "place"}),
    Sampled("pool_take", take_like,
        lambda: [call(real(1, 2, 5, 6), PLACES, kernel=(2, 3), stride=(3, 2), padding=(0, 0), dilation=(1, 1)),
         call(real(0, 2, 5, 6), PLACES[:0], kernel=(2, 3), stride=(3, 2), padding=(0, 0), dilation=(1, 1))],
        {"x": "place"}),
    Sampled("avg_spread", spread_like,
        lambda: [call(real(2, 2, 2, 3), kernel=(2, 3), stride=(2, 2), padding=(0, 1), size=(5, 6)),
         call(real(0, 2, 3), kernel=(2,), stride=(2,), padding=(0,), size=(6,))]),
    Sampled("unfold", unfold_like,
        lambda: [call(real(2, 2, 4, 5), kernel_size=2), call(real(2, 5, 6), kernel_size=(3, 2), dilation=(1, 2),
                                                             padding=(1, 0), stride=(2, 1)),
         call(real(0, 2, 4, 4), kernel_size=2)]),
    Sampled("fold", fold_like,
        lambda: [call(real(2, 8, 12), output_size=(4, 5), kernel_size=2),
         call(real(12, 12), output_size=(5, 6), kernel_size=(3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
         call(real(0, 4, 9), output_size=4, kernel_size=2)]),
]
