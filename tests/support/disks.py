"""The file of memory.offload(), and programs whose disk fails: for its tests, and for the cases of wordings/."""

import errno
import gc
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest

import cygrad as cg
from cygrad.memory.spill import set_disk_delay, set_disk_failure


N = 50_000                                          # elements of a value


def spill_files():
    """The descriptors of files of open scopes."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try: name = os.readlink(f"/proc/self/fd/{fd}")
        except OSError: continue
        if "cygrad-offload-" in name: found.append(int(fd))
    return found


@contextmanager
def disk_failure(n, error=0, persistent=False):
    """The n-th call to the disk fails (set_disk_failure)."""
    set_disk_failure(n, error, persistent)
    try: yield
    finally: set_disk_failure(0)


@contextmanager
def slow_disk(seconds):
    set_disk_delay(int(seconds * 1e6))
    try: yield
    finally: set_disk_delay(0)


def threads():
    """The number of threads of open scopes."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as f: names.append(f.read().strip())
        except OSError: pass                        # (it has ended)
    return names.count("cygrad-offload")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path):
    """For each test of a module that imports it: no file, thread or byte is left."""
    yield
    set_disk_failure(0)
    gc.collect()
    assert not spill_files() and not threads()
    assert not os.listdir(tmp_path) and cg.memory.stats()["live_bytes"] == 0


def chain(x, steps=40):
    """The sum after `steps` steps, each of which saves one value."""
    with cg.record():
        for _ in range(steps): x = cg.sin(cg.exp(x * 0.1))
        y = x.sum()
    return y


def gradient(x):
    """The gradient of x, which it loses."""
    found, x.grad = x.grad.numpy().copy(), None
    return found


def offloaded(x):
    """sin(exp(x)), which saves one value in a file."""
    with TemporaryDirectory() as folder, cg.memory.offload(folder, smallest=0), cg.record(): return cg.sin(cg.exp(x))


def offload_nowhere():
    with cg.memory.offload("/nowhere/at/all"): pass


def offload_without_a_thread():
    with TemporaryDirectory() as folder, disk_failure(1), cg.memory.offload(folder): pass


def open_offload():
    with TemporaryDirectory() as folder:
        o = cg.memory.offload(folder)
        with o: o.__enter__()


def offload_set_up_again():
    with TemporaryDirectory() as folder:
        o = cg.memory.offload(folder)
        with o: o.__init__(folder)


def offload_of_another_thread():
    with TemporaryDirectory() as folder, cg.memory.offload(folder) as o, ThreadPoolExecutor(1) as pool:
        pool.submit(o.__exit__).result()


def full_disk(error):
    # (the first call begins the thread)
    with TemporaryDirectory() as folder, disk_failure(2, error), cg.memory.offload(folder, smallest=0), cg.record():
        return cg.sin(cg.exp(cg.ones((10, 10)).attach_grad()))


def unreadable(error):
    y = offloaded(cg.ones((10, 10)).attach_grad())
    with disk_failure(1, error): y.backward(cg.ones((10, 10)))


def products(x, steps, folder):
    """The product of draws, of which no operation can make one again, in a budget for two of them beside `x`."""
    with cg.memory.budget(cg.memory.stats()["live_bytes"] + 400_000, offload=folder), cg.record():
        for _ in range(steps): x = x * cg.random.uniform(0, 1, (N,))
        return x


def budget_of_a_full_disk():
    with TemporaryDirectory() as folder, disk_failure(2, errno.ENOSPC, True):
        products(cg.ones(N).attach_grad(), 3, folder)


def unreadable_budget():
    with TemporaryDirectory() as folder: y = products(cg.ones(N).attach_grad(), 4, folder)
    with disk_failure(1, errno.EIO, True): y.backward(cg.ones(N))


def changed():
    before = spill_files()
    y = offloaded(cg.ones((10, 10)).attach_grad())
    os.pwrite(*[fd for fd in spill_files() if fd not in before], b"\xff", 100)
    y.backward(cg.ones((10, 10)))


def read_in_a_fork():
    """The error of the child, raised here."""
    y = offloaded(cg.ones((10, 10)).attach_grad())
    end, start = os.pipe()
    child = os.fork()
    if not child:
        try: y.backward(cg.ones((10, 10)))
        except RuntimeError as e: os.write(start, str(e).encode())
        finally: os._exit(0)
    os.close(start)
    os.waitpid(child, 0)
    with open(end) as found: raise RuntimeError(found.read())
