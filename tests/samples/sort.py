"""Sample calls and NumPy references of ops/shapes/sort."""

import numpy as np

from cygrad.ops.shapes import sort

from . import Sampled
from .makers import call, real


def order_like(x, axis=-1, descending=False):
    return np.argsort(-x if descending else x, axis, kind="stable")


SAMPLES = [
    Sampled("sort",
        lambda x, axis=-1, descending=False: -np.sort(-x, axis) if descending else np.sort(x, axis),
        lambda: [call(real(5)), call(real(3, 4), axis=0), call(real(2, 3, 2), axis=1, descending=True),
         call(real(0, 3)), call(real(2, 0))], {"x": "order"}),
    Sampled("argsort", order_like,
        lambda: [call(real(5)), call(real(3, 4), axis=0), call(np.array([1.0, 2.0, 1.0, 2.0]), descending=True),
         call(np.array([1.0, 2.0, 1.0, 2.0])), call(real(0, 3))]),
    Sampled("topk",
        lambda x, k, axis=-1, largest=True: np.take(order_like(x, axis, largest), range(k), axis),
        lambda: [call(real(5), 2), call(real(3, 4), 3, axis=0), call(np.array([1.0, 2.0, 1.0, 2.0]), 3),
         call(real(2, 3), 1, largest=False), call(real(0, 3), 2), call(real(3), 0)],
        tested=lambda x, k, axis=-1, largest=True: sort.topk(x, k, axis, largest)[1]),
    Sampled("searchsorted", np.searchsorted,
        lambda: [call(np.sort(real(7)), real(2, 3)), call(np.array([1.0, 1, 2, 3]), np.array([[1.0, 2, 7, 0]])),
         call(np.array([1.0, 1, 2, 4]), np.array([1.0, 2, 5, 4]), side="right"), call(np.array([1.0, 3]), 2.0),
         call(np.array([3.0, 1, 2]), np.array([2.5, 0]), sorter=np.array([1, 2, 0])), call(real(0), real(3)),
         call(np.sort(real(5)), real(0, 2))]),
]
