"""AlphaDropout and FeatureAlphaDropout: the moments that they keep, PyTorch's affine map, and where their numbers come
from. test_linear.py has what all kinds of dropout share."""

import math

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.execute.generator import Generator

LOWEST = -1.7580993408473766


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def affine(p):
    """a and b of the paper, as PyTorch computes them."""
    a = 1 / math.sqrt((LOWEST**2 * p + 1) * (1 - p))
    return a, -a * LOWEST * p


def dropped_at(cls, p, shape):
    """The mask of the elements that a layer of seed 5 sets to the lowest value, and the value of a dropped 0."""
    a, b = affine(p)
    with cg.train_mode(): y = cls(p, generator=Generator(5))(cg.zeros(shape, dtype="float64")).numpy()
    mask = y < (a * LOWEST + 2 * b) / 2
    np.testing.assert_allclose(y, np.where(mask, a * LOWEST + b, b), rtol=1e-12)
    return mask


@pytest.mark.parametrize("cls, shape, same", [(nn.AlphaDropout, (300, 70), ()),
                                              (nn.FeatureAlphaDropout, (300, 70, 3), (2,)),
                                              (nn.FeatureAlphaDropout, (300, 70), ()),
                                              (nn.FeatureAlphaDropout, (200, 50, 2, 3), (2, 3))])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_the_map_and_its_gradient(cls, shape, same, p):
    """a x + b where kept, a c + b where dropped; the gradient is a where kept. Whole channels are dropped."""
    a, b = affine(p)
    mask = dropped_at(cls, p, shape)
    assert (mask.all(axis=same) == mask.any(axis=same)).all() and abs(mask.mean() - p) < 0.03
    x, g = cg.tensor(numbers(*shape)).attach_grad(), numbers(*shape, seed=1)
    with cg.record(): y = cls(p, generator=Generator(5))(x)
    np.testing.assert_allclose(y.detach().numpy(), np.where(mask, a * LOWEST + b, a * x.numpy() + b), rtol=1e-12,
                               atol=1e-12)
    y.backward(cg.tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), np.where(mask, 0, a * g), rtol=1e-12)
    assert abs(y.numpy().mean()) < 0.05 and abs(y.numpy().std() - 1) < 0.05


@pytest.mark.parametrize("cls", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_the_distribution_is_that_of_pytorch(cls):
    """The values that a dropped and a kept number become, which PyTorch's module has too."""
    import torch
    torch.manual_seed(0)
    x = np.full((400, 50, 1), 0.75)
    theirs = getattr(torch.nn, cls.__name__)(0.3).double()(torch.tensor(x)).numpy()
    with cg.train_mode(): ours = cls(0.3, generator=Generator(5))(cg.tensor(x)).numpy()
    (low, high), shares = np.unique(ours.round(10), return_counts=True)
    np.testing.assert_allclose(np.unique(theirs.round(10)), [low, high], atol=1e-9)
    assert abs(shares[0] / x.size - (theirs < (low + high) / 2).mean()) < 0.02


@pytest.mark.parametrize("cls", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_the_ends(cls):
    x = cg.tensor(numbers(20, 30, 2)).attach_grad()
    with cg.train_mode():
        assert np.array_equal(cls(0.0)(x.detach()), x)
        with cg.record(): y = cls(1.0)(x)
        assert (y.numpy() == 0).all()
        y.backward(cg.ones(y.shape, dtype="float64"))
        assert (x.grad.numpy() == 0).all()
        with pytest.raises(RuntimeError, match=f"{cls.__name__}: eval"): cls(0.5).eval()(x)
    assert np.array_equal(cls(0.5)(x), x) and np.array_equal(cls(0.5).eval()(x), x)


@pytest.mark.parametrize("cls", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_the_numbers_come_from_the_generator(cls):
    """The same seed gives the same bits, with any number of threads, eager, computed again and in captured steps."""
    x, default = cg.tensor(numbers(64, 500)), cg.random.default_generator.state
    layer, threads, found = cls(0.3, generator=Generator(9)), cg.get_num_threads(), []
    try:
        for n in (1, 2):
            cg.set_num_threads(n)
            layer.generator.state = 9, 0
            with cg.train_mode(): found.append(layer(x).numpy().tobytes())
    finally:
        cg.set_num_threads(threads)
    drawn = layer.generator.state
    assert found[0] == found[1] and drawn[1] > 0 and cg.random.default_generator.state == default
    with cg.train_mode(): assert layer(x).numpy().tobytes() != found[0]
    gradients = []
    for again in (False, True):
        layer.generator.state = 9, 0
        x.attach_grad()
        with cg.record(): y = layer.checkpoint_(again)(x)
        y.backward(x.detach())
        assert y.detach().numpy().tobytes() == found[0] and layer.generator.state == drawn
        gradients.append(x.grad.numpy().tobytes())
    assert gradients[0] == gradients[1]


LAYERS = {"alpha": nn.AlphaDropout, "features": nn.FeatureAlphaDropout, "slopes": lambda p, generator: nn.RReLU(
    p, 1.0, generator=generator)}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_captured_steps_draw_what_eager_steps_draw(make):
    """Other numbers in each run, from the generator of the layer."""
    (a, x), (b, y) = ((make(0.25, generator=Generator(4)), cg.tensor(numbers(6, 5)).attach_grad()) for _ in range(2))

    def step(layer, x):
        def run(factor):
            with cg.record(): loss = (layer(x) * factor).sum()
            loss.backward()
            return loss
        return run

    factor = numbers(6, 5, seed=2)
    net = cg.graph.Net.capture(step(a, x), factor)
    workspace, losses = cg.graph.Workspace(), set()
    workspace.feed(net.inputs[0], factor)
    for _ in range(3):
        workspace.run(net)
        loss = step(b, y)(cg.tensor(factor))
        assert workspace.fetch(net.outputs[0]).item() == loss.item() and a.generator.state == b.generator.state
        np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())
        losses.add(loss.item())
    assert len(losses) == 3
