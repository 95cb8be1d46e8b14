"""Derivatives beside differences, in both modes and of both orders."""

from itertools import product

import numpy as np

from cygrad import func
from cygrad.func.trees import flatten

from autograd.values import leaves, mapped, plain, tensors

STEP = 1e-6


def scalar_close(a, b):
    return abs(a - b) < 1e-6 or abs(a - b) / abs(a + b) < 1e-6


def check_equivalent(x, y):
    for a, b in zip(flatten(x)[0], flatten(y)[0], strict=True):
        assert np.shape(a) == np.shape(b), (np.shape(a), np.shape(b))
        np.testing.assert_allclose(np.asarray(plain(a)), np.asarray(plain(b)), 1e-5, 1e-6)


def random(x):
    return mapped(lambda v: tensors(np.random.randn(*v.shape)), x)


def inner(x, y):
    return sum(float((a * b).sum()) for a, b in zip(flatten(x)[0], flatten(y)[0], strict=True))


def moved(x, v, step):
    leaves, build = flatten(x)
    return build([a + step * b for a, b in zip(leaves, flatten(v)[0], strict=True)])


def check(f, x, modes, order):
    y, t = tensors(f(x)), random(x)
    u = random(y)
    ahead, behind = (tensors(f(moved(x, t, s * STEP / 2))) for s in (1, -1))
    wanted = inner(u, moved(ahead, behind, -1)) / STEP
    if "fwd" in modes: assert scalar_close(inner(u, func.jvp(f, (x,), (t,))[1]), wanted), "jvp"
    if "rev" in modes: assert scalar_close(inner(func.vjp(f, x)[1](u)[0], t), wanted), "vjp"
    if order > 1:
        if "fwd" in modes: check(lambda a: func.jvp(f, (a[0],), (a[1],))[1], (x, t), modes, order - 1)
        if "rev" in modes: check(lambda a: func.vjp(f, a[0])[1](a[1])[0], (x, u), modes, order - 1)


def check_grads(fun, argnum=None, modes=("fwd", "rev"), order=2):
    def of(*args, **kwargs):
        numbers = range(len(args)) if argnum is None else argnum if isinstance(argnum, (tuple, list)) else [argnum]
        given = tensors(args)

        def f(xs):
            new = list(given)
            for k, x in zip(numbers, xs, strict=True): new[k] = x
            return fun(*new, **kwargs)

        check(f, tuple(given[k] for k in numbers), modes, order)

    return of


def combo_check(fun, argnum, modes=("fwd", "rev"), order=2):
    """All combinations but those with complex numbers, which cygrad has not."""
    def of(*args, **kwargs):
        for xs in product(*args):
            if any(map(np.iscomplexobj, leaves(xs))): continue
            for values in product(*kwargs.values()):
                check_grads(fun, argnum, modes, order)(*xs, **dict(zip(kwargs, values, strict=True)))

    return of
