"""Sample calls and NumPy references of ops/shapes/join."""

import numpy as np

from cygrad.ops.shapes import join

from . import Sampled
from .makers import call, real


SAMPLES = [
    Sampled("concat", lambda *xs, axis=0: np.concatenate(xs, axis),
        lambda: [call(real(2, 3), real(1, 3)), call(real(2, 3), real(2, 1), axis=1), call(real(2, 2), axis=-1),
         call(real(0, 3), real(2, 3)), call(real(2), real(1), real(3), real(1, seed=1)),
         call(real(2, 3), real(), axis=None), call(real(2, 0), real(3, 0))],
        tested=lambda *xs, axis=0: join.concat(xs, axis)),
    Sampled("stack", lambda *xs, axis=0: np.stack(xs, axis),
        lambda: [call(real(2, 3), real(2, 3, seed=1)), call(real(3), real(3, seed=1), real(3, seed=2), axis=1),
         call(real(), real(seed=1)), call(real(0, 2), axis=-1)], tested=lambda *xs, axis=0: join.stack(xs, axis)),
    Sampled("split", lambda x, sections, axis=0: np.split(x, sections, axis)[1],
        lambda: [call(real(4, 3), 2), call(real(2, 5), [1, 4], axis=1), call(real(2, 5), [-3, 9], -1),
         call(real(3, 2), [2, 1]), call(real(0, 3), 3, axis=1)],
        tested=lambda x, sections, axis=0: join.split(x, sections, axis)[1]),
    Sampled("pad", lambda x, widths, value=0: np.pad(x, widths, constant_values=value),
        lambda: [call(real(2, 3), 1), call(real(2, 3), ((0, 2), (1, 0)), value=1.5), call(real(3), (2, 1)),
         call(real(0, 2), 1), call(real(), 1)]),
    Sampled("tril", np.tril,
        lambda: [call(real(3, 3)), call(real(2, 3), 1), call(real(2, 4, 3), -1), call(real(0, 3)),
         call(real(2, 2), 9)]),
    Sampled("triu", np.triu,
        lambda: [call(real(3, 3)), call(real(2, 3), 1), call(real(2, 4, 3), -1), call(real(3, 0)),
         call(real(2, 2), -9)]),
]
