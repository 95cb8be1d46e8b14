"""Sample calls and NumPy references of ops/shapes/slices."""

import numpy as np

from . import Sampled
from .makers import call, real


def put_slice_like(x, shape, index):
    out = np.zeros(shape, x.dtype)
    out[tuple(slice(a, a + b * c, b) if b > 0 else slice(a, None, b) for a, b, c in index)] = x
    return out


def put_like(x, v, indices, attributes):
    out = x.copy()
    slices, order, axis = attributes
    seen = out[tuple(i if isinstance(i, int) else slice(i[0], i[0] + i[1] * i[2], i[1]) for i in slices)]
    seen = seen if order is None else seen.transpose(order)
    seen[(slice(None),) * axis + tuple(indices)] = v
    return out


SAMPLES = [
    Sampled("getitem", lambda x, index: x[index],
        lambda: [call(real(4, 3), (slice(1, 3),)), call(real(4, 3), (slice(None, None, -2), 1)),
         call(real(4, 3), (Ellipsis, -1)),
         call(real(4), (None, slice(0, 0))), call(real(2, 3, 2), 1), call(real(5), (slice(4, None, -3),)),
         call(real(0, 3), (slice(None), 1))]),
    Sampled("put_slice", put_slice_like,
        lambda: [call(real(2, 3), (4, 3), ((1, 1, 2), (0, 1, 3))), call(real(2), (5,), ((4, -3, 2),)),
         call(real(0), (3,), ((0, 1, 0),))]),
    Sampled("put", put_like,
        lambda: [call(real(4, 3), real(2, 3), np.array([[2, -4]]), (((0, 1, 4), (0, 1, 3)), None, 0)),
         call(real(3, 4), real(2), np.array([[0, 2], [1, -1]]), (((0, 1, 3), (1, 1, 3)), (1, 0), 0)),
         call(real(2, 3), real(2, 4), np.array([[0, 1, 0, 0]]), (((0, 1, 2), (0, 1, 3)), None, 1)),
         call(real(3, 2), real(0, 2), np.zeros((1, 0), int), (((0, 1, 3), (0, 1, 2)), None, 0))],
        {"x": "indices", "v": "indices"}),
]
