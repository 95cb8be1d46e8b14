"""Sample calls and NumPy references of ops/layers/embedding."""

import itertools

import numpy as np

from cygrad.ops.layers.embedding import embedding_bag

from . import Sampled
from .makers import call, integers, real


def embedding_like(indices, weight):
    return weight[indices]


def bagged(indices, weight, offsets=None, per_sample_weights=None, mode="mean", padding_idx=None):
    """embedding_bag with its arrays first."""
    return embedding_bag(indices, weight, offsets, mode, per_sample_weights=per_sample_weights, padding_idx=padding_idx)


def bag_like(indices, weight, offsets=None, scale=None, mode="mean", padding_idx=None):
    rows = len(weight)
    if offsets is None:
        bags = [range(b * indices.shape[1], (b + 1) * indices.shape[1]) for b in range(len(indices))]
    else:
        bags = [range(a, b) for a, b in itertools.pairwise([*offsets, indices.size])]
    flat, scale = indices.ravel() % rows, np.ones(indices.size) if scale is None else scale.ravel()
    out = np.zeros((len(bags), weight.shape[1]), weight.dtype)
    for b, bag in enumerate(bags):
        chosen = [j for j in bag if padding_idx is None or flat[j] != padding_idx % rows]
        if chosen:
            picked = weight[flat[chosen]]
            out[b] = (scale[chosen, None] * picked).sum(0) if mode == "sum" else getattr(picked, mode)(0)
    return out


def kept_by_bags(indices, weight, offsets=None, per_sample_weights=None, mode="mean", padding_idx=None):
    if mode == "max":
        return {"weight": "winners"}
    places = "rows" if offsets is None else "rows offsets"
    return {"weight": places + (" per_sample_weights" if per_sample_weights is not None else ""),
            "per_sample_weights": places + " weight"}


TABLE = real(5, 3)
BAGS = integers(3, 4, low=-5, high=5)
FLAT = integers(9, low=-5, high=5)
STARTS = np.array([0, 2, 2, 7])                     # the second bag is empty

SAMPLES = [
    Sampled("embedding", embedding_like,
        lambda: [call(np.array([0, 4, -1, 0]), TABLE), call(integers(2, 3, high=5), TABLE), call(np.array(2), TABLE),
         call(np.zeros((0, 2), int), TABLE), call(np.array([0, 1]), real(3, 0)), call(np.zeros(0, int), real(0, 3)),
         call(np.array([299, 0, 299]), real(300, 2))] +
        [call(integers(n, high=4), real(4, n)) for n in (1, 7, 8, 9, 15, 16, 17, 63, 64, 65)],
        {"weight": "rows"}),
    Sampled("embedding_bag", bag_like,
        lambda: [call(BAGS, TABLE, mode=mode) for mode in ("sum", "mean", "max")] +
        [call(FLAT, TABLE, STARTS, mode=mode) for mode in ("sum", "mean", "max")] +
        [call(FLAT, TABLE, STARTS, mode=mode, padding_idx=2) for mode in ("sum", "mean", "max")] +
        [call(BAGS, TABLE, None, real(3, 4), mode="sum"), call(FLAT, TABLE, STARTS, real(9), mode="sum"),
         call(FLAT, TABLE, STARTS, real(9), mode="sum", padding_idx=-3), call(BAGS[:, :0], TABLE, mode="max"),
         call(BAGS[:0], TABLE), call(FLAT[:0], TABLE, STARTS[:1]), call(FLAT[:0], TABLE, STARTS[:0], mode="sum"),
         call(integers(3, 4, high=256), real(256, 2), mode="max"), call(BAGS, real(5, 0))],
        kept_by_bags, tested=bagged),
]
