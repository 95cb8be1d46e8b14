"""Updater: the order of its calls, sums over passes, exceptions at every point, and what it holds."""

import gc
import inspect
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad.trainers import Updater
from cygrad.trainers.updater import POINTS


class Recorder:
    """A solver and a communicator that list their calls."""

    def __init__(self):
        self.calls = []

    def zero_grad(self):
        self.calls.append("zero_grad")

    def update(self):
        self.calls.append("update")

    def all_reduce(self, arrays, division=False, inplace=False):
        self.calls.append(("all_reduce", len(arrays), division, inplace))

    def called(self, what):
        return lambda *args: self.calls.append((what, *args))


class Watched:
    """A function whose backward is recorded: `calls` receives "backward"."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, x):
        y = x * 1.0
        y.register_hook(lambda g: self.calls.append("backward"))
        return y.sum()


def setting(w=(1.0, 2.0), lr=0.5, dtype="float64"):
    """A variable and its solver."""
    w = cg.tensor(np.asarray(w, dtype)).attach_grad()
    solver = cg.optim.Sgd(lr=lr)
    solver.set_parameters({"w": w})
    return w, solver


@pytest.mark.parametrize("accum_grad", [1, 3])
@pytest.mark.parametrize("with_comm", [True, False])
def test_the_order_of_all_calls(accum_grad, with_comm):
    """Contract 7. nnabla never ran forward_callback_on_start, ran forward_callback_on_finish twice, and failed with a
    NameError whenever it had a communicator."""
    r, w = Recorder(), cg.ones(2).attach_grad()
    watched = Watched(r.calls)

    def feed():
        r.calls.append("feed")
        return w

    def loss(x):
        r.calls.append("forward")
        return watched(x)

    callbacks = {p: (r.called(p), r.called(p + " again")) for p in POINTS}
    updater = Updater(r, loss, feed, **callbacks, accum_grad=accum_grad, comm=r if with_comm else None, grads=[w])

    def at(point):
        return [(point, 7), (point + " again", 7)]

    one = (["feed", *at("forward_callback_on_start"), "forward", *at("forward_callback_on_finish")]
           + [*at("backward_callback_on_start"), "backward", *at("backward_callback_on_finish")])
    comm = [*at("comm_callback_on_start"), ("all_reduce", 1, False, False), *at("comm_callback_on_finish")]
    end = [*at("update_callback_on_start"), "update", *at("update_callback_on_finish")]
    assert updater.update(7) is None
    assert r.calls == ["zero_grad", *one * accum_grad, *(comm if with_comm else []), *end]


def test_without_grads_nothing_is_reduced():
    r, w = Recorder(), cg.ones(2).attach_grad()
    Updater(r, lambda: w.sum(), comm=r, comm_callback_on_start=r.called("start")).update(0)
    assert r.calls == ["zero_grad", "update"]


@pytest.mark.parametrize("made", [
    lambda f: f, lambda f: [f], lambda f: (f,), lambda f: {f}, lambda f: iter([f]), lambda f: (g for g in [f]),
    lambda f: dict.fromkeys([f]),
], ids=["function", "list", "tuple", "set", "iterator", "generator", "dict"])
def test_a_callback_is_one_function_or_any_iterable(made):
    """nnabla took lists only."""
    r, w = Recorder(), cg.ones(2).attach_grad()
    updater = Updater(r, lambda: w.sum(), **{p: made(r.called(p)) for p in POINTS})
    updater.update(1)
    updater.update(2)
    seen = [c for c in r.calls if isinstance(c, tuple)]
    assert seen == [(p, i) for i in (1, 2) for p in POINTS if not p.startswith("comm")]


@pytest.mark.parametrize("fed, received", [
    (None, ()), (True, ()), ((), ()), ((1, 2), (1, 2)), ((None,), (None,)), ([1, 2], ([1, 2],)), (False, (False,)),
    (0, (0,)), ("ab", ("ab",)), (1, (1,)),
])
def test_what_the_feeder_returns_is_passed(fed, received):
    w, solver = setting()
    got = []

    def loss(*args):
        got.append(args)
        return w.sum()

    Updater(solver, loss, lambda: fed).update(0)
    Updater(solver, loss).update(0)                 # nnabla's default feeder of the scaling updater took an argument
    assert got == [received, ()] and got[0] == received and (not received or type(got[0][0]) is type(received[0]))


def test_flags_and_last_loss():
    """The forward pass is recorded in train mode. Callbacks and the feeder have the caller's flags."""
    w, solver = setting([1.0, 2.0])
    flags, losses = [], []

    def note(*_):
        flags.append((cg.is_recording(), cg.is_training()))

    def loss():
        note()
        return (w * w).sum()

    def read(i):
        assert not updater.last_loss.requires_grad
        losses.append(updater.last_loss.item())

    updater = Updater(solver, loss, note, **{p: note for p in POINTS if p != "forward_callback_on_finish"},
                      forward_callback_on_finish=read)
    assert updater.last_loss is None
    updater.update(0)
    with cg.no_grad(): updater.update(1)
    assert flags == 2 * [(False, False), (False, False), (True, True), *4 * [(False, False)]]
    assert losses == [5.0, 0.0] and not cg.is_recording()
    updater = None                                  # `read` refers to it: a cycle


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_gradients_add_over_the_passes(grad_req):
    """The update equals that of one backward of the sum, for both requests and for two reached at different passes."""
    rng = np.random.default_rng(1)
    xs = [cg.tensor(rng.normal(size=(3, 4))) for _ in range(4)]
    w, solver = setting(rng.normal(size=4))
    b = cg.tensor(np.zeros(3)).attach_grad(grad_req)
    w.attach_grad(grad_req)
    solver.set_parameters({"w": w, "b": b})

    def loss(k, x):
        return cg.tanh(x @ w).sum() if k % 2 else (cg.tanh(x @ w) + b * b + b).sum()

    feed = iter([*enumerate(xs)] * 2).__next__
    updater = Updater(solver, loss, feed, accum_grad=4)
    expected = []
    for _ in range(2):
        v, c = (cg.tensor(t.detach().numpy().copy(), requires_grad=True) for t in (w, b))
        with cg.record(): total = sum((cg.tanh(x @ v) + (0 if k % 2 else c * c + c)).sum() for k, x in enumerate(xs))
        total.backward()
        expected = [v.numpy() - 0.5 * v.grad.numpy(), c.numpy() - 0.5 * c.grad.numpy()]
        updater.update(0)
        np.testing.assert_allclose(w.numpy(), expected[0], 1e-13)
        np.testing.assert_allclose(b.numpy(), expected[1], 1e-13)
    assert w.grad_req == b.grad_req == grad_req


def test_variables_outside_the_solver():
    """With "write" .grad is the sum of the update's passes, with "add" it is added to."""
    w, solver = setting()
    written, added = cg.zeros(2).attach_grad(), cg.zeros(2).attach_grad("add")
    updater = Updater(solver, lambda: (w + written.astype("float64") + added.astype("float64")).sum(), accum_grad=2)
    updater.update(0)
    updater.update(1)
    assert written.grad.tolist() == [2, 2] and added.grad.tolist() == [4, 4]
    with cg.record(): y = (written * 3 + added * 3).sum()
    y.backward()                                    # no collector remains open
    assert written.grad.tolist() == [3, 3] and added.grad.tolist() == [7, 7]


def test_inside_an_open_collector():
    w, solver = setting([0.0, 0.0], lr=1.0)
    updater = Updater(solver, lambda: w.sum(), accum_grad=2)
    with cg.GradientCollector() as collector:
        y = (w * 5).sum()
        updater.update(0)
        collector.backward(y)
        assert w.grad.tolist() == [5, 5]
    assert w.tolist() == [-2, -2]


class Expected(Exception):
    pass


STAGES = (*POINTS, "data_feeder", "loss", "backward", "all_reduce", "solver.update", "zero_grad")
IN_PASSES = [s for s in STAGES if s.startswith(("forward", "backward", "data", "loss"))]


class Net:
    """A model, its solver and its communicator, whose stages can raise: `fail(stage, n)` makes the n-th call of the
    stage raise."""

    def __init__(self, grad_req="write"):
        rng = np.random.default_rng(7)
        self.w = cg.tensor(rng.normal(size=(4, 3))).attach_grad(grad_req)
        self.v = cg.tensor(rng.normal(size=3)).attach_grad(grad_req)
        self.real = cg.optim.Adam(0.1)
        self.real.set_parameters({"w": self.w, "v": self.v})
        self.draw(0)
        self.stage, self.left = None, 0

    def draw(self, seed):
        """Begin with new batches."""
        self.batches = iter([cg.tensor(x) for x in np.random.default_rng(seed).normal(size=(8, 2, 4))])

    def fail(self, stage, n):
        self.stage, self.left = stage, n

    def may_fail(self, stage):
        if stage == self.stage:
            self.left -= 1
            if not self.left: raise Expected(stage)

    def feed(self):
        self.may_fail("data_feeder")
        return next(self.batches)

    def loss(self, x):
        h = cg.tanh(x @ self.w)
        h.register_hook(self.hook)
        self.may_fail("loss")
        return ((h @ self.v) ** 2).sum()

    def hook(self, g):
        del g                                       # (a traceback would hold it)
        self.may_fail("backward")

    def all_reduce(self, arrays, division=False, inplace=False):
        self.may_fail("all_reduce")
        with cg.no_grad():
            for a in arrays: a *= 2

    def get_parameters(self):
        return self.real.get_parameters()

    def zero_grad(self):
        self.may_fail("zero_grad")
        self.real.zero_grad()

    def update(self):
        self.may_fail("solver.update")
        self.real.update()

    def values(self):
        """The bytes of the parameters."""
        return self.w.numpy().tobytes(), self.v.numpy().tobytes()


def made(grad_req="write", clear_buffer=True):
    """A net and its updater, after one update. The net does not refer to the updater: that would be a cycle."""
    net = Net(grad_req)
    updater = Updater(net, net.loss, net.feed, **{p: lambda i, p=p: net.may_fail(p) for p in POINTS}, accum_grad=2,
                      clear_buffer=clear_buffer, comm=net, grads=[net.w, net.v])
    updater.update(0)
    return net, updater


@pytest.mark.parametrize("grad_req", ["write", "add"])
@pytest.mark.parametrize("stage, n", [(s, 1) for s in STAGES] + [(s, 2) for s in IN_PASSES])
def test_an_exception_in_any_stage(stage, n, grad_req):
    """The exception arrives as itself with a note. Nothing is left of the failed update, and the next one equals that
    of a twin without a failure, bit for bit."""
    net, updater = made(grad_req)
    twin, its = made(grad_req)
    before = net.values()
    net.fail(stage, n)
    with pytest.raises(Expected, match=stage) as caught: updater.update(1)
    where = f", in pass {n} of 2" if stage in IN_PASSES else ""
    done = ", after the parameters were updated" if stage == "update_callback_on_finish" else ""
    assert [note for note in caught.value.__notes__ if "Updater" in note] == [
        f"cygrad: in Updater.update, at {stage}{where}{done}; the gradients are zeros"]
    del caught                                      # its traceback refers to this frame: a cycle
    assert not net.w.fresh_grad and not net.v.fresh_grad and not net.w.grad.numpy().any()
    assert not cg.is_recording() and not cg.is_training() and net.w.grad_req == grad_req
    if done: its.update(1)
    assert net.values() == twin.values() and (net.values() != before) == bool(done)
    for each in (net, twin): each.draw(2)
    updater.update(2), its.update(2)
    assert net.values() == twin.values() and net.values() != before


def test_the_traceback_of_an_exception_holds_no_graph():
    net, updater = made(clear_buffer=False)
    for stage in ("forward_callback_on_finish", "backward", "backward_callback_on_finish", "update_callback_on_start"):
        net.draw(1)
        live = cg.memory.stats()["live_bytes"]
        net.fail(stage, 1)
        with pytest.raises(Expected) as caught: updater.update(1)
        assert caught.value.__traceback__ is not None
        assert cg.memory.stats()["live_bytes"] <= live, stage
        del caught


def test_an_exception_with_a_solver_that_cannot_zero():
    class Broken(Recorder):
        def zero_grad(self):
            if self.calls: raise ValueError("no")
            super().zero_grad()

    def loss():
        raise KeyError("key")

    with pytest.raises(KeyError) as caught: Updater(Broken(), loss).update(0)
    assert caught.value.__notes__ == ["cygrad: in Updater.update, at loss; zero_grad() failed too, with ValueError"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, StopIteration, GeneratorExit])
def test_exceptions_that_are_not_errors(kind):
    w, solver = setting()

    def feed():
        raise kind

    with pytest.raises(kind): Updater(solver, lambda: w.sum(), feed).update(0)
    assert not w.fresh_grad


def test_clear_buffer():
    """False keeps the graph after backward; True frees it."""
    for clear_buffer in (True, False):
        w, solver = setting([1.0, 2.0], lr=1.0)
        kept = []

        def loss(w=w, kept=kept):
            kept.append((w * w).sum())
            return kept[0]

        updater = Updater(solver, loss, clear_buffer=clear_buffer)
        updater.update(0)
        if clear_buffer:
            with pytest.raises(cg.GraphFreedError): kept[0].backward()
        else:
            with pytest.raises(cg.InplaceError): kept[0].backward()     # (the update wrote w)
            assert kept[0].grad_fn is not None
        kept.clear()


def test_a_second_backward_in_a_callback():
    w, solver = setting([1.0, 2.0], lr=1.0)
    kept = []

    def loss():
        kept.append((w * w).sum())
        return kept[0]

    updater = Updater(solver, loss, clear_buffer=False, backward_callback_on_finish=lambda i: kept.pop().backward())
    updater.update(0)
    assert w.tolist() == [-1.0, -2.0]               # "write": the second backward overwrote the first


def test_a_loss_of_any_shape_is_summed():
    w, solver = setting([1.0, 2.0], lr=1.0)
    updater = Updater(solver, lambda: w * cg.tensor([3.0, 4.0], "float64"))
    updater.update(0)
    assert w.tolist() == [-2, -2] and updater.last_loss.tolist() == [3, 8]


def test_two_updaters_share_nothing():
    """nnabla's default `grads` was one list for all."""
    w, solver = setting()
    a, b = (Updater(solver, lambda: w.sum()) for _ in range(2))
    assert a.grads == b.grads == () and a.update_callback_on_start == ()
    a.update_callback_on_start += (lambda i: None,)
    assert b.update_callback_on_start == ()


def test_every_allocation_of_an_update_fails_once():
    net, updater = made()
    twin, its = made()
    before, n = net.values(), 0
    while True:
        n += 1
        net.draw(3)
        try:
            with cg.testing.fail_allocation(n) as failure: updater.update(1)
        except MemoryError as e:
            assert any(note.startswith("cygrad: in Updater.update, at ") for note in e.__notes__)
            assert net.values() == before and not net.w.fresh_grad and not cg.is_recording()
            continue
        assert not failure.failed
        break
    assert n > 10
    twin.draw(3)
    its.update(1)
    assert net.values() == twin.values() != before


def test_two_thousand_updates_with_flat_bytes():
    rng = np.random.default_rng(0)
    x, t = cg.tensor(rng.normal(size=(8, 4)).astype("float32")), cg.tensor(rng.normal(size=8).astype("float32"))
    w, solver = setting(np.zeros(4), 0.01, "float32")
    updater = Updater(solver, lambda x, t: ((x @ w - t) ** 2).mean(), lambda: (x, t), accum_grad=2,
                      update_callback_on_finish=lambda i: None)
    for i in range(3): updater.update(i)
    gc.collect()
    before, seen = cg.memory.stats(), set()
    for i in range(2000):
        updater.update(i)
        seen.add(cg.memory.stats()["live_bytes"])
    assert seen == {before["live_bytes"]}
    assert cg.memory.stats()["system_allocations"] == before["system_allocations"]


def test_it_loads_at_first_use():
    code = ("import sys, cygrad as cg\nlate = ('cygrad.trainers', 'cygrad.optim.schedules')\n"
            "assert not [m for m in late if m in sys.modules] and 'trainers' in dir(cg)\n"
            "cg.trainers.Updater, cg.optim.StepLR\nassert [m for m in late if m in sys.modules] == list(late)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reprs_and_the_signature():
    w = cg.ones(2).attach_grad()
    solver, loss, comm = cg.optim.Sgd([w]), lambda: w.sum(), type("Comm", (), {"all_reduce": print})()
    assert repr(Updater(solver, loss)) == "<Updater: solver=Sgd, accum_grad=1>"
    assert repr(Updater(solver, loss, accum_grad=3, comm=comm, grads=[w])) == (
        "<Updater: solver=Sgd, accum_grad=3, comm=Comm, grads=1>")
    scaling = cg.trainers.DynamicLossScalingUpdater
    assert repr(scaling(solver, loss)) == (
        "<DynamicLossScalingUpdater: solver=Sgd, accum_grad=1, scale=8.0, scaling_factor=2.0, N=2000>")
    assert repr(scaling(solver, loss, weight_decay=0.5, comm=comm)) == (
        "<DynamicLossScalingUpdater: solver=Sgd, accum_grad=1, scale=8.0, scaling_factor=2.0, N=2000, "
        "weight_decay=0.5, comm=Comm, grads=0>")
    signature = str(inspect.signature(Updater))     # of help()
    assert signature.count(": 'Callbacks' = ()") == 8 and "collections.abc" not in signature
