"""The names of HIPS autograd that its tests use, made of cygrad.func and NumPy's functions of tensors. tools/hips.py
runs the tests with this package in place of autograd."""

import builtins
import sys
import types
from functools import partial

import numpy as onp

import cygrad as cg
from cygrad import func

from autograd.values import plain, tensors


class NumPy(types.ModuleType):
    """numpy itself, whose functions call cygrad's for tensors. Only array() must know that a list has tensors."""

    r_, c_ = cg.r_, cg.c_

    def __getattr__(self, name):
        return getattr(onp, name)

    @staticmethod
    def array(x, *args, **kwargs):
        if isinstance(x, (list, tuple)) and any(isinstance(v, cg.Tensor) or type(v) in (list, tuple) for v in x):
            parts = [NumPy.array(v) for v in x]
            return cg.stack(parts) if any(isinstance(v, cg.Tensor) for v in parts) else onp.array(x, *args, **kwargs)
        return x if isinstance(x, cg.Tensor) else onp.array(x, *args, **kwargs)


numpy = NumPy("autograd.numpy")
sys.modules |= {"autograd.numpy": numpy, "autograd.numpy.random": onp.random,
                "autograd.numpy.linalg": onp.linalg, "autograd.builtins": builtins}


def of_argument(transform):
    """A transformation that takes the place of the argument as `argnum`, and NumPy's arrays in place of tensors."""
    def transformed(fun, argnum=0, *args, **kwargs):
        argnums = tuple(argnum) if isinstance(argnum, (list, tuple)) else argnum
        f = transform(fun, argnums, *args, **kwargs)
        return lambda *xs, **named: plain(f(*tensors(xs), **named))

    return transformed


grad = of_argument(lambda fun, argnums: func.grad(fun, argnums))
value_and_grad = of_argument(lambda fun, argnums: func.value_and_grad(fun, argnums))
jacobian = of_argument(lambda fun, argnums: func.jacobian(fun, argnums))
hessian = of_argument(lambda fun, argnums: func.hessian(fun, argnums))
checkpoint = partial(partial, cg.checkpoint)


def grad_and_aux(fun, argnum=0):
    f = func.grad(fun, argnum, has_aux=True)
    return lambda *xs: plain(f(*tensors(xs)))


def elementwise_grad(fun, argnum=0):
    return lambda *xs, **named: grad(lambda *ys: fun(*ys, **named).sum(), argnum)(*xs)


def make_vjp(fun, argnum=0):
    def at(*xs):
        xs = tensors(xs)
        y, pull = func.vjp(lambda x: fun(*xs[:argnum], x, *xs[argnum + 1:]), xs[argnum])
        return lambda g: plain(pull(tensors(g))[0]), plain(y)

    return at


def make_jvp(fun, argnum=0):
    def at(*xs):
        xs = tensors(xs)
        f = lambda x: fun(*xs[:argnum], x, *xs[argnum + 1:])        # noqa: E731
        return lambda v: plain(func.jvp(f, (xs[argnum],), (tensors(v),)))

    return at


def make_hvp(fun, argnum=0):
    return lambda *xs: make_vjp(grad(fun, argnum), argnum)(*xs)


def hessian_tensor_product(fun, argnum=0):
    return lambda *xs: make_hvp(fun, argnum)(*xs[:-1])[0](xs[-1])


def tensor_jacobian_product(fun, argnum=0):
    return lambda *xs: jacobian(lambda *ys: onp.tensordot(tensors(xs[-1]), fun(*ys), xs[-1].ndim), argnum)(*xs[:-1])


def make_ggnvp(f, g=lambda x: 0.5 * onp.dot(x, x)):
    def at(x):
        y, pull = func.vjp(f, tensors(x))
        return lambda v: plain(pull(func.hvp(g, (y,), (func.jvp(f, (tensors(x),), (tensors(v),))[1],))[0])[0])

    return at


deriv = grad
globals().update({f.__name__: f for f in (dict, isinstance, list, tuple)})     # HIPS has its own, for its boxes
