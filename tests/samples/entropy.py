"""Sample calls and NumPy references of ops/losses/entropy."""

import numpy as np

from . import Sampled
from .makers import LABELS, call, integers, log_softmax_like, positive, real, targets


def rows_like(terms, labels, weight, ignore_index, reduction):
    """The reduction of minus the sums of `terms` over the last axis, the classes, for each label."""
    counts = labels != ignore_index
    values = np.where(counts, -terms.sum(-1), 0).astype(terms.dtype)
    if reduction == "none": return values
    if reduction == "sum": return values.sum()
    weight = np.ones(terms.shape[-1]) if weight is None else weight
    return (values.sum() / weight[labels[counts]].sum()).astype(terms.dtype)


def onehot(labels, classes, ignore_index):
    return np.eye(classes)[np.where(labels == ignore_index, 0, labels)]


def classes_last(x):
    return np.moveaxis(x, min(1, x.ndim - 1), -1)


def cross_entropy_like(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    x = classes_last(x)
    t = (1 - label_smoothing) * onehot(target, x.shape[-1], ignore_index) + label_smoothing / x.shape[-1]
    t = (t if weight is None else t * weight).astype(x.dtype)
    return rows_like(t * log_softmax_like(x), target, weight, ignore_index, reduction)


def soft_cross_entropy_like(x, probabilities, weight=None, reduction="mean", label_smoothing=0.0):
    x, p = classes_last(x), classes_last(probabilities)
    t = ((1 - label_smoothing) * p + label_smoothing / x.shape[-1]).astype(x.dtype)
    terms = log_softmax_like(x) * (t if weight is None else t * weight.astype(x.dtype))
    values = -terms.sum(-1)
    return values if reduction == "none" else getattr(values, reduction)()


def nll_loss_like(x, target, weight=None, ignore_index=-100, reduction="mean"):
    x = classes_last(x)
    t = onehot(target, x.shape[-1], ignore_index)
    return rows_like((x * (t if weight is None else t * weight)).astype(x.dtype), target, weight, ignore_index,
                     reduction)


def several(*shape, high, ignored=None):
    """Labels, some of which are `ignored`."""
    labels = integers(*shape, high=high, seed=3)
    return labels if ignored is None else np.where(integers(*shape, high=3) == 0, ignored, labels)


def kept_with(names):
    return lambda *args, weight=None, **_: {k: v + " weights" * (weight is not None) for k, v in names.items()}


W3, W7 = positive(3, seed=4), positive(7, seed=4)

SAMPLES = [
    Sampled("cross_entropy", cross_entropy_like,
        lambda: [call(real(4, 3), LABELS), call(real(4, 3), LABELS, reduction="sum"),
         call(real(4, 3), LABELS, reduction="none"), call(1000 * real(4, 3), LABELS),
         call(real(0, 3), LABELS[:0], reduction="sum"), call(real(0, 3), LABELS[:0]),
         call(real(0, 3), LABELS[:0], reduction="none"), call(real(3), LABELS[1:2].reshape(())),
         call(real(4, 3), LABELS, weight=W3, ignore_index=2), call(real(4, 3), LABELS, weight=W3, label_smoothing=0.2),
         call(real(2, 3, 2, 2), several(2, 2, 2, high=3, ignored=-100), reduction="none", label_smoothing=0.1),
         call(real(2, 7, 17), several(2, 17, high=7, ignored=-1), weight=W7, ignore_index=-1, reduction="none"),
         call(real(1, 7, 5, 4), several(1, 5, 4, high=7), label_smoothing=1.0),
         call(real(3, 129), several(3, high=129), label_smoothing=0.3, reduction="sum")],
        kept_with({"x": "x target lse"})),
    Sampled("soft_cross_entropy", soft_cross_entropy_like,
        lambda: [call(real(4, 3), targets(4, 3)), call(real(4, 3), targets(4, 3), reduction="none", weight=W3),
         call(real(3), targets(3), reduction="sum"), call(real(0, 3), targets(0, 3), reduction="sum"),
         call(real(2, 3, 2, 2), targets(2, 3, 2, 2), label_smoothing=0.2),
         call(real(2, 7, 17), targets(2, 7, 17), label_smoothing=0.2, weight=W7),
         call(real(2, 257), targets(2, 257), label_smoothing=0.1, reduction="none")],
        kept_with({"x": "x probabilities lse", "probabilities": "x lse"})),
    Sampled("nll_loss", nll_loss_like,
        lambda: [call(real(4, 3), LABELS), call(real(4, 3), LABELS, reduction="sum"),
         call(real(4, 3), LABELS, reduction="none"), call(real(0, 3), LABELS[:0], reduction="sum"),
         call(real(3), LABELS[1:2].reshape(())), call(real(4, 3), LABELS, weight=W3, ignore_index=2),
         call(real(2, 7, 2, 9), several(2, 2, 9, high=7, ignored=-100), reduction="none", weight=W7)],
        kept_with({"x": "target"})),
]
