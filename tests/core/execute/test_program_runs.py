"""Many runs of a program: memory, signals, threads, and variables that change between runs.

CYGRAD_STEPS is the number of runs (10,000)."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import cygrad as cg
from cygrad.core.execute.program import Program

from rows import same_bits

STEPS = int(os.environ.get("CYGRAD_STEPS", 10_000))


def resident():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def training(width=8, grad_req="write"):
    """(variable, solver, step, the program of step)"""
    w = cg.tensor(np.linspace(-1, 1, width * width).reshape(width, width).astype("f4")).attach_grad(grad_req)
    solver = cg.optim.Adam(0.01)
    solver.set_parameters([w])

    def step(x):
        with cg.train_mode(), cg.record(): loss = (cg.dropout(cg.tanh(x @ w), 0.2) ** 2).mean()
        loss.backward()
        solver.update()
        return loss

    return w, solver, step, Program(step, ((4, width), "float32"))


def test_a_run_allocates_nothing():
    _, _, _, program = training()
    x = cg.ones((4, 8))
    program.run(x)
    with cg.memory.events() as log:
        for _ in range(10): program.run(x)
    assert log == []


def test_many_runs_hold_no_more():
    _, _, _, program = training()
    x = cg.ones((4, 8))
    for _ in range(STEPS // 10): program.run(x)
    before, live = resident(), cg.memory.stats()["live_bytes"]
    for _ in range(STEPS): program.run(x)
    assert cg.memory.stats()["live_bytes"] == live
    assert resident() - before <= 512 << 10


def test_later_runs_refuse_what_the_first_does():
    """A run that finds everything where the last one left it checks nothing, so one that does not must check again."""
    w, v = cg.ones(8).attach_grad(), cg.ones(8).attach_grad()

    def step(x, y):
        y += 1
        with cg.record(): z = x * w * v
        z.backward()
        return z

    program = Program(step, *[((8,), "float32")] * 2)
    x, y, whole = cg.ones(8), cg.zeros(8), cg.zeros(16)
    for _ in range(3): program.run(x, y)
    refused = "arguments 0 and 1 share memory", "argument 0 shares memory", "shares the memory of another .grad"
    cases = [((y, y), None, None), ((w.grad, y), None, None), ((x, y), whole[:8], whole[4:12])]
    for k, (arguments, wg, vg) in enumerate(cases):
        if wg is not None: w.grad, v.grad = wg, vg
        with pytest.raises((ValueError, RuntimeError), match=refused[k]): program.run(*arguments)
    w.grad, v.grad = cg.zeros(8), cg.zeros(8)
    for _ in range(3): z = program.run(x, y)
    w.grad = y
    with pytest.raises(ValueError, match="argument 1 shares memory"): program.run(x, y)
    w.grad = whole[:8]
    program.run(x, y)
    np.testing.assert_array_equal(whole.numpy(), [1] * 8 + [0] * 8)
    np.testing.assert_array_equal(z.numpy(), [1] * 8)
    np.testing.assert_array_equal(y.numpy(), [7] * 8)


def test_an_interrupt_between_steps():
    """The program can run again, and a gradient that is incomplete says so until then."""
    w, solver, _, program = training(64)
    x = cg.tensor(np.random.default_rng(0).normal(size=(4, 64)).astype("f4"))
    incomplete = 0
    for attempt in range(20):
        timer = threading.Timer(0.002 + 0.0007 * attempt, signal.raise_signal, [signal.SIGINT])
        end = time.monotonic() + 10
        with pytest.raises(KeyboardInterrupt) as caught:
            timer.start()
            while time.monotonic() < end: program.run(x)
        timer.join()
        told = "".join(getattr(caught.value, "__notes__", []))
        del caught
        assert not told or "of a program; it ran" in told
        try: solver.scale_grad(1.0)
        except RuntimeError as e:
            assert "is incomplete" in str(e)
            incomplete += 1
        steps = solver.get_states()["0"].t
        program.run(x)
        assert solver.get_states()["0"].t == steps + 1 and np.isfinite(w.numpy()).all() and w.grad is not None
    assert incomplete < 20


def test_an_interrupt_in_an_update():
    """An update is one step: Ctrl-C arrives before or after it."""
    w, solver = cg.ones(4).attach_grad(), cg.optim.Momentum(0.1)
    solver.set_parameters([w])

    def step(x):
        with cg.record(): loss = (w * x).sum()
        loss.backward()
        solver.update(lambda: interrupt[0]())

    interrupt = [lambda: None]
    program = Program(step, ((4,), "float32"))
    interrupt[0] = lambda: signal.raise_signal(signal.SIGINT)
    before = w.tolist()
    with pytest.raises(KeyboardInterrupt): program.run(cg.ones(4))
    assert w.tolist() == before and solver.get_states()["0"].t == 0
    interrupt[0] = lambda: None
    program.run(cg.ones(4))
    assert w.tolist() != before and solver.get_states()["0"].t == 1


def test_large_work_releases_the_gil():
    x = cg.ones((600, 600))
    program = Program(lambda x: cg.exp(x @ x @ x @ x), x)
    count, running = [0], [True]

    def work():
        while running[0]:
            count[0] += 1
            time.sleep(0)                           # (this thread yields, the other one must)

    thread, interval = threading.Thread(target=work), sys.getswitchinterval()
    program.run(x)
    sys.setswitchinterval(100)
    try:
        thread.start()
        start = count[0]
        for _ in range(10): program.run(x)
        ran = count[0] - start
    finally:
        running[0] = False
        sys.setswitchinterval(interval)
        thread.join()
    assert ran > 0


def dropped(w):
    req = w.grad_req
    w.drop_grad().attach_grad(req)


@pytest.mark.parametrize("change", [
    lambda w: setattr(w, "grad", None), lambda w: setattr(w, "grad", cg.ones((8, 8)) * 3), lambda w: w.zero_grad(),
    lambda w: setattr(w, "grad", cg.asarray(np.full((8, 8), 2, "f4"))), lambda w: dropped(w),
    lambda w: w.copy_(w * 0.5),
], ids=["none", "tensor", "zeros", "numpy", "dropped", "written"])
@pytest.mark.parametrize("req", ["write", "add"])
def test_gradients_that_change_between_runs(change, req):
    (ours, _, _, program), (theirs, _, step, _) = training(grad_req=req), training(grad_req=req)
    rng, state = np.random.default_rng(0), None
    for k in range(4):
        x = cg.tensor(rng.normal(size=(4, 8)).astype("f4"))
        state = cg.random.default_generator.state
        a = program.run(x).numpy().copy()
        cg.random.default_generator.state = state
        same_bits(a, step(x).detach().numpy())
        same_bits(ours.numpy(), theirs.numpy())
        same_bits(ours.grad.numpy(), theirs.grad.numpy())
        if k == 1:
            with cg.no_grad():
                for w in (ours, theirs): change(w)


def test_what_a_program_holds_cannot_be_freed():
    w, _, _, program = training()
    with pytest.raises(RuntimeError, match="of other tensors"): w.free()
    program.run(cg.ones((4, 8)))
    del program
    w.grad.tolist()
