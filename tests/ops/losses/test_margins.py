"""Losses and similarities that are made of operators: PyTorch's samples, ties, edges, saved bytes."""

import numpy as np
import pytest
from conventions import NO_AXIS, refuse
from counterparts import Counterpart
from opinfo import count

import cygrad as cg

from peers import torch
F = torch.nn.functional


class Composed(Counterpart):
    """A function that has no row."""

    @property
    def function(self):
        f = getattr(cg, self.row)
        return self.adapt(f) if self.adapt else f


def cosine(f):
    def call(x1, x2, dim=1, eps=1e-8):
        refuse(not x1.shape, NO_AXIS)
        return f(x1, x2, axis=dim, eps=eps)
    return call


def distance(f):
    return lambda x1, x2, p=2.0, eps=1e-6, keepdim=False: f(x1, x2, p, eps, keepdim)


def of_rows(f):
    def call(x, *args, **kwargs):
        refuse(not x.shape, "no classes")
        return f(x, *args, **kwargs)
    return call


@pytest.mark.parametrize("name, adapt, least", [
    ("cosine_similarity", cosine, 16), ("pairwise_distance", distance, 14), ("cosine_embedding_loss", None, 12),
    ("margin_ranking_loss", None, 24), ("triplet_margin_loss", None, 14), ("multilabel_soft_margin_loss", None, 8)])
def test_agrees_with_pytorch(name, adapt, least):
    """Value, first and second gradients on PyTorch's own samples."""
    compared, differentiated, _ = count(Composed(name, f"nn.functional.{name}", adapt))
    assert compared == differentiated == least


def gradients(f, x, *args, **kwargs):
    with cg.record(): y = f(x, *args, **kwargs)
    return y.detach().numpy(), cg.autograd.grad(y, [x], cg.ones(y.shape, dtype=y.dtype))[0].numpy()


def same(name, x, *args, **kwargs):
    """Value and gradient of the first argument as in PyTorch, which has no second gradients of these."""
    ours, theirs = cg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    value, dx = gradients(getattr(cg, name), ours, *args, **kwargs)
    kwargs = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    z = getattr(F, name)(theirs, *[torch.tensor(a) for a in args], **kwargs)
    z.backward(torch.ones_like(z))
    np.testing.assert_allclose(value, z.detach().numpy(), 1e-12, 1e-14)
    np.testing.assert_allclose(dx, theirs.grad.numpy(), 1e-12, 1e-14)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multi_margin(reduction):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(6, 5)), rng.integers(0, 5, 6)
    ties = np.round(x)                              # many at the hinge
    for p in (1, 2):
        for given in (x, ties):
            same("multi_margin_loss", given, labels, p=p, reduction=reduction)
            same("multi_margin_loss", given, labels, p=p, margin=0.5, weight=rng.random(5), reduction=reduction)
        same("multi_margin_loss", x[0], labels[0], p=p, reduction=reduction)
        f = lambda x, p=p: cg.multi_margin_loss(x, labels, p, reduction=reduction)      # noqa: E731
        assert cg.testing.gradcheck(f, [cg.tensor(x)], order=2)
    assert cg.multi_margin_loss(np.zeros((0, 5)), np.zeros(0, "int64"), reduction="none").shape == (0,)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin(reduction):
    """Rows without labels, with all, with repeated ones, and numbers after the first -1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 4))
    labels = np.array([[-1, 2, 3, 1], [0, 1, 2, 3], [2, 2, -1, 0], [3, -1, -1, -1], [1, 0, -1, 2]])
    for given in (x, np.round(x)):
        same("multilabel_margin_loss", given, labels, reduction=reduction)
        same("multilabel_margin_loss", given[2], labels[2], reduction=reduction)
    assert cg.testing.gradcheck(lambda x: cg.multilabel_margin_loss(x, labels, reduction), [cg.tensor(x)], order=2)
    assert cg.multilabel_margin_loss(np.zeros((0, 5)), np.zeros((0, 5), "int64"), "none").shape == (0,)


@pytest.mark.parametrize("labels", [[0, -2, -1, 0], [-2, 0, 0, 0], [0, -1, 4, 0], [0, -1, -2, 0], [4, 0, 0, 0]])
def test_multilabel_margin_checks_all_labels(labels):
    """Those after the first -1 too, as in PyTorch."""
    with pytest.raises(RuntimeError): F.multilabel_margin_loss(torch.zeros(4), torch.tensor(labels))
    with pytest.raises(IndexError, match="label (-2|4) is not a class"): cg.multilabel_margin_loss(np.zeros(4), labels)


def test_labels_of_unsigned_integers():
    for name, labels in (("multi_margin_loss", [1, 2]), ("multilabel_margin_loss", [[1, 0, 2], [2, 2, 2]])):
        f = getattr(cg, name)
        x, wide = np.arange(6.0).reshape(2, 3), np.array(labels, "uint64")
        assert f(x, wide).item() == f(x, labels).item()
        wide.flat[0] = 2**64 - 1                    # not -1
        with pytest.raises(IndexError, match="label 18446744073709551615 is not a class"): f(x, wide)


def test_ties_at_the_hinge():
    """The derivative of max(0, z) at 0 is 1, as in PyTorch."""
    same("margin_ranking_loss", np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), np.array([1, 1, -1]), margin=1.0,
         reduction="none")
    same("cosine_embedding_loss", np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]), np.array([[0.0, 1.0]] * 3),
         np.array([-1, 1, 0]), reduction="none")


def test_cosine_of_zeros():
    """0, with the gradient x2 / (|x2| eps), as in PyTorch."""
    same("cosine_similarity", np.zeros((2, 3)), np.ones((2, 3)))
    assert cg.cosine_similarity(np.zeros((1, 3)), np.zeros((1, 3))).tolist() == [0.0]
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    np.testing.assert_allclose(cg.cosine_similarity(x, x[0], axis=-1).numpy()[0], np.ones(3), 1e-15)
    assert cg.cosine_similarity(x, 2.0, axis=0).shape == (3, 4)


@pytest.mark.parametrize("swap", [False, True])
def test_triplets_of_every_order(swap):
    rng = np.random.default_rng(0)
    xs = [cg.tensor(rng.normal(size=(4, 3))) for _ in range(3)]
    for p in (1.5, 2.0):
        f = lambda *xs, p=p: cg.triplet_margin_loss(*xs, 3.0, p, swap=swap)            # noqa: E731
        assert cg.testing.gradcheck(f, xs, order=2)


N, ROWS = 100 * 64, 100


@pytest.mark.parametrize("name, extra, nbytes", [
    ("cosine_similarity", (), 2 * 4 * N + 6 * 4 * ROWS + 2 * ((ROWS + 7) // 8)),
    ("margin_ranking_loss", (1.0,), 4 + (N + 7) // 8),
    ("triplet_margin_loss", ("x",), 2 * 4 * N + 2 * 4 * ROWS + (ROWS + 7) // 8),
])
def test_bytes_kept(name, extra, nbytes):
    """As the docstrings say: inputs or differences, a few numbers for each row, a bit for each hinge."""
    xs = [cg.tensor(np.random.default_rng(i).normal(size=(100, 64)), dtype="float32").attach_grad() for i in range(3)]
    with cg.record():
        xs = [x * 1.0 for x in xs]
        with cg.record() as tape:
            y = getattr(cg, name)(*xs[:2], *[xs[2] if e == "x" else e for e in extra])
        z = y.sum()
        del y, xs
    assert tape.saved_bytes == nbytes
    del z
