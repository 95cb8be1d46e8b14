"""Steps under a budget and with fused updates, of which every allocation fails, which Ctrl-C ends, which a fork copies
and whose backward pass another thread runs: what was before is there, and the next step has the right bits."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from small_models import Block
from watching import Watcher

import cygrad as cg
from cygrad import nn

WIDTH = 12


class Training:
    """A model with dropout and its solver. The numbers that a step draws are those of its number."""

    def __init__(self, rule="Adam", fuse=False, depth=4):
        cg.random.seed(0)
        self.model = nn.Sequential(*[Block(WIDTH) for _ in range(depth)], nn.Linear(WIDTH, 3))
        self.x, self.t = cg.random.normal((16, WIDTH)), np.arange(16) % 3
        self.solver, self.done = getattr(cg.optim, rule)(), 0
        self.parameters = dict(self.model.named_parameters())
        self.solver.set_parameters(self.parameters)
        if fuse: self.solver.fuse_into_backward()

    def step(self):
        cg.random.seed(self.done)
        self.solver.zero_grad()
        with cg.record(): loss = cg.cross_entropy(self.model(self.x), self.t)
        loss.backward()
        self.solver.update()
        self.done += 1
        return loss.item()

    def bits(self): return {name: w.numpy().tobytes() for name, w in self.parameters.items()}

    def states(self): return [x.numpy().tobytes() for s in self.solver.get_states().values() for x in s.pstate.values()]


def share_of(training, share):
    """A share of what a step needs above what is live, with what is live. The states of the solver are there then."""
    training.step()
    training.solver.zero_grad()
    live = cg.memory.stats()["live_bytes"]
    with cg.memory.track() as t: training.step()
    training.solver.zero_grad()
    return live + int(share * (t.peak_bytes - live))


def state():
    s = cg.memory.stats()
    return s["live_bytes"], s["by_category"]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("planned", [False, True])
def test_every_allocation_of_a_step_under_a_budget_can_fail(planned, persistent):
    """In a scope of its own, and in one that follows a plan. No bit of a parameter or a state moves, and the next step
    is that of a model that never failed."""
    training, twin = Training(), Training()
    for _ in range(2): twin.step()
    bound = share_of(training, 0.9)
    scope, n, failed = cg.memory.budget(bound), 0, 0
    if planned:
        for _ in range(3):
            with scope: training.step()
            twin.step()
        assert scope.planned
    while True:
        n += 1
        training.solver.zero_grad()
        before, bits, states = state(), training.bits(), training.states()
        b = scope if planned else cg.memory.budget(bound)
        cg.memory.reset_peak()
        with cg.testing.fail_allocation(n, persistent) as failure:
            try:
                with b: training.step()
            except MemoryError as e: assert f"allocation {n} of" in str(e)
        assert cg.memory.stats()["peak_bytes"] <= bound
        if not failure.failed: break
        failed += 1
        training.solver.zero_grad()
        assert state() == before and training.bits() == bits and training.states() == states, n
        if n % 5: continue
        with b: training.step()
        twin.step()
        assert training.bits() == twin.bits(), n
    assert failed > 40 and b.recomputed.calls


@pytest.mark.parametrize("share", [None, 0.9])
@pytest.mark.parametrize("rule", ["Sgd", "Momentum", "Adam"])
def test_every_allocation_of_a_fused_step_can_fail(rule, share):
    """The error says which parameters have moved, and each, but perhaps the last, has all of its update; the others
    are as before. Also under a budget."""
    twin, n, failed, moves = Training(rule, True, 2), 0, 0, 0
    bound = share_of(twin, share or 10)
    del twin
    twin = Training(rule, True, 2)
    for _ in range(2): twin.step()
    right = twin.bits()
    del twin
    while True:
        n += 1
        training, notes = Training(rule, True, 2), ""
        training.step()
        before, bits = state(), training.bits()
        with cg.testing.fail_allocation(n) as failure, cg.memory.budget(bound):
            try: training.step()
            except MemoryError as e: notes = "".join(getattr(e, "__notes__", ()))
        if not failure.failed: break
        failed += 1
        names = notes.partition("the fused updates have moved ")[2].partition(";")[0]
        moved = names.split(", ") if names else []
        moves += len(moved)
        for name, now in training.bits().items():
            if name not in moved: assert now == bits[name], (n, name, moved)
            elif name != moved[-1]: assert now == right[name], (n, name, moved)
        assert state() == before, n
    assert failed > 20 and moves > 20 and training.bits() == right


# ---- interruptions, forks, threads -----------------------------------------------------------------------------------

N = 4000


def chain(x, steps=40):
    with cg.record():
        y = x
        for _ in range(steps): y = cg.sin(cg.exp(y * 0.1))
        z = y.sum()
        del y
    z.backward()


def variable(): return cg.tensor(np.linspace(-1, 1, N, dtype="float32")).attach_grad()


def peak_of(x):
    with cg.memory.track() as t: chain(x)
    found, x.grad = x.grad.numpy().copy(), None
    return t.peak_bytes, found


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
@pytest.mark.parametrize("planned", [False, True])
def test_ctrl_c_at_random_moments_of_steps_under_a_budget(planned):
    x, landed = variable(), 0
    peak, wanted = peak_of(x)
    bound = int(0.4 * peak)
    scope = cg.memory.budget(bound)
    if planned:
        for _ in range(3):
            with scope: chain(x)
        x.grad = None
    before = state()
    cg.memory.reset_peak()
    for k in range(120):
        b = scope if planned else cg.memory.budget(bound)
        try:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 2e-5 + 3e-5 * k)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                with b: chain(x)
        except KeyboardInterrupt: landed += 1
        else: pytest.fail(f"nobody noticed Ctrl-C at {k}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        x.grad = None
        assert state() == before, k
        if k % 10: continue
        with b: chain(x)
        np.testing.assert_array_equal(x.grad.numpy(), wanted)
        x.grad = None
    assert landed == 120 and cg.memory.stats()["peak_bytes"] <= bound
    cg.ones(4 * bound)                              # no budget is open


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
def test_ctrl_c_at_random_moments_of_fused_steps():
    """Each parameter that has moved is in the note of the error. (Where no pass runs, there is nothing to say.)"""
    training, landed = Training("Momentum", True), 0
    training.step()
    before = state()
    for k in range(100):
        bits, error = training.bits(), None
        try:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 2e-5 + 2e-5 * k)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                bits = training.bits()
                training.step()
        except KeyboardInterrupt as e: error = "".join(getattr(e, "__notes__", ()))
        else: pytest.fail(f"nobody noticed Ctrl-C at {k}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        landed += 1
        if "the fused updates have moved" in error:
            for name, w in training.bits().items(): assert w == bits[name] or name in error, (k, name)
        assert state() == before, k
        training.step()
    assert landed == 100 and all(np.isfinite(w.numpy()).all() for w in training.parameters.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_a_budget():
    """The child has the budget of the thread that forks, and the graph that was recorded: it ends the step and takes
    others, with the right bits, within the bound, as does the parent."""
    x = variable()
    peak, wanted = peak_of(x)
    bound = int(0.5 * peak)

    def end(z):
        z.backward()
        right = (x.grad.numpy() == wanted).all()
        for _ in range(3):
            chain(x)
            right &= (x.grad.numpy() == wanted).all()
        cg.memory.reset_peak()
        chain(x)
        return right and cg.memory.stats()["peak_bytes"] <= bound and b.recomputed.calls

    with cg.memory.budget(bound) as b:
        chain(x)
        with cg.record():
            z = x
            for _ in range(40): z = cg.sin(cg.exp(z * 0.1))
            z = z.sum()
        child = os.fork()
        if not child:
            signal.alarm(30)
            try: os._exit(0 if end(z) else 1)
            except BaseException: os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert end(z)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_of_fused_training():
    """The updates of a child move its own parameters."""
    training, twin = Training("Adam", True), Training("Adam", True)
    for _ in range(3):
        training.step(), twin.step()
        child = os.fork()
        if not child:
            signal.alarm(30)
            try:
                training.step()
                old = training.bits()
                training.step(), twin.step(), twin.step()
                os._exit(0 if training.bits() == twin.bits() != old else 1)
            except BaseException: os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert training.bits() == twin.bits()


def test_backward_in_another_thread():
    """Its scope is open in this thread; the other has one of its own, or none."""
    x = variable()
    peak, wanted = peak_of(x)
    for own in (False, True):
        with cg.memory.budget(int(0.5 * peak)) as b, Watcher() as seen:
            for _ in range(3):
                with cg.record():
                    y = x
                    for _ in range(40): y = cg.sin(cg.exp(y * 0.1))
                    z = y.sum()
                    del y

                def run(z=z):
                    if not own: return z.backward()
                    with cg.memory.budget(int(0.6 * peak)): z.backward()

                t = threading.Thread(target=run)
                t.start()
                t.join()
                np.testing.assert_array_equal(x.grad.numpy(), wanted)
                x.grad = None
                del z, run, t
        assert seen.most <= 0.5 * peak and b.recomputed.calls
