"""Sample calls and NumPy references of ops/linalg/einsum."""

import numpy as np

from cygrad.ops.linalg import einsum

from . import Sampled
from .makers import call, real


SAMPLES = [
    Sampled("einsum", lambda x, y, equation: np.einsum(equation, x, y),
        lambda: [call(real(2, 3), real(3, 4), "ij,jk->ik"), call(real(2, 3), real(4, 3), "ij,kj->ki"),
         call(real(2, 3, 4), real(2, 4, 5), "bij,bjk->bik"), call(real(2, 3, 2), real(3, 2, 4), "ijk,jkl->il"),
         call(real(2), real(3), "i,j"), call(real(3), real(3, seed=1), "i,i"), call(real(2, 3), real(3), "ij,j->ij"),
         call(real(2, 3, 4), real(4, 2), "abc,ca->cab"), call(real(0, 3), real(3, 2), "ij,jk->ik"),
         call(real(2, 0), real(0, 3), "ij,jk->ki"), call(real(2, 2, 3), real(2, 2, 3, seed=1), "...ij,...kj->...ik"),
         call(real(2, 3, 2), real(2, 2, 3), "abc,acb->a")], {"x": "y", "y": "x"},
        tested=lambda x, y, equation: einsum.einsum(equation, x, y)),
]
