"""Functions that make sample inputs, and NumPy references that several families use."""

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


def matrices(*shape, seed=0):
    """Well-conditioned matrices with different singular values."""
    x = real(*shape, low=-0.4, high=0.4, seed=seed)
    for i in range(min(shape[-2:])):
        x[..., i, i] = 1.2 + 0.8 * i
    return x


def call(*inputs, **attributes):
    return inputs, attributes


def two(f=real):
    """Samples of a binary operator: equal shapes, broadcasting in each direction, a number, size 0."""
    return [call(f(2, 3), f(2, 3, seed=1)), call(f(2, 3), f(3, seed=1)), call(f(4, 1), f(1, 3, seed=1)),
            call(f(1, seed=2), f(2, 3, seed=1)), call(f(2, 3), 1.5), call(0.5, f(3)), call(f(0, 3), f(3)),
            call(f(), f())]


def one(f=real):
    """Samples of a unary operator."""
    return [call(f(2, 3)), call(f()), call(f(0, 2))]


def unequal():
    """The samples of a binary operator without equal numbers."""
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


def sigmoid_like(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def along_axes(one=True, several=True):
    """Samples of a reduction: all axes, one, several, a 0-d tensor, size 0 along a remaining axis. `one`: one element
    too."""
    calls = [call(real(2, 3)), call(real(2, 3), axis=0), call(real(2, 3), axis=-1), call(real(2, 3, 4), axis=1),
             call(real(3, 0), axis=0), call(real(2, 3), axis=1, keepdims=True), call(real(5))]
    if several: calls += [call(real(2, 3, 4), axis=(0, 2), keepdims=True), call(real(2, 3, 4), axis=(0, 1))]
    return [*calls, call(real())] if one else calls


def targets(*shape):
    return np.random.default_rng(sum(shape)).uniform(0.1, 0.9, shape)


def log_softmax_like(x, axis=-1):
    shifted = x - x.max(axis, keepdims=True) if x.size else x
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


LABELS = np.array([0, 2, 1, 2])


def integers(*shape, high, low=0, seed=0):
    return np.random.default_rng(len(shape) + 10 * seed).integers(low, high, shape)


MASK = np.array([[True, False, True], [False, True, True]])
