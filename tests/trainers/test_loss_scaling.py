"""DynamicLossScalingUpdater: its order, the scale after finite and other gradients, and repeated tries."""

import gc
import json
import math

import numpy as np
import pytest


import cygrad as cg
from cygrad.trainers import DynamicLossScalingUpdater, Updater


class Recorder:
    """A solver that lists its calls. Its check returns the next of `found`, then False."""

    def __init__(self, found=()):
        self.calls, self.found = [], iter(found)

    def zero_grad(self):
        self.calls.append("zero_grad")

    def update(self):
        self.calls.append("update")

    def check_inf_or_nan_grad(self):
        self.calls.append("check")
        return next(self.found, False)

    def scale_grad(self, scale):
        self.calls.append(("scale_grad", scale))

    def weight_decay(self, rate):
        self.calls.append(("weight_decay", rate))

    def all_reduce(self, arrays, division=False, inplace=False):
        self.calls.append(("all_reduce", division, inplace))


def recorded(found=(), batches=None, **settings):
    """A recorder and its updater; the loss and the head gradient are in the list of calls."""
    r, w = Recorder(found), cg.ones(2).attach_grad()
    batches = iter(batches or range(1000))

    def feed():
        r.calls.append("feed")
        return next(batches)

    def loss(k):
        r.calls.append(("forward", k))
        y = (w * 1.0).sum()
        y.register_hook(lambda g: r.calls.append(("backward", g.item())))
        return y

    return r, DynamicLossScalingUpdater(r, loss, feed, grads=[w], **settings)


def test_the_order_of_all_calls():
    r, updater = recorded(accum_grad=2, weight_decay=0.5)
    updater.comm = r
    assert updater.update() is None
    assert r.calls == [
        "zero_grad", "feed", ("forward", 0), ("backward", 8), "feed", ("forward", 1), ("backward", 8),
        ("all_reduce", False, False), "check", ("scale_grad", 0.125), ("weight_decay", 0.5), "update"]
    r.calls.clear()
    updater.comm = updater.weight_decay = None
    updater.update(5)
    assert [c for c in r.calls if c[0] in ("all_reduce", "weight_decay")] == []


def test_inf_or_nan_repeats_on_the_same_batches():
    """nnabla fed new ones, by a recursive call."""
    r, updater = recorded([True, True, False], accum_grad=2, scaling_factor=4)
    updater.comm = r
    updater.update()
    first = [("forward", 0), ("forward", 1)]
    assert [c for c in r.calls if c[0] == "forward"] == 3 * first
    assert r.calls.count("feed") == 2 and r.calls.count("zero_grad") == 3 and r.calls.count("update") == 1
    assert [c[1] for c in r.calls if c[0] == "backward"] == [8, 8, 2, 2, 0.5, 0.5]
    assert [c for c in r.calls if c[0] == "scale_grad"] == [("scale_grad", 2.0)] and updater.scale == 0.5
    at = r.calls.index("check")
    assert r.calls[at - 1:at + 3] == [("all_reduce", False, False), "check", "zero_grad", ("forward", 0)]
    assert r.calls[-3:] == ["check", ("scale_grad", 2.0), "update"]


def used(updater, n):
    """The scale that each of n updates begins with."""
    scales = []
    for i in range(n):
        scales.append(updater.scale)
        updater.update(i)
    return scales


def test_the_scale_grows_after_n_clean_updates():
    """nnabla's first growth came at clean update N + 2, then after every N + 1."""
    assert used(recorded(N=3)[1], 7) == [8, 8, 8, 16, 16, 16, 32]
    assert used(recorded(N=1, scaling_factor=3.0, scale=1.0)[1], 4) == [1, 3, 9, 27]


def test_inf_or_nan_resets_the_count():
    _, updater = recorded([False, False, True, False, False, False, False], N=3)
    assert used(updater, 6) == [8, 8, 8, 4, 4, 8]   # the third update repeats with 4, which counts as its first


def test_a_step_without_a_finite_gradient_is_skipped():
    """nnabla's scale was 8 / 2**101 then, after 101 forward passes."""
    r, updater = recorded([False] * 2 + [True] * 100, N=3)
    updater.update(), updater.update()
    r.calls.clear()
    with pytest.warns(RuntimeWarning) as caught: updater.update()
    assert str(caught[0].message) == (
        "DynamicLossScalingUpdater: a gradient was inf or NaN in 100 tries, down to scale 6.31089e-30; the step was "
        "skipped and the scale is 8 again; look for inf or NaN in the batch and the parameters")
    assert caught[0].filename == __file__
    assert updater.scale == 8 and r.calls.count("feed") == 1 and r.calls[-1] == "zero_grad"
    assert sum(c[0] == "forward" for c in r.calls) == 100 and "update" not in r.calls
    assert used(updater, 4) == [8, 8, 8, 16]        # the count begins again


@pytest.mark.parametrize("saved_at", [2, 4, 5, 6, 9])
def test_a_run_resumes_bit_for_bit(saved_at):
    """Updates 3 and 7 overflow at first, and N is 3: the scale falls and grows on both sides of the resume."""
    def made(w, **settings):
        w = cg.tensor(np.asarray(w, "float32")).attach_grad()
        solver = cg.optim.Momentum({"w": w}, lr=0.01)
        batches = iter([])
        updater = DynamicLossScalingUpdater(
            solver, lambda x: (w * w + w * x).sum(), lambda: next(batches), **settings)

        def run(steps):
            nonlocal batches
            batches = iter([np.float32(6e37 if k in (3, 7) else 0.1 * k) for k in steps])
            for k in steps:
                if k in (3, 7): solver.set_learning_rate(1e-39)
                updater.update(k)
                solver.set_learning_rate(0.01)
                scales.append(updater.scale)
            return w

        return w, solver, updater, run

    scales = []
    w, solver, updater, run = made([0.5, -0.3], N=3)
    run(range(saved_at))
    state, weights = json.loads(json.dumps(updater.state_dict())), w.numpy().copy()
    v, twin, other, resumed = made(weights, N=7, scale=1.0, scaling_factor=3.0)
    twin.load_state_dict(solver.state_dict())
    other.load_state_dict(state)
    assert other.state_dict() == state == updater.state_dict()
    run(range(saved_at, 14))
    assert scales == [8, 8, 16, 4, 4, 8, 8, 4, 4, 8, 8, 8, 16, 16]
    scales.clear()
    resumed(range(saved_at, 14))
    assert scales == [8, 8, 16, 4, 4, 8, 8, 4, 4, 8, 8, 8, 16, 16][saved_at:]
    assert w.numpy().tobytes() == v.numpy().tobytes() and updater.state_dict() == other.state_dict()


def test_a_state_that_does_not_fit_changes_nothing():
    _, updater = recorded(N=3)
    updater.update()
    good = updater.state_dict()
    assert good == {"scale": 8.0, "scaling_factor": 2.0, "N": 3, "clean": 1}
    for state, error, text in (
            ([1], ValueError, r"takes what state_dict\(\) returned, a dict with scale, scaling_factor, N, clean; got "),
            ({"scale": 8.0}, ValueError, r"got \['scale'\]"), (good | {"other": 1}, ValueError, "takes what"),
            (good | {"scale": 0}, ValueError, "scale must be at least 1.17549e-38 and at most 8.50706e[+]37, got 0"),
            (good | {"scale": "8"}, TypeError, "scale must be a number"), (good | {"N": 0}, ValueError, "N must be at"),
            (good | {"scale": float("nan")}, ValueError, "scale must be at least"),
            (good | {"N": 3.0, "scale": 4.0}, TypeError, "N must be an integer"),
            (good | {"scaling_factor": 1, "scale": 4.0}, ValueError, "scaling_factor must be greater than 1"),
            (good | {"clean": -1, "scale": 4.0}, ValueError, "clean must be at least 0"),
            (good | {"clean": True}, TypeError, "clean must be an integer, got True")):
        with pytest.raises(error, match=f"^DynamicLossScalingUpdater.load_state_dict.*{text}"):
            updater.load_state_dict(state)
        assert updater.state_dict() == good


def test_a_smaller_n_that_is_assigned():
    """The count that is already larger raises the scale at the next update; it never did."""
    _, updater = recorded(N=5)
    for _ in range(3): updater.update()
    updater.N = 2
    updater.load_state_dict(updater.state_dict())
    assert used(updater, 2) == [8, 16]


def test_the_scale_has_limits():
    """The scale and its inverse are normal float32 numbers."""
    _, updater = recorded([True] * 30, scaling_factor=1e6)
    updater.update()
    assert updater.scale == 2.0**-126 and 0 < np.float32(updater.scale)
    _, updater = recorded(scaling_factor=1e30, N=1)
    updater.update(), updater.update()
    assert updater.scale == 2.0**126 and math.isfinite(np.float32(updater.scale))
    updater.scale = 64
    assert updater.scale == 64.0
    with pytest.raises(ValueError, match="scale must be at least"): updater.scale = 0


def setting(lr=0.5, w=(1.0, -2.0, 0.5), dtype="float32"):
    w = cg.tensor(np.asarray(w, dtype)).attach_grad()
    solver = cg.optim.Sgd(lr=lr)
    solver.set_parameters({"w": w})
    return w, solver


@pytest.mark.parametrize("accum_grad", [1, 3])
def test_a_scaled_update_equals_a_plain_one(accum_grad):
    """Powers of two scale exactly: the parameters are those of Updater, bit for bit."""
    results = []
    for kind in (Updater, DynamicLossScalingUpdater):
        w, solver = setting(0.1)
        rng = np.random.default_rng(0)

        def feed(rng=rng):
            return cg.tensor(rng.normal(size=(4, 3)).astype("float32"))

        updater = kind(solver, lambda x, w=w: cg.tanh(x @ w).sum(), feed, accum_grad=accum_grad)
        for i in range(20): updater.update(i)
        results.append(w.numpy().tobytes())
    assert results[0] == results[1]


def test_float32_overflow_in_backward():
    """The gradient of 1e38 w overflows with scale 8 and not with 2. The step is then exact."""
    w, solver = setting(1e-38, [1.0, 2.0])
    forwards = []

    def loss():
        forwards.append(updater.scale)
        return (w * 1e38).sum()

    updater = DynamicLossScalingUpdater(solver, loss)
    updater.update()
    assert forwards == [8, 4, 2] and updater.scale == 2
    np.testing.assert_allclose(w.numpy(), [0.0, 1.0], atol=1e-6)
    updater = None                                  # `loss` refers to it: a cycle


def test_small_gradients_that_would_underflow():
    """1e-30 * 1e-20 is zero in float32. A scale of 2**60 keeps it, and scale_grad restores it at the end."""
    for scale, moved in ((1.0, False), (2.0**60, True)):
        w, solver = setting(1.0, [1.0])
        seen = []
        DynamicLossScalingUpdater(solver, lambda w=w: ((w * 1e-30) * 1e-20).sum(), scale=scale,
                                  comm=Seen(seen), grads=[w]).update()
        assert bool(seen[0]) == moved


class Seen:
    def __init__(self, values):
        self.values = values

    def all_reduce(self, arrays, division=False, inplace=False):
        self.values += [a.item() for a in arrays]


def test_nan_in_the_batch_skips_the_step():
    w, solver = setting()
    batches = iter([float("nan"), 1.0])
    updater = DynamicLossScalingUpdater(solver, lambda x: (w * x).sum(), batches.__next__)
    with pytest.warns(RuntimeWarning, match="100 tries"): updater.update()
    assert w.tolist() == [1.0, -2.0, 0.5] and updater.scale == 8 and not w.fresh_grad
    updater.update()
    assert w.tolist() == [0.5, -2.5, 0.0]


@pytest.mark.parametrize("stage", ["feed", "loss", "check_inf_or_nan_grad", "scale_grad", "weight_decay", "update"])
def test_an_exception_restores_the_scale_and_the_count(stage):
    """It is raised in the second try, except by the feeder. Nothing of the update is left."""
    class Failing(cg.optim.Sgd):
        def may_fail(self, what):
            if what == self.left[0]:
                self.left[1] -= 1
                if not self.left[1]: raise KeyError(what)

        def check_inf_or_nan_grad(self):
            self.may_fail("check_inf_or_nan_grad")
            return super().check_inf_or_nan_grad()

        def scale_grad(self, scale):
            self.may_fail("scale_grad")
            super().scale_grad(scale)

        def weight_decay(self, rate):
            self.may_fail("weight_decay")
            super().weight_decay(rate)

        def update(self):
            self.may_fail("update")
            super().update()

    def made():
        w = cg.tensor([1.0, 2.0]).attach_grad()
        solver = Failing(lr=1e-38)
        solver.left = [None, 0]
        solver.set_parameters({"w": w})

        def feed():
            solver.may_fail("feed")
            return 6e37

        def loss(x):
            solver.may_fail("loss")
            return (w * x).sum()

        updater = DynamicLossScalingUpdater(solver, loss, feed, N=2, weight_decay=0.5)
        updater.scale = 1.0
        updater.update()                            # clean: one more update raises the scale
        updater.scale = 8.0
        return w, solver, updater

    w, solver, updater = made()
    v, _, twin = made()
    before = w.tolist()
    solver.left = [stage, 2 if stage in ("loss", "check_inf_or_nan_grad") else 1]
    with pytest.raises(KeyError) as caught: updater.update()
    assert caught.value.__notes__ == ["cygrad: in DynamicLossScalingUpdater.update, at scale 8; the gradients are "
                                      "zeros"]
    del caught
    assert updater.scale == 8 and w.tolist() == before and not w.fresh_grad and not w.grad.numpy().any()
    assert used(updater, 4) == used(twin, 4) == [8, 4, 8, 4]
    assert w.numpy().tobytes() == v.numpy().tobytes()


def test_every_allocation_fails_once():
    """Also in the further tries of an update."""
    def made():
        w, solver = setting(1e-38, [1.0, 2.0])
        return w, DynamicLossScalingUpdater(solver, lambda x: ((w * x) * 1e38).sum(), lambda: cg.tensor([1.0, 0.5]))

    (w, updater), (v, twin) = made(), made()
    n = 0
    while True:
        n += 1
        try:
            with cg.testing.fail_allocation(n) as failure: updater.update()
        except MemoryError:
            assert updater.scale == 8 and w.tolist() == [1, 2] and not w.fresh_grad
            continue
        assert not failure.failed
        break
    twin.update()
    assert n > 10 and w.numpy().tobytes() == v.numpy().tobytes() and updater.scale == twin.scale == 2


def test_flat_bytes():
    w, solver = setting(1e-3)
    updater = DynamicLossScalingUpdater(solver, lambda x: (w * x).square().sum(), lambda: cg.ones(3), N=5,
                                        accum_grad=2)
    for _ in range(3): updater.update()
    gc.collect()
    live, seen = cg.memory.stats()["live_bytes"], set()
    for _ in range(700):                            # (140 growths: the scale overflows and is divided on the way)
        updater.update()
        seen.add(cg.memory.stats()["live_bytes"])
    assert seen == {live} and np.isfinite(w.numpy()).all() and 2.0**100 < updater.scale <= 2.0**126
