"""Checks of chapter 10."""

import numpy as np

import cygrad as cg
from cygrad.learn.checking import equal


def weighted(q, k, v, scale=None, mask=True, axis=1):
    """Attention by NumPy, or one with a mistake."""
    s = q @ k.T * (q.shape[1] ** -0.5 if scale is None else scale)
    if mask: s = np.where(np.tri(len(q), dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis, keepdims=True))
    return p / p.sum(axis, keepdims=True) @ v


def attention(reader):
    q, k, v = np.random.default_rng(0).normal(size=(3, 5, 4))
    got = reader.attention(*(cg.tensor(a) for a in (q, k, v)))
    equal("The result", got, weighted(q, k, v), "The first row is the first row of v: step 0 sees itself only.",
          [(weighted(q, k, v, mask=False), "Each step sees all others. Set the scores of later steps to minus "
                                           "infinity before the softmax."),
           (weighted(q, k, v, scale=1.0), "The scores are not divided by the root of the size."),
           (weighted(q, k, v, scale=0.25), "The scores are divided by the size; take its root."),
           (weighted(q, k, v, axis=0), "The softmax is over the queries. A row has the weights of one query.")])


def cached(reader):
    q, k, v = np.random.default_rng(0).normal(size=(3, 6, 4))
    right, cache = weighted(q, k, v), {}
    for t in range(6):
        got = reader.step(*(cg.tensor(a[t]) for a in (q, k, v)), cache)
        equal(f"The result of step {t}", got, right[t], "It is the attention of the new query to all keys so far.",
              [(v[t], "The step sees only itself. Keep keys and values of the earlier steps in the cache."),
               (weighted(q[:t + 1], k[:t + 1], v[:t + 1], scale=1.0)[t],
                "The scores are not divided by the root of the size.")])
    size = sum(x.size for x in cache.values() if isinstance(x, cg.Tensor))
    if size: equal("The count of numbers in the cache after six steps", size, 2 * 6 * 4,
                   "Keys and values are enough.", [(3 * 6 * 4, "Earlier queries are not needed.")])
