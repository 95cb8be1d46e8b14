"""Losses over classes: ignored rows, and the memory of linear_cross_entropy."""

import numpy as np
import pytest

import cygrad as cg


@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss", "linear_cross_entropy"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("graph", [False, True])
def test_all_rows_are_ignored(loss, reduction, graph):
    """As in PyTorch: the mean is NaN, and the gradients are 0."""
    x = cg.tensor(np.ones((4, 3))).attach_grad()
    labels = np.full(4, -100)
    with cg.record():
        rest = (cg.tensor(np.eye(3)), labels) if loss.startswith("linear") else (labels,)
        y = getattr(cg, loss)(x, *rest, reduction=reduction)
        (dx,) = cg.autograd.grad(y, [x], cg.ones(y.shape, y.dtype), create_graph=graph)
    assert np.isnan(y.detach().numpy()) if reduction == "mean" else not y.detach().numpy().any()
    assert not dx.detach().numpy().any()


@pytest.mark.parametrize("shape", [(3, 200), (3, 5), (3, 5, 40)])
def test_ignored_rows_may_be_no_numbers(shape):
    x, labels = np.ones(shape), np.zeros((3, *shape[2:]), int)
    x[1], labels[1] = np.nan, -100
    leaf = cg.tensor(x).attach_grad()
    with cg.record():
        y = cg.cross_entropy(leaf, labels)
    y.backward()
    np.testing.assert_allclose(y.item(), np.log(shape[1]))
    assert not leaf.grad.numpy()[1].any() and np.isfinite(leaf.grad.numpy()).all()


def test_soft_targets_of_labels_are_labels():
    x, labels = np.random.default_rng(0).normal(size=(6, 5)), np.array([0, 4, 2, 2, 1, 3])
    soft = cg.cross_entropy(x, np.eye(5)[labels], label_smoothing=0.1, weight=np.arange(5.0), reduction="none")
    hard = cg.cross_entropy(x, labels, label_smoothing=0.1, weight=np.arange(5.0), reduction="none")
    np.testing.assert_allclose(soft.numpy(), hard.numpy(), rtol=1e-14)


def test_the_logits_are_never_whole():
    """Forward and backward need a chunk of logits, the gradients, and little more."""
    n, width, classes, chunk = 512, 16, 1000, 32
    r = np.random.default_rng(0)
    x, w = (cg.tensor(r.normal(size=s), "float32").attach_grad() for s in ((n, width), (classes, width)))
    b, labels = cg.zeros(classes).attach_grad(), cg.tensor(r.integers(0, classes, n))

    def step():
        for v in (x, w, b): v.grad = None
        with cg.record():
            y = cg.linear_cross_entropy(x, w, labels, b, chunk=chunk)
        y.backward()

    step()
    for v in (x, w, b): v.grad = None
    before = cg.memory.stats()["live_bytes"]
    cg.memory.reset_peak()
    step()
    peak = cg.memory.stats()["peak_bytes"] - before
    assert peak < 4 * (chunk * classes + n * width + classes * width + 3 * classes + 4 * n) + 4096
    assert peak < n * classes                       # a quarter of the logits
    whole = [g.numpy() for g in gradients(lambda: cg.cross_entropy(cg.linear(x, w, b), labels), [x, w, b])]
    for chunk in (1, 31, 600, 2**64):
        found = gradients(lambda c=chunk: cg.linear_cross_entropy(x, w, labels, b, chunk=c), [x, w, b])
        for a, c in zip(found, whole, strict=True):
            np.testing.assert_allclose(a.numpy(), c, atol=3e-7)


@pytest.mark.parametrize("n, classes, dtype, rows", [
    (4096, 64, "float32", 256),                     # 64 KiB, and a sixteenth
    (4096, 2000, "float32", 256), (8192, 2000, "float32", 256),
    (1024, 2000, "float32", 64), (1024, 2000, "float64", 64),
    (100, 2000, "float32", 8), (100, 2000, "float64", 6), (16, 20_000, "float32", 1), (50, 3, "float64", 50),
])
def test_the_default_chunk_follows_from_shapes_and_dtype(n, classes, dtype, rows):
    """The workspace is a sixteenth of the logits, or 64 KiB, and the bits are those of the same chunk by hand."""
    r = np.random.default_rng(0)
    x, w = (cg.tensor(r.normal(size=s), dtype).attach_grad() for s in ((n, 4), (classes, 4)))
    labels = cg.tensor(r.integers(0, classes, n))

    def step(**chunk):
        with cg.record(): y = cg.linear_cross_entropy(x, w, labels, **chunk)
        y.backward()
        return y.numpy().tobytes(), x.grad.numpy().tobytes(), w.grad.numpy().tobytes()

    with cg.memory.events() as log: found = step()
    most = max(nbytes for kind, _, nbytes, category in log if kind == "allocate" and category == "workspace")
    logits = rows * classes * w.dtype.itemsize
    assert logits <= most <= logits + 8 * n + 1024 and logits <= max(n * classes * w.dtype.itemsize // 16, 64 << 10)
    assert found == step(chunk=rows)
    with cg.memory.limit("1GiB"), cg.memory.budget("1GiB"): assert found == step()


def test_a_net_has_the_default_chunk_of_the_shapes_it_runs_on():
    net = cg.graph.Net()
    net.linear_cross_entropy(["labels", "x", "w"], "y")
    net.add_gradient_operators(["y"])
    r = np.random.default_rng(0)
    for n in (2048, 200):
        x, w, labels = r.normal(size=(n, 4)), r.normal(size=(2000, 4)), r.integers(0, 2000, n)
        workspace = cg.graph.Workspace()
        for name, a in (("x", x), ("w", w), ("labels", labels)): workspace.feed(name, a)
        workspace.run(net)
        x, w = (cg.tensor(a).attach_grad() for a in (x, w))
        wanted = gradients(lambda: cg.linear_cross_entropy(x, w, labels, chunk=n // 16), [x, w])
        for name, g in zip("xw", wanted, strict=True):
            assert workspace.fetch(f"{name}_grad").numpy().tobytes() == g.numpy().tobytes()


def gradients(f, xs):
    with cg.record():
        y = f()
    return cg.autograd.grad(y, xs)


def test_products_are_added_to_grad():
    """Two losses of one weight: the second backward adds to .grad."""
    r = np.random.default_rng(0)
    x, labels = r.normal(size=(10, 4)), r.integers(0, 6, 10)
    leaves = [cg.tensor(a).attach_grad() for a in (x, r.normal(size=(6, 4)), r.normal(size=6))]
    def f():
        return cg.linear_cross_entropy(leaves[0], leaves[1], labels, leaves[2], chunk=3)

    once = [g.numpy() for g in gradients(f, leaves)]
    with cg.record():
        y = f() + f()
    y.backward()
    for leaf, g in zip(leaves, once, strict=True):
        np.testing.assert_allclose(leaf.grad.numpy(), 2 * g, rtol=1e-13)


def test_rows_of_x_may_be_strided():
    r = np.random.default_rng(0)
    x, w, labels = r.normal(size=(2, 6, 4)), r.normal(size=(7, 4)), r.integers(0, 7, (2, 5))
    leaves = [cg.tensor(x).attach_grad(), cg.tensor(w.T.copy()).attach_grad()]
    found = gradients(lambda: cg.linear_cross_entropy(leaves[0][:, :-1], leaves[1].T, labels, chunk=4), leaves)
    wanted = gradients(lambda: cg.cross_entropy((leaves[0][:, :-1] @ leaves[1]).reshape(10, 7), labels.ravel()), leaves)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
