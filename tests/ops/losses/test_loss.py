"""The bytes that bce_with_logits saves: x, and one bit per target if targets are 0 or 1 without gradients."""

import numpy as np
import pytest

import cygrad as cg

N = 1003


def logits(dtype):
    x = np.random.default_rng(0).normal(size=N) * 4
    x[:6] = 0.0, -0.0, 800.0, -800.0, 20.0, -20.0
    return x.astype(dtype)


def slope(x, t):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)) - t


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_hard_targets_are_kept_as_bits(dtype, reduction):
    x, t = logits(dtype), (np.random.default_rng(1).random(N) < 0.5).astype(dtype)
    soft = t.copy()
    soft[N - 1] = 0.25
    leaf = cg.tensor(x).attach_grad()
    for given, nbytes in ((t, (N + 7) // 8), (-0.0 * t + t, (N + 7) // 8), (soft, soft.nbytes)):
        targets = cg.tensor(given)
        with cg.record():
            z = leaf * 1.0
            with cg.record() as tape:
                y = cg.bce_with_logits(z, targets, reduction)
            del z
        assert tape.saved_bytes == x.nbytes + nbytes
        wanted = slope(x.astype("float64"), given) / (N if reduction == "mean" else 1)
        for how in ({"create_graph": True}, {"retain_graph": True}, {}):
            (dx,) = cg.autograd.grad(y, [leaf], **how)
            np.testing.assert_allclose(dx.detach().numpy(), wanted, rtol=3e-6, atol=np.finfo(dtype).eps)


def test_targets_with_a_gradient_are_kept_as_they_are():
    x, t = cg.tensor(logits("float64")).attach_grad(), cg.tensor(np.ones(N)).attach_grad()
    with cg.record():
        z, u = x * 1.0, t * 1.0
        with cg.record() as tape:
            y = cg.bce_with_logits(z, u, "sum")
        del z, u
    assert tape.saved_bytes == 16 * N
    y.backward()
    np.testing.assert_allclose(t.grad.numpy(), -logits("float64"))
    np.testing.assert_allclose(x.grad.numpy(), slope(logits("float64"), 1.0), atol=1e-15)


def test_nan_is_no_hard_target():
    x, t = cg.zeros(3).attach_grad(), cg.tensor([0.0, float("nan"), 1.0])
    with cg.record():
        y = cg.bce_with_logits(x, t, "none")
    y.backward()
    assert x.grad.tolist()[::2] == [0.5, -0.5] and np.isnan(x.grad.tolist()[1])


def test_a_later_write_to_hard_targets_is_harmless():
    x, t = cg.zeros(3).attach_grad(), cg.tensor([0.0, 1.0, 1.0])
    with cg.record():
        y = cg.bce_with_logits(x, t, "sum")
    t[...] = 0.5
    y.backward()
    assert x.grad.tolist() == [0.5, -0.5, -0.5]


@pytest.mark.parametrize("strided", [False, True])
def test_every_order(strided):
    """Also with strided targets, and with strided results of an unpack hook."""
    t = cg.asarray(np.repeat([0.0, 1.0, 1.0, 0.0], 2)[::2]) if strided else cg.tensor(np.array([0.0, 1.0, 1.0, 0.0]))
    x = cg.tensor(np.array([0.5, -1.5, 0.25, 2.0])).attach_grad()
    assert cg.testing.gradcheck(lambda x: cg.bce_with_logits(x, t), [x], order=2)
    for graph in (False, True):
        with cg.autograd.saved_tensors_hooks(lambda s: s.numpy().copy(), lambda a: cg.asarray(np.repeat(a, 2)[::2])):
            with cg.record():
                y = cg.bce_with_logits(x, t, "sum")
        (dx,) = cg.autograd.grad(y, [x], create_graph=graph)
        np.testing.assert_allclose(dx.detach().numpy(), slope(x.detach().numpy(), t.numpy()))
