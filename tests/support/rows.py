"""The rows of the table as test cases, and functions that their tests share."""

import inspect

import numpy as np
import pytest

import cygrad as cg
from tests.samples import TABLE

DTYPES = ("float32", "float64")
ALL_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", *DTYPES)
ELEMENTWISE = ("elementwise", "functions", "compare")
CASES = [pytest.param(row, *pair, id=f"{row.name}-{i}") for row in TABLE for i, pair in enumerate(row.tries)]
DIFFERENTIABLE = [case for case in CASES if case.values[0].operator.differentiable]
ROWS = [pytest.param(row, id=row.name) for row in TABLE]
DIFFERENTIABLE_ROWS = [pytest.param(row, id=row.name) for row in TABLE if row.operator.differentiable]

every_case = pytest.mark.parametrize("row, args, kwargs", CASES)
every_gradient = pytest.mark.parametrize("row, args, kwargs", DIFFERENTIABLE)
both_dtypes = pytest.mark.parametrize("dtype", DTYPES)


# ---- helpers ---------------------------------------------------------------------------------------------------------

def is_array(v):
    return isinstance(v, np.ndarray)


def is_floating(v):
    return is_array(v) and v.dtype.kind == "f"


def in_dtype(args, dtype):
    """The arguments with their floating arrays in `dtype`."""
    return [np.asarray(a, dtype) if is_floating(a) else a for a in args]


def tensors(args):
    """The arguments with new tensors in place of arrays."""
    return [cg.tensor(a) if is_array(a) else a for a in args]


def floating_places(args):
    return [i for i, a in enumerate(args) if is_floating(a)]


def parameters(row):
    return list(inspect.signature(row.tested).parameters)


def packed(n, bits=1):
    return (n * bits + 7) // 8


def place_size(n):
    """Bytes of the smallest unsigned integer that can hold the numbers below n."""
    return next(size for size in (1, 2, 4, 8) if n <= 256 ** size)


def places(args, y, wanted):
    mask = args[-1]
    return min(packed(mask.size), int(mask.sum()) * max(2, place_size(mask.size)))


def classes(args):
    """The number of classes of a loss."""
    return args[0].shape[min(1, args[0].ndim - 1)]


# Bytes of saved values that are not inputs, by the tokens of Sampled.keeps.
HIDDEN = {
    "out": lambda args, y, wanted: y.nbytes,
    "sum": lambda args, y, wanted: y.itemsize * args[0].size,
    "rates": lambda args, y, wanted: y.itemsize * (args[0].size // (args[1] if len(args) > 1 else args[0][0]).size
                                                   if args[0].size else 0),
    "groups": lambda args, y, wanted: 2 * y.itemsize * args[0].shape[0] * args[1],
    "instances": lambda args, y, wanted: 2 * y.itemsize * args[0].shape[0] * args[0].shape[1],
    "channels": lambda args, y, wanted: 2 * y.itemsize * args[0].shape[1],
    "statistics": lambda args, y, wanted: y.itemsize * int(np.prod(y.shape[:-1])),
    "hiddens": lambda args, y, wanted: y.itemsize * args[0].shape[0] * args[5].size,
    "cells": lambda args, y, wanted: y.itemsize * args[0].shape[0] * args[5].size,
    "gates": lambda args, y, wanted: y.itemsize * args[0].shape[0] * args[5].size * 4,
    "taps": lambda args, y, wanted: y.size,
    "lse": lambda args, y, wanted: y.itemsize * (args[0].size // classes(args)),
    "alignment": lambda args, y, wanted: 8 * (3 * np.size(args[2]) + int(np.sum(args[3]))),
    "row_logs": lambda args, y, wanted: y.itemsize * args[2].size,
    "weights": lambda args, y, wanted: y.itemsize * classes(args),
    "order": lambda args, y, wanted: y.size * place_size(max(y.shape)),
    "bits": lambda args, y, wanted: packed(args[0].size),
    "codes": lambda args, y, wanted: packed(y.size, 2),
    "pairs": lambda args, y, wanted: packed(np.broadcast(*args[:2]).size, 2),
    "truths": lambda args, y, wanted: packed(y.size),
    "choice": lambda args, y, wanted: packed(y.size, 1 if len(wanted) == 1 else 2),
    "places": places,
    "hard": lambda args, y, wanted: packed(args[0].size),
    "rows": lambda args, y, wanted: args[0].size * place_size(len(args[1])),
    "winners": lambda args, y, wanted: y.size * place_size(len(args[1]) + 1),
    "difference": lambda args, y, wanted: y.itemsize * np.subtract(*args).size,
}


# Inputs that are copied if they are integers, because the caller may reuse the array of labels.
COPIED = {"target", "indices", "index", "offsets"}


def close(a, b, dtype):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    rtol, atol = (3e-6, 2e-6) if dtype == "float32" else (1e-13, 1e-13)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def same_bits(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def head_for(y, seed=7):
    """A head gradient of random numbers for an output."""
    return cg.tensor(np.random.default_rng(seed).uniform(-1, 1, y.shape), dtype=y.dtype)


def rounding(row, args):
    """The rounding error is proportional to the size of the numbers."""
    return max([1.0, *[float(np.abs(a).max(initial=0)) for a in args if is_floating(a)]])


def gradients(row, args, kwargs, how="plain", stride=None, through=None):
    """The value and the gradients for all floating inputs. how: "plain" (fused kernels, which free the graph),
    "retain", or "graph" (formulas). stride: a function that returns a strided array of the same values. through:
    applied to each variable while recording; the operation gets its result."""
    xs = tensors(args)
    places = floating_places(args)
    for i in places:
        xs[i] = (cg.asarray(stride(args[i])) if stride else xs[i]).requires_grad_()
    leaves = [xs[i] for i in places]
    with cg.record():
        if through:
            for i in places:
                xs[i] = through(xs[i])
        y = row.tested(*xs, **kwargs)
    del xs
    value = y.detach().copy().numpy()
    head = head_for(y)
    before = head.copy().numpy()
    found = cg.autograd.grad(y, leaves, head, retain_graph=how == "retain" or None, create_graph=how == "graph",
                             allow_unused=True)
    same_bits(head.numpy(), before)                 # the caller's head does not change
    if how == "retain":
        again = cg.autograd.grad(y, leaves, head, allow_unused=True)
        for a, b in zip(found, again, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                same_bits(a.numpy(), b.numpy())
    for x, i in zip(leaves, places, strict=True):
        assert np.array_equal(x.detach().numpy(), args[i])
    return value, [None if g is None else g.detach().numpy() for g in found]
