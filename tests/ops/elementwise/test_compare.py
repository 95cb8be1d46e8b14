"""Bools whose bytes are not 0 or 1, as in memory of other libraries: every byte except 0 is true."""

import operator

import numpy as np
import pytest

import cygrad as cg
from rows import every_case, is_array

N = 4097


def odd(truth):
    """The same bools, with bytes from 1 to 255 for true."""
    bytes_ = np.random.default_rng(truth.size).integers(1, 256, truth.shape, dtype="uint8")
    return np.where(truth, bytes_, 0).astype("uint8").view(bool)


def results(y):
    ys = y if isinstance(y, tuple) else (y,)
    return [y.numpy().view("uint8") != 0 if y.dtype == "bool" else y.numpy() for y in ys]


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def bools(shape=N, seed=0):
    return np.random.default_rng(seed).random(shape) < 0.5


@every_case
def test_every_operation_of_bools(row, args, kwargs):
    """Floating arrays and bools become bools. Operations that then raise also raise for ordinary bools."""
    def given(change):
        return [cg.asarray(change(a > 0 if a.dtype.kind == "f" else a)) if is_array(a) and a.dtype.kind in "fb" else
                cg.tensor(a) if is_array(a) else a for a in args]

    if not any(is_array(a) and a.dtype.kind in "fb" for a in args):
        pytest.skip("no input that could be bools")
    plain, strange = given(np.copy), given(odd)
    try:
        with np.errstate(all="ignore"):
            wanted = results(row.tested(*plain, **kwargs))
    except (TypeError, ValueError):
        with pytest.raises((TypeError, ValueError)):
            row.tested(*strange, **kwargs)
        return
    with np.errstate(all="ignore"):
        same(results(row.tested(*strange, **kwargs)), wanted)


@pytest.mark.parametrize("f", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
                               operator.and_, operator.or_, operator.xor])
def test_operators_of_two(f):
    x, y = bools(seed=1), bools(seed=2)
    same(results(f(cg.asarray(odd(x)), cg.asarray(odd(y)))), [f(x, y)])
    same(results(f(cg.asarray(odd(x))[::2], cg.asarray(odd(y))[1::2][0])), [f(x[::2], y[1])])
    for other in (True, False):
        same(results(f(cg.asarray(odd(x)), other)), [f(x, other)])
        same(results(f(other, cg.asarray(odd(x)))), [f(other, x)])


def test_reading_choosing_and_ordering():
    truth = bools(64)
    x, values = cg.asarray(odd(truth)), np.arange(64.0)
    assert x.tolist() == truth.tolist() and [bool(b) for b in x] == truth.tolist()
    assert [int(b) for b in x] == truth.astype(int).tolist()
    assert str(x) == str(cg.tensor(truth))
    same(results(~x), [~truth])
    same(results(cg.asarray(values)[x]), [values[truth]])
    same(results(cg.where(x, 1, 2)), [np.where(truth, 1, 2)])
    same(results(cg.argsort(x)), [np.argsort(truth, kind="stable")])
    same(results(cg.argsort(x, descending=True)), results(cg.argsort(cg.tensor(truth), descending=True)))
    same(results(cg.topk(x, 3)), results(cg.topk(cg.tensor(truth), 3)))
    y = cg.zeros(64)
    y[x] = 1.0
    same(results(y), [truth.astype("float32")])
