"""memory.offload(): less memory, the same bits, and nothing left."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext

import numpy as np
import programs
import pytest
from disks import N, chain, disk_failure, gradient, nothing_left, spill_files  # noqa: F401
from small_models import WITH_ATTENTION

import cygrad as cg


def bound(limit): return cg.memory.limit(limit) if limit else nullcontext()


def test_a_chain(tmp_path):
    x = cg.tensor(np.linspace(-1, 1, N, dtype="float32")).attach_grad()
    chain(x).backward()
    wanted = gradient(x)
    with cg.memory.offload(tmp_path) as o:
        assert len(spill_files()) == 1 and not os.listdir(tmp_path)     # (it has no name)
        assert os.fstat(spill_files()[0]).st_mode & 0o777 == 0o600
        y = chain(x)
    # each value is saved by the exponential and the sine, but is in the file once
    assert o.written_bytes == 40 * 4 * N and cg.memory.stats()["by_category"]["saved"] == 0
    assert cg.memory.stats()["live_bytes"] == 4 * N + 4
    y.backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    assert o.read_bytes == o.written_bytes and not spill_files() and o.waited_seconds >= 0
    assert 40 * 4 * N <= o.file_bytes <= 40 * (4 * N + 4096)


def test_parts_of_the_file_are_used_again(tmp_path):
    x = cg.ones(1 << 18).attach_grad()              # values of 1 MiB
    with cg.memory.offload(tmp_path) as o:
        for _ in range(5): chain(x, 50).backward()
    assert 5 * 30 << 20 <= o.written_bytes <= 5 * 50 << 20 and o.file_bytes <= 52 << 20


def test_what_backward_takes_back_is_not_written(tmp_path):
    x = cg.ones(1 << 18).attach_grad()
    with cg.memory.offload(tmp_path) as o, disk_failure(1 << 30):
        for _ in range(100): chain(x, 10).backward()
    assert o.written_bytes < 1000 << 20 and o.read_bytes <= o.written_bytes


def test_the_peak_is_bounded(tmp_path):
    x = cg.ones(1 << 20).attach_grad()              # values of 4 MiB
    cg.memory.reset_peak()
    chain(x, 30).backward()
    plain, wanted = cg.memory.stats()["peak_bytes"], gradient(x)
    cg.memory.reset_peak()
    with cg.memory.offload(tmp_path) as o: chain(x, 30).backward()
    assert cg.memory.stats()["peak_bytes"] <= (16 + 16 + 6 * 4) << 20 < plain / 2 and o.written_bytes
    np.testing.assert_array_equal(gradient(x), wanted)


@pytest.mark.parametrize("which", WITH_ATTENTION)
@pytest.mark.parametrize("limit, smallest", [("1TB", 0), (None, 0), (None, 2000)])
def test_training_steps_have_the_same_bits(which, limit, smallest, tmp_path):
    def run(offload):
        cg.random.seed(0)
        model, x = WITH_ATTENTION[which]()
        labels = np.arange(x.shape[1] if which in ("lstm", "attention") else x.shape[0]) % 4
        solver = cg.optim.Adam()
        model(x)
        solver.set_parameters(dict(model.named_parameters()))
        losses = []
        for _ in range(3):
            solver.zero_grad()
            if offload:
                with bound(limit), cg.memory.offload(tmp_path, smallest=smallest) as o, cg.record():
                    loss = cg.cross_entropy(model(x), labels)
                assert o.written_bytes
            else:
                with cg.record(): loss = cg.cross_entropy(model(x), labels)
            loss.backward()
            solver.update()
            losses.append(float(loss))
        return losses, [w.numpy().copy() for w in [*model.parameters(), *model.buffers()]]

    (losses, state), (found, other) = run(False), run(True)
    assert found == losses
    for a, b in zip(state, other, strict=True): np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("part", range(3))
def test_random_programs(part, tmp_path):
    written = done = 0
    for seed in range(part, 300, 3):
        p = programs.Program(seed)
        if p.kind == "exception": continue
        try: wanted = programs.run(p)
        except programs.Refused: wanted = None
        # (in a limit, each value is written before the next operation)
        with cg.memory.limit("1TB"), cg.memory.offload(tmp_path, smallest=0) as o:
            try: found = programs.run(p)
            except programs.Refused: found = None
        assert (found is None) == (wanted is None), p
        if cg.memory.stats()["live_bytes"]: gc.collect()
        assert cg.memory.stats()["live_bytes"] == 0, p
        written += o.written_bytes
        if wanted is None: continue
        done += 1
        np.testing.assert_array_equal(wanted[0], found[0])
        for u, v in zip(wanted[1], found[1], strict=True):
            if u is not None: np.testing.assert_array_equal(u, v)
    assert part == 1 or done > 50 and written > 5_000


def test_views_create_graph_hooks_and_retained_graphs(tmp_path):
    def run(x, scope=None):
        seen = []
        if scope is not None: scope.__enter__()
        with cg.record():
            y = cg.exp(x.reshape(100, -1).T)
            y.register_hook(lambda g: seen.append(g.detach().numpy().sum()))
            z = cg.tanh(y[::2] * cg.sigmoid(y[1::2])).sum()
            g, = cg.autograd.grad(z, [x], create_graph=True)
            total = (g * g).sum() + z
        del y, z, g
        if scope is not None: scope.__exit__()
        total.backward(retain_graph=True)
        first = x.grad.numpy().copy()
        total.backward(retain_graph=True)
        again = cg.memory.stats()["live_bytes"]
        total.backward()
        return [first, gradient(x), *seen], again

    x = cg.tensor(np.linspace(-1, 1, N)).attach_grad()
    wanted, plain = run(x)
    o = cg.memory.offload(tmp_path)
    found, kept = run(x, o)
    for u, v in zip(wanted, found, strict=True): np.testing.assert_array_equal(u, v)
    assert o.read_bytes > o.written_bytes > 0 and kept < plain      # a retained graph lets go what it has read


def test_what_something_else_holds_stays(tmp_path):
    w, x = cg.ones(N).attach_grad(), cg.asarray(np.ones(N, "float32"))
    with cg.memory.offload(tmp_path) as o:
        with cg.record():
            kept = cg.exp(w * x)                    # w is a variable, x external memory, `kept` has a name
            small = (cg.exp(w[:100]) * cg.exp(w[100:200])).sum()
            y = cg.sin(kept).sum() + small
        assert "saved for backward by sin (its input 0)" in str(cg.memory.why(kept))
    assert o.written_bytes == 0
    y.backward()
    assert o.read_bytes == 0 and not spill_files()


@pytest.mark.parametrize("when", ["in the scope", "after it"])
def test_writes_are_detected(when, tmp_path):
    x = cg.ones(N).attach_grad()
    with cg.memory.offload(tmp_path) as o, cg.record():
        y = cg.exp(x)
        z = cg.sin(y).sum()
        u = y.detach()
        if when == "in the scope": u += 1           # (what sin has saved is still in memory)
        del y
    u += 1
    del u
    with pytest.raises(cg.InplaceError): z.backward()
    assert o.written_bytes == 0
    del z


def test_signs_of_what_goes_to_the_file(tmp_path):
    w, x = cg.tensor(np.linspace(-1, 1, 90_000, dtype="float32").reshape(300, 300)).attach_grad(), cg.ones((300, 300))

    def run():
        with cg.record():
            y = cg.relu(x @ w)                      # saves its signs; the product saves it whole
            return (y @ w).sum()

    run().backward()
    wanted = gradient(w)
    with cg.memory.offload(tmp_path) as o: y = run()
    assert o.written_bytes == 4 * 90_000 and cg.memory.stats()["by_category"]["saved"] == 90_000 // 8 + 4 * 90_000
    y.backward()
    np.testing.assert_array_equal(gradient(w), wanted)


class Cube(cg.autograd.Function):
    """x^3"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        x, square = ctx.saved_tensors
        assert (square.numpy() == x.numpy() ** 2).all()
        return g * square * 3


def test_a_function(tmp_path):
    x = cg.tensor(np.linspace(-1, 1, N, dtype="float32")).attach_grad()

    def run():
        with cg.record(): return Cube.apply(cg.sin(Cube.apply(x * 2.0))).sum()

    run().backward()
    wanted = gradient(x)
    with cg.memory.offload(tmp_path) as o: y = run()
    assert o.written_bytes == 5 * 4 * N            # x and its square, twice, and the operand of sin
    for retain in (True, False):
        y.backward(retain_graph=retain)
        np.testing.assert_array_equal(gradient(x), wanted)


def test_a_value_that_was_read_and_written_to_is_read_again(tmp_path):
    kept = []

    class Writes(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 2)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            y, = ctx.saved_tensors
            kept.append(y.numpy().copy())
            y += 1
            return g

    x = cg.ones(N).attach_grad()
    with cg.memory.offload(tmp_path):
        with cg.record(): y = Writes.apply(x).sum()
    for _ in range(3): y.backward(retain_graph=True)
    assert all((a == 2).all() for a in kept) and len(kept) == 3
    del y


@pytest.mark.parametrize("around", ["checkpoint", "budget", "hooks", "anomaly", "collector", "profile"])
@pytest.mark.parametrize("inside", [False, True])
def test_with_other_scopes(around, inside, tmp_path):
    x = cg.tensor(np.linspace(-1, 1, N)).attach_grad()
    chain(x, 6).backward()
    wanted = gradient(x)
    scope = {"budget": lambda: cg.memory.budget("1GB"), "hooks": lambda: cg.autograd.saved_tensors_hooks(
        lambda t: t.numpy().copy(), cg.tensor), "anomaly": lambda: cg.autograd.detect_anomaly(forward=True),
        "collector": cg.autograd.GradientCollector, "profile": cg.memory.profile}.get(around)
    o = cg.memory.offload(tmp_path)
    if around == "checkpoint":
        with cg.record():
            if inside:
                with o: y = cg.checkpoint(chain, x, 6)
            else:
                def f(x):
                    with o: return chain(x, 6)
                y = cg.checkpoint(f, x)
        y.backward()
        assert (o.written_bytes > 0) == (not inside)
    elif inside:
        with o, scope() as s:
            y = chain(x, 6)
            (s if around == "collector" else y).backward(*[y] * (around == "collector"))
            del y
        assert (o.written_bytes == 0) == (around in ("budget", "hooks")) or o.written_bytes == 0
    else:
        with scope() as s:
            with o: y = chain(x, 6)
            (s if around == "collector" else y).backward(*[y] * (around == "collector"))
            del y
        assert o.written_bytes == 6 * 8 * N
    np.testing.assert_array_equal(gradient(x), wanted)


def test_scopes_nest_and_close_in_any_order(tmp_path):
    x = cg.ones(N).attach_grad()
    a, b = cg.memory.offload(tmp_path), cg.memory.offload(tmp_path)
    with a, b: y = chain(x, 3)
    assert a.written_bytes == 0 < b.written_bytes
    y.backward()
    wanted = gradient(x)
    a.__enter__()
    b.__enter__()
    a.__exit__()
    y = chain(x, 3)
    b.__exit__()
    assert a.written_bytes == 0 < b.written_bytes
    with cg.record() as tape: z = cg.exp(x)
    assert tape.saved_bytes == 4 * N                # no scope is open in this thread
    y.backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    cg.graph.Net.capture(lambda x: cg.exp(x), ((3,), "float32")).plan()
    del z


def test_abandoned_scopes_are_closed(tmp_path):
    thread = threading.Thread(target=lambda: cg.memory.offload(tmp_path).__enter__())
    thread.start()
    thread.join()
    gc.collect()
    assert not spill_files()
    o = cg.memory.offload(tmp_path)
    o.__enter__()
    del o
    assert not spill_files()


# ---- threads, forks, interruptions -----------------------------------------------------------------------------------

def test_threads(tmp_path):
    found = {}

    def train(k):
        x = cg.full(N, 0.1 * k).attach_grad()
        for _ in range(4):
            with cg.memory.offload(tmp_path): y = chain(x, 12)
            other = threading.Thread(target=y.backward)
            other.start()
            other.join()
            del y, other
        found[k] = gradient(x)

    workers = [threading.Thread(target=train, args=(k,)) for k in range(1, 4)]
    for t in workers: t.start()
    for t in workers: t.join()
    for k, g in found.items():
        x = cg.full(N, 0.1 * k).attach_grad()
        chain(x, 12).backward()
        np.testing.assert_array_equal(gradient(x), g)


def test_two_threads_read_what_two_graphs_have_saved(tmp_path):
    def shared():
        """Two graphs, each of which has saved the same values."""
        y, z = [cg.ones(N).attach_grad() for _ in range(2)]
        with cg.record():
            for k in range(30):
                t = cg.exp(cg.full(N, -0.1 * k))
                y, z = y * t, z * t
                del t
            return y.sum(), z.sum()

    with cg.memory.offload(tmp_path) as o: y, z = shared()
    assert o.written_bytes == 30 * 4 * N
    others = [threading.Thread(target=t.backward) for t in (y, z)]
    for t in others: t.start()
    for t in others: t.join()
    del y, z, t, others


def test_a_fork(tmp_path):
    x = cg.ones(N).attach_grad()
    with cg.memory.limit("1TB"), cg.memory.offload(tmp_path):
        y = chain(x, 30)
        child = os.fork()
        if not child:
            try:
                assert not spill_files()
                try: y.backward()
                except RuntimeError as e: assert "this is a fork of it" in str(e)
                else: os._exit(3)
                z = chain(x, 3)                     # (nothing is written)
                z.backward()
                with cg.memory.offload(tmp_path) as o: z = chain(x, 3)
                assert o.written_bytes == 3 * 4 * N
                z.backward()
                del y, z
                os._exit(0)
            except BaseException as e:
                print(repr(e), file=sys.stderr)
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    y.backward()
    chained = gradient(x)
    chain(x, 30).backward()
    np.testing.assert_array_equal(gradient(x), chained)


@pytest.mark.parametrize("how", ["", "raise KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_a_program_that_ends_in_a_scope(how, tmp_path):
    program = f"""
import os, signal, cygrad as cg
cg.memory.offload({str(tmp_path)!r}).__enter__()
o = cg.memory.offload({str(tmp_path)!r})
o.__enter__()
x = y = cg.ones({N}).attach_grad()
with cg.record():
    for _ in range(100): y = cg.sin(cg.exp(y * 0.1))
{how}
"""
    subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True)
    assert not os.listdir(tmp_path)


def test_what_a_process_has_left_is_removed(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    kept = [f"cygrad-offload-{os.getppid()}-01234567", "cygrad-offload-12.txt", "notes"]
    for name in (*kept, f"cygrad-offload-{gone.pid}-01234567"): (tmp_path / name).write_text("")
    with cg.memory.offload(tmp_path): assert sorted(os.listdir(tmp_path)) == sorted(kept)
    for name in kept: (tmp_path / name).unlink()


@pytest.mark.parametrize("at_exit", [False, True])
def test_a_system_on_which_open_files_keep_their_names(at_exit, tmp_path, monkeypatch):
    def refuse(name): raise PermissionError(name)

    if at_exit:
        program = f"""
import os, cygrad as cg

def refuse(name): raise PermissionError(name)

unlink, os.unlink = os.unlink, refuse
cg.memory.offload({str(tmp_path)!r}).__enter__()
o = cg.memory.offload({str(tmp_path)!r})
o.__enter__()
os.unlink = unlink
assert len(os.listdir({str(tmp_path)!r})) == 2
"""
        assert not subprocess.run([sys.executable, "-c", program], timeout=60).returncode
        return
    with monkeypatch.context() as m:
        m.setattr(os, "unlink", refuse)
        o = cg.memory.offload(tmp_path)
        o.__enter__()
    name, = os.listdir(tmp_path)
    assert name.startswith(f"cygrad-offload-{os.getpid()}-")
    with cg.memory.offload(tmp_path): assert os.listdir(tmp_path) == [name]     # (a process keeps its own)
    o.__exit__()
    assert not os.listdir(tmp_path)


def test_ctrl_c_while_it_waits(tmp_path):
    x = cg.ones(N).attach_grad()
    y = None

    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    t = threading.Thread(target=interrupt)
    t.start()
    with pytest.raises(KeyboardInterrupt), cg.memory.offload(tmp_path):
        while True: y = chain(x, 50)
    t.join()
    del y
    with cg.record() as tape: z = cg.exp(x)
    assert tape.saved_bytes == 4 * N
    del z
