"""Sample calls and NumPy references of ops/layers/channels."""

import numpy as np

import cygrad as cg

from . import Sampled
from .makers import call, positive, real


def group_norm_like(x, num_groups, weight=None, bias=None, eps=1e-5):
    z = x.reshape(x.shape[0], num_groups, -1) if x.size else x.reshape(x.shape[0], num_groups, 0)
    z = z - z.mean(2, keepdims=True)
    z = z / np.sqrt((z ** 2).mean(2, keepdims=True) + eps)
    return affine(z.reshape(x.shape), weight, bias)


def instance_norm_like(x, weight=None, bias=None, eps=1e-5):
    return group_norm_like(x, x.shape[1], weight, bias, eps)


def batch_norm_like(x, weight=None, bias=None, eps=1e-5):
    axes = (0, *range(2, x.ndim))
    z = x - x.mean(axes, keepdims=True)
    return affine(z / np.sqrt((z ** 2).mean(axes, keepdims=True) + eps), weight, bias)


def batch_norm_predict_like(x, running_mean, running_var, weight=None, bias=None, eps=1e-5):
    average, var = (along(np.array(v, x.dtype), x) for v in (running_mean, running_var))
    return affine((x - average) / np.sqrt(var + eps), weight, bias)


def along(v, x):
    return v.reshape(v.shape + (1,) * (x.ndim - 2))


def affine(z, weight, bias):
    if weight is not None: z = z * along(weight, z)
    return z if bias is None else z + along(bias, z)


def in_train_mode(x, weight=None, bias=None, eps=1e-5):
    return cg.batch_norm(x, None, None, weight, bias, True, eps=eps)


def predicted(x, mean, var, weight=None, bias=None, eps=1e-5):
    """batch_norm_predict of lists, because its statistics have no gradients."""
    mean, var = cg.tensor(mean, dtype=x.dtype), cg.tensor(var, dtype=x.dtype)
    return cg.ops.ROWS["batch_norm_predict"].function(x, mean, var, weight, bias, eps)


def kept(statistics):
    def of(x, *more, **_):
        weighted = sum(isinstance(a, np.ndarray) for a in more) > 0
        return {"x": f"x weight {statistics}", "weight": f"x {statistics}"} if weighted else {"x": f"x {statistics}"}
    return of


def w(n):
    return real(n, seed=1)


def b(n):
    return real(n, seed=2)


def running(n):
    return real(n).tolist(), positive(n).tolist()


SHAPES = [(4, 6, 5), (3, 6, 2, 2), (2, 3, 33), (5, 2, 8, 9)]

SAMPLES = [
    Sampled("group_norm", group_norm_like,
        lambda: [call(real(4, 6, 5), 3, w(6), b(6)), call(real(4, 6, 5), 2, w(6)), call(real(3, 4, 2, 2), 1),
                 call(real(5, 6), 2, w(6), b(6)), call(real(0, 4, 2), 2, w(4), b(4)),
                 call(real(2, 4, 65), 2, w(4), b(4), eps=0.5), call(real(2, 2, 8, 17), 2, w(2), b(2))], kept("groups")),
    Sampled("instance_norm", instance_norm_like,
        lambda: [*[call(real(*s), w(s[1]), b(s[1])) for s in SHAPES], call(real(2, 3, 7), w(3), eps=0.1),
                 call(real(2, 3, 7)), call(real(0, 3, 2), w(3), b(3))], kept("instances")),
    Sampled("batch_norm", batch_norm_like,
        lambda: [*[call(real(*s), w(s[1]), b(s[1])) for s in SHAPES], call(real(4, 3), w(3), b(3)),
                 call(real(9, 65), w(65), b(65)), call(real(6, 129), w(129)), call(real(4, 3, 7), w(3), eps=0.1),
                 call(real(4, 3, 7)), call(real(4, 3)), call(real(0, 3, 2), w(3), b(3))],
        kept("channels"), tested=in_train_mode),
    Sampled("batch_norm_predict", batch_norm_predict_like,
        lambda: [call(real(4, 3, 5), *running(3), w(3), b(3)), call(real(4, 3), *running(3), w(3), b(3)),
                 call(real(4, 3, 5), *running(3), w(3)), call(real(4, 65), *running(65), eps=0.1),
                 call(real(0, 3), *running(3), w(3), b(3))],
        lambda x, mean, var, *more, **_: (
            {"x": "weight channels", "weight": "x channels"} if more else {"x": "channels"}),
        tested=predicted),
]
