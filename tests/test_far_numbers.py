"""Numbers far from zero beside their spread: what is left of them after their maximum or their mean is exact."""

import numpy as np
import pytest
import torch

import cygrad as cg


@pytest.mark.parametrize("far", [0, 1e3, 1e6, -1e6])
@pytest.mark.parametrize("n", [10, 17, 200])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_far_from_zero_keeps_its_digits(axis, n, far):
    """The logarithm of a sum is small beside such a maximum, and lost most of its digits when it was added to it: the
    gradient of a cross-entropy was wrong by 2 % about 1e6. The numbers are whole halves, exact wherever they are."""
    near = np.round(np.random.default_rng(0).standard_normal((40, n)) * 4) / 2
    a = (near + far).astype("float32")
    wanted = torch.log_softmax(torch.tensor(near), 1).numpy()
    y = cg.log_softmax(cg.tensor(a if axis else a.T.copy()), axis).numpy()
    np.testing.assert_allclose(y if axis else y.T, wanted, rtol=3e-7, atol=2e-7)
    labels = np.arange(40) % n
    x = cg.tensor(a).attach_grad()
    with cg.record():
        loss = cg.cross_entropy(x, labels, "none")
    loss.backward()
    np.testing.assert_allclose(loss.numpy(), -wanted[np.arange(40), labels], rtol=3e-7, atol=2e-7)
    np.testing.assert_allclose(x.grad.numpy() + (np.arange(n) == labels[:, None]), np.exp(wanted), rtol=2e-6, atol=1e-7)
