"""The moving average: values, gradients of two orders, attributes, strides, errors, exact memory."""

import pickle

import numpy as np
import pytest
from cygrad_moving_average import moving_average

import cygrad as cg

X = np.random.default_rng(0).normal(size=(4, 3, 9))


@pytest.fixture(autouse=True)
def no_leak():
    with cg.testing.assert_no_leak():
        yield


def expected(x, width):
    return np.lib.stride_tricks.sliding_window_view(x, width, axis=-1).mean(axis=-1)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("see", [lambda x: x, lambda x: x.T[2:], lambda x: x[::2, 1:], lambda x: x[:0]],
                         ids=["dense", "transposed", "strided", "empty"])
def test_value_and_gradient(dtype, rtol, width, see):
    x = cg.tensor(X, dtype=dtype)
    if see(x).shape[-1] < width: return
    np.testing.assert_allclose(moving_average(see(x), width).numpy(), expected(see(X), width), rtol, atol=1e-7)
    x = cg.tensor(X)
    assert cg.testing.gradcheck(lambda x: moving_average(see(x), width), x, order=2)


def test_kernel_and_formula_agree():
    x = cg.tensor(X).attach_grad()
    weights = cg.tensor(X[..., 2:])
    with cg.record():
        (by_formula,) = cg.autograd.grad([moving_average(x, 3)], [x], [weights], create_graph=True)
    with cg.record():
        y = moving_average(x, 3)
    y.backward(weights)
    np.testing.assert_allclose(x.grad.numpy(), by_formula.detach().numpy(), rtol=1e-14, atol=1e-16)


def test_it_saves_nothing():
    x = cg.ones((10, 10)).attach_grad()
    with cg.record() as tape:
        y = moving_average(x, 4)
    assert (tape.nodes, tape.saved_bytes) == (1, 0)
    y.backward()


def test_strided_operands_cost_declared_workspace():
    x = cg.ones((64, 64)).T
    with cg.memory.events() as log:
        moving_average(x, 2)
    assert sorted(nbytes for kind, _, nbytes, *_ in log if kind == "allocate") == [64 * 63 * 4, 64 * 64 * 4]


def test_refusals():
    with pytest.raises(ValueError, match=r"x is \(3, 2\); wanted a last dimension of at least 4 elements, the width"):
        moving_average(cg.ones((3, 2)), 4)
    with pytest.raises(ValueError, match="width is 0; wanted an integer of at least 1"):
        moving_average(cg.ones(3), 0)
    with pytest.raises(TypeError, match="width is 1.5; wanted an integer of at least 1"):
        moving_average(cg.ones(3), 1.5)


def test_attributes():
    from cygrad_moving_average import Window
    w = Window(3)
    assert repr(w) == "Window(width=3)" and pickle.loads(pickle.dumps(w)) == w != Window(4)
    with pytest.raises(AttributeError):
        w.width = 5
