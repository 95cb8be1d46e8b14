"""The thread that reads ahead and the forked workers: exceptions, early ends, slow consumers, kills, exits."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg
from cygrad.data import DataLoader

HOW = [{"prefetch": 2}, {"workers": 2}, {"workers": 2, "prefetch": 1}]
every_way = pytest.mark.parametrize("how", HOW, ids=str)


def threads(): return [t for t in threading.enumerate() if t.name == "cygrad.data"]


def children(): return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.fixture(autouse=True)
def nothing_remains():
    yield
    assert not threads() and not children()


class Failing:
    """Samples of which number `at` raises."""

    def __init__(self, at, *error): self.at, self.error = at, error

    def __len__(self): return 20

    def __getitem__(self, k):
        if k == self.at: raise self.error[0](*self.error[1:])
        return float(k)


STOPPED = ("DataLoader: the data raised StopIteration(3) within a sample, as next(iterator) does at the end of another "
           "iterator; catch it there, and use return to end a generator")


@every_way
@pytest.mark.parametrize("kind", ["samples", "generator", "collate"])
def test_a_stop_iteration_of_the_data_is_an_error(kind, how):
    """It neither ends the epoch early nor is hidden by the generators of the loader."""
    def stop(k):
        if k == 5: raise StopIteration(3)
        return float(k)

    def generated():
        for k in range(9): yield stop(k)

    if kind != "samples": how = how | {"workers": min(1, how.get("workers", 0))}
    data = Failing(5, StopIteration, 3) if kind == "samples" else map(float, range(9))
    collate = (lambda xs: [stop(x) for x in xs]) if kind == "collate" else None
    if kind == "generator": data = generated()
    loader = DataLoader(data, 4, collate=collate, **how)
    assert np.array(loader.next()).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError) as caught: loader.next()
    assert str(caught.value) == STOPPED
    loader.close()
    del caught


class Own(Exception):
    """An exception with two arguments, which pickle cannot rebuild from its text."""

    def __init__(self, what, number): super().__init__(f"{what} {number}")


@pytest.mark.parametrize("how", [{}, *HOW], ids=str)
@pytest.mark.parametrize("error", [(KeyError, "no such sample"), (FileNotFoundError, 2, "no file", "x.png"),
                                   (StopIteration, 3), (ZeroDivisionError, "zero"), (SystemExit, 3),
                                   (KeyboardInterrupt, "own")], ids=lambda e: e[0].__name__)
def test_an_exception_comes_in_its_place(error, how):
    found = []
    with pytest.raises(RuntimeError if error[0] is StopIteration else error[0]) as caught:
        for x in DataLoader(Failing(13, *error), 4, **how): found.append(x.tolist())
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert str(caught.value) == (STOPPED if error[0] is StopIteration else str(error[0](*error[1:])))
    if "workers" in how: assert "in __getitem__" in "".join(caught.value.__notes__)
    del caught, x


def test_an_exception_that_cannot_be_pickled():
    with pytest.raises(RuntimeError, match="a worker raised Own, which cannot be pickled: 'a fault 3'"):
        for _ in DataLoader(Failing(1, Own, "a fault", 3), 4, workers=1): pass


@every_way
def test_after_an_exception_the_batch_can_be_asked_for_again(how):
    data = Failing(5, KeyError, "once")
    loader = DataLoader(data, 4, **how)
    assert loader.next().tolist() == [0, 1, 2, 3]
    with pytest.raises(KeyError): loader.next()
    data.at = None
    assert loader.next().tolist() == [4, 5, 6, 7]
    loader.close()


@every_way
def test_early_ends(how):
    loader = DataLoader(np.arange(1000), 4, **how)
    for _ in range(5):
        for _ in loader: break
    it = iter(loader)
    next(it)
    del it
    loader.next()
    del loader


def test_a_slow_consumer_meets_a_bounded_number_of_batches():
    made = []

    class Counting:
        def __len__(self): return 100

        def __getitem__(self, k):
            made.append(k)
            return np.full(1000, k)

    loader = DataLoader(Counting(), 1, prefetch=3)
    for n, _ in zip(range(1, 20), loader, strict=False):
        time.sleep(0.002)
        assert len(made) <= n + 4                   # (three wait, and the next one is being made)
    loader.close()
    assert cg.memory.stats()["live_bytes"] <= 2 * 8000


class Random:
    """Samples of random numbers from each global generator."""

    def __len__(self): return 12

    def __getitem__(self, k): return random.random(), np.random.rand(), cg.random.uniform((1,)).item()


def test_random_numbers_do_not_depend_on_the_number_of_workers():
    def draws(n, seed=3):
        return [[x.tolist() for x in batch] for batch in DataLoader(Random(), 2, workers=n, seed=seed)]

    state, numpys = random.getstate(), np.random.get_state()[1].tolist()
    one, two = draws(1), draws(2)
    assert one == two == draws(3) and one != draws(1, 4)
    assert len({str(batch) for batch in one}) == 6
    assert random.getstate() == state and np.random.get_state()[1].tolist() == numpys
    loader = DataLoader(Random(), 2, workers=2, seed=3)
    epochs = [[[x.tolist() for x in batch] for batch in loader] for _ in range(2)]
    assert epochs[0] == one and epochs[1] != one


class Slow:
    def __len__(self): return 8

    def __getitem__(self, k):
        if k == 5: os.kill(os.getpid(), signal.SIGKILL)
        return k


def test_a_worker_that_is_killed():
    loader = DataLoader(Slow(), 2, workers=2)
    assert [loader.next().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match=r"worker 0 of 2 ended unexpectedly, with exit status -9 \(killed"):
        loader.next()


PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
from cygrad.data import DataLoader

class Sleepy:
    def __len__(self): return 1000
    def __getitem__(self, k):
        if k > 10: time.sleep(0.01)
        return k

kept = []
for how in ({"prefetch": 2}, {"workers": 2}, {"workers": 2, "prefetch": 2}):
    kept.append(loader := DataLoader(Sleepy(), 2, **how))
    it = iter(loader)
    kept += [it, next(it)]
print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
"""


def runs(pid):
    """Whether a process exists and is no zombie."""
    try: return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError: return False


def gone(pids, seconds=10):
    end = time.monotonic() + seconds
    while any(map(runs, pids)) and time.monotonic() < end: time.sleep(0.05)
    return not any(map(runs, pids))


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)", "raise KeyboardInterrupt", "os._exit(0)"])
def test_the_end_of_the_interpreter_ends_all(end):
    run = subprocess.run([sys.executable, "-c", PROGRAM + end], capture_output=True, text=True, timeout=60)
    workers = run.stdout.split()
    assert len(workers) == 4 and gone(workers)
    if not end: assert run.returncode == 0 and not run.stderr


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@every_way
def test_a_fork_reads_the_rest_itself(how):
    """A fork has no thread and shares no pipes: next() says so, and the one after it reads on, in both processes."""
    loader = DataLoader(np.arange(12.0), 2, **how)
    assert [loader.next().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        try:
            with pytest.raises(RuntimeError, match="is a fork of the one that began the epoch"): loader.next()
            os._exit([loader.next().tolist() for _ in range(4)] != [[4, 5], [6, 7], [8, 9], [10, 11]])
        finally: os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert [loader.next().tolist() for _ in range(5)] == [[4, 5], [6, 7], [8, 9], [10, 11], [0, 1]]
    loader.close()


@pytest.mark.parametrize("how", [{}, *HOW], ids=str)
def test_next_in_several_threads(how):
    """Each batch goes to one thread, and its memory is not written while that has it."""
    loader, found = DataLoader(np.arange(1000), 1, **how), []

    def read():
        for _ in range(250): found.append(loader.next().item())

    readers = [threading.Thread(target=read) for _ in range(4)]
    for t in readers: t.start()
    for t in readers: t.join()
    assert sorted(found) == [*range(1000)] and loader.position == 1000
    loader.close()
