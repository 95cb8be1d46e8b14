"""Sample calls and NumPy references of elementwise losses: ops/losses/distances, ops/losses/likelihoods,
ops/losses/margins."""

import math

import numpy as np
from scipy.special import xlogy

import cygrad as cg

from . import Sampled
from .loss import reduced
from .makers import call, integers, positive, real, targets


def batch_reduced(values, reduction):
    return values.sum() / len(values) if reduction == "batchmean" else reduced(values, reduction)


def smooth_l1_like(x, t, reduction="mean", beta=1.0):
    d = np.abs(x - t)
    return reduced(np.where(d < beta, d * d / (2 * beta), d - beta / 2), reduction)


def huber_like(x, t, reduction="mean", delta=1.0):
    d = np.abs(x - t)
    return reduced(np.where(d <= delta, d * d / 2, delta * (d - delta / 2)), reduction)


def kl_like(x, t, reduction="mean", log_target=False):
    return batch_reduced(np.exp(t) * (t - x) if log_target else xlogy(t, t) - t * x, reduction)


def gaussian_like(x, t, v, full=False, eps=1e-6, reduction="mean"):
    if x.shape[:-1] == v.shape != x.shape: v = v[..., None]
    v = np.maximum(v, np.asarray(eps, v.dtype))
    return reduced((np.log(v) + (x - t) ** 2 / v) / 2 + (0.5 * math.log(2 * math.pi) if full else 0), reduction)


def poisson_like(x, t, log_input=True, full=False, eps=1e-8, reduction="mean"):
    values = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full: values = values + np.where(t > 1, t * np.log(t) - t + np.log(2 * np.pi * t) / 2, 0)
    return reduced(values, reduction)


def bce_like(x, t, w=None, reduction="mean"):
    values = -(t * np.log(x) + (1 - t) * np.log(1 - x))
    return reduced(values if w is None else values * w, reduction)


def logits_like(x, t, w=None, u=None, reduction="mean"):
    soft = np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))
    values = (1 - t) * x + (1 + ((1 if u is None else u) - 1) * t) * soft
    return reduced(values if w is None else values * w, reduction)


def with_logits(x, t, w=None, u=None, reduction="mean"):
    return cg.binary_cross_entropy_with_logits(x, t, w, reduction, u)


def soft_margin_like(x, t, reduction="mean"):
    return reduced(np.maximum(-t * x, 0) + np.log1p(np.exp(-np.abs(t * x))), reduction)


def hinge_like(x, t, margin=1.0, reduction="mean"):
    x = np.asarray(x)
    return reduced(np.where(t == -1, x.dtype.type(0), x) + np.where(t == 1, x.dtype.type(0), np.maximum(margin - x, 0)),
                   reduction)


def pairs(first=real, second=real, **attributes):
    """Each reduction; broadcasting; size 0; no dimensions; more than one strip."""
    a = attributes
    return [call(first(4, 3), second(4, 3, seed=1), **a), call(first(4, 3), second(4, 3, seed=1), reduction="sum", **a),
            call(first(4, 3), second(3, seed=1), reduction="none", **a), call(first(), second(seed=1), **a),
            call(first(0, 3), second(0, 3), reduction="sum", **a), call(first(65), second(65, seed=1), **a)]


def probabilities(*shape):
    """At most 0.45, because the test of programs doubles them."""
    return np.asarray(0.5 * targets(*shape))


def signs(*shape, seed=0):
    return np.asarray(2 * integers(*shape, high=2, seed=seed) - 1)


CODES = {"x": "pairs", "target": "pairs"}
BOTH = {"x": "x target", "target": "x target"}
ALL = {"x": "x target var", "target": "x target var", "var": "x target var"}

SAMPLES = [
    Sampled("l1_loss", lambda x, t, reduction="mean": reduced(np.abs(x - t), reduction), pairs, CODES),
    Sampled("smooth_l1_loss", smooth_l1_like, lambda: [*pairs(), *pairs(beta=0.75)[:3]], BOTH),
    Sampled("huber_loss", huber_like, lambda: [*pairs(), *pairs(delta=0.75)[:3]], BOTH),
    Sampled("kl_div", kl_like,
        lambda: [*pairs(second=positive), *pairs(log_target=True),
                 call(real(4, 3), positive(4, 3), reduction="batchmean"),
                 call(real(4, 3), real(4, 3, seed=1), reduction="batchmean", log_target=True)],
        {"x": "target", "target": "x target"}),
    Sampled("gaussian_nll_loss", gaussian_like,
        lambda: [call(real(4, 3), real(4, 3, seed=1), positive(4, 3)),
                 call(real(4, 3), real(3, seed=1), positive(4), full=True, reduction="sum"),
                 call(real(4, 3), real(4, 3, seed=1), positive(4, 1), reduction="none"),
                 call(real(), real(seed=1), positive()),
                 call(real(0, 3), real(0, 3), positive(0, 3), reduction="sum")], ALL),
    Sampled("poisson_nll_loss", poisson_like,
        lambda: [*pairs(second=positive), *pairs(positive, positive, log_input=False)[:5],
                 call(real(4, 3), 2 * positive(4, 3), full=True),
                 call(positive(4, 3), 2 * positive(4, 3), False, True)], BOTH),
    Sampled("binary_cross_entropy", bce_like,
        lambda: [call(probabilities(4, 3), targets(4, 3)), call(probabilities(4, 3), targets(4, 3), reduction="sum"),
                 call(probabilities(4, 3), targets(4, 3), positive(3)), call(probabilities(), targets()),
                 call(probabilities(4, 3), targets(4, 3), positive(4, 1), reduction="none"),
                 call(probabilities(0, 3), targets(0, 3), reduction="sum")],
        {"x": "x target weight", "target": "x weight", "weight": "x target"}),
    Sampled("binary_cross_entropy_with_logits", logits_like,
        lambda: [call(real(4, 3), targets(4, 3), positive(4, 3)),
                 call(real(4, 3), targets(4, 3), positive(4, 1), positive(3, seed=1)),
                 call(real(4, 3), targets(4, 3), None, positive(3), reduction="none"),
                 call(100 * real(4, 3), targets(4, 3), positive(3), positive(3, seed=1), reduction="sum"),
                 call(real(), targets(), positive()), call(real(0, 3), targets(0, 3), positive(3), reduction="sum")],
        {"x": "x t w u", "t": "x w u", "w": "x t u", "u": "x t w"}, tested=with_logits),
    Sampled("soft_margin_loss", soft_margin_like, lambda: [*pairs(), call(100 * real(3), 3 * real(3, seed=1))], BOTH),
    Sampled("hinge_embedding_loss", hinge_like,
        lambda: [*pairs(second=signs), call(real(4, 3), signs(4, 3) * integers(4, 3, high=2), margin=0.55)],
        {"x": "pairs"}),
]
