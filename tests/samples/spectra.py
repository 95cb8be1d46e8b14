"""Sample calls and NumPy references of ops/linalg/spectra.

The signs of singular vectors and eigenvectors are arbitrary. The references have those of cygrad."""

import numpy as np

import cygrad as cg

from . import Sampled
from .decompose import symmetric, vector
from .makers import call, matrices


def signs(ours, theirs):
    """1 or -1 for each column."""
    return np.where((ours.numpy() * theirs).sum(-2, keepdims=True) < 0, -1, 1).astype(theirs.dtype)


def svd_like(x):
    u, s, vh = np.linalg.svd(x, False)
    turn = signs(cg.svd(x, False).U, u)
    return vector([u * turn, s, vh * np.swapaxes(turn, -1, -2)])


def eigh_like(x, UPLO="L"):
    w, v = np.linalg.eigh(symmetric(x), UPLO)
    return vector([w, v * signs(cg.eigh(symmetric(x), UPLO).eigenvectors, v)])


def gaps_like(w, singular=False, zero=True, general=False):
    w = w * w if singular else w
    d = w[..., None, :] - w[..., :, None] + np.eye(w.shape[-1], dtype=w.dtype)
    return (1 / d * (1 - np.eye(w.shape[-1]))).astype(w.dtype)


def rectangular():
    return [call(matrices(3, 3)), call(matrices(4, 2)), call(matrices(2, 4)), call(matrices(2, 3, 2)),
            call(matrices(1, 1)), call(matrices(0, 2)), call(matrices(3, 0)), call(matrices(0, 2, 2))]


def upright():
    return [call(matrices(3, 3)), call(matrices(3, 3), UPLO="U"), call(matrices(2, 2, 2)), call(matrices(1, 1)),
            call(matrices(0, 0)), call(matrices(0, 2, 2), UPLO="U")]


SAMPLES = [
    Sampled("svd", svd_like, rectangular, {"x": "out"}, tested=lambda x: vector(cg.svd(x, False))),
    Sampled("svdvals", lambda x: np.linalg.svd(x, compute_uv=False), rectangular, {"x": "x"}),
    Sampled("eigh", eigh_like, upright, {"x": "out"},
        tested=lambda x, UPLO="L": vector(cg.eigh(symmetric(x), UPLO))),
    Sampled("eigvalsh", lambda x, UPLO="L": np.linalg.eigvalsh(symmetric(x), UPLO), upright,
        {"x": "sum"}, tested=lambda x, UPLO="L": cg.eigvalsh(symmetric(x), UPLO)),
    Sampled("spectral_gaps", gaps_like,
        lambda: [call(np.array([-1.0, 0.5, 2.0])), call(np.array([3.0, 1.0, 0.5]), True, False),
         call(np.array([[3.0, 1.0], [2.0, 0.0]]), True),
         call(np.array([3.0, 1.0, 2.0]), general=True), call(np.ones((2, 1))), call(np.ones(0)),
         call(np.ones((0, 2)))],
        lambda w, singular=False, zero=True, general=False: {"w": "out w" if singular else "out"}),
]
