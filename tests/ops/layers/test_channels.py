"""local_response_norm: values and gradients of PyTorch, for every kind of window."""

import numpy as np
import pytest

import cygrad as cg


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def plain(x, size, alpha, beta, k):
    """The definition, a channel at a time."""
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        window = x[:, max(0, c - size // 2):c + (size - 1) // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha / size * (window * window).sum(1)) ** beta
    return y


@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 4, 3, 2), (2, 3, 2, 2, 3), (3, 1, 4)])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9])
def test_windows(shape, size):
    """Also windows that are larger than the number of channels."""
    import torch
    for alpha, beta, k in ((1e-4, 0.75, 1.0), (2.0, 0.5, 0.25), (0.5, 1.5, 2.0)):
        a, g = numbers(*shape) * 3, numbers(*shape, seed=1)
        x, t = cg.tensor(a).attach_grad(), torch.tensor(a, requires_grad=True)
        with cg.record(): y = cg.local_response_norm(x, size, alpha, beta, k)
        z = torch.nn.functional.local_response_norm(t, size, alpha, beta, k)
        np.testing.assert_allclose(y.detach().numpy(), plain(a, size, alpha, beta, k), rtol=1e-12)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12)
        y.backward(cg.tensor(g))
        z.backward(torch.tensor(g))
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_the_second_derivative():
    x, v = cg.tensor(numbers(2, 3, 4)).attach_grad(), cg.tensor(numbers(2, 3, 4, seed=1))

    def f(x): return (cg.local_response_norm(x, 2, 0.5) * v).sum()

    with cg.record(): (g,) = cg.autograd.grad(f(x), [x], create_graph=True)
    with cg.record(): y = (cg.autograd.grad(f(x), [x], create_graph=True)[0] * v).sum()
    (found,) = cg.autograd.grad(y, [x])
    h = 1e-6

    def slope(x):
        x = cg.tensor(x).attach_grad()
        with cg.record(): y = f(x)
        return cg.autograd.grad(y, [x])[0].numpy()

    moved = h * v.numpy()
    np.testing.assert_allclose(found.numpy(), (slope(x.detach().numpy() + moved) - slope(x.detach().numpy() - moved))
                               / (2 * h), rtol=1e-6, atol=1e-8)
    assert g.shape == x.shape


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_empty(shape):
    y = cg.local_response_norm(cg.ones(shape), 3)
    assert y.shape == shape and y.dtype == "float32"


def test_layouts_and_errors():
    a = numbers(4, 3, 5).transpose(2, 1, 0)
    np.testing.assert_allclose(cg.local_response_norm(cg.tensor(a.T).transpose(), 3, 0.5).numpy(),
                               plain(a, 3, 0.5, 0.75, 1.0), rtol=1e-12)
    assert np.array_equal(cg.local_response_norm(a, 3), cg.local_response_norm(cg.tensor(a), 3))
    whole = np.arange(12).reshape(2, 3, 2)
    y = cg.local_response_norm(whole, 3, 0.5)
    assert y.dtype == "float32"
    np.testing.assert_allclose(y.numpy(), plain(whole.astype("float32"), 3, 0.5, 0.75, 1.0), rtol=1e-6)
    with pytest.raises(TypeError, match="^local_response_norm"): cg.local_response_norm(a, True)
