"""Sample calls and NumPy references of ops/losses/ctc."""

import itertools

import numpy as np

from . import Sampled
from .makers import call, real


def collapsed(path, blank):
    return [c for c, _ in itertools.groupby(path) if c != blank]


def ctc_loss_like(x, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """By the definition: the sum over all paths that collapse to the target."""
    single, targets = x.ndim == 2, np.array(targets)
    x = x[:, None] if single else x
    lengths, starts = np.ravel(target_lengths), np.cumsum(np.ravel(target_lengths)) - np.ravel(target_lengths)
    values = np.zeros(x.shape[1], x.dtype)
    for n, (steps, length) in enumerate(zip(np.ravel(input_lengths), lengths, strict=True)):
        target = targets[n, :length] if targets.ndim == 2 else targets[starts[n]:starts[n] + length]
        total = sum(np.exp(x[range(steps), n, path].sum(dtype="float64"))
                    for path in itertools.product(range(x.shape[2]), repeat=steps)
                    if collapsed(path, blank) == target.tolist())
        values[n] = -np.log(total) if total else 0 if zero_infinity else np.inf
    if reduction == "mean": return (values / np.maximum(lengths, 1).astype(x.dtype)).mean()
    return values.sum() if reduction == "sum" else values[0] if single else values


def log_probs(*shape):
    x = real(*shape)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


PADDED = [[1, 2], [2, 2], [2, 9], [9, 9]]         # the 9 are beyond the lengths

SAMPLES = [
    Sampled("ctc_loss", ctc_loss_like,
        lambda: [call(log_probs(4, 4, 3), PADDED, [4, 3, 4, 2], [2, 2, 1, 0]),
         call(real(4, 4, 3), PADDED, [4, 4, 1, 3], [2, 2, 1, 0], reduction="none"),
         call(log_probs(4, 3, 3), [0, 1, 0, 0, 1], [4, 4, 3], [2, 2, 1], blank=2, reduction="sum"),
         call(log_probs(3, 3), [1, 2], 3, 2, reduction="none"),
         call(log_probs(3, 2, 3), [[1, 1], [1, 2]], [2, 3], [2, 2], zero_infinity=True),
         call(log_probs(2, 0, 3), [], [], [], reduction="sum")],
        {"log_probs": "log_probs alignment"}),
]
