"""Sample calls and NumPy references of ops/images/conv."""

import itertools
import math

import numpy as np

from . import Sampled
from .linalg import activated
from .makers import call, real


def each(value, nd):
    return (value,) * nd if isinstance(value, int) else tuple(value) * (nd if len(value) == 1 else 1)


def part_at(tap, stride, dilation, size):
    """The part of padded images that an element of the kernel meets."""
    return (..., *[slice(k * d, k * d + (n - 1) * s + 1, s)
                   for k, s, d, n in zip(tap, stride, dilation, size, strict=True)])


def grouped(x, groups, axis):
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1:])


def conv_like(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, activation=None):
    nd = weight.ndim - 2
    if x.ndim == nd + 1:
        return conv_like(x[None], weight, bias, stride, padding, dilation, groups, activation)[0]
    stride, dilation = each(stride, nd), each(dilation, nd)
    whole = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if padding == "same": widths = [(n // 2, n - n // 2) for n in whole]
    else: widths = [(n, n) for n in each(0 if padding == "valid" else padding, nd)]
    x = np.pad(x, [(0, 0), (0, 0), *widths])
    size = [(n - w - 1) // s + 1 for n, w, s in zip(x.shape[2:], whole, stride, strict=True)]
    y = np.zeros((len(x), groups, len(weight) // groups, *size), x.dtype)
    for tap in itertools.product(*map(range, weight.shape[2:])):
        part = grouped(x[part_at(tap, stride, dilation, size)], groups, 1)
        y += np.einsum("goc,ngc...->ngo...", grouped(weight[(..., *tap)], groups, 0), part)
    y = y.reshape(len(x), len(weight), *size)
    return activated(y if bias is None else y + bias.reshape(-1, *[1] * nd), activation)


def conv_transpose_like(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
                        activation=None):
    nd = weight.ndim - 2
    if x.ndim == nd + 1:
        return conv_transpose_like(x[None], weight, bias, stride, padding, output_padding, groups, dilation,
                                   activation)[0]
    stride, dilation, padding = each(stride, nd), each(dilation, nd), each(padding, nd)
    size = [(n - 1) * s - 2 * p + d * (k - 1) + 1 + e for n, s, p, d, k, e in zip(
        x.shape[2:], stride, padding, dilation, weight.shape[2:], each(output_padding, nd), strict=True)]
    y = np.zeros((len(x), groups, weight.shape[1], *[n + 2 * p for n, p in zip(size, padding, strict=True)]), x.dtype)
    for tap in itertools.product(*map(range, weight.shape[2:])):
        y[part_at(tap, stride, dilation, x.shape[2:])] += np.einsum(
            "gco,ngc...->ngo...", grouped(weight[(..., *tap)], groups, 0), grouped(x, groups, 1))
    y = y[(..., *[slice(p, p + n) for p, n in zip(padding, size, strict=True)])]
    y = y.reshape(len(x), groups * weight.shape[1], *size)
    return activated(y if bias is None else y + bias.reshape(-1, *[1] * nd), activation)


def conv_weight_like(x, y, size, stride, low, dilation, groups=1):
    n = y.shape[2:]
    high = [max(0, (m - 1) * s + d * (k - 1) + 1 - w - p)
            for m, s, d, k, w, p in zip(n, stride, dilation, size, x.shape[2:], low, strict=True)]
    x = np.pad(x, [(0, 0), (0, 0), *zip(low, high, strict=True)])
    weight = np.zeros((y.shape[1], x.shape[1] // groups, *size), x.dtype)
    for tap in itertools.product(*map(range, size)):
        part = grouped(x[part_at(tap, stride, dilation, n)], groups, 1)
        product = np.einsum("ngop,ngcp->goc", *[a.reshape(*a.shape[:3], math.prod(n))
                                                for a in (grouped(y, groups, 1), part)])
        weight[(..., *tap)] = product.reshape(weight.shape[:2])
    return weight



def kept(x, weight, bias=None, activation=None, **_):
    return {"x": "weight", "weight": "x"} if activation is None else {
        "x": "weight out", "weight": "x out", "bias": "out"}


SAMPLES = [
    Sampled("conv1d", conv_like,
        lambda: [call(real(2, 2, 5), real(3, 2, 3), real(3)), call(real(2, 9), real(2, 2, 2), padding="same"),
         call(real(1, 4, 8), real(4, 2, 3), stride=2, padding=1, groups=2), call(real(0, 2, 5), real(3, 2, 3)),
         call(real(2, 3, 7), real(6, 1, 3), real(6), padding=(2,), groups=3, dilation=2),
         call(real(2, 2, 4), real(3, 2, 1), real(3), activation="tanh")], kept),
    Sampled("conv2d", conv_like,
        lambda: [call(real(2, 2, 4, 5), real(3, 2, 3, 2), real(3)),
         call(real(2, 5, 4), real(2, 2, 2, 2), padding="same"),
         call(real(1, 2, 5, 5), real(2, 2, 3, 3), real(2), stride=(2, 1), padding=(0, 1), dilation=(1, 2)),
         call(real(1, 4, 3, 4), real(2, 2, 2, 2), groups=2, padding="valid"),
         call(real(2, 2, 4, 4), real(4, 1, 3, 3), real(4), padding=1, groups=2, activation="relu"),
         call(real(2, 3, 3, 3), real(2, 3, 1, 1), real(2), activation="sigmoid"),
         call(real(1, 2, 5, 4), real(2, 2, 1, 1), stride=2),
         call(real(0, 2, 4, 4), real(3, 2, 3, 3), real(3)), call(real(1, 1, 17, 33), real(1, 1, 2, 2), padding=1)],
        kept),
    Sampled("conv3d", conv_like,
        lambda: [call(real(1, 2, 3, 4, 3), real(2, 2, 2, 2, 3), real(2)),
         call(real(2, 3, 3, 2), real(2, 1, 2, 1, 2), stride=(1, 2, 1), padding=(1, 0, 1), groups=2),
         call(real(1, 1, 4, 3, 3), real(2, 1, 2, 2, 2), padding="same", dilation=(2, 1, 1), activation="relu"),
         call(real(0, 1, 2, 2, 2), real(1, 1, 2, 2, 2))], kept),
    Sampled("conv_transpose1d", conv_transpose_like,
        lambda: [call(real(2, 2, 4), real(2, 3, 3), real(3)),
         call(real(2, 4), real(2, 2, 2), stride=2, output_padding=1),
         call(real(1, 4, 3), real(4, 1, 3), padding=1, groups=2), call(real(0, 2, 5), real(2, 3, 3)),
         call(real(2, 3, 3), real(3, 2, 3), real(6), groups=3, dilation=2, output_padding=1)], kept),
    Sampled("conv_transpose2d", conv_transpose_like,
        lambda: [call(real(2, 2, 3, 3), real(2, 3, 3, 2), real(3)),
         call(real(1, 2, 3, 3), real(2, 2, 3, 3), real(2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
         call(real(2, 3, 2), real(2, 2, 1, 1), real(2), activation="tanh"),
         call(real(1, 4, 3, 2), real(4, 2, 2, 2), real(4), groups=2, dilation=(1, 2), activation="relu"),
         call(real(0, 2, 3, 3), real(2, 1, 2, 2), real(1))], kept),
    Sampled("conv_transpose3d", conv_transpose_like,
        lambda: [call(real(1, 2, 2, 3, 2), real(2, 2, 2, 2, 2), real(2)),
         call(real(2, 2, 2, 2), real(2, 1, 2, 1, 2), stride=(1, 2, 1), groups=2, activation="sigmoid"),
         call(real(0, 1, 2, 2, 2), real(1, 1, 2, 2, 2))], kept),
    Sampled("conv_weight", conv_weight_like,
        lambda: [call(real(2, 2, 5), real(2, 3, 3), size=(3,), stride=(1,), low=(0,), dilation=(1,)),
         call(real(1, 4, 4, 5), real(1, 2, 4, 3), size=(3, 2), stride=(1, 2), low=(1, 1), dilation=(1, 2), groups=2),
         call(real(1, 2, 3, 3), real(1, 2, 3, 3), size=(1, 1), stride=(1, 1), low=(0, 0), dilation=(1, 1)),
         call(real(2, 2, 3, 3), real(2, 4, 3, 3), size=(3, 3), stride=(1, 1), low=(1, 1), dilation=(1, 1), groups=2),
         call(real(0, 2, 5), real(0, 3, 3), size=(3,), stride=(1,), low=(0,), dilation=(1,))],
        {"x": "y", "y": "x"}),
]
