"""Elementwise losses: edges as in PyTorch or as documented, weights, sizes around strips, threads, saved bytes."""

import numpy as np
import pytest

import cygrad as cg

from peers import torch
F = torch.nn.functional
INF, NAN = np.inf, np.nan


def numbers(*shape, low=-3.0, high=3.0, seed=0, dtype="float64"):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def both(name, arrays, constants=(), rtol=1e-12, atol=1e-14, **kwargs):
    """Compare the value and, by kernels and by the formula, the gradients of `arrays` with PyTorch's."""
    xs = [cg.tensor(a, requires_grad=True) for a in arrays]
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    with cg.record():
        y = getattr(cg, name)(*xs, *[cg.tensor(c) for c in constants], **kwargs)
    z = getattr(F, name)(*ts, *[torch.tensor(c) for c in constants], **kwargs)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol, atol)
    head = numbers(*y.shape, seed=9)
    wanted = torch.autograd.grad(z, ts, torch.tensor(head, dtype=z.dtype), allow_unused=True)
    for how in ({"create_graph": True}, {}):
        found = cg.autograd.grad(y, xs, cg.tensor(head, dtype=y.dtype), **how)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.numpy(), rtol, atol)


# ---- edges -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, kwargs", [
    ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.5}), ("smooth_l1_loss", {"beta": 0}),
    ("huber_loss", {"delta": 0.5})])
@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_differences_at_kinks(name, kwargs, reduction):
    """0, the bounds, infinities and NaN."""
    x = np.array([0.0, -0.0, 0.5, -0.5, 0.25, 1.0, -7.0, 1e300, INF, -INF])
    both(name, [x, 0 * np.minimum(np.abs(x), 1)], reduction=reduction, **kwargs)
    if name != "l1_loss" and kwargs["beta" if name == "smooth_l1_loss" else "delta"]:
        both(name, [np.array([NAN, 1.0])], [np.zeros(2)], reduction="none", **kwargs)


def test_l1_at_nan():
    """The value is NaN. The gradient is 0, as that of abs: neither is larger."""
    x = cg.tensor(np.array([NAN, 1.0])).attach_grad()
    with cg.record():
        y = cg.l1_loss(x, np.zeros(2), "none")
    y.backward()
    assert np.isnan(y.tolist()[0]) and x.grad.tolist() == [0.0, 1.0]


def test_kl_div_of_zeros():
    """0 log 0 = 0, also for x = -inf, where PyTorch has NaN."""
    x, t = cg.tensor(np.array([-1.0, -INF, NAN, -1.0])).attach_grad(), cg.tensor(np.zeros(4)).attach_grad()
    with cg.record():
        y = cg.kl_div(x, t, "none")
    y.backward(retain_graph=True)
    assert y.tolist()[:2] == [0.0, 0.0] and np.isnan(y.tolist()[2]) and y.tolist()[3] == 0
    assert x.grad.tolist() == [0.0] * 4 and t.grad.tolist()[::3] == [1.0, 1.0] and t.grad.tolist()[1] == INF
    (dt,) = cg.autograd.grad(y, [t], create_graph=True)
    np.testing.assert_array_equal(dt.detach().numpy(), t.grad.numpy())
    assert np.isnan(cg.kl_div(np.array([-1.0]), np.array([-0.5])).item())
    y = cg.kl_div(np.array([-1.0, -INF]), np.array([-INF, -INF]), log_target=True, reduction="none")
    assert y.tolist() == [0, 0]


def test_batchmean_is_the_divergence_of_rows():
    p, q = numbers(5, 7, low=0.1, high=1, seed=1), numbers(5, 7, low=0.1, high=1, seed=2)
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    wanted = (p * np.log(p / q)).sum() / 5
    assert cg.kl_div(np.log(q), p, "batchmean").item() == pytest.approx(wanted)
    both("kl_div", [np.log(q), np.log(p)], reduction="batchmean", log_target=True)


@pytest.mark.parametrize("full", [False, True])
def test_a_variance_below_eps(full):
    """Counts as eps, and its gradient is the one at eps, as in PyTorch. The second derivative too."""
    x, t, v = numbers(6), numbers(6, seed=1), np.array([0.0, 0.05, 0.1, 0.2, 1.0, 3.0])
    both("gaussian_nll_loss", [x, t, v], full=full, eps=0.1)
    ours, theirs = cg.tensor(v, requires_grad=True), torch.tensor(v, requires_grad=True)
    with cg.record():
        (dv,) = cg.autograd.grad(cg.gaussian_nll_loss(x, t, ours, eps=0.1, reduction="sum"), [ours], create_graph=True)
        (found,) = cg.autograd.grad(dv.sum(), [ours])
    (dv,) = torch.autograd.grad(F.gaussian_nll_loss(torch.tensor(x), torch.tensor(t), theirs, eps=0.1, reduction="sum"),
                                [theirs], create_graph=True)
    (wanted,) = torch.autograd.grad(dv.sum(), [theirs])
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-10)


def test_variances_of_all_shapes():
    x, t = numbers(4, 3), numbers(4, 3, seed=1)
    for v in (numbers(4, low=0.2, high=2), numbers(4, 1, low=0.2, high=2), numbers(4, 3, low=0.2, high=2)):
        both("gaussian_nll_loss", [x, t, v], full=True)
    wanted = cg.gaussian_nll_loss(x, t, np.full((4, 3), 0.3)).item()
    for v in (0.3, np.array(0.3), np.full(3, 0.3)): assert cg.gaussian_nll_loss(x, t, v).item() == wanted
    square = numbers(3, 3, low=0.2, high=2)         # (3,) is a number for each row, as in PyTorch
    assert (cg.gaussian_nll_loss(square, 0.0, square[0]).item() ==
            cg.gaussian_nll_loss(square, 0.0, square[0][:, None]).item())


@pytest.mark.parametrize("log_input", [False, True])
def test_poisson_at_counts_of_zero_and_one(log_input):
    x, t = numbers(5, low=0, high=2), np.array([0.0, 0.5, 1.0, 1.0 + 1e-9, 30.0])
    both("poisson_nll_loss", [x], [t], log_input=log_input, full=True)
    target = cg.tensor(t).attach_grad()
    with cg.record(): y = cg.poisson_nll_loss(x, target, log_input, True, reduction="sum")
    y.backward()
    slope = np.where(t > 1, np.log(np.maximum(t, 1)) + 0.5 / np.maximum(t, 1), 0)     # PyTorch's is NaN at 0
    np.testing.assert_allclose(target.grad.numpy(), slope - (x if log_input else np.log(x + 1e-8)), 1e-12)
    if not log_input:
        both("poisson_nll_loss", [np.zeros(5), np.full(5, 0.5)], log_input=False)
        both("poisson_nll_loss", [x], [t], log_input=False, eps=0)


def test_binary_cross_entropy_at_0_and_1():
    """Logarithms are at least -100, and the divisor of the gradient is at least 1e-12."""
    x, t = np.array([0.0, 0.0, 1.0, 1.0, 1e-50, 0.5]), np.array([0.0, 1.0, 0.0, 1.0, 0.5, 0.5])
    both("binary_cross_entropy", [x], [t], rtol=1e-8, reduction="none")    # (PyTorch's 1e-12 is a float32)
    both("binary_cross_entropy", [x.astype("float32")], [t.astype("float32")], reduction="none", rtol=1e-6)
    target = cg.tensor(t).attach_grad()
    for graph in (False, True):
        with cg.record(): y = cg.binary_cross_entropy(x, target, reduction="sum")
        (dt,) = cg.autograd.grad(y, [target], create_graph=graph)
        np.testing.assert_allclose(dt.detach().numpy(), [100, 100, -100, -100, 100, 0], 1e-12)
    assert cg.binary_cross_entropy(x[1:2], t[1:2]).item() == 100
    assert np.isnan(cg.binary_cross_entropy(np.array([NAN]), np.array([1.0])).item())


def test_logits_far_from_zero():
    x, t = np.array([1e4, -1e4, 800.0, -800.0, 0.0, 1e-300]), np.array([0.0, 1.0, 1.0, 0.0, 0.5, 0.25])
    w, u = numbers(6, low=0.1, high=2), numbers(6, low=0.1, high=2, seed=1)
    for reduction in ("none", "mean", "sum"):
        both("binary_cross_entropy_with_logits", [x, t], reduction=reduction)
        xs, ts = cg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        with cg.record(): y = cg.binary_cross_entropy_with_logits(xs, t, w, "sum", u)
        z = F.binary_cross_entropy_with_logits(ts, torch.tensor(t), torch.tensor(w), reduction="sum",
                                               pos_weight=torch.tensor(u))
        assert y.item() == pytest.approx(z.item(), rel=1e-13)
        y.backward()
        z.backward()
        np.testing.assert_allclose(xs.grad.numpy(), ts.grad.numpy(), 1e-12)
    y = np.array([1.0, 1, -1, 1, 1, -1])
    np.testing.assert_allclose(cg.soft_margin_loss(x, y, "none").numpy(), np.logaddexp(0, -x * y), 1e-15)
    both("soft_margin_loss", [x / 1000], [y])


def test_hinge_embeddings_at_the_margin():
    """The derivative at x = margin is -1. Other targets than 1 and -1 have both parts."""
    both("hinge_embedding_loss", [np.array([1.0, 0.5, 1.5, 1.0, 0.5, 1.5, 1.0, 2.0, 0.0])],
         [np.array([-1.0, -1, -1, 1, 1, 1, 0, 0, 3])], reduction="none")
    t = cg.ones(3).attach_grad()
    with cg.record(): y = cg.hinge_embedding_loss(cg.ones(3), t)
    assert not y.requires_grad                      # the target has no gradient


def test_weights_have_gradients():
    x, t = numbers(4, 3, low=0.1, high=0.9), numbers(4, 3, low=0.1, high=0.9, seed=1)
    w, u = numbers(3, low=0.5, high=2), numbers(4, 1, low=0.5, high=2)
    xs = [cg.tensor(a) for a in (x, t, w, u)]
    assert cg.testing.gradcheck(cg.binary_cross_entropy, xs[:3], order=2)
    assert cg.testing.gradcheck(lambda x, t, w, u: cg.binary_cross_entropy_with_logits(x, t, w, "none", u), xs, order=2)


def test_numbers_and_integers_as_targets():
    x = numbers(5)
    assert cg.l1_loss(x, 0.1).item() == pytest.approx(np.abs(x - 0.1).mean(), rel=1e-15)
    assert cg.smooth_l1_loss(x, 1).dtype == "float64" and cg.l1_loss(cg.ones(3, dtype="int64"), 0.5).item() == 0.5
    both("l1_loss", [x], [np.arange(5)])
    y = cg.huber_loss(np.ones(3, "uint8"), np.array([2, 1, 0], "uint8"), "none")
    assert y.tolist() == [0.5, 0.0, 0.5] and y.dtype == "float32"
    assert cg.mse_loss is cg.mse


def test_a_larger_common_shape_warns():
    with pytest.warns(UserWarning, match=r"l1_loss: x is \(3, 1\) and target is \(3,\), which broadcast to \(3, 3\)"):
        assert cg.l1_loss(np.ones((3, 1)), np.zeros(3)).item() == 1


# ---- sizes, threads and memory ---------------------------------------------------------------------------------------

CASES = {
    "l1_loss": {}, "smooth_l1_loss": {}, "kl_div": {"log_target": True}, "poisson_nll_loss": {}, "soft_margin_loss": {},
    "hinge_embedding_loss": {},
}
SIZES = [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 511, 512, 513, 64 * 512 - 1, 64 * 512, 64 * 512 + 1, 150_001]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_around_strips(name, dtype):
    """Reductions of every size agree with the values, and the gradients with those of PyTorch."""
    for n in SIZES:
        x, t = numbers(n, dtype=dtype), np.sign(numbers(n, seed=1, dtype=dtype))
        f = getattr(cg, name)
        values = f(x, t, reduction="none", **CASES[name]).numpy().astype("float64")
        assert f(x, t, reduction="sum", **CASES[name]).item() == pytest.approx(values.sum(), rel=3e-6)
        tolerances = (1e-5, 2e-6) if dtype == "float32" else (1e-12, 1e-14)
        both(name, [x], [t], *tolerances, reduction="sum", **CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads(name, two_threads):
    x, t = numbers(700_003, dtype="float32"), np.sign(numbers(700_003, seed=1, dtype="float32"))
    found = []
    for threads in (1, 2):
        cg.set_num_threads(threads)
        leaf = cg.tensor(x).attach_grad()
        with cg.record(): y = getattr(cg, name)(leaf, t, **CASES[name])
        y.backward()
        found.append((y.detach().numpy().tobytes(), leaf.grad.numpy().tobytes()))
    assert found[0] == found[1]


def test_results_stored_past_the_cache():
    x, t = numbers(5_000_001, dtype="float32"), numbers(5_000_001, seed=1, dtype="float32")
    both("huber_loss", [x, t], rtol=1e-6, reduction="none")


def peak(f):
    """The result of f(), and the bytes that were live meanwhile beyond those before."""
    before = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as scope: result = f()
    return result, scope.peak_bytes - before


def test_no_array_is_made():
    """A reduction allocates its one number and the codes, backward one gradient, which takes the memory of what nobody
    else holds."""
    n = 100_000
    x, t = cg.tensor(numbers(n), requires_grad=True), cg.tensor(numbers(n, seed=1))
    for name, codes in (("smooth_l1_loss", 0), ("l1_loss", n // 4)):
        with cg.record(): y, forward = peak(lambda name=name: getattr(cg, name)(x, t))
        assert forward <= 8 + codes + 64
        _, backward = peak(y.backward)
        assert backward <= 8 * n + 64
        x.grad = None
    with cg.record(): y = cg.huber_loss(x * 2.0, t)
    _, backward = peak(y.backward)
    assert backward <= 64                           # over the saved product
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.clip(2 * x.detach().numpy() - t.numpy(), -1, 1) / n, 1e-12)
