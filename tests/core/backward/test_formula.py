"""Formulas: gradients over tensors, recorded under create_graph, including those that are piecewise constant."""

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
    """If the first derivative is piecewise constant, all higher derivatives are zeros."""
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
    """The node between such a gradient and its input saves nothing. where() saves its masks, one byte per element."""
    x = cg.tensor(X, requires_grad=True)
    with cg.record():
        y = cg.abs(x * 1.0).sum()
        with cg.record() as tape:
            g = cg.autograd.grad(y, x, create_graph=True)
    assert g.requires_grad and tape.saved_bytes <= 2 * X.size


def test_zeros_of_steps_are_not_computed_with():
    """0 times inf is NaN, so nothing is multiplied by the zero derivatives of piecewise constant functions."""
    x, w = cg.tensor([2.0, -2.0], requires_grad=True), cg.tensor([np.inf, 1.0], requires_grad=True)
    with cg.record():
        y = cg.where(x > 0, x * w, x)
        dx = cg.autograd.grad(y.sum(), x, create_graph=True)
        found = cg.autograd.grad(dx[1], (x, w), create_graph=True)
        again = cg.autograd.grad(found[0].sum(), (x, w))
    assert [g.tolist() for g in (found[0], *again)] == [[0, 0]] * 3


def test_zeros_of_steps_reach_what_asks_for_them():
    """A retained intermediate, a hook, an edge, a function of two outputs. They change no other contribution."""
    class Both(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, a, b):
            return (0 if a is None else a * 2.0) + (0 if b is None else b * 3.0)

    seen = []
    x = cg.tensor(X, requires_grad=True)
    with cg.record():
        middle = x * 2.0
        middle.retain_grad()
        middle.register_hook(lambda g: seen.append(g.tolist()))
        dm = cg.autograd.grad(cg.abs(middle).sum(), middle, create_graph=True)
        dm.sum().backward()
    assert seen[1:] == [[0.0] * 5] and middle.grad.tolist() == x.grad.tolist() == [0.0] * 5
    with cg.record():
        left, right = Both.apply(x)
        dl, dr = cg.autograd.grad(cg.abs(left * right).sum(), (left, right), create_graph=True)
        bent = cg.autograd.grad(dl.sum(), right, retain_graph=True)
        flat = cg.autograd.grad(cg.abs(right).sum(), right, create_graph=True)
        found = cg.autograd.grad(flat.sum(), (left, right, x), allow_unused=True)
    np.testing.assert_allclose(bent.numpy(), np.sign(X * X))
    assert found[0] is None and [g.tolist() for g in found[1:]] == [[0.0] * 5] * 2 and dr.requires_grad
