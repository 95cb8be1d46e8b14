"""Normalization beyond PyTorch's samples: running statistics over several steps, the mode, frozen statistics, failing
allocations. test_layers.py compares the samples, test_nets.py has what all layers share."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import nn
from cygrad.testing import fail_allocation

SHAPES = {1: (5, 3, 6), 2: (5, 3, 4, 2), 3: (4, 3, 2, 3, 2)}


def batches(shape, n, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(i, 1 + i, shape) for i in range(n)]


def statistics(layer):
    return {name: x.numpy().copy() for name, x in layer.named_buffers()}


@pytest.mark.parametrize("nd", (1, 2, 3))
@pytest.mark.parametrize("kind", ("BatchNorm", "InstanceNorm"))
@pytest.mark.parametrize("momentum", (0.1, 0.75, None))
def test_running_statistics_over_steps(kind, nd, momentum):
    """Five batches in train mode, then one in predict mode: statistics, values and gradients."""
    import torch
    if kind == "InstanceNorm" and momentum is None: return
    named = {"momentum": momentum, "affine": True, "track_running_stats": True}
    theirs = getattr(torch.nn, f"{kind}{nd}d")(3, **named).double()
    ours = getattr(nn, f"{kind}{nd}d")(3, dtype="float64", **named)
    state = {"weight": np.array([1.5, -2, 0.5]), "bias": np.array([0.25, 1, -3])}
    ours.load_state_dict(state, strict=False)
    theirs.load_state_dict({name: torch.tensor(v) for name, v in state.items()}, strict=False)
    *training, last = batches(SHAPES[nd], 6)
    for i, x in enumerate([*training, last]):
        mode = cg.train_mode if i < 5 else cg.predict_mode
        a, b = cg.tensor(x).requires_grad_(), torch.tensor(x, requires_grad=True)
        theirs.train(i < 5)
        with cg.record(train_mode=None), mode():
            y = cg.square(ours(a)).sum()
        z = (theirs(b) ** 2).sum()
        y.backward()
        z.backward()
        for name, t in theirs.named_buffers():
            np.testing.assert_allclose(ours.get_buffer(name).numpy(), t.numpy(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-8)
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(ours.get_parameter(name).grad.numpy(), p.grad.numpy(), rtol=1e-9)
    count = ours.num_batches_tracked
    assert count.item() == (5 if kind == "BatchNorm" else 0) and count.dtype == "int64"
    ours.reset_running_stats()
    assert [x.numpy().tolist() for x in ours.buffers()] == [[0, 0, 0], [1, 1, 1], 0]


def test_momentum_none_averages_all_batches():
    layer, xs = nn.BatchNorm1d(3, momentum=None, dtype="float64"), batches((50, 3), 4)
    with cg.train_mode():
        for x in xs: layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), np.mean([x.mean(0) for x in xs], 0))
    np.testing.assert_allclose(layer.running_var.numpy(), np.mean([x.var(0, ddof=1) for x in xs], 0))


def test_the_mode_is_that_of_the_thread():
    layer, x = nn.BatchNorm1d(3), batches((5, 3), 1)[0].astype("f4")
    layer(x)
    assert layer.num_batches_tracked.item() == 0 and (layer(x).numpy() == layer.train(None)(x).numpy()).all()
    with cg.train_mode(): layer(x)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    before = statistics(layer)
    with cg.train_mode(), pytest.raises(RuntimeError, match=r"BatchNorm1d: eval.*\.predict_mode"): layer(x)
    layer.train()
    with pytest.raises(RuntimeError, match=r"BatchNorm1d: train.*\.train_mode"): layer(x)
    assert all((v == before[name]).all() for name, v in statistics(layer).items())
    nn.LayerNorm(3).eval()(x)
    for other in (nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.BatchNorm1d(3, track_running_stats=False)):
        with cg.train_mode(): a = other.eval()(x).numpy()         # layers without a mode run in both
        assert (a == other(x).numpy()).all()


def test_frozen_statistics_are_used_in_train_mode_and_do_not_move():
    layer = nn.BatchNorm2d(3, dtype="float64")
    xs = batches(SHAPES[2], 3)
    with cg.train_mode():
        for x in xs: layer(x)
    before, predicted = statistics(layer), layer(xs[0]).numpy()
    assert layer.freeze_statistics() is layer and "frozen statistics" in repr(layer)
    with cg.train_mode():
        with cg.record(): y = layer(xs[0])
        layer.eval()(xs[0])                         # does not depend on the mode
        layer.train(None)
    assert (y.numpy() == predicted).all()
    y.backward(cg.ones_like(y))
    assert layer.weight.grad is not None
    assert all((v == before[name]).all() for name, v in statistics(layer).items())
    layer.freeze_statistics(False)
    with cg.train_mode(): layer(xs[0])
    assert layer.num_batches_tracked.item() == 4 and "frozen" not in repr(layer)


@pytest.mark.parametrize("make, shape", [
    (lambda: nn.BatchNorm2d(3), SHAPES[2]), (lambda: nn.BatchNorm1d(3, momentum=None), (5, 3)),
    (lambda: nn.InstanceNorm2d(3, track_running_stats=True), SHAPES[2]),
    (lambda: nn.InstanceNorm2d(3, track_running_stats=True), SHAPES[2][1:]),
], ids=["batch", "cumulative", "instance", "instance-alone"])
def test_statistics_move_all_or_not_at_all(make, shape):
    """If an allocation of the forward pass fails, no statistic has changed."""
    layer, n, (first, second) = make(), 0, batches(shape, 2)
    with cg.train_mode():
        layer(first.astype("f4"))
        x = cg.tensor(second.astype("f4"))
        while True:
            n, before = n + 1, statistics(layer)
            with fail_allocation(n) as failure:
                try:
                    with cg.record(): layer(x)
                except MemoryError: pass
            if not failure.failed: break
            assert all((v == before[name]).all() for name, v in statistics(layer).items())
    assert n > 2 and (layer.running_mean.numpy() != before["running_mean"]).all()


@pytest.mark.parametrize("nd", (1, 2, 3))
def test_samples_without_a_batch(nd):
    x = batches(SHAPES[nd], 1)[0]
    for named in ({}, {"affine": True}):
        layer = getattr(nn, f"InstanceNorm{nd}d")(3, dtype="float64", **named)
        np.testing.assert_allclose(layer(x[1]).numpy(), layer(x).numpy()[1], rtol=1e-12)
        lazy = getattr(nn, f"InstanceNorm{nd}d")(None, dtype="float64", affine=True)
        assert lazy(x[1]).shape == x[1].shape and lazy.num_features == 3


def test_unknown_channels():
    for shape in ((5, 3), (5, 3, 6)):
        layer = nn.BatchNorm1d(None)
        assert layer(cg.ones(shape)).shape == shape and layer.num_features == 3 == layer.running_mean.size
    loaded = nn.BatchNorm1d(None, affine=False)
    loaded.load_state_dict(nn.BatchNorm1d(4, affine=False).state_dict())
    assert loaded.num_features == 4
    with pytest.raises(ValueError, match="missing: 'running_mean', 'running_var', 'num_batches_tracked'"):
        nn.BatchNorm1d(None, affine=False).load_state_dict({})


@pytest.mark.parametrize("name", ("LayerNorm", "RMSNorm"))
def test_normalization_without_weights_checks_its_shape(name):
    layer = getattr(nn, name)((3, 4), elementwise_affine=False)
    assert layer(np.ones((2, 3, 4), "f4")).shape == (2, 3, 4)
    with pytest.raises(ValueError, match=rf"{name}: x must be \(\.\.\., 3, 4\), got \(2, 4\)"): layer(np.ones((2, 4)))


def test_the_bytes_of_a_step_are_those_of_the_operator():
    """Train mode: the layer takes no allocation beyond batch_norm's."""
    layer, x = nn.BatchNorm2d(3), cg.ones(4, 3, 8, 8)
    counts = []
    with cg.train_mode():
        for f in (layer, lambda x: cg.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias)):
            with fail_allocation(1 << 40) as counted, cg.memory.track() as tracked:
                with cg.record(): y = f(x)
                y.backward(cg.ones_like(y))
                y = None
                layer.zero_grad()
            counts.append((counted.allocations, tracked.peak_bytes, tracked.leaked_bytes))
    assert counts[0] == counts[1] and counts[0][2] == 0
