"""Sample calls and NumPy references of ops/layers/attention."""

import numpy as np

from . import Sampled
from .makers import call, mask, real
from .random import philox


def attention_like(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False, factors=None):
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    s = query @ key.swapaxes(-1, -2) * query.dtype.type(1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf) if attn_mask.dtype == bool else s + attn_mask
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(np.isinf(top), 0, top))
    total = p.sum(-1, keepdims=True)
    p = p / np.where(total == 0, 1, total)
    return ((p if factors is None else p * factors) @ value).astype(query.dtype)


def with_dropout_like(query, key, value, p, seed, counter, is_causal=False):
    shape = (*np.broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], (key.shape[-2] + 3) // 4 * 4)
    kept = np.array(philox(seed, counter, int(np.prod(shape))), "float64").reshape(shape) >= p * 2**32
    factors = np.where(kept, 1 / (1 - p) if p < 1 else 0, 0)[..., :key.shape[-2]].astype(query.dtype)
    return attention_like(query, key, value, is_causal=is_causal, factors=factors)


def three(lead, queries, keys, width, value_width):
    return [real(*lead, queries, width), real(*lead, keys, width, seed=1), real(*lead, keys, value_width, seed=2)]


EMPTY_ROWS = np.array([[True, False, True], [False, False, False]])

SAMPLES = [
    Sampled("scaled_dot_product_attention", attention_like,
        lambda: [call(*three((2, 3), 4, 5, 3, 2)), call(*three((), 3, 3, 2, 2), is_causal=True),
         call(*three((2,), 2, 3, 4, 1), EMPTY_ROWS), call(*three((2, 2), 2, 3, 4, 1), real(2, 1, 2, 3, seed=4)),
         call(*three((2,), 3, 2, 4, 3), real(2, seed=4), scale=0.3), call(*three((2,), 2, 5, 3, 3), mask(2, 2, 1)),
         call(*three((2,), 3, 4, 2, 2), mask(3, 4), is_causal=True),
         call(real(2, 4, 3, 2), real(2, 2, 5, 2, seed=1), real(2, 2, 5, 3, seed=2), enable_gqa=True),
         call(real(4, 3, 2), real(2, 5, 2, seed=1), real(2, 5, 3, seed=2), real(4, 1, 5, seed=3), enable_gqa=True,
              is_causal=True),
         call(real(2, 1, 2, 3), real(2, 4, 3, seed=1), real(4, 2, seed=2)),
         call(*three((2,), 0, 3, 2, 2)), call(*three((2,), 3, 0, 2, 2)), call(*three((0,), 3, 2, 2, 2)),
         call(*three((2,), 3, 2, 2, 0)), call(*three((1,), 1, 1, 1, 1)),
         call(30 * real(2, 3), *three((), 1, 2, 3, 2)[1:])],
        lambda query, key, value, attn_mask=None, **_: dict.fromkeys(
            ("query", "key", "attn_mask"), "query key value attn_mask out statistics")
        | {"value": "query key attn_mask statistics"}),
    Sampled("attention_with_dropout", with_dropout_like,
        lambda: [call(*three((2,), 3, 5, 2, 3), 0.5, 7, 2**40),
         call(*three((), 4, 4, 2, 2), 0.25, 3, 1, is_causal=True),
         call(*three((2,), 3, 2, 2, 2), 0.0, 1, 2), call(*three((2,), 3, 2, 2, 2), 1.0, 1, 2),
         call(*three((2,), 3, 0, 2, 2), 0.5, 1, 2)],
        {"query": "query key value out statistics", "key": "query key value out statistics",
         "value": "query key statistics"}),
]
