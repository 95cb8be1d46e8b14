"""RReLU: its slopes and where they come from. test_layers.py compares the activations that are not random."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.generator import Generator


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def slopes(lower, upper, n):
    with cg.train_mode():
        return -nn.RReLU(lower, upper, generator=Generator(4))(cg.full((n,), -1.0, dtype="float64")).numpy()


@pytest.mark.parametrize("lower, upper", [(1 / 8, 1 / 3), (0.0, 1.0), (-0.5, 0.25), (0.2, 0.2)])
def test_slopes_are_uniform(lower, upper):
    a = slopes(lower, upper, 20_000)
    tolerance = 0.01 * (upper - lower) + 1e-12
    assert a.min() >= lower and a.max() <= upper and a.min() <= lower + tolerance and a.max() >= upper - tolerance
    np.testing.assert_allclose(np.quantile(a, [0.25, 0.5, 0.75]), lower + (upper - lower) * np.array([0.25, 0.5, 0.75]),
                               atol=2 * tolerance)


def test_the_value_and_the_gradient():
    a, x, g = slopes(0.25, 0.5, 600), numbers(600), numbers(600, seed=1)
    x[:4] = 0.0, -0.0, np.inf, -np.inf
    t = cg.tensor(x).attach_grad()
    with cg.record(): y = nn.RReLU(0.25, 0.5, generator=Generator(4))(t)
    np.testing.assert_array_equal(y.detach().numpy(), np.where(x > 0, x, a * x))
    y.backward(cg.tensor(g))
    np.testing.assert_array_equal(t.grad.numpy(), g * np.where(x > 0, 1.0, a))
    with cg.train_mode(): assert np.isnan(nn.RReLU()(cg.tensor([np.nan])).item())


@pytest.mark.parametrize("bounds", [(), (0.1, 0.9)])
def test_predictions_are_those_of_pytorch(bounds):
    import torch
    x = numbers(30, 4)
    layer, theirs = nn.RReLU(*bounds), torch.nn.RReLU(*bounds).double().eval()
    t, u = cg.tensor(x).attach_grad(), torch.tensor(x, requires_grad=True)
    with cg.record(train_mode=False): y = layer(t)
    z = theirs(u)
    y.backward(cg.ones(y.shape, dtype="float64"))
    z.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-15)
    np.testing.assert_allclose(t.grad.numpy(), u.grad.numpy(), rtol=1e-15)
    assert layer.eval()(cg.tensor(x)).shape == (30, 4) and not layer.training
    with cg.train_mode(), pytest.raises(RuntimeError, match="RReLU: eval"): layer(cg.tensor(x))
    assert repr(nn.RReLU(0.25, 0.5)) == "RReLU(lower=0.25, upper=0.5)"


def test_backward_saves_one_number_for_each_element():
    """The slopes and the mask are gone, and x is not kept."""
    x = cg.ones(100_000).attach_grad()
    layer = nn.RReLU()
    before = cg.memory.stats()["live_bytes"]
    with cg.record(): y = layer(x)
    assert cg.memory.stats()["live_bytes"] - before - y.nbytes == x.nbytes


def test_the_numbers_come_from_the_generator():
    """The same seed gives the same bits, with any number of threads and computed again; another seed gives others."""
    x, default = cg.tensor(numbers(64, 500)), cg.random.default_generator.state
    threads, found = cg.get_num_threads(), []
    layer = nn.RReLU(generator=Generator(9))
    try:
        for n in (1, 2):
            cg.set_num_threads(n)
            layer.generator.state = 9, 0
            with cg.train_mode(): found.append(layer(x).numpy().tobytes())
    finally:
        cg.set_num_threads(threads)
    drawn = layer.generator.state
    assert found[0] == found[1] and drawn[1] > 0 and cg.random.default_generator.state == default
    with cg.train_mode(): assert nn.RReLU(generator=Generator(8))(x).numpy().tobytes() != found[0]
    x.attach_grad()
    gradients = []
    for again in (False, True):
        layer.generator.state = 9, 0
        x.zero_grad()
        with cg.record(): y = layer.checkpoint_(again)(x)
        y.backward(x.detach())
        assert y.detach().numpy().tobytes() == found[0] and layer.generator.state == drawn
        gradients.append(x.grad.numpy().tobytes())
    assert gradients[0] == gradients[1]
    cg.random.seed(5)
    with cg.train_mode(): a = nn.RReLU()(x.detach()).numpy()
    cg.random.seed(5)
    with cg.train_mode(): assert np.array_equal(nn.RReLU()(x.detach()), a)
