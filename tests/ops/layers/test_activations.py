"""The activations of ops/layers/activations.pyx beside PyTorch's at kinks and beyond the samples of the table."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.testing import gradcheck

from peers import torch
F = torch.nn.functional

KINKS = {
    "leaky_relu": (cg.leaky_relu, F.leaky_relu, [-1.0, 0.0, -0.0, 1.0]),
    "leaky_relu, slope 0": (lambda x: cg.leaky_relu(x, 0.0), lambda x: F.leaky_relu(x, 0.0), [-1.0, 0.0, 1.0]),
    "leaky_relu, slope below 0": (lambda x: cg.leaky_relu(x, -0.3), lambda x: F.leaky_relu(x, -0.3), [-1.0, 0.0, 1.0]),
    "threshold": (lambda x: cg.threshold(x, 0.5, 2.0), lambda x: F.threshold(x, 0.5, 2.0), [0.0, 0.5, 1.0]),
    "hardtanh": (cg.hardtanh, F.hardtanh, [-2.0, -1.0, 0.0, 1.0, 2.0]),
    "hardtanh, equal bounds": (lambda x: cg.hardtanh(x, 1, 1.0), lambda x: torch.clamp(x, 1, 1) * 0 + 1,
                               [-2.0, 1.0, 2.0]),
    "hardsigmoid": (cg.hardsigmoid, F.hardsigmoid, [-4.0, -3.0, 0.0, 3.0, 4.0]),
    "hardswish": (cg.hardswish, F.hardswish, [-4.0, -3.0, 0.0, 3.0, 4.0]),
    "elu": (lambda x: cg.elu(x, 1.5), lambda x: F.elu(x, 1.5), [-1.0, 0.0, -0.0, 1.0]),
    "elu, alpha 0": (lambda x: cg.elu(x, 0.0), lambda x: F.elu(x, 0.0), [-1.0, 0.0, 1.0]),
    "elu, alpha below 0": (lambda x: cg.elu(x, -0.7), lambda x: F.elu(x, -0.7), [-1.0, 0.0, 1.0, 800.0]),
    "selu": (cg.selu, F.selu, [-1.0, 0.0, -0.0, 1.0]),
    "celu": (lambda x: cg.celu(x, 1.5), lambda x: F.celu(x, 1.5), [-1.0, 0.0, -0.0, 1.0]),
    "prelu": (lambda x: cg.prelu(x, [0.25]), lambda x: F.prelu(x, torch.tensor([0.25], dtype=torch.float64)),
              [-1.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks_are_as_in_pytorch(name):
    f, like, numbers = KINKS[name]
    x, t = cg.tensor(numbers, dtype="float64").attach_grad(), torch.tensor(numbers, dtype=torch.float64,
                                                                         requires_grad=True)
    with cg.record():
        y = f(x)
    z = like(t)
    y.backward(cg.ones(y.shape, dtype="float64"))
    z.backward(torch.ones_like(z))
    np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("f", [lambda x: cg.leaky_relu(x, -0.3), lambda x: cg.elu(x, -0.7), lambda x: cg.celu(x, -2)],
                         ids=["leaky_relu", "elu", "celu"])
def test_negative_numbers_have_derivatives_too(f):
    assert gradcheck(f, cg.tensor([-2.0, -0.3, 0.4, 3.0], dtype="float64"), order=2)


def test_leaky_relu_saves_bits_or_what_its_consumer_saves():
    x = cg.ones((8, 100)).attach_grad()
    w = cg.ones((4, 100)).attach_grad()
    with cg.record() as tape:
        y = cg.leaky_relu(x * 1.0)
        z = y.sum()
        del y
    assert tape.saved_bytes == 100                  # one bit for each element
    z.backward()
    with cg.record() as tape:
        z = cg.linear(cg.leaky_relu(x * 1.0), w)
    assert tape.saved_bytes == 3200                 # which linear keeps anyway


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", [cg.mish, cg.logsigmoid, lambda x: cg.glu(cg.stack([cg.ones_like(x), x]), 0)],
                         ids=["mish", "logsigmoid", "glu"])
def test_a_result_does_not_depend_on_its_neighbours(f, dtype):
    """Runs of near numbers have their own loop, which computes the same bits."""
    x = np.linspace(-39, 39, 2001).astype(dtype)
    far = np.append(x, [-1e4, np.nan]).astype(dtype)
    alone, beside = f(cg.tensor(x)).numpy().ravel(), f(cg.tensor(far)).numpy().ravel()[:2001]
    assert alone.tobytes() == beside.tobytes()


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 4e-15)])
def test_gradient_of_mish_has_its_digits_far_from_zero(dtype, rtol):
    x = np.array([-80, -40, -10, -1, 0, 1, 10, 19, 21, 39, 41, 1e30], dtype)
    wide = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    F.mish(wide).sum().backward()
    v = cg.tensor(x).attach_grad()
    with cg.record():
        y = cg.mish(v).sum()
    y.backward()
    np.testing.assert_allclose(v.grad.numpy(), wide.grad.numpy(), rtol=rtol)


def test_prelu_of_one_weight_keeps_the_shape():
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        x = cg.full(shape, -2.0)
        for weight in (0.25, [0.25]):
            y = cg.prelu(x, weight)
            assert y.shape == shape and (y.numpy() == -0.5).all()
