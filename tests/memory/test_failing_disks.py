"""memory.offload() on a disk that fails, or without memory: errors that lose nothing."""

import errno
import gc
import os
import time

import numpy as np
import programs
import pytest
from disks import N, chain, disk_failure, gradient, nothing_left, spill_files  # noqa: F401

import cygrad as cg


@pytest.mark.parametrize("error", [errno.ENOSPC, 0])
@pytest.mark.parametrize("persistent", [False, True])
def test_every_write_that_fails(error, persistent, tmp_path):
    """The operation or the end of the scope raises OSError, and backward of what was recorded is right."""
    x = cg.tensor(np.linspace(-1, 1, N)).attach_grad()
    wanted = [None]
    for steps in range(1, 13):
        chain(x, steps).backward()
        wanted.append(gradient(x))
    for n in range(1, 13):
        steps, y = 0, None
        try:
            # (the first call begins the thread)
            with disk_failure(n + 1, error, persistent), cg.memory.offload(tmp_path) as o, cg.record():
                y = x
                for _ in range(12):
                    y = cg.sin(cg.exp(y * 0.1))
                    steps += 1
        except OSError as e:
            assert e.errno == (error or errno.EIO) and f"{8 * N:,} bytes could not be written" in str(e), str(e)
            assert "nothing is lost" in str(e)
        else: raise AssertionError(n)
        if steps:
            with cg.record(): z = y.sum()
            z.backward()
            np.testing.assert_array_equal(gradient(x), wanted[steps])
            del z
        assert o.written_bytes <= 12 * 8 * N
        del y


def test_an_exception_gets_a_note_of_the_failed_write(tmp_path):
    x = cg.ones(N).attach_grad()
    with disk_failure(2, errno.ENOSPC, True):
        try:
            with cg.memory.offload(tmp_path):
                y = chain(x, 1)
                time.sleep(0.2)
                1 / 0  # noqa: B018
        except ZeroDivisionError as e: assert "200,000 bytes could not be written" in e.__notes__[0]
    y.backward()
    assert (gradient(x) > 0).all()
    del y


@pytest.mark.parametrize("error", [errno.EIO, 0])
def test_every_read_that_fails(error, tmp_path):
    """Backward raises, or reads again what it has read ahead. Nothing is lost."""
    x = cg.tensor(np.linspace(-1, 1, N)).attach_grad()
    chain(x, 8).backward()
    wanted = gradient(x)
    failed = 0
    for n in range(1, 9):
        for persistent in (False, True):
            with cg.memory.offload(tmp_path): y = chain(x, 8)
            with disk_failure(n, error, persistent):
                try: y.backward(retain_graph=True)
                except RuntimeError as e:
                    failed += 1
                    assert ("Input/output error" if error else "is shorter than") in str(e) and "400,000" in str(e)
                    assert str(e).startswith(("sin: ", "exp: "))
                    x.grad = None
                else: np.testing.assert_array_equal(gradient(x), wanted)
            y.backward()
            np.testing.assert_array_equal(gradient(x), wanted)
            del y
    assert failed >= 8


@pytest.mark.parametrize("n", range(2, 20))
def test_random_programs_on_a_disk_that_fails(n, tmp_path):
    failed = 0
    for seed in range(0, 60, 3):
        p = programs.Program(seed)
        wanted = programs.run(p)
        with disk_failure(n, errno.ENOSPC if n % 3 else errno.EIO, bool(n % 2)):
            try:
                with cg.memory.limit("1TB"), cg.memory.offload(tmp_path, smallest=0): found = programs.run(p)
            except (OSError, RuntimeError):
                failed += 1
                found = None
        if cg.memory.stats()["live_bytes"]: gc.collect()
        assert cg.memory.stats()["live_bytes"] == 0 and not spill_files(), p
        if found is None: continue
        np.testing.assert_array_equal(wanted[0], found[0])
        for u, v in zip(wanted[1], found[1], strict=True):
            if u is not None: np.testing.assert_array_equal(u, v)
    assert failed


def test_a_file_that_was_changed(tmp_path):
    x = cg.ones(N).attach_grad()
    for change in (lambda fd: os.pwrite(fd, b"\xff", 4 * N // 2), lambda fd: os.truncate(fd, 5 * 4096)):
        with cg.memory.offload(tmp_path): y = chain(x, 1)
        change(spill_files()[0])
        with pytest.raises(RuntimeError, match=r"sin: the file of memory.offload\(\) .* (has changed|is shorter)"):
            y.backward()
        del y
        x.grad = None


def test_allocations_that_fail(tmp_path):
    x = cg.tensor(np.linspace(-1, 1, N)).attach_grad()
    chain(x, 4).backward()
    wanted, n = gradient(x), 0
    while True:
        n += 1
        x.grad = y = None
        with cg.testing.fail_allocation(n) as failure:
            try:
                with cg.memory.offload(tmp_path): y = chain(x, 4)
                y.backward()
            except MemoryError: continue
        np.testing.assert_array_equal(gradient(x), wanted)
        del failure
        if n > 60: break


def test_a_limit(tmp_path):
    """Backward reads within a limit: what does not fit is not read ahead."""
    x = cg.tensor(np.linspace(-1, 1, 1 << 18, dtype="float32")).attach_grad()
    chain(x, 20).backward()
    wanted = gradient(x)
    with cg.memory.offload(tmp_path): y = chain(x, 20)
    cg.memory.empty_cache()
    with cg.memory.limit("8MiB"): y.backward()
    np.testing.assert_array_equal(gradient(x), wanted)
