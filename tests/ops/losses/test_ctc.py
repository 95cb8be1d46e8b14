"""ctc_loss compared with PyTorch through log_softmax: values, gradients, infinite losses."""

import numpy as np
import pytest

import cygrad as cg

from peers import torch


def cases():
    r = np.random.default_rng(0)
    yield 50, 4, 20, r.integers(1, 20, (4, 15)), [50, 45, 50, 30], [15, 10, 0, 12], 0
    yield 30, 3, 5, r.integers(0, 4, 22), [30, 28, 25], [9, 6, 7], 4
    yield 12, 5, 3, np.full((5, 5), 1), [12, 9, 12, 4, 10], [5, 5, 1, 2, 5], 0
    yield 17, 2, 6, np.ones((2, 16), int) + np.arange(16) % 2, [17, 16], [16, 16], 0


@pytest.mark.parametrize("case", [*cases()], ids=["padded", "in a row", "repeated", "tight"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("graph", [False, True])
def test_agrees_with_torch(case, reduction, graph):
    steps, n, classes, targets, inputs, lengths, blank = case
    x = np.random.default_rng(1).normal(size=(steps, n, classes)) * 2
    leaf, t = cg.tensor(x).attach_grad(), torch.tensor(x, requires_grad=True)
    with cg.record():
        y = cg.ctc_loss(cg.log_softmax(leaf), targets, inputs, lengths, blank, reduction)
    z = torch.nn.functional.ctc_loss(t.log_softmax(2), torch.tensor(targets), inputs, lengths, blank, reduction)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-12)
    head = np.random.default_rng(2).uniform(0.5, 1, y.shape)
    (wanted,) = torch.autograd.grad(z, t, torch.tensor(head))
    with cg.record():
        (found,) = cg.autograd.grad(y, [leaf], cg.tensor(head), create_graph=graph)
    np.testing.assert_allclose(found.detach().numpy(), wanted.numpy(), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("zero", [False, True])
def test_impossible_targets(zero, graph):
    """A target that does not fit its input has the loss inf and the gradient NaN, or 0 and 0."""
    x = cg.tensor(np.log(np.full((3, 2, 3), 1 / 3))).attach_grad()
    with cg.record():
        y = cg.ctc_loss(x, [[1, 1], [1, 2]], [2, 3], [2, 2], reduction="none", zero_infinity=zero)
        (dx,) = cg.autograd.grad(y, [x], cg.ones(2, "float64"), create_graph=graph)
    assert y.detach().numpy()[0] == (0 if zero else np.inf) and np.isfinite(y.detach().numpy()[1])
    dx = dx.detach().numpy()
    assert np.isfinite(dx[:, 1]).all() and np.isnan(dx[:2, 0, :2]).all() == (not zero) and not dx[2, 0].any()
    if zero:
        assert not dx[:, 0].any()


def test_bits_do_not_depend_on_threads():
    x = np.random.default_rng(0).normal(size=(40, 9, 12))
    found = []
    before = cg.get_num_threads()
    try:
        for threads in (1, 2, 5):
            cg.set_num_threads(threads)
            leaf = cg.tensor(x).attach_grad()
            with cg.record():
                y = cg.ctc_loss(leaf, np.ones((9, 20), int) + np.arange(20) % 7, [40] * 9, [20] * 9)
            y.backward()
            found.append((y.numpy().tobytes(), leaf.grad.numpy().tobytes()))
    finally:
        cg.set_num_threads(before)
    assert len(set(found)) == 1
