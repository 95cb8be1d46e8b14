"""Convolutions around the boundaries of tiles: values, gradients that are added, threads, workspace."""

import numpy as np
import pytest
from tests.samples.conv import conv_like, conv_transpose_like

import cygrad as cg

# (images, channels, outputs, groups, sizes, kernel): pieces of an image with and without whole rows, several images in
# a tile, more rows of patches than one block, one element, no patches, weights above and below 512 KiB
SHAPES = [(1, 1, 2, 1, (258,), (3,)), (1, 1, 2, 1, (1025,), (2,)), (2, 3, 4, 1, (17, 18), (3, 3)),
          (1, 2, 3, 1, (16, 16), (1, 1)), (9, 2, 3, 1, (8, 8), (1, 1)), (65, 2, 3, 1, (4, 4), (3, 3)),
          (3, 60, 5, 1, (6, 6), (3, 3)), (2, 150, 250, 1, (4, 5), (2, 2)), (3, 4, 8, 4, (9, 33), (3, 3)),
          (2, 6, 4, 2, (7, 65), (2, 3)), (2, 2, 2, 1, (5, 6, 9), (2, 3, 2))]
# One channel in a group: rows of less than a vector and of several, less than eight rows and more, two outputs
DEPTHWISE = [(2, 3, 3, 3, (9, 20), (3, 3)), (1, 2, 2, 2, (21, 37), (5, 5)), (1, 2, 2, 2, (12, 70), (7, 7)),
             (3, 2, 4, 2, (8, 17), (3, 3)), (1, 3, 3, 3, (3, 9, 11), (2, 3, 3)), (2, 2, 2, 2, (100,), (9,)),
             (2, 2, 2, 2, (6, 3), (3, 3)), (1, 1, 1, 1, (90, 90), (3, 2))]
SHAPES += DEPTHWISE


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def of(shape):
    n, c, o, groups, size, kernel = shape
    return numbers(n, c, *size), numbers(o, c // groups, *kernel, seed=1), numbers(o, seed=2), groups, len(size)


def name(shape):
    return "x".join(map(str, shape[:4]))


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (1, 1, 1), (2, 1, 1), (3, 2, 2)])
@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_value_at_boundaries_of_tiles(shape, stride, padding, dilation):
    x, w, b, groups, nd = of(shape)
    how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    y = getattr(cg, f"conv{nd}d")(x, w, b, **how)
    np.testing.assert_allclose(y.numpy(), conv_like(x, w, b, **how), rtol=1e-12, atol=1e-12)
    y, w = y.numpy(), numbers(x.shape[1], b.size // groups, *w.shape[2:], seed=3)
    z = getattr(cg, f"conv_transpose{nd}d")(x, w, b, **how)
    np.testing.assert_allclose(z.numpy(), conv_transpose_like(x, w, b, **how), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_gradients_at_boundaries_of_tiles(shape):
    """Each gradient is the derivative of a bilinear form: <g, conv(x, w)> = <dx, x> = <dw, w>."""
    x, w, _, groups, nd = of(shape)
    xs = [cg.tensor(a).requires_grad_() for a in (x, w)]
    with cg.record():
        y = getattr(cg, f"conv{nd}d")(*xs, padding=1, groups=groups)
    head = numbers(*y.shape, seed=4)
    grads = cg.autograd.grad(y, xs, cg.tensor(head))
    dx, dw = (g.numpy() for g in grads)
    np.testing.assert_allclose(dx, conv_transpose_like(head, w, padding=1, groups=groups), rtol=1e-11, atol=1e-11)
    v = numbers(*w.shape, seed=5)
    np.testing.assert_allclose((dw * v).sum(), (head * conv_like(x, v, padding=1, groups=groups)).sum(), rtol=1e-9)


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("shape", DEPTHWISE, ids=name)
def test_depthwise_in_float32(shape, stride, dilation):
    """float32 has vectors of other widths. A gradient that is added to zeros has the bits of one that is written."""
    x, w, b, groups, nd = of(shape)
    how = dict(stride=stride, padding=2, dilation=dilation, groups=groups)
    a = [v.astype(np.float32) for v in (x, w, b)]
    y = getattr(cg, f"conv{nd}d")(*a, **how, activation="relu")
    exact = conv_like(*(v.astype(np.float64) for v in a), **how)
    np.testing.assert_allclose(y.numpy(), np.maximum(exact, 0), rtol=1e-5, atol=1e-5)
    got = []
    for how_taken in ("write", "add"):
        xs = [cg.tensor(v).attach_grad(how_taken) for v in a]
        for v in xs: v.grad.numpy()                 # zeros are written, so that gradients are added to them
        with cg.record():
            y = getattr(cg, f"conv{nd}d")(*xs, **how)
        y.backward(cg.tensor(np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)))
        got.append([v.grad.numpy() for v in xs])
    for written, added in zip(*got, strict=True): np.testing.assert_array_equal(written, added)


@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_gradients_are_added(shape):
    x, w, b, groups, nd = of(shape)
    xs = [cg.tensor(a).attach_grad("add") for a in (x, w, b)]
    for times in (1, 2):
        with cg.record():
            y = getattr(cg, f"conv{nd}d")(*xs, padding=1, groups=groups)
        y.backward(cg.tensor(numbers(*y.shape, seed=4)))
        if times == 1: once = [v.grad.copy().numpy() for v in xs]
    for v, g in zip(xs, once, strict=True):
        np.testing.assert_allclose(v.grad.numpy(), 2 * g, rtol=1e-11, atol=1e-11)
    z = cg.tensor(y.detach().numpy()).attach_grad("add")         # the gradient of a transposed convolution
    for _ in range(2):
        with cg.record():
            x = getattr(cg, f"conv_transpose{nd}d")(z, w, padding=1, groups=groups)
        x.backward(cg.ones(x.shape, dtype=x.dtype))
    np.testing.assert_allclose(z.grad.numpy(), 2 * conv_like(np.ones(x.shape), w, padding=1, groups=groups),
                               rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(8, 16, 32, 1, (24, 24), (3, 3)), (80, 16, 32, 1, (5, 5), (3, 3)),
                                   (8, 64, 64, 64, (24, 24), (3, 3)), (16, 32, 64, 1, (16, 16), (1, 1))], ids=name)
def test_the_same_bits_for_any_number_of_threads(shape, dtype):
    x, w, b, groups, _ = of(shape)
    found, before = [], cg.get_num_threads()
    try:
        for threads in (1, 2, 3):
            cg.set_num_threads(threads)
            xs = [cg.tensor(a, dtype=dtype).requires_grad_() for a in (x, w, b)]
            with cg.record():
                y = cg.conv2d(*xs, padding=1, groups=groups, activation="relu")
            grads = cg.autograd.grad(y, xs, cg.tensor(numbers(*y.shape, seed=4), dtype=dtype))
            found.append([y.detach().numpy().tobytes(), *[g.numpy().tobytes() for g in grads]])
    finally:
        cg.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("shape", [(2, 64, 64, 1, (64, 64), (5, 5)), (64, 512, 512, 1, (4, 4), (3, 3)),
                                   (1, 1, 1, 1, (40000,), (30000,))], ids=name)
def test_workspace_is_small(shape):
    """Beyond the results: at most 1 MiB for each thread, and 1 MiB of partial sums."""
    n, c, o, _, size, kernel = shape
    x, w = (cg.zeros(s, dtype="float32").requires_grad_() for s in ((n, c, *size), (o, c, *kernel)))
    f = getattr(cg, f"conv{len(size)}d")
    live = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as forward, cg.record():
        y = f(x, w)
    g = cg.ones(y.shape)
    assert forward.peak_bytes - live - y.nbytes <= cg.get_num_threads() << 20
    for v in (x, w):
        live = cg.memory.stats()["live_bytes"]
        with cg.memory.track() as backward:
            dv = cg.autograd.grad(y, v, g, retain_graph=True)
        assert backward.peak_bytes - live - dv.nbytes <= cg.get_num_threads() + 1 << 20


def test_an_image_without_a_batch():
    x, w, b = numbers(3, 5, 5), numbers(2, 3, 3, 3), numbers(2)
    assert np.array_equal(cg.conv2d(x, w, b).numpy(), cg.conv2d(x[None], w, b).numpy()[0])
