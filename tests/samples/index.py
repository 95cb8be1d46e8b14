"""Sample calls and NumPy references of ops/shapes/index."""

import numpy as np

from . import Sampled
from .makers import LABELS, MASK, call, integers, real


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


SAMPLES = [
    Sampled("take", np.take,
        lambda: [call(real(5, 3), np.array([0, 4, -1, 0])), call(real(2, 5, 2), np.array([[1, 3], [0, 1]]), axis=1),
         call(real(4), np.array(2), axis=0), call(real(3, 2), np.array([1, 1, 0]), axis=-1),
         call(real(0, 3), np.array([2, 0]), axis=1), call(real(3), np.zeros((0, 2), int), axis=0)],
        {"x": "indices"}),
    Sampled("add_at", add_at_like,
        lambda: [call(real(4, 3), 0, real(3, 3), np.array([1, -1, 1])),
         call(real(0, 3), 1, real(0, 1), np.array([2]))], {"v": "indices"}),
    Sampled("gather", gather_like,
        lambda: [call(real(3, 4), 1, integers(3, 2, low=-4, high=4)), call(real(3, 4), 0, integers(2, 3, high=3)),
         call(real(2, 3, 2), -2, integers(2, 4, 2, high=3)), call(real(0, 3), 1, integers(0, 2, high=3)),
         call(real(4), 0, np.array([1, 1, 1]))], {"x": "index"}),
    Sampled("scatter_add", scatter_add_like,
        lambda: [call(real(3, 4), 1, integers(3, 2, low=-4, high=4), real(3, 2)),
         call(real(3, 4), 0, integers(2, 3, high=3), real(2, 3)), call(real(4), 0, np.array([1, 1, 1]), real(3)),
         call(real(2, 3), 1, integers(2, 2, high=3), real(2, 5)),
         call(real(0, 3), 1, integers(0, 2, high=3), real(0, 2))],
        {"src": "index"}),
    Sampled("argwhere", np.argwhere,
        lambda: [call(MASK), call(np.array([[0.0, 2.0], [3.0, 0.0]])), call(real(0, 2)), call(np.array(True))]),
    Sampled("one_hot", lambda labels, classes, dtype: np.eye(classes, dtype=dtype)[labels],
        lambda: [call(LABELS, 3, "float32"), call(LABELS.reshape(2, 2), 4, "int64"), call(LABELS[:0], 3, "float64"),
         call(np.array(1), 2, "bool")]),
]
