"""interpolate on several threads and beside zeros and NaN; pixel_shuffle and pixel_unshuffle."""

import numpy as np
import pytest

import cygrad as cg


def numbers(*shape):
    return np.random.default_rng(0).uniform(-1, 1, shape)


@pytest.mark.parametrize("mode, dtype", [("nearest", "float32"), ("bilinear", "float32"), ("bicubic", "float64")])
def test_the_same_bits_for_any_number_of_threads(mode, dtype):
    x, found, before = numbers(8, 16, 33, 47).astype(dtype), [], cg.get_num_threads()
    try:
        for n in (1, 2):
            cg.set_num_threads(n)
            v = cg.tensor(x).requires_grad_()
            with cg.record(): y = cg.interpolate(v, (64, 40), mode=mode)
            found.append((y.detach().numpy().copy(), cg.autograd.grad(y, v, cg.ones(y.shape, y.dtype)).numpy().copy()))
    finally:
        cg.set_num_threads(before)
    for a, b in zip(*found, strict=True): np.testing.assert_array_equal(a, b)


def test_nearest_copies_special_numbers():
    x = np.array([[[-0.0, np.inf, np.nan, 5e-324]]])
    y = cg.interpolate(x, 8).numpy()
    np.testing.assert_array_equal(y, np.repeat(x, 2, -1))
    assert np.signbit(y[0, 0, :2]).all()


@pytest.mark.parametrize("shape, r", [((2, 8, 3, 4), 2), ((9, 2, 2), 3), ((2, 1, 3, 5), 1), ((0, 4, 2, 2), 2)])
def test_pixel_shuffle_and_back(shape, r):
    torch = pytest.importorskip("torch")
    x = numbers(*shape)
    y = cg.pixel_shuffle(x, r)
    np.testing.assert_array_equal(y.numpy(), torch.pixel_shuffle(torch.tensor(x), r).numpy())
    np.testing.assert_array_equal(cg.pixel_unshuffle(y, r).numpy(), x)


def test_gradient_of_pixel_shuffle():
    x = cg.tensor(numbers(1, 8, 2, 3)).requires_grad_()
    with cg.record(): y = cg.pixel_shuffle(x, 2)
    g = numbers(*y.shape)
    np.testing.assert_array_equal(cg.autograd.grad(y, x, cg.tensor(g)).numpy(), cg.pixel_unshuffle(g, 2).numpy())
