"""Scopes that Ctrl-C interrupts while they open or close, that are left wrongly, or that die while open: the state
before is restored, and nothing stays on. Files that Ctrl-C interrupts while they are read or written: the old file or
the new one is there, and nothing stays open."""

import gc
import os
import signal
import sys
import threading
from contextlib import ExitStack

import pytest

import cygrad as cg
from cygrad.autograd import detect_anomaly, saved_tensors_hooks
from cygrad.core.store.buffer import set_failure
from cygrad.memory.log import open_logs
from cygrad.testing import assert_no_leak, fail_allocation
from cygrad.trainers.checkpoints import Checkpoints
from cygrad.trainers.checkpoints import read as read_checkpoint
from cygrad.trainers.history import History


def packing():
    return saved_tensors_hooks(packed.append, lambda t: t)


packed = []
MAKERS = {
    "record": cg.record, "pause": cg.pause, "train_mode": cg.train_mode, "predict_mode": cg.predict_mode,
    "no_grad": cg.no_grad, "enable_grad": cg.enable_grad, "GradientCollector": cg.GradientCollector,
    "detect_anomaly": detect_anomaly, "saved_tensors_hooks": packing, "scope": cg.memory.scope,
    "track": cg.memory.track, "limit": lambda: cg.memory.limit(0), "profile": cg.memory.profile,
    "events": cg.memory.events, "fail_allocation": lambda: fail_allocation(1, True), "assert_no_leak": assert_no_leak,
    "hook": lambda: cg.ones(1).attach_grad().register_hook(lambda g: g * 2),
}
every_scope = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
GLOBAL = {"track", "limit", "profile", "events", "fail_allocation"}     # scopes of the process, not of a thread


def left_on():
    """The names of the scopes that are on."""
    x = cg.ones(2).attach_grad()
    found = {"recording": cg.is_recording(), "training": cg.is_training(), "a log": bool(open_logs())}
    try:
        large = cg.zeros((1 << 16, 16))             # more than any cache holds
        del large
        cg.memory.empty_cache()
    except cg.MemoryLimitError:
        found["the limit"] = True
    except MemoryError:
        found["failure"] = True
    with cg.record() as tape:
        y = cg.exp(x)
    found["packing"] = tape.saved_bytes == 0
    z = x * x
    found["a tape"] = z.requires_grad
    del tape
    with cg.enable_grad():
        y = (x - 1) ** 0.5 * 0
    try:
        y.backward()
    except RuntimeError:
        found["anomaly"] = True
    try:
        with cg.GradientCollector():
            pass
    except RuntimeError:
        found["a collector"] = True
    try:
        x.free()
    except RuntimeError:
        found["a hold"] = True
    before = cg.memory.stats()
    y = cg.ones(1)
    found["events"] = set_failure(0, False) != 0 and cg.memory.stats()["live_buffers"] != before["live_buffers"] + 1
    packed.clear()
    return {name for name, on in found.items() if on}


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------

class Interrupt:
    """Raises KeyboardInterrupt at the n-th Python instruction of a scope, where a signal could be handled. In the
    function with the with statement, no signal is handled between the scope's methods and the statement."""

    def __init__(self, n):
        self.n, self.instructions = n, 0

    def trace(self, frame, event, _):
        if frame.f_code is enter_and_leave.__code__: return self.trace
        frame.f_trace_opcodes = True
        self.instructions += 1
        if self.instructions == self.n:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self.trace


def enter_and_leave(scope, error):
    with scope:
        if error is not None: raise error


@every_scope
@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
def test_an_interrupt_at_any_instruction_leaves_nothing_on(make, error):
    for n in range(1, 3000):
        interrupt, scope = Interrupt(n), make()
        gc.collect()                                # (garbage of other tests could run code here)
        sys.settrace(interrupt.trace)
        try:
            enter_and_leave(scope, error)
        except (KeyboardInterrupt, ZeroDivisionError):
            pass
        finally:
            sys.settrace(None)
        del scope
        assert left_on() == set(), n
        if interrupt.instructions < n: break
    assert n < 2999


@every_scope
def test_a_signal_that_comes_in_a_scope_leaves_nothing_on(make):
    """A real signal, which Python handles as soon as it can, also in the scope's methods."""
    for place in ("before", "inside", "after"):
        with pytest.raises(KeyboardInterrupt):
            if place == "before": signal.raise_signal(signal.SIGINT)
            with make():
                if place == "inside": signal.raise_signal(signal.SIGINT)
            if place == "after": signal.raise_signal(signal.SIGINT)
        assert left_on() == set(), place


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
@every_scope
def test_signals_at_random_moments_leave_nothing_on(make):
    """Ctrl-C some thousand times, with delays that cover all of entering and leaving."""
    landed = 0

    def step():
        for _ in range(50):
            with make():
                pass

    for k in range(60):
        try:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 1e-5 + 2e-6 * k)
            while True: step()
        except KeyboardInterrupt:
            landed += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        assert left_on() == set(), k
    assert landed == 60


def test_a_tape_that_ends_swallows_no_interrupt():
    """No Python code runs while a tape dies: there, Ctrl-C would be printed instead of raised."""
    events = []
    with cg.record():
        sys.settrace(lambda frame, event, _: events.append(frame.f_code.co_name))
        try:
            with cg.record(), cg.record():
                pass
        finally:
            sys.settrace(None)
    assert events == []


# ---- Ctrl-C in files -------------------------------------------------------------------------------------------------

def tensors():
    return {"a": cg.ones((3, 2), dtype="float64").T, "b": cg.tensor([True])}


def some_profile():
    with cg.memory.profile() as p: cg.ones(3)
    return p


def some_net():
    n = cg.graph.Net("n")
    n.mul(["x", "w"], ["y"])
    return n


def some_history():
    h = History()
    h.rows.append({"epoch": 0, "iteration": 1, "loss": 0.5})
    return h


def solver():
    s = cg.optim.Momentum(0.1)
    s.set_parameters({"w": cg.ones(3).attach_grad()})
    return s


WRITERS = {                                         # suffix -> (what is written, the function)
    "save.safetensors": (tensors, lambda made, path: cg.save(path, made, {"k": "v"})),
    "save.npz": (tensors, lambda made, path: cg.save(path, made, {"k": "v"})),
    "states.safetensors": (solver, lambda made, path: made.save_states(path)),
    "net.safetensors": (some_net, lambda made, path: made.save(path)),
    "net.svg": (some_net, lambda made, path: made.draw(path)),
    "checkpoint_000001.safetensors": (tensors, lambda made, path: Checkpoints(str(path.parent), 2).write(
        1, {"model": made, "n": 1})),
    "history.csv": (some_history, lambda made, path: made.save(path)),
    "profile.html": (some_profile, lambda made, path: made.save(path)),
    "profile.json": (some_profile, lambda made, path: made.save(path)),
    "flame.svg": (some_profile, lambda made, path: made.flame(path)),
}
READERS = {                                         # name -> (what is read, the function)
    "load.safetensors": ("save.safetensors", lambda _, path: cg.load(path)),
    "load.npz": ("save.npz", lambda _, path: cg.load(path)),
    "load mapped": ("save.safetensors", lambda _, path: cg.load(path, mmap=True)),
    "load converted": ("save.safetensors", lambda _, path: cg.load(path, dtype="float32", mmap=True)),
    "metadata.safetensors": ("save.safetensors", lambda _, path: cg.io.metadata(path)),
    "metadata.npz": ("save.npz", lambda _, path: cg.io.metadata(path)),
    "states": ("states.safetensors", lambda made, path: made.load_states(path)),
    "net": ("net.safetensors", lambda _, path: cg.graph.Net.load(path)),
    "checkpoint": ("checkpoint_000001.safetensors", lambda _, path: read_checkpoint(path)),
    "comparison": ("profile.json", lambda made, path: made.compare(path)),
}


class FileInterrupt(Interrupt):
    """Raises KeyboardInterrupt at the n-th line, or instruction of the module that has the files, from a call of the
    function `first` on, if there is one. A __del__, or a generator that is freed, would swallow it. The reader of text
    has some thousand lines for a header, and no file."""

    def __init__(self, n, first):
        super().__init__(n)
        self.first = first

    def trace(self, frame, event, _):
        code = frame.f_code
        caller = frame.f_back.f_code.co_name if frame.f_back is not None else ""
        if "__del__" in (code.co_name, caller) or code.co_name == "<genexpr>" or code.co_filename.endswith(
                ("text.py", "test_interrupts.py")): return None
        if code.co_name == self.first: self.first = None
        if self.first is not None: return self.trace
        frame.f_trace_opcodes = code.co_filename.endswith("saving.py")
        self.instructions += 1
        if self.instructions == self.n:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self.trace


def open_files(): return len(os.listdir("/proc/self/fd"))


def interrupted(first, call, *args):
    """Call a function that is interrupted at each moment in turn, from a call of the function `first` on. Yields the
    number of the moment."""
    call(*args)                                     # (imports what it needs)
    for n in range(1, 20_000):
        interrupt = FileInterrupt(n, first)
        sys.settrace(interrupt.trace)
        try:
            call(*args)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        yield n
        if interrupt.instructions < n: return
    raise AssertionError("the call has too many instructions")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list descriptors")
@pytest.mark.parametrize("name", WRITERS)
def test_an_interrupt_at_any_instruction_leaves_the_old_file_or_the_new(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)       # (it takes most of the time)
    make, write = WRITERS[name]
    path = tmp_path / name
    made = make()
    write(made, path)
    new, before = path.read_bytes(), open_files()
    for n in interrupted("realpath", write, made, path):    # (which is called as the file is opened)
        assert path.read_bytes() in (b"old", new), n
        assert os.listdir(tmp_path) == [name] and open_files() == before, n
        path.write_bytes(b"old")
    assert n > 20


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list descriptors")
@pytest.mark.parametrize("name", READERS)
def test_an_interrupt_at_any_instruction_leaves_no_file_open(name, tmp_path):
    written, read = READERS[name]
    make, write = WRITERS[written]
    path = tmp_path / written
    made = make()
    write(made, path)
    before = open_files()
    for n in interrupted(None, read, made, path): assert open_files() == before, n
    assert n > 20 and os.listdir(tmp_path) == [written]


# ---- left wrongly ----------------------------------------------------------------------------------------------------

HARMLESS = {"GradientCollector", "hook"}            # closing or removing twice is allowed


def leave(scope):
    """The message of the error, or None."""
    try:
        scope.__exit__(None, None, None)
    except RuntimeError as e:
        return str(e)


@pytest.mark.parametrize("name", MAKERS)
def test_leaving_what_was_not_entered_changes_nothing(name):
    scope = MAKERS[name]()
    with cg.record(False):
        for _ in range(2):
            said = leave(scope)
            assert said is None if name in HARMLESS else "this scope is not open" in said or "has not entered" in said
        assert cg.is_recording() and not cg.is_training()
    with scope: pass
    assert (leave(scope) is None) == (name in HARMLESS)
    del scope
    assert left_on() == set()


@pytest.mark.parametrize("name", MAKERS)
def test_leaving_in_another_thread(name):
    """Leaving a thread's scope elsewhere raises RuntimeError, and it stays open. Any thread can close a process
    scope."""
    scope, said = MAKERS[name](), []

    def work(scope=scope):
        said.append(leave(scope))
        said.append((cg.is_recording(), cg.is_training()))

    scope.__enter__()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    del thread, work
    free = name in GLOBAL or name in {"assert_no_leak", "hook"}
    assert (said[0] is None) == free and said[1] == (False, False)
    assert (leave(scope) is None) == (not free or name == "hook")
    del scope
    assert left_on() == set()


@pytest.mark.parametrize("first", MAKERS)
def test_leaving_out_of_order(first):
    """A scope of the process closes independently of others. A scope of a thread restores what it found, in any order.
    The test uses a separate thread, whose flags end with it."""
    for second in MAKERS:
        if first == second and first in {"fail_allocation", "GradientCollector"}: continue
        for order in ((0, 1), (1, 0)):
            said = []

            def work(second=second, order=order, said=said):
                scopes = [MAKERS[first](), MAKERS[second]()]
                for scope in scopes: scope.__enter__()
                said += [leave(scopes[k]) for k in order]
                said.append(order == (0, 1) or left_on() == set())

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            packed.clear()
            assert said == [None, None, True], (second, order)
            assert left_on() == set(), (second, order)


# ---- dead while open -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", sorted(GLOBAL))
def test_scopes_of_the_process_that_die_open_are_closed(name):
    make = MAKERS[name]
    scope = make()
    scope.__enter__()
    del scope
    assert left_on() == set()
    with pytest.raises(KeyError), ExitStack() as stack:
        stack.enter_context(make())
        raise KeyError
    assert left_on() == set()
    if name == "fail_allocation": return
    scopes = [make() for _ in range(5)]
    for scope in scopes: scope.__enter__()
    while scopes:                                   # from the middle
        del scopes[len(scopes) // 2], scope
        scope = None
    assert left_on() == set()


@pytest.mark.parametrize("name", sorted(GLOBAL))
def test_scopes_that_die_open_in_a_cycle(name):
    class Holder:
        pass

    holder = Holder()
    holder.itself, holder.scope = holder, MAKERS[name]()
    holder.scope.__enter__()
    del holder
    gc.collect()
    assert left_on() == set()


def test_a_tape_that_dies_in_a_cycle():
    """Its nodes move to the enclosing ring. The collector must not clear it before."""
    x = cg.ones(2).attach_grad()
    with cg.record() as outer:
        held = [cg.exp(x)]
        with cg.record() as tape:
            held.append(cg.exp(held[0]))
        cycle = [tape]
        cycle.append(cycle)
        assert outer.nodes == 2 and tape.nodes == 1
        del cycle, tape
        gc.collect()
        assert outer.nodes == 2
        held.clear()
        assert outer.nodes == 0


def test_nested_events_and_their_order():
    seen = []
    with cg.memory.events(lambda e: seen.append(("outer", e[0]))) as nothing:
        with cg.memory.events(lambda e: seen.append(("inner", e[0]))), cg.memory.events() as log:
            cg.zeros(1)
        cg.zeros(1)
    cg.zeros(1)
    assert seen == [("outer", "allocate"), ("inner", "allocate"), ("outer", "free"), ("inner", "free"),
                    ("outer", "allocate"), ("outer", "free")]
    assert [e[0] for e in log] == ["allocate", "free"] and nothing == []


def test_a_listener_that_closes_its_own_scope():
    def listen(_):
        scope.__exit__()

    scope = cg.memory.events(listen)
    scope.__enter__()
    with cg.memory.events() as log:
        cg.zeros(1)
    assert [e[0] for e in log] == ["allocate", "free"]
    assert leave(scope) == "memory.events: this scope is not open, so it cannot be closed"
