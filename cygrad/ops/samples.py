"""What the table tries its operators on: makers of sample inputs, and in NumPy what it has no function for."""

import numpy as np


def real(*shape, low=-2.0, high=2.0, seed=0):
    """Numbers between `low` and `high`, none within 0.1 of zero."""
    x = np.random.default_rng(len(shape) + 10 * seed + sum(shape)).uniform(low, high, shape)
    return np.where(np.abs(x) < 0.1, 0.3, x)


def positive(*shape, seed=0):
    return real(*shape, low=0.3, high=2.0, seed=seed)


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


def log_softmax_like(x, axis=-1):
    shifted = x - x.max(axis, keepdims=True) if x.size else x
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def cross_entropy_like(x, labels, reduction="mean"):
    rows = -log_softmax_like(x)[np.arange(len(labels)), labels]
    return rows if reduction == "none" else getattr(rows, reduction)()


def put_slice_like(x, shape, index):
    out = np.zeros(shape, x.dtype)
    out[tuple(slice(a, a + b * c, b) if b > 0 else slice(a, None, b) for a, b, c in index)] = x
    return out


LABELS = np.array([0, 2, 1, 2])
