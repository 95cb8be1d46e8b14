"""Softmax, log_softmax and logsumexp of NaN and infinities: as in PyTorch, along any axis, with their gradients."""

import numpy as np
import pytest

import cygrad as cg

from peers import torch
F = torch.nn.functional
INF, NAN = np.inf, np.nan
ROWS = [
    [1, 2, INF, 0], [INF, INF, 1, 2], [-INF, 1, 2, 3], [-INF] * 4, [INF, -INF, 1, 2], [NAN, 1, 2, 3], [INF] * 4,
    [NAN, INF, 1, -INF], [3e38, 1, -3e38, 0], [-INF, -INF, -INF, 5], [INF, -INF, -INF, -INF], [-INF, -INF, NAN, -INF],
    [3e38] * 4, [-3e38] * 4, [1, 2, 3, 4],
]
FUNCTIONS = {
    "softmax": (cg.softmax, F.softmax),
    "log_softmax": (cg.log_softmax, F.log_softmax),
    "logsumexp": (cg.logsumexp, torch.logsumexp),
}


def matrices(n, dtype):
    """Rows of n elements, each once and repeated for whole vectors, as rows, columns and strided."""
    rows = np.array([(row * (n // 4 + 1))[:n] for row in ROWS], dtype)
    for times in (1, 6):
        a = np.repeat(rows, times, 0)
        yield a, 1
        yield a.T.copy(), 0
        yield np.asfortranarray(a), 1
        yield np.stack([a.T, a.T]), 1


def same(found, wanted):
    found, wanted = (a.detach().numpy() for a in (found, wanted))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [1, 4, 31, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_numbers_as_in_torch(name, n, dtype):
    f, like = FUNCTIONS[name]
    for a, axis in matrices(n, dtype):
        x, t = cg.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
        with cg.record():
            y = f(x, axis)
        z = like(t, axis)
        same(y, z)
        head = np.random.default_rng(0).uniform(-1, 1, y.shape).astype(dtype)
        wanted, = torch.autograd.grad(z, t, torch.tensor(head))
        with cg.record():
            same(cg.autograd.grad(y, x, cg.tensor(head), create_graph=True), wanted)
        same(cg.autograd.grad(y, x, cg.tensor(head)), wanted)


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("n", [1, 4, 31, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy_of_no_numbers_as_in_torch(n, dtype, reduction):
    for a, axis in matrices(n, dtype):
        if axis != 1 or a.ndim != 2:
            continue
        for rows in [range(len(a))] if reduction == "none" else [[i] for i in range(len(ROWS))]:
            for label in {0, n // 2, n - 1}:
                labels = np.full(len(rows), label)
                x, t = cg.tensor(a[rows], requires_grad=True), torch.tensor(a[rows], requires_grad=True)
                with cg.record():
                    y = cg.cross_entropy(x, labels, reduction=reduction)
                z = F.cross_entropy(t, torch.tensor(labels), reduction=reduction)
                same(y, z)
                wanted, = torch.autograd.grad(z.sum(), t)
                same(cg.autograd.grad(y, x, cg.ones(y.shape, dtype=dtype)), wanted)


def test_one_infinity_makes_a_row_no_number():
    x = np.array([[0, INF, 1], [0, 2, 1]], "float32")
    for f in (cg.log_softmax, cg.softmax):
        for y in (f(cg.tensor(x)).numpy(), f(cg.tensor(x.T.copy()), 0).numpy().T):
            assert np.isnan(y[0]).all() and np.isfinite(y[1]).all()
    assert cg.logsumexp(cg.tensor(x), 1).numpy()[0] == INF
