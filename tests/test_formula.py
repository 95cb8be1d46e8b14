"""Formulas: gradients over tensors, recorded under create_graph; what of them is constant around almost every point."""

import numpy as np
import pytest

import cygrad as cg

X = np.array([-1.5, 0.5, 2.0, 0.75, -0.25])
PIECEWISE = {
    "abs": cg.abs, "relu": cg.relu, "clip": lambda x: cg.clip(x, -1, 1), "clip by tensors": lambda x: cg.clip(0, x, 1),
    "maximum": lambda x: cg.maximum(x, 0.5), "minimum": lambda x: cg.minimum(0.5, x),
    "where": lambda x: cg.where(x > 0, x, 2 * x), "max": cg.max, "min": lambda x: cg.min(x, axis=0, keepdims=True),
    "sort": cg.sort, "topk": lambda x: cg.topk(x, 2)[0], "norm 1": lambda x: cg.norm(x, 1),
    "norm inf": lambda x: cg.norm(x, np.inf), "norm -inf": lambda x: cg.norm(x, -np.inf),
    "linear": lambda x: cg.linear(x.reshape(1, 5), cg.ones((2, 5), dtype="float64"), activation="relu"),
    "in place": lambda x: (x * 1.0).__iadd__(cg.relu(x)),
}


@pytest.mark.parametrize("f", PIECEWISE.values(), ids=PIECEWISE)
def test_further_derivatives_of_steps_are_zeros(f):
    """Where the first derivative depends on the value, but in steps, all further ones are zeros."""
    x = cg.tensor(X, requires_grad=True)
    with cg.record():
        g = cg.autograd.grad(f(x).sum(), x, create_graph=True)
        assert g.detach().numpy().any()
        for _ in range(3):
            g = cg.autograd.grad((g * g).sum(), x, create_graph=True)
            assert g.dtype == "float64" and np.array_equal(g.detach().numpy(), np.zeros(5))
        loss = cg.autograd.grad((f(x) * 3.0).sum(), x, create_graph=True).sum()
    loss.backward()
    assert np.array_equal(x.grad.numpy(), np.zeros(5)) and x.fresh_grad


def test_derivatives_that_do_not_depend_on_the_input_are_not_recorded():
    x = cg.tensor(X, requires_grad=True)
    for f in (lambda x: 3 * x, lambda x: x.reshape(5, 1), cg.sign, cg.floor, lambda x: x[x > 0], cg.cumsum):
        with cg.record():
            g = cg.autograd.grad(f(x).sum(), x, create_graph=True)
            assert not g.requires_grad
            with pytest.raises(RuntimeError, match="was not recorded"):
                cg.autograd.grad(g.sum(), x)


def test_steps_within_a_function_that_bends():
    """|x|^3 to its third derivative, and relu(w x)^2 differentiated by x, then by both."""
    x, w = cg.tensor(X, requires_grad=True), cg.tensor(2.0, dtype="float64", requires_grad=True)
    with cg.record():
        first = cg.autograd.grad((cg.abs(x) ** 3).sum(), x, create_graph=True)
        second = cg.autograd.grad(first.sum(), x, create_graph=True)
        third = cg.autograd.grad(second.sum(), x)
    np.testing.assert_allclose(second.detach().numpy(), 6 * np.abs(X))
    np.testing.assert_allclose(third.numpy(), 6 * np.sign(X))
    with cg.record():
        dx = cg.autograd.grad((cg.relu(w * x) ** 2).sum(), x, create_graph=True)
        found = cg.autograd.grad(dx.sum(), (x, w))
    np.testing.assert_allclose(found[0].numpy(), 8 * (X > 0))
    np.testing.assert_allclose(found[1].numpy(), (8 * X * (X > 0)).sum())


def test_steps_keep_no_values():
    """What connects such a gradient with its input keeps nothing; where() keeps its masks, a byte for each element."""
    x = cg.tensor(X, requires_grad=True)
    with cg.record():
        y = cg.abs(x * 1.0).sum()
        with cg.record() as tape:
            g = cg.autograd.grad(y, x, create_graph=True)
    assert g.requires_grad and tape.saved_bytes <= 2 * X.size
