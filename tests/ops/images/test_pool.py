"""Pooling: ties, NaN, large windows, exact sums, threads, lp_pool; unfold and fold of large images."""

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


def gradient(f, a, g=None):
    """The value, and the gradient of `a` for the gradient `g` (None: ones) of the value."""
    x = cg.tensor(a).requires_grad_()
    with cg.record():
        y = f(x)
    return y.detach().numpy(), cg.autograd.grad(y, x, cg.ones(y.shape, dtype=str(y.dtype)) if g is None else g).numpy()


@pytest.mark.parametrize("f", [lambda x: cg.adaptive_avg_pool2d(x, 1), lambda x: cg.avg_pool2d(x, (4100, 4099)),
                               lambda x: cg.adaptive_avg_pool2d(x.swapaxes(2, 3), 1), lambda x: cg.lp_pool2d(
                                   x, 1, (4100, 4099)) / (4100 * 4099)])
def test_means_of_many_elements_are_exact(f):
    """A sum in float32 stops at 2^24."""
    assert f(cg.full((1, 1, 4100, 4099), 3.0, dtype="float32")).numpy().ravel() == pytest.approx([3], rel=1e-6)


@pytest.mark.parametrize("f", [lambda x: cg.adaptive_avg_pool2d(x, (4100, 8200)),
                               lambda x: cg.adaptive_max_pool2d(x, (4100, 8200))])
def test_gradients_of_many_windows_are_exact(f):
    assert gradient(f, np.ones((1, 1, 1, 2), "float32"))[1].ravel().tolist() == [4100 * 4100] * 2


@pytest.mark.parametrize("nd", [1, 2, 3])
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("batch", [(2,), ()])
def test_no_part_is_an_empty_result_with_a_gradient_of_zeros(nd, kind, batch):
    """The values are PyTorch's, which has no backward there. Functions, layers and nets."""
    f = getattr(cg, f"adaptive_{kind}_pool{nd}d")
    layer = getattr(cg.nn, f"Adaptive{kind.title()}Pool{nd}d")
    for out in {0, (0,) * nd, (2, 3, 0)[-nd:], (0, None, 2)[:nd]}:
        x = cg.tensor(np.random.default_rng(0).normal(size=(*batch, 2, *(3, 4, 5)[:nd]))).requires_grad_()
        shape = tuple(n if m is None else m for m, n in zip(
            out if isinstance(out, tuple) else (out,) * nd, x.shape[-nd:], strict=True))
        for again in range(2):
            with cg.record(): y = f(x, out) if again else layer(out)(x)
            assert y.shape == (*batch, 2, *shape) and y.size == 0
            y.backward()
            assert x.grad.numpy().shape == x.shape and not x.grad.numpy().any()
        with cg.record(): y = f(x, out).sum()
        (g,) = cg.autograd.grad(y, [x], create_graph=True)
        assert not g.detach().numpy().any()
        del g, y
        net, ws = cg.graph.Net.capture(layer(out), x.detach()), cg.graph.Workspace()
        ws.feed(net.inputs[0], x.detach())
        ws.run(net)
        assert ws.fetch(net.outputs[0]).shape == (*batch, 2, *shape)


def test_a_negative_number_of_parts_is_refused():
    with pytest.raises(ValueError, match=r"^adaptive_avg_pool2d: output_size is \(-1, -1\); wanted numbers of at"):
        cg.adaptive_avg_pool2d(cg.ones((1, 1, 2, 2)), -1)


@pytest.mark.parametrize("f, shape", [
    (lambda x: cg.avg_pool1d(x, 1101, 1, 550, count_include_pad=False), (2, 1, 3000)),
    (lambda x: cg.avg_pool2d(x, (40, 64), (1, 2), (3, 32), True), (1, 2, 60, 200)),
    (lambda x: cg.avg_pool2d(x, (40, 64), 1, (3, 32), divisor_override=-7), (1, 2, 60, 90)),
    (lambda x: cg.avg_pool3d(x, (15, 12, 10), 1, (7, 2, 1), count_include_pad=False), (1, 1, 19, 20, 21)),
    (lambda x: cg.adaptive_avg_pool2d(x, (230, 301)), (1, 2, 7, 5)),
    (lambda x: cg.max_pool1d(x, 1101, 1, 550), (2, 1, 3000)),
    (lambda x: cg.max_pool1d(x, 1101, 1, 1000, 2), (2, 1, 3000)),
    (lambda x: cg.max_pool2d(x, (41, 64), (1, 2), (20, 9), (2, 1), True), (1, 2, 90, 200)),
    (lambda x: cg.max_pool3d(x, (15, 12, 10), 1, (7, 2, 1)), (1, 1, 19, 20, 21)),
    (lambda x: cg.adaptive_max_pool2d(x, (230, 301)), (1, 2, 7, 5)),
    (lambda x: cg.adaptive_max_pool3d(x, (23, 31, 40)), (1, 1, 2, 3, 4))])
def test_sums_over_many_windows(f, shape):
    """The gradients of float32, element by element, against those of float64, window by window."""
    a = np.random.default_rng(0).normal(size=shape).astype("float32")
    g = np.random.default_rng(1).normal(size=f(a).shape).astype("float32")
    y, dx = gradient(f, a, cg.tensor(g))
    wanted, wanted_dx = gradient(f, a.astype("float64"), cg.tensor(g.astype("float64")))
    np.testing.assert_allclose(y, wanted, rtol=1e-6, atol=1e-6 * abs(wanted).max())
    np.testing.assert_allclose(dx, wanted_dx, rtol=1e-6, atol=1e-6 * abs(wanted_dx).max())


def test_windows_of_more_elements_than_64_bits_count():
    y, dx = gradient(lambda x: cg.avg_pool3d(x, 2**22, 2**22, 2**21), np.ones((1, 1, 4, 4, 4)))
    assert y.ravel() == [2.0**-60] and np.all(dx == 2.0**-66)
    assert cg.max_pool3d(cg.ones((1, 1, 4, 4, 4)), 2**22, 2**22, 2**21).item() == 1     # without a gradient


def test_a_window_of_padding_alone():
    y, dx = gradient(lambda x: cg.max_pool1d(x, 2, 1, 5, 10), np.array([[[1.0, 2.0, 3.0]]]))
    assert np.all(y == -np.inf) and np.all(dx == 0)
    y, dx = gradient(lambda x: cg.max_pool1d(x, 2, 1, 3, 5), np.array([[[1.0, 2.0, 3.0]]]))
    assert y.ravel().tolist() == [3, -np.inf, -np.inf, 1] and dx.ravel().tolist() == [1, 0, 1]


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


WINDOWS = [                                         # kernel, stride, padding, dilation, ceil_mode; the size of images
    ((2, 2), (2, 2), (0, 0), (1, 1), False, (10, 10)), ((2, 2), (2, 2), (0, 0), (1, 1), True, (7, 9)),
    ((3, 3), (2, 2), (1, 1), (1, 1), False, (14, 15)), ((3, 3), (1, 1), (1, 1), (1, 1), False, (5, 6)),
    ((3, 2), (1, 2), (1, 0), (2, 3), True, (33, 41)), ((5, 3), (3, 4), (2, 1), (1, 1), False, (70, 300)),
    ((1, 2), (3, 5), (0, 1), (1, 1), False, (40, 41)), ((12, 16), (1, 1), (6, 8), (1, 1), False, (23, 20)),
    ((2, 3, 2), (1, 2, 1), (1, 1, 0), (2, 1, 1), False, (6, 7, 9)), ((3,), (2,), (1,), (1,), False, (5000,))]


def special_values(shape, dtype):
    """Numbers with many ties, zeros of both signs, infinities and some NaN."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, shape).astype(dtype) * rng.choice([1.0, -1.0], shape).astype(dtype)
    a[rng.random(shape) < 0.3] = -np.inf
    a[rng.random(shape) < 0.01] = np.inf
    a[rng.random(shape) < 0.01] = np.nan
    return a


def each_window(size, kernel, stride, padding, dilation, out):
    """For each window of a plane, its index and the indices of its elements in X, in order."""
    for at in np.ndindex(*out):
        places = [tuple(i * s - p + k * d for i, s, p, k, d in zip(at, stride, padding, tap, dilation, strict=True))
                  for tap in np.ndindex(*kernel)]
        yield at, [place for place in places if all(0 <= i < n for i, n in zip(place, size, strict=True))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil, size", WINDOWS)
def test_maxima_of_special_values(kernel, stride, padding, dilation, ceil, size, dtype):
    """Element by element: the last NaN, otherwise the first of the largest, which gets the gradient."""
    f = getattr(cg, f"max_pool{len(size)}d")
    a = special_values((2, 1, *size), dtype)
    for images in (a, np.ascontiguousarray(a.swapaxes(1, -1)).swapaxes(1, -1)):
        x = cg.asarray(images).detach().requires_grad_()
        with cg.record(): y = f(x, kernel, stride, padding, dilation, ceil)
        g = np.arange(1, y.size + 1, dtype=dtype).reshape(y.shape)
        dx = cg.autograd.grad(y, x, cg.tensor(g)).numpy()
        wanted, wanted_dx = np.empty_like(g), np.zeros_like(a)
        for plane in np.ndindex(2, 1):
            for at, places in each_window(size, kernel, stride, padding, dilation, y.shape[2:]):
                best = places[0]
                for place in places[1:]:
                    v = a[plane][place]
                    if v > a[plane][best] or v != v: best = place
                wanted[(*plane, *at)] = a[plane][best]
                wanted_dx[(*plane, *best)] += g[(*plane, *at)]
        assert y.detach().numpy().tobytes() == f(images, kernel, stride, padding, dilation, ceil).numpy().tobytes()
        np.testing.assert_array_equal(y.detach().numpy(), wanted)
        assert np.array_equal(np.signbit(y.detach().numpy()), np.signbit(wanted))
        np.testing.assert_array_equal(dx, wanted_dx)


@pytest.mark.parametrize("counts, divisor", [(True, None), (False, None), (True, -7)])
@pytest.mark.parametrize("kernel, stride, padding, dilation, ceil, size", WINDOWS)
def test_means_are_rounded_once(kernel, stride, padding, dilation, ceil, size, counts, divisor):
    """The sums of a float32 mean are float64 sums, so the mean is the float64 mean, rounded."""
    f = getattr(cg, f"avg_pool{len(size)}d")
    more = () if len(size) == 1 else (divisor,)
    a = np.random.default_rng(0).normal(size=(2, 2, *size)).astype("float32")
    for images in (a, np.ascontiguousarray(a.swapaxes(1, -1)).swapaxes(1, -1)):
        x = cg.asarray(images).detach().requires_grad_()
        with cg.record(): y = f(x, kernel, stride, padding, ceil, counts, *more)
        wanted = f(a.astype("float64"), kernel, stride, padding, ceil, counts, *more).numpy().astype("float32")
        np.testing.assert_array_max_ulp(y.detach().numpy(), wanted, 0)
        sums = np.zeros(a.shape)
        g = np.random.default_rng(1).normal(size=y.shape).astype("float32")
        for at, places in each_window(size, kernel, stride, padding, (1,) * len(size), y.shape[2:]):
            reach = [(min(i * s - p + k, n + p) - (i * s - p)) for i, s, p, k, n in zip(
                at, stride, padding, kernel, size, strict=True)]
            n = more and divisor or (np.prod(reach) if counts else len(places))
            for place in places: sums[(..., *place)] += g[(..., *at)] / n
        dx = cg.autograd.grad(y, x, cg.tensor(g)).numpy()
        np.testing.assert_allclose(dx, sums, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name, args", [("max_pool2d", (2,)), ("max_pool2d", (3, 2, 1)), ("max_pool2d", (3, 1, 1, 2)),
                                        ("avg_pool2d", (3, 2, 1)), ("avg_pool2d", (2, 2, 0, True)),
                                        ("adaptive_avg_pool2d", (6,)), ("adaptive_max_pool2d", ((4, 9),))])
def test_pooling_is_pytorchs(name, args):
    torch = pytest.importorskip("torch")
    a = np.random.default_rng(0).normal(size=(3, 2, 12, 27 if name.startswith("adaptive") else 25))
    if name == "adaptive_avg_pool2d": a = a[..., :24]
    x, t = cg.tensor(a).requires_grad_(), torch.from_numpy(a.copy()).requires_grad_()
    with cg.record(): y = getattr(cg, name)(x, *args)
    z = getattr(torch.nn.functional, name)(t, *args)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-14)
    g = np.random.default_rng(1).normal(size=y.shape)
    z.backward(torch.from_numpy(g))
    np.testing.assert_allclose(cg.autograd.grad(y, x, cg.tensor(g)).numpy(), t.grad.numpy(), rtol=1e-13, atol=1e-15)
