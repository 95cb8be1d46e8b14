"""A save is atomic: at every moment there is the old file or the new one."""

import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest

import cygrad as cg


@pytest.fixture(params=[".safetensors", ".npz"])
def path(request, tmp_path):
    return tmp_path / ("x" + request.param)


def files(path):
    return sorted(os.listdir(path.parent))


# Saves an array of n equal numbers, again and again, n and the number being different each time.
WRITER = """
import sys, numpy as np, cygrad as cg
path, k = sys.argv[1], int(sys.argv[2])
while True:
    k += 1
    n = 1 + k % 7 * 60_000
    cg.save(path, {"a": np.full(n, k), "turned": np.full((n, 2), k).T, "k": k}, {"k": str(k)})
    print(k, flush=True)
"""


@pytest.mark.parametrize("kills", [4, pytest.param(150, marks=pytest.mark.slow)])
def test_a_kill_leaves_the_old_file_or_the_new(path, kills):
    """kill -9 at random moments. The file has all of one save, and is not older than the last save that returned."""
    r, last = random.Random(path.suffix + str(kills)), 0
    for _ in range(kills):
        with subprocess.Popen([sys.executable, "-c", WRITER, path, str(last)], stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()                # (it is running)
            time.sleep(r.random() * 0.05)
            writer.send_signal(signal.SIGKILL)
            lines = [last + 1, *map(int, writer.stdout.read().split())]
        found = cg.load(path)
        k = found["k"].item()
        assert lines[-1] <= k <= lines[-1] + 1
        a, turned = found["a"].numpy(), found["turned"].numpy()
        assert len(a) == 1 + k % 7 * 60_000 and turned.shape == (2, len(a)) and cg.io.metadata(path) == {"k": str(k)}
        assert (a == k).all() and (turned == k).all()
        last = k
        assert all(name == path.name or name.startswith(".cygrad-") and name.endswith(".tmp") for name in files(path))


class Stop(BaseException):
    pass


@pytest.mark.parametrize("call", ["open", "write", "fchmod", "fsync", "replace"])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, Stop])
def test_an_exception_at_any_step_leaves_the_old_file_only(path, monkeypatch, call, kind):
    cg.save(path, {"a": [1.0]}, {"k": "old"})
    errors = [kind(errno.ENOSPC, "No space left on device")]

    def fail(*_, **__): raise errors[0]
    if call == "open": monkeypatch.setattr("io.open", fail)
    elif call == "write": monkeypatch.setattr(f"cygrad.io.{path.suffix[1:]}.pieces", fail)
    else: monkeypatch.setattr(os, call, fail)
    with pytest.raises(kind) as caught: cg.save(path, {"a": [2.0]})
    assert caught.value is errors[0]
    monkeypatch.undo()
    del caught
    errors.clear()                                  # (its frames hold the array)
    assert files(path) == [path.name] and cg.load(path)["a"].tolist() == [1] and cg.io.metadata(path) == {"k": "old"}


def test_a_full_disk(path):
    """The system refuses to write more than 100,000 bytes into a file."""
    cg.save(path, {"a": [1.0]})
    program = ("import sys, signal, resource, numpy as np, cygrad as cg\n"
               "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
               "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
               "try: cg.save(sys.argv[1], {'a': np.zeros((2, 10_000)).T})\n"
               "except OSError as e: print(e.errno, e.filename)")
    run = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert run.stdout == f"{errno.EFBIG} {path}\n" and files(path) == [path.name] and cg.load(path)["a"].tolist() == [1]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000


def test_bad_input_is_refused_before_a_file_is_made(path):
    for tensors in ({"a": [1.0], "b": "text"}, {"a": [1.0], 3: [1.0]}, {"a": [1.0], "__metadata__": [1.0]}, [1.0]):
        with pytest.raises((TypeError, ValueError)): cg.save(path, tensors)
    with pytest.raises(TypeError): cg.save(path, {}, {"k": 1})
    assert files(path) == []


def test_the_order_of_the_steps(path, monkeypatch):
    """The data is on the disk before the name, and the name before save returns."""
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (
        steps.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else os.fstat(fd).st_size), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("replace"), replace(a, b)))
    cg.save(path, {"a": np.zeros(1000)})
    assert steps == [path.stat().st_size, "replace", "directory"]


def test_a_directory_that_cannot_be_flushed(path, monkeypatch):
    """EINVAL, of file systems that cannot, is no error; anything else is."""
    fsync = os.fsync
    for error in (errno.EINVAL, errno.EIO):
        def fail(fd):
            if stat.S_ISDIR(os.fstat(fd).st_mode): raise OSError(error, "")
            fsync(fd)
        monkeypatch.setattr(os, "fsync", fail)
        if error == errno.EINVAL: cg.save(path, {"a": [1.0]})
        else:
            with pytest.raises(OSError): cg.save(path, {"a": [2.0]})
    assert files(path) == [path.name] and cg.load(path)["a"].tolist() == [2]


def test_links_and_permissions_stay(path):
    real = path.with_name("real" + path.suffix)
    (path.parent / "sub").mkdir()
    link = path.parent / "sub" / path.name
    link.symlink_to(real)
    cg.save(link, {"a": [1.0]})                     # (through a link to a file that does not exist yet)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~mask
    real.chmod(0o640)
    cg.save(link, {"a": [2.0]})
    assert link.is_symlink() and cg.load(real)["a"].tolist() == [2] and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert os.listdir(link.parent) == [path.name]


def test_a_name_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("x" * 251 + ".npz")
    cg.save(path, {"a": [1.0]})
    assert cg.load(path)["a"].tolist() == [1]


def test_saving_over_a_file_that_is_loaded_or_mapped(tmp_path):
    path = tmp_path / "x.safetensors"
    cg.save(path, {"a": np.arange(100_000)})
    found = cg.load(path, mmap=True)
    for _ in range(3):
        cg.save(path, {"a": found["a"] * 1, "old": found["a"]})
        found = cg.load(path, mmap=True)
    assert found["old"].sum().item() == 4999950000


def test_threads_that_save_to_one_path(path):
    """One of them wins, with all of its file."""
    def work(k):
        for _ in range(5): cg.save(path, {"a": np.full(1000 * k, k)}, {"k": str(k)})
    threads = [Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads: t.start()
    for t in threads: t.join()
    a = cg.load(path)["a"].numpy()
    assert len(a) == 1000 * a[0] and (a == a[0]).all() and cg.io.metadata(path) == {"k": str(a[0])}
    assert files(path) == [path.name]


def test_no_file_stays_open(path):
    cg.save(path, {"a": [1.0]})
    before = len(os.listdir("/proc/self/fd"))
    cg.load(path)
    cg.io.metadata(path)
    with pytest.raises(ValueError): cg.load(path, max_bytes=0)
    with pytest.raises(TypeError): cg.save(path, {"a": "text"})
    os.truncate(path, 10)
    with pytest.raises(ValueError): cg.load(path)
    assert len(os.listdir("/proc/self/fd")) == before
