"""Pooling: ties, NaN, large windows, threads, lp_pool; unfold and fold of large images."""

import numpy as np
import pytest
from tests.samples.pool import max_like, unfold_like

import cygrad as cg


@pytest.mark.parametrize("kernel, stride", [(2, 2), (2, 1), (3, 2)])
def test_the_first_of_equal_maxima_gets_the_gradient(kernel, stride):
    x = cg.ones((1, 1, 6, 6)).requires_grad_()
    with cg.record():
        y = cg.max_pool2d(x, kernel, stride)
    dx = cg.autograd.grad(y, x, cg.ones(y.shape)).numpy()[0, 0]
    n = y.shape[-1]
    wanted = np.zeros((6, 6))
    wanted[:n * stride:stride, :n * stride:stride] = 1
    assert np.array_equal(dx, wanted)


@pytest.mark.parametrize("at", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("low", [0, 1])                 # with padding, another loop
def test_nan_and_infinities(at, low):
    a = np.full((1, 1, 2, 2), -np.inf)
    x = cg.tensor(a).requires_grad_()
    with cg.record():
        y = cg.max_pool2d(x, 2, padding=low)
    assert np.all(y.detach().numpy() == -np.inf)
    assert cg.autograd.grad(y, x, cg.ones(y.shape, dtype="float64")).numpy().sum() == y.size
    a[(0, 0, *at)] = np.nan
    assert np.isnan(cg.max_pool2d(a, 2, padding=low).numpy()).sum() == 1


@pytest.mark.parametrize("size, kernel, nbytes", [(300, 256, 1), (300, 257, 2), (65600, 65537, 4)])
def test_places_in_large_windows(size, kernel, nbytes):
    """One byte for each output where a window has at most 256 elements."""
    a = np.random.default_rng(0).uniform(size=(1, 1, size))
    leaf = cg.tensor(a).attach_grad()
    with cg.record() as tape:
        y = cg.max_pool1d(leaf, kernel, stride=7)
    assert tape.saved_bytes == nbytes * y.size
    np.testing.assert_array_equal(y.detach().numpy(), max_like(1)(a, kernel, stride=7))
    y.backward(cg.ones(y.shape, dtype="float64"))
    assert (leaf.grad.numpy() * a).sum() == pytest.approx(y.detach().numpy().sum())


@pytest.mark.parametrize("f", [lambda x: cg.max_pool2d(x, 2), lambda x: cg.max_pool2d(x, 3, 1, 1),
                               lambda x: cg.avg_pool2d(x, 3, 2, 1), lambda x: cg.adaptive_avg_pool2d(x, 7),
                               lambda x: cg.unfold(x, 3), lambda x: cg.fold(cg.unfold(x, 3), (40, 41), 3)])
def test_the_same_bits_for_any_number_of_threads(f):
    a = np.random.default_rng(0).uniform(size=(4, 9, 40, 41)).astype("float32")
    found, before = [], cg.get_num_threads()
    try:
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            x = cg.tensor(a).requires_grad_()
            with cg.record():
                y = f(x)
            g = cg.broadcast_to(cg.tensor(0.3), y.shape)        # a strided gradient
            found.append((y.detach().numpy().tobytes(), cg.autograd.grad(y, x, g).numpy().tobytes()))
    finally:
        cg.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("nd", [1, 2, 3])
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_lp_pool(nd, p):
    a = np.random.default_rng(0).uniform(0.1, 1, (2, 2, *[5] * nd))
    f = getattr(cg, f"lp_pool{nd}d")
    sums = getattr(cg, f"avg_pool{nd}d")(a ** p, 2, 3).numpy() * 2 ** nd
    np.testing.assert_allclose(f(a, p, 2, stride=3).numpy(), sums ** (1 / p), rtol=1e-12)
    assert cg.testing.gradcheck(lambda x: f(x, p, 2), cg.tensor(a), order=2)


def test_unfold_then_fold_counts_the_patches():
    x = np.ones((1, 1, 5, 6))
    counts = cg.fold(cg.unfold(x, 3, padding=1), (5, 6), 3, padding=1).numpy()[0, 0]
    assert counts[2, 2] == 9 and counts[0, 0] == 4 and counts[0, 3] == 6
    a = np.random.default_rng(0).uniform(size=(2, 3, 33, 65))
    np.testing.assert_array_equal(cg.unfold(a, (2, 3), 2, 1, 3).numpy(), unfold_like(a, (2, 3), 2, 1, 3))
