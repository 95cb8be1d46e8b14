"""Sample calls and NumPy references of ops/losses/loss."""

import numpy as np

from . import Sampled
from .makers import call, real, targets


def mse_like(x, y, reduction="mean"):
    return reduced((x - y) ** 2, reduction)


def bce_like(x, targets, reduction="mean"):
    return reduced(np.maximum(x, 0) - x * targets + np.log1p(np.exp(-np.abs(x))), reduction)


def reduced(values, reduction):
    return values if reduction == "none" else getattr(values, reduction)()


SAMPLES = [
    Sampled("mse", mse_like,
        lambda: [call(real(4, 3), real(4, 3, seed=1)), call(real(4, 3), real(4, 3, seed=1), reduction="sum"),
         call(real(4, 3), real(3, seed=1), reduction="none"), call(real(4, 1), real(4, 3, seed=1)),
         call(real(3), 0.5), call(real(0, 3), real(3), reduction="sum"), call(real(), real(seed=1))],
        {"x": "difference", "y": "difference"}),
    Sampled("bce_with_logits", bce_like,
        lambda: [call(real(4, 3), targets(4, 3)), call(real(4, 3), targets(4, 3), reduction="sum"),
         call(real(4, 3), targets(4, 3), reduction="none"), call(100 * real(3), targets(3)),
         call(real(0, 3), targets(0, 3), reduction="sum"), call(real(), targets()),
         call(real(4, 5), np.array([0.0, 1, 1, 0, 1])[None] * np.ones((4, 1)))],
        lambda x, targets, reduction="mean": {"x": "x hard" if ((targets == 0) | (targets == 1)).all() else "x targets",
                                              "targets": "x"}),
]
