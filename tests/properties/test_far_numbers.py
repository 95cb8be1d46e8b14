"""Numbers whose distance from zero is large compared with their spread: differences from maximum or mean are exact."""

import numpy as np
import pytest
from peers import torch

import cygrad as cg


@pytest.mark.parametrize("far", [0, 1e3, 1e6, -1e6])
@pytest.mark.parametrize("n", [10, 17, 200])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_far_from_zero_keeps_its_digits(axis, n, far):
    """The logarithm of a sum is small compared with such a maximum, and once lost most of its digits when it was added
    to it: the gradient of a cross-entropy was wrong by 2 % at 1e6. The numbers are multiples of 1/2, so they are
    exact."""
    near = np.round(np.random.default_rng(0).standard_normal((40, n)) * 4) / 2
    a = (near + far).astype("float32")
    wanted = torch.log_softmax(torch.tensor(near), 1).numpy()
    y = cg.log_softmax(cg.tensor(a if axis else a.T.copy()), axis).numpy()
    np.testing.assert_allclose(y if axis else y.T, wanted, rtol=3e-7, atol=2e-7)
    labels = np.arange(40) % n
    x = cg.tensor(a).attach_grad()
    with cg.record():
        loss = cg.cross_entropy(x, labels, reduction="none")
    loss.backward()
    np.testing.assert_allclose(loss.numpy(), -wanted[np.arange(40), labels], rtol=3e-7, atol=2e-7)
    np.testing.assert_allclose(x.grad.numpy() + (np.arange(n) == labels[:, None]), np.exp(wanted), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, 65, 300])
def test_layer_norm_of_equal_numbers_is_its_bias(n, dtype):
    """An error in the last bit of the mean once caused 7e-5, because the rate is 1 / sqrt(eps)."""
    x = cg.tensor(np.repeat([[3.3], [1e6], [-0.1]], n, 1).astype(dtype))
    assert cg.layer_norm(x, cg.ones(n, dtype=dtype), cg.full(n, 2.0, dtype=dtype)).tolist() == [[2.0] * n] * 3


@pytest.mark.parametrize("n", [65, 300])
def test_layer_norm_far_from_zero(n):
    """The only error is the rounding of the mean, half an ulp of 8, and not that of the sum."""
    a = (np.arange(2 * n).reshape(2, n) % 7 * 8 + 1e8).astype("float32")
    y = cg.layer_norm(cg.tensor(a), cg.ones(n), cg.zeros(n)).numpy()
    near = a.astype("float64")
    wanted = (near - near.mean(1, keepdims=True)) / near.std(1, keepdims=True)
    assert np.abs(y - wanted).max() < 4 / near.std(1).min()
