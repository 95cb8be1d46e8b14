"""memory.budget(offload=): what is evicted can go to a file, also what cannot be computed again."""

import errno
import gc
import os
import threading

import numpy as np
import programs
import pytest
from disks import N, chain, disk_failure, gradient, nothing_left, slow_disk, spill_files, threads  # noqa: F401
from small_models import MODELS
from watching import Watcher

import cygrad as cg
from cygrad.memory.spilling import set_copying


@pytest.fixture
def copies_cost_nothing():
    """What is evicted goes to the file, however small it is."""
    set_copying(0)
    yield
    set_copying()


def ramp():
    return cg.tensor(np.linspace(-1, 1, N, dtype="float32")).attach_grad()


class Cube(cg.autograd.Function):
    """x * x * x. Its result cannot be computed again."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def cubes(x, steps=12):
    """Of each step, a result of a Function and a draw are kept."""
    with cg.record():
        for _ in range(steps): x = Cube.apply(cg.sin(x) * cg.random.uniform(0.5, 1, (N,)))
        y = x.sum()
    return y


def unbounded(f, x):
    """The gradient of f(x) and the peak of a step."""
    cg.random.seed(0)
    cg.memory.reset_peak()
    f(x).backward()
    return gradient(x), cg.memory.stats()["peak_bytes"]


@pytest.mark.parametrize("f", [chain, cubes])
@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_the_bits_are_those_of_no_budget(f, share, tmp_path):
    x = ramp()
    wanted, peak = unbounded(f, x)
    bound = int(share * peak)
    handle = cg.memory.budget(bound, offload=tmp_path)
    for _ in range(3):
        cg.random.seed(0)
        with Watcher() as seen, handle: f(x).backward()
        np.testing.assert_array_equal(gradient(x), wanted)
        assert seen.most <= bound and handle.floor_bytes <= bound
    if f is cubes and share < 0.9: assert handle.read_bytes > 0 and handle.file_bytes > 0


def test_the_floor_is_lower_than_without_a_file(tmp_path):
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    with pytest.raises(cg.MemoryLimitError), cg.memory.budget(peak // 2): cubes(x).backward()
    x.grad = None
    cg.random.seed(0)
    with cg.memory.budget(peak // 4, offload=tmp_path) as b: cubes(x).backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    assert b.floor_bytes <= peak // 4


def test_what_is_dear_is_written(tmp_path):
    """A product of large matrices takes longer than its result to the file and back."""
    n = 700
    w, x = cg.random.normal(0, 0.04, (n, n)).attach_grad(), cg.ones((n, n))

    def step():
        with cg.record():
            h = x
            for _ in range(8): h = cg.tanh(h @ w)
            y = h.sum()
        del h
        return y

    cg.memory.reset_peak()
    step().backward()
    wanted, peak = gradient(w), cg.memory.stats()["peak_bytes"]
    with cg.memory.budget(int(0.7 * peak), offload=tmp_path) as b: step().backward()
    np.testing.assert_array_equal(gradient(w), wanted)
    assert b.written_bytes >= 4 * n * n


def test_what_is_cheap_is_computed(tmp_path):
    """Nothing is written of a chain of 64 elements."""
    x = cg.ones(64).attach_grad()
    _, peak = unbounded(chain, x)
    with cg.memory.budget(int(0.7 * peak), offload=tmp_path) as b: chain(x).backward()
    assert b.recomputed.calls and b.written_bytes == 0


def test_backward_after_the_scope_and_in_another_thread(tmp_path):
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    cg.random.seed(0)
    with cg.memory.budget(peak // 3, offload=tmp_path) as b: y = cubes(x)
    assert b.written_bytes and spill_files() and threads() == 1
    t = threading.Thread(target=y.backward)
    t.start()
    t.join()
    np.testing.assert_array_equal(gradient(x), wanted)
    del y


def test_a_second_derivative_and_a_retained_graph(tmp_path):
    x = ramp()

    def twice():
        with cg.record():
            y = x
            for _ in range(12): y = cg.sin(cg.exp(y * 0.1))
            (g,) = cg.autograd.grad(y.sum(), [x], create_graph=True)
            loss = (g * g).sum()
        loss.backward(retain_graph=True)
        first = gradient(x)
        loss.backward()
        return first, gradient(x)

    cg.memory.reset_peak()
    wanted = twice()
    bound = int(0.5 * cg.memory.stats()["peak_bytes"])
    with Watcher() as seen, cg.memory.budget(bound, offload=tmp_path): found = twice()
    for a, b in zip(wanted, found, strict=True): np.testing.assert_array_equal(a, b)
    assert seen.most <= bound


def test_a_hook_that_writes_to_what_it_is_given_changes_no_copy(tmp_path):
    """A retained graph gives the same gradient the second time, although a hook has seen the value that was read."""
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    cg.random.seed(0)
    with cg.memory.budget(peak // 3, offload=tmp_path):
        y = cubes(x)
        y.backward(retain_graph=True)
        np.testing.assert_array_equal(gradient(x), wanted)
        y.backward()
        np.testing.assert_array_equal(gradient(x), wanted)
        del y


def test_what_a_backward_wrote_to_is_not_copied(tmp_path):
    """A Function writes to a value that was made again for it. Later the value as it was is read, or made again."""

    class Spoils(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            found = g * cg.cos(x)
            x[:] = 7
            return found

    x = ramp()

    def fill():                                     # until nothing more can be evicted
        for k in range(9, 0, -1):
            try: cg.zeros(k * N - 16)
            except cg.MemoryLimitError: continue
            return

    def run(dear_first):
        try:
            set_copying(1e9 if dear_first else 0)
            with cg.record():
                y = cg.sin(x * 1.5)
                first, second = Spoils.apply(y).sum(), (y * cg.tanh(y)).sum()
            del y
            fill()
            first.backward(retain_graph=True)
            x.grad = None
            set_copying(0)
            fill()
            second.backward()
        finally: set_copying()
        return gradient(x)

    with cg.record():
        y = cg.sin(x * 1.5)
        z = (y * cg.tanh(y)).sum()
    z.backward()
    wanted = gradient(x)
    del y, z
    for dear_first in (False, True):
        with cg.memory.budget(9 * 4 * N, offload=tmp_path): np.testing.assert_array_equal(run(dear_first), wanted)


def test_an_argument_of_a_checkpoint_that_a_slot_has_too(tmp_path):
    """The slot is emptied first, and the argument stays, also if it was computed from what is gone."""
    w = ramp()

    def run(make, scope):
        cg.random.seed(0)
        with scope:
            with cg.record():
                x = make()
                (w * x * w).sum()                   # (a slot has x until here)
                y = cg.checkpoint(lambda x: cg.exp(cg.sin(x) * w), x).sum()
            del x
            y.backward()
        return gradient(w)

    for make in (lambda: cg.random.uniform(0, 1, (N,)), lambda: cg.sin(cg.random.uniform(0, 1, (N,)) * w)):
        wanted = run(make, cg.memory.track())
        np.testing.assert_array_equal(run(make, cg.memory.budget("1GB")), wanted)
        np.testing.assert_array_equal(run(make, cg.memory.budget("1GB", offload=tmp_path)), wanted)


@pytest.mark.parametrize("which", MODELS)
def test_training_steps_have_the_same_bits(which, tmp_path):
    def run(handle):
        cg.random.seed(0)
        model, x = MODELS[which]()
        labels = np.arange(x.shape[1] if which == "lstm" else x.shape[0]) % 4
        solver = cg.optim.Adam()
        model(x)
        solver.set_parameters(dict(model.named_parameters()))
        cg.memory.reset_peak()
        for _ in range(3):
            with handle:
                solver.zero_grad()
                with cg.record(): loss = cg.cross_entropy(model(x), labels)
                loss.backward()
                solver.update()
                del loss
        return [p.numpy().copy() for p in model.parameters()], cg.memory.stats()["peak_bytes"]

    wanted, peak = run(cg.memory.budget("4GiB"))
    found, lower = run(cg.memory.budget(int(peak * 0.85), offload=tmp_path))
    assert lower <= int(peak * 0.85)
    for a, b in zip(wanted, found, strict=True): np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("part", range(2))
def test_random_programs(part, tmp_path, copies_cost_nothing):
    written = done = 0
    for seed in range(part, 200, 2):
        p = programs.Program(seed)
        if p.kind == "exception": continue
        cg.memory.reset_peak()
        try: wanted = programs.run(p)
        except programs.Refused: continue
        peak = cg.memory.stats()["peak_bytes"]
        for share in (0.95, 0.8, 0.6):
            b = cg.memory.budget(int(share * peak), offload=tmp_path)
            with Watcher() as seen:
                try:
                    with b: found = programs.run(p)
                except cg.MemoryLimitError: found = None
            written += b.written_bytes
            assert seen.most <= share * peak, p
            gc.collect()
            assert cg.memory.stats()["live_bytes"] == 0, p
            if found is None: continue
            done += 1
            np.testing.assert_array_equal(wanted[0], found[0])
            for u, v in zip(wanted[1], found[1], strict=True):
                if u is not None: np.testing.assert_array_equal(u, v)
    assert done > 40 and written > 10_000, (done, written)


# ---- disks that are slow ---------------------------------------------------------------------------------------------

def test_an_allocation_that_waits_lets_no_other_thread_run(tmp_path, copies_cost_nothing):
    """`del r` allocates the bits of relu's result, and that waits for a write. Backward of the same node in another
    thread must come after it."""
    x, z = ramp(), cg.ones(N).attach_grad()
    with cg.record(): s = cg.relu(x * 2).sum()
    s.backward()
    wanted = gradient(x)
    bound = cg.memory.stats()["live_bytes"] + 5 * 4 * N + 1000
    with slow_disk(0.2), cg.memory.budget(bound, offload=tmp_path):
        with cg.record():
            y = z * cg.random.uniform(0, 1, (N,))
            y = y * cg.random.uniform(0, 1, (N,))
            r = cg.relu(x * 2)
            s = r.sum()
        rest = cg.zeros(((bound - cg.memory.stats()["live_bytes"]) // 4 - 300,))
        t = threading.Timer(0.05, s.backward)
        t.start()
        del r
        t.join()
        np.testing.assert_array_equal(gradient(x), wanted)
        del s, y, rest


def test_two_threads_that_read_do_not_take_each_others_memory(tmp_path, copies_cost_nothing):
    """There is room for one of the two passes. One of them ends, and the other one ends or raises."""
    def graph(x):
        y = x
        for _ in range(4): y = y * cg.random.uniform(0, 1, (N,))
        return y.sum()

    variables, found = [ramp(), ramp()], []

    def run(y):
        try: y.backward()
        except cg.MemoryLimitError: found.append("short")
        else: found.append("done")

    with slow_disk(0.06), cg.memory.budget(cg.memory.stats()["live_bytes"] + 5 * 4 * N, offload=tmp_path):
        with cg.record(): graphs = [graph(x) for x in variables]
        running = [threading.Thread(target=run, args=[y]) for y in graphs]
        for t in running: t.start()
        for t in running: t.join()
        assert "done" in found and len(found) == 2
        del graphs
        for x in variables: x.grad = None


# ---- disks that fail -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, 0])
@pytest.mark.parametrize("persistent", [False, True])
def test_every_call_to_the_disk_that_fails(error, persistent, tmp_path):
    """A step gives its gradient, or raises an error that names the folder; the next one gives it."""
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    failed = 0
    for n in range(1, 40, 3):
        cg.random.seed(0)
        b = cg.memory.budget(peak // 3, offload=tmp_path)
        with disk_failure(n, error, persistent):
            try:
                with b: cubes(x).backward()
            except (RuntimeError, cg.MemoryLimitError) as e:
                assert str(tmp_path) in str(e), str(e)
                failed += 1
                x.grad = None
            else: np.testing.assert_array_equal(gradient(x), wanted)
        del b
    assert failed
    cg.random.seed(0)
    with cg.memory.budget(peak // 3, offload=tmp_path): cubes(x).backward()
    np.testing.assert_array_equal(gradient(x), wanted)


def test_a_full_disk_is_no_matter_while_operations_can_be_repeated(tmp_path):
    x = ramp()
    wanted, peak = unbounded(chain, x)
    with disk_failure(2, errno.ENOSPC, True), cg.memory.budget(peak // 2, offload=tmp_path) as b: chain(x).backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    assert b.recomputed.calls and not b.written_bytes


def test_a_read_that_failed_loses_nothing(tmp_path):
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    cg.random.seed(0)
    with cg.memory.budget(peak // 3, offload=tmp_path): y = cubes(x)
    with disk_failure(1, errno.EIO, True), pytest.raises(RuntimeError, match="cannot be read"):
        y.backward(retain_graph=True)
    x.grad = None
    y.backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    del y


def test_every_allocation_that_fails(tmp_path):
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    with cg.memory.budget(peak // 3, offload=tmp_path) as b:
        for n in range(1, 80, 4):
            cg.random.seed(0)
            try:
                with cg.testing.fail_allocation(n): cubes(x).backward()
            except MemoryError: x.grad = None
            else: np.testing.assert_array_equal(gradient(x), wanted)
        cg.random.seed(0)
        cubes(x).backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    assert b.written_bytes


def test_a_fork_cannot_read_and_says_so(tmp_path):
    x = ramp()
    wanted, peak = unbounded(cubes, x)
    cg.random.seed(0)
    with cg.memory.budget(peak // 3, offload=tmp_path): y = cubes(x)
    child = os.fork()
    if not child:
        try: y.backward()
        except RuntimeError as e: os._exit(0 if "this is a fork of it" in str(e) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    y.backward()
    np.testing.assert_array_equal(gradient(x), wanted)
    del y


def test_the_file_is_closed_with_its_handle_and_graphs(tmp_path):
    x = ramp()
    _, peak = unbounded(cubes, x)
    b = cg.memory.budget(peak // 3, offload=tmp_path)
    with b: y = cubes(x)
    del b
    assert threads() == 1
    del y
    gc.collect()
    assert not threads() and not spill_files()
