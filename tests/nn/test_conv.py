"""Convolutions, pooling, padding and resizing beyond PyTorch's samples: padding modes, output sizes, unknown channels,
exact bytes. test_layers.py compares the samples, test_nets.py has what all layers share."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.core.graph.waiting import is_waiting


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def agree(ours, theirs, x, **named):
    """Value and gradients of both layers, with PyTorch's weights, in float64."""
    import torch
    theirs = theirs.double()
    ours.astype("float64").load_state_dict({name: t.numpy() for name, t in theirs.state_dict().items()})
    a, b = cg.tensor(x).requires_grad_(), torch.tensor(x, requires_grad=True)
    with cg.record():
        y = ours(a, **named)
    z = theirs(b, **named)
    np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol=1e-10, atol=1e-12)
    head = numbers(*y.shape, seed=1)
    y.backward(cg.tensor(head))
    z.backward(torch.tensor(head))
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10, atol=1e-12)
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(ours.get_parameter(name).grad.numpy(), p.grad.numpy(), rtol=1e-9, atol=1e-11)


SHAPES = {1: (2, 4, 9), 2: (2, 4, 7, 8), 3: (2, 4, 5, 6, 7)}


@pytest.mark.parametrize("nd", (1, 2, 3))
@pytest.mark.parametrize("mode", ("zeros", "reflect", "replicate", "circular"))
@pytest.mark.parametrize("padding, kernel, more", [
    (2, 3, {}), ("same", 3, {}), ("same", 4, {"dilation": 1}), ("valid", 3, {"stride": 2}),
    (1, 3, {"stride": 2, "groups": 2, "dilation": 2, "bias": False}),
], ids=["2", "same", "same-even", "valid", "strided"])
def test_padding_modes(nd, mode, padding, kernel, more):
    import torch
    args, named = (4, 6, kernel), {"padding": padding, "padding_mode": mode, **more}
    x = numbers(*SHAPES[nd])
    if padding == "same" and kernel == 4 and mode == "zeros":       # where PyTorch warns that it copies x
        ours = getattr(nn, f"Conv{nd}d")(*args, **named)
        assert ours(cg.tensor(x.astype("f4"))).shape == (2, 6, *SHAPES[nd][2:])
        return
    agree(getattr(nn, f"Conv{nd}d")(*args, **named), getattr(torch.nn, f"Conv{nd}d")(*args, **named), x)
    alone = getattr(nn, f"Conv{nd}d")(*args, **named)
    x = cg.tensor(x.astype("f4"))
    np.testing.assert_allclose(alone(x[1]).numpy(), alone(x)[1].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nd", (1, 2, 3))
@pytest.mark.parametrize("added", (0, 1, 2))
def test_output_size_of_a_transposed_convolution(nd, added):
    import torch
    args = 4, 6, 3, 3, 1
    ours, theirs = getattr(nn, f"ConvTranspose{nd}d")(*args), getattr(torch.nn, f"ConvTranspose{nd}d")(*args)
    size = tuple((n - 1) * 3 - 2 + 3 + added for n in SHAPES[nd][2:])
    agree(ours, theirs, numbers(*SHAPES[nd]), output_size=size)
    assert ours(numbers(*SHAPES[nd]), output_size=(2, 6, *size)).shape == (2, 6, *size)


def test_the_gradient_of_a_convolution_is_the_transposed_one():
    conv, back = nn.Conv2d(4, 6, 3, 2, bias=False), nn.ConvTranspose2d(6, 4, 3, 2, bias=False)
    back.load_state_dict(conv.state_dict())
    x = cg.tensor(numbers(2, 4, 7, 9).astype("f4")).requires_grad_()
    with cg.record():
        y = conv(x)
    g = numbers(*y.shape, seed=1).astype("f4")
    y.backward(cg.tensor(g))
    np.testing.assert_allclose(x.grad.numpy(), back(g).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("nd", (1, 2, 3))
@pytest.mark.parametrize("kind", ("Conv", "ConvTranspose"))
def test_unknown_channels(nd, kind):
    """From the first input, with a batch or without, and from a state; groups count."""
    cls = getattr(nn, f"{kind}{nd}d")
    for x in (cg.ones(SHAPES[nd]), cg.ones(SHAPES[nd][1:])):
        layer = cls(None, 6, 3, groups=2)
        assert layer._pending and is_waiting(layer.weight)
        layer(x)
        assert layer.in_channels == 4 and not layer._pending and layer(x).shape[-1 - nd] == 6
    loaded = cls(None, 6, 3, groups=2)
    loaded.load_state_dict(layer.state_dict())
    assert loaded.in_channels == 4 and repr(loaded) == repr(layer)
    with pytest.raises(ValueError, match="in_channels must be a multiple of groups, got 4 in 3 groups"):
        cls(None, 6, 3, groups=3)(cg.ones(SHAPES[nd]))


def test_a_convolution_allocates_what_the_operator_does():
    """A step: the layer adds no allocation to those of conv2d, and the parameters are one buffer each."""
    layer = nn.Conv2d(4, 6, 3, padding=1)
    assert cg.memory.stats()["by_category"]["parameters"] == 4 * (6 * 4 * 9 + 6)
    x = cg.ones(2, 4, 8, 8)
    counts = []
    for f in (layer, lambda x: cg.conv2d(x, layer.weight, layer.bias, padding=1)):
        with cg.testing.fail_allocation(1 << 40) as counted:
            with cg.record(): y = f(x)
            y.backward(cg.ones_like(y))
        counts.append(counted.allocations)
        layer.zero_grad()
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("kind", ("Zero", "Reflection", "Replication", "Circular"))
@pytest.mark.parametrize("nd", (1, 2, 3))
def test_padding_of_each_side(kind, nd):
    """A different margin on each side, in PyTorch's order: the last dimension first."""
    import torch
    widths = tuple(range(1, 2 * nd + 1)) if kind == "Zero" else tuple(1 + i % 3 for i in range(2 * nd))
    x = numbers(*SHAPES[nd])
    name = f"{kind}Pad{nd}d"
    agree(getattr(nn, name)(widths), getattr(torch.nn, name)(widths), x)
    alone = getattr(nn, name)(list(widths))
    assert alone.padding == widths and alone(x[0]).shape == alone(x).shape[1:]


@pytest.mark.parametrize("layer, shape", [
    (lambda m: m.Unfold(3, 1, 1, 2), (2, 4, 7, 8)), (lambda m: m.Unfold((2, 3), dilation=2), (2, 4, 7, 8)),
    (lambda m: m.Fold((7, 8), 3, 1, 1, 2), (2, 36, 16)), (lambda m: m.Fold((5, 6), (2, 3)), (36, 16)),
    (lambda m: m.PixelShuffle(3), (2, 18, 4, 5)), (lambda m: m.PixelUnshuffle(2), (3, 2, 6, 4)),
    (lambda m: m.Upsample(scale_factor=2), (2, 3, 5)), (lambda m: m.Upsample((7, 9)), (2, 3, 4, 5)),
    (lambda m: m.Upsample(scale_factor=(2, 3), mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    (lambda m: m.Upsample(size=11, mode="linear"), (2, 3, 5)),
    (lambda m: m.Upsample(scale_factor=1.5, mode="trilinear"), (1, 2, 4, 4, 4)),
])
def test_images_against_pytorch(layer, shape):
    import torch
    agree(layer(nn), layer(torch.nn), numbers(*shape))


def test_pooling_layers_keep_their_arguments():
    x = cg.tensor(numbers(2, 4, 8, 8).astype("f4"))
    pool = nn.MaxPool2d((3, 2), 2, 1, ceil_mode=True)
    assert (pool(x).numpy() == cg.max_pool2d(x, (3, 2), 2, 1, 1, True).numpy()).all()
    pool.stride = 1                                 # an attribute is read at each call
    assert pool(x).shape == cg.max_pool2d(x, (3, 2), 1, 1, 1, True).shape
    assert nn.AdaptiveAvgPool2d(1)(x).shape == (2, 4, 1, 1) and nn.AdaptiveMaxPool2d((None, 3))(x).shape == (2, 4, 8, 3)


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid"])
def test_a_convolution_applies_an_activation(name):
    """The numbers of two operations, and the FLOPs of one."""
    x = cg.tensor(numbers(2, 3, 6, 5).astype("f4"))
    for layer in (nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")):
        np.testing.assert_array_equal(layer(x, name).numpy(), getattr(cg, name)(layer(x)).numpy())
        np.testing.assert_array_equal(layer(x, activation=name).numpy(), layer(x, name).numpy())
        assert layer._flops(x, name, y=layer(x)) == layer._flops(x, y=layer(x)) == 2 * 2 * 4 * 6 * 5 * 27
    with pytest.raises(ValueError, match="activation"): layer(x, "gelu")
