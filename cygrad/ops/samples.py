"""What the table tries its operators on: makers of sample inputs, and in NumPy what it has no function for."""

import math

import numpy as np


def real(*shape, low=-2.0, high=2.0, seed=0):
    """Numbers between `low` and `high`, none within 0.1 of zero."""
    x = np.random.default_rng(len(shape) + 10 * seed + sum(shape)).uniform(low, high, shape)
    return np.where(np.abs(x) < 0.1, 0.3, x)


def positive(*shape, seed=0):
    return real(*shape, low=0.3, high=2.0, seed=seed)


def inside(*shape, seed=0):
    return real(*shape, low=-0.9, high=0.9, seed=seed)


def above_one(*shape, seed=0):
    return real(*shape, low=1.2, high=3.0, seed=seed)


def mask(*shape, seed=0):
    return np.asarray(real(*shape, seed=seed) > 0)


def call(*inputs, **attributes):
    return inputs, attributes


def two(f=real):
    """Samples of a binary operator: equal shapes, broadcasting each way, a number, nothing."""
    return [call(f(2, 3), f(2, 3, seed=1)), call(f(2, 3), f(3, seed=1)), call(f(4, 1), f(1, 3, seed=1)),
            call(f(1, seed=2), f(2, 3, seed=1)), call(f(2, 3), 1.5), call(0.5, f(3)), call(f(0, 3), f(3)),
            call(f(), f())]


def one(f=real):
    """Samples of a unary operator."""
    return [call(f(2, 3)), call(f()), call(f(0, 2))]


def unequal():
    """The samples of a binary operator, no two numbers equal."""
    return [*two()[:-1], call(real(), real(seed=1))]


def truths():
    """Samples of binary logic: bools, and numbers of which some are 0."""
    numbers = np.array([0.0, -0.0, 2.0, -1.0])
    return [call(mask(2, 3), mask(3, seed=1)), call(numbers, numbers[:, None]), call(mask(3), True),
            call(np.arange(3), np.array([0, 0, 5])), call(np.arange(3, dtype="int8"), mask(3)),
            call(real(0, 3), real(3))]


def whole():
    """Samples of binary operators on bools and integers."""
    n = np.array([[0, 1, 6], [-1, 7, 12]])
    return [call(mask(2, 3), mask(3, seed=1)), call(n, n[:1]), call(n.astype("uint8"), np.array(3, "uint8")),
            call(n, 5), call(mask(2, 3)[:0], mask(3))]


def erf_like(x):
    return np.array([math.erf(v) for v in x.ravel()], x.dtype).reshape(x.shape)


def activated(x, name):
    """What linear makes of its product."""
    return np.maximum(x, 0) if name == "relu" else np.tanh(x) if name == "tanh" else sigmoid_like(x) if name else x


def sigmoid_like(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def silu_like(x):
    wide = x.astype(np.float64)                     # where the sigmoid is a denormal float32, x times it is not
    return (wide * sigmoid_like(wide)).astype(x.dtype)


def gelu_like(x):
    return x * (0.5 * np.array([math.erfc(-v / math.sqrt(2)) for v in x.ravel()])).reshape(x.shape).astype(x.dtype)


def gelu_tanh_like(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def clip_like(x, min=None, max=None):
    return x if min is None and max is None else np.clip(x, min, max)


def along_axes(one=True, several=True):
    """Samples of a reduction: all, one axis, several, none of a number, nothing along what stays. `one`: of one element
    too."""
    calls = [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3), axis=-1), call(real(2, 3, 4), axis=1),
             call(real(3, 0), axis=0), call(real(2, 3), axis=1, keepdims=True), call(real(5))]
    if several: calls += [call(real(2, 3, 4), axis=(0, 2), keepdims=True), call(real(2, 3, 4), axis=(0, 1))]
    return [*calls, call(real())] if one else calls


def targets(*shape):
    return np.random.default_rng(sum(shape)).uniform(0.1, 0.9, shape)


def norm_like(x, ord=2, axis=None, keepdims=False):
    size = np.abs(x)
    if ord == np.inf: return size.max(axis, keepdims=keepdims)
    if ord == -np.inf: return size.min(axis, keepdims=keepdims)
    return (size ** ord).sum(axis, keepdims=keepdims) ** x.dtype.type(1 / ord)


def cumsum_like(x, axis=None):
    return np.cumsum(x, axis)


def softmax_like(x, axis=-1):
    return np.exp(log_softmax_like(x, axis))


def logsumexp_like(x, axis=None, keepdims=False):
    most = x.max(axis, keepdims=True)
    y = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return y if keepdims else y.reshape(x.sum(axis).shape)


def nll_like(log_probabilities, labels, reduction="mean"):
    return reduced(-log_probabilities[np.arange(len(labels)), labels], reduction)


def mse_like(x, y, reduction="mean"):
    return reduced((x - y) ** 2, reduction)


def bce_like(x, targets, reduction="mean"):
    return reduced(np.maximum(x, 0) - x * targets + np.log1p(np.exp(-np.abs(x))), reduction)


def reduced(values, reduction):
    return values if reduction == "none" else getattr(values, reduction)()


def log_softmax_like(x, axis=-1):
    shifted = x - x.max(axis, keepdims=True) if x.size else x
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def cross_entropy_like(x, labels, reduction="mean"):
    rows = -log_softmax_like(x)[np.arange(len(labels)), labels]
    return rows if reduction == "none" else getattr(rows, reduction)()


def layer_norm_like(x, weight, bias, eps=1e-5):
    axes = tuple(range(-weight.ndim, 0))
    z = x - x.mean(axes, keepdims=True)
    return z / np.sqrt((z ** 2).mean(axes, keepdims=True) + eps) * weight + bias


def put_slice_like(x, shape, index):
    out = np.zeros(shape, x.dtype)
    out[tuple(slice(a, a + b * c, b) if b > 0 else slice(a, None, b) for a, b, c in index)] = x
    return out


def philox(key, counter, n):
    """The first n words of Philox4x32-10 from block `counter` on (Salmon et al. 2011), in whole numbers of Python."""
    words = []
    for block in range(counter, counter + (n + 3) // 4):
        c, k = [block & 0xFFFFFFFF, block >> 32 & 0xFFFFFFFF, 0, 0], [key & 0xFFFFFFFF, key >> 32]
        for _ in range(10):
            a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
        words += c
    return words[:n]


def dropout_like(x, p, key, counter):
    kept = np.array(philox(key, counter, x.size), "float64").reshape(x.shape) >= p * 2**32
    return np.where(kept, x * x.dtype.type(1 / (1 - p) if p < 1 else 0), x.dtype.type(0))


def as_view_like(x, shape, strides, offset):
    return np.lib.stride_tricks.as_strided(x.ravel()[offset:], shape, [s * x.itemsize for s in strides])


def put_view_like(x, v, strides, offset):
    out = x.copy()
    as_view_like(out, v.shape, strides, offset)[...] = v
    return out


LABELS = np.array([0, 2, 1, 2])


def put_like(x, v, indices, attributes):
    out = x.copy()
    slices, order, axis = attributes
    seen = out[tuple(i if isinstance(i, int) else slice(i[0], i[0] + i[1] * i[2], i[1]) for i in slices)]
    seen = seen if order is None else seen.transpose(order)
    seen[(slice(None),) * axis + tuple(indices)] = v
    return out


def add_at_like(x, axis, v, *indices):
    out = x.copy()
    np.add.at(out, (slice(None),) * axis + indices, v)
    return out


def gather_like(x, axis, index):
    shorter = x[tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(index.shape))]
    return np.take_along_axis(shorter, index, axis)


def scatter_add_like(x, axis, index, src):
    out = x.copy()
    for at in np.ndindex(index.shape):
        out[(*at[:axis], index[at], *at[axis + 1:])] += src[at]
    return out


def mask_put_like(x, v, mask):
    out = x.copy()
    out[mask] = v
    return out


def order_like(x, axis=-1, descending=False):
    return np.argsort(-x if descending else x, axis, kind="stable")


def integers(*shape, high, low=0, seed=0):
    return np.random.default_rng(len(shape) + 10 * seed).integers(low, high, shape)


MASK = np.array([[True, False, True], [False, True, True]])
