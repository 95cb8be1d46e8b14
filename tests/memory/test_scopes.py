"""memory.limit: no byte more is taken from the system, and everything is as before the refused operation."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.core.store.test_buffer import trainer

import cygrad as cg
from cygrad.core.sizes import read_size, words

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(autouse=True)
def empty():
    cg.memory.empty_cache()


def held():
    s = cg.memory.stats()
    return s["live_bytes"] + s["cached_bytes"]


def test_what_the_error_says():
    x = cg.zeros(65536).attach_grad()               # 256 KiB, and 256 KiB for the gradient
    x.grad.fill_(1)                                 # ... which has no memory while it is zero
    with cg.memory.limit("1MiB"), pytest.raises(cg.MemoryLimitError) as caught:
        cg.exp(x.broadcast_to((4, 65536)))          # the line
    e = caught.value
    assert isinstance(e, MemoryError) and e.requested == MIB and e.limit == MIB and e.operation == "exp"
    number = caught.traceback[0].lineno + 1
    assert e.line == f"{__file__}:{number}"
    assert str(e) == (
        f"memory.limit of 1,048,576 bytes: exp at {__file__}:{number} requested 1,048,576 bytes, but 524,288 are live "
        f"(parameters 262,144, gradients 262,144) and {held():,} are committed; at most {e.fits:,} would fit; free "
        f"tensors (memory.why lists the holders), work on smaller pieces, or raise the limit")
    del caught, e


@pytest.mark.parametrize("room", [0, 4 * KIB, 60 * KIB, 64 * KIB, 70 * KIB, 300 * KIB, MIB, MIB + 4095, 5 * MIB + 1])
def test_what_is_said_to_fit_fits(room):
    x = cg.zeros(100000)
    with cg.memory.limit(held() + room):
        with pytest.raises(cg.MemoryLimitError) as caught:
            cg.empty(64 * MIB, "uint8")
        fits = caught.value.fits
        assert (fits == 0) == (room == 0) and fits <= room
        if fits:
            cg.empty(fits, "uint8")
            cg.memory.empty_cache()
        with pytest.raises(cg.MemoryLimitError):
            cg.empty(fits + 1 if fits else 1025, "uint8")
    del x, caught


def test_the_cache_goes_back_first():
    with cg.memory.limit("4MiB"):
        for n in (3 * MIB, 2 * MIB, 3 * MIB + 4096, 100 * KIB, 3900 * KIB):
            cg.empty(n, "uint8")                    # none fits into the memory of another
            assert held() <= 4 * MIB
        before = cg.memory.stats()["system_allocations"]
        cg.empty(3900 * KIB, "uint8")
        assert cg.memory.stats()["system_allocations"] == before        # but memory that fits is reused
    cg.empty(8 * MIB, "uint8")
    with cg.memory.limit("1MiB"):
        assert held() <= MIB                        # also on entry


def test_what_was_live_before_stays():
    x = cg.zeros(MIB)
    with cg.memory.limit(0):
        assert x.tolist()[:1] == [0]
        with pytest.raises(cg.MemoryLimitError, match="at most 0 would fit"):
            cg.zeros(1)
    cg.zeros(1)


def test_the_tightest_of_nested_limits_holds():
    def largest():
        with pytest.raises(cg.MemoryLimitError) as caught:
            cg.empty(100 * MIB, "uint8")
        return caught.value.limit

    again = cg.memory.limit("6 MiB")
    with cg.memory.limit("8MiB"):
        assert largest() == 8 * MIB
        with again:
            assert largest() == 6 * MIB
            with cg.memory.limit("9MiB"), again:
                assert largest() == 6 * MIB
            with pytest.raises(ZeroDivisionError), cg.memory.limit(MIB):
                1 / 0                               # noqa: B018
            assert largest() == 6 * MIB
        assert largest() == 8 * MIB
    cg.empty(100 * MIB, "uint8")
    cg.memory.empty_cache()


def test_other_threads_are_limited_too():
    errors = []

    def work():
        try:
            cg.empty(2 * MIB, "uint8")
        except cg.MemoryLimitError as e:
            errors.append(e.limit)

    with cg.memory.limit(MIB):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert errors == [MIB]


def test_small_tensors_are_limited_too():
    with cg.memory.limit("200 KiB"):
        many = []
        with pytest.raises(cg.MemoryLimitError):
            while True:
                many.append(cg.zeros(100))
        assert len(many) > 300 and held() <= 200 * KIB
        del many[::2]
        many += [cg.zeros(100) for _ in range(100)]         # free parts of a slab can be used
    del many


@pytest.mark.parametrize("retain", [False, True])
def test_a_backward_that_fails_says_what_it_left(retain):
    x = cg.tensor(np.linspace(0.1, 1, 50000)).attach_grad()
    with cg.record():
        y = (cg.exp(cg.exp(x)) * 2.0 * x).sum()
    saved = cg.memory.stats()["by_category"]["saved"]
    cg.memory.empty_cache()
    with cg.memory.limit(held()), pytest.raises(cg.MemoryLimitError, match=r"\(backward\) at") as caught:
        y.backward(retain_graph=retain)
    note = caught.value.__notes__[0]
    assert "0 gradients had been written before" in note
    assert note.endswith("the graph is kept" if retain else "the graph has been freed: record it again")
    del caught
    assert cg.memory.stats()["by_category"]["saved"] == (saved if retain else 0)
    assert (x.grad.numpy() == 0).all()
    if retain:
        y.backward()
        e = np.exp(np.exp(x.detach().numpy()))
        np.testing.assert_allclose(x.grad.numpy(), 2 * e + 2 * e * np.exp(x.detach().numpy()) * x.detach().numpy())
    else:
        with pytest.raises(cg.GraphFreedError):
            y.backward()


@pytest.mark.parametrize("inputs", [False, True])
def test_the_table_of_a_backward_pass_is_within_the_limit(inputs):
    """It has some 100 bytes a node and is no tensor data: held while the pass runs, and never live."""
    x, seen = cg.ones(1).attach_grad(), []

    def record():
        with cg.record():
            y = x
            for _ in range(2000): y = y * 1.001
        return y

    y = record()
    cg.memory.empty_cache()
    before = held()
    y.register_hook(lambda g: seen.append(held()))
    y.backward()
    assert seen[0] - before > 2000 * 64 and held() >= seen[0]       # (the table is kept for the next pass)
    wanted = x.grad.item()
    x.grad = y = None
    y = record()
    cg.memory.empty_cache()
    before, live = held(), cg.memory.stats()["live_bytes"]
    with cg.memory.limit(before + 50_000), pytest.raises(cg.MemoryLimitError, match=": backward at .*test_scopes") as e:
        y.backward(inputs=[x] if inputs else None)
    assert e.value.requested > 50_000 // 4 and e.value.operation == "backward"
    del e
    cg.memory.empty_cache()
    assert held() == before and cg.memory.stats()["live_bytes"] == live
    with cg.memory.limit(before + seen[0]): y.backward(inputs=[x] if inputs else None)
    assert x.grad.item() == wanted
    del y
    cg.memory.empty_cache()
    assert held() <= before


def test_every_limit_on_a_training_step():
    """Limits from one that nothing fits into to one that everything fits into are never exceeded. A failed step changes
    neither parameters nor solver, and the next step equals that of a model that never failed."""
    parameters, step = trainer()
    twins, twin_step = trainer()
    step(), twin_step()
    over, failed = [], 0

    def look(_):
        if held() > limit: over.append((held(), limit))

    cg.memory.empty_cache()
    start = limit = held()
    while True:
        values = [p.numpy().tobytes() for p in parameters.values()]
        cg.memory.empty_cache()
        with cg.memory.limit(limit), cg.memory.events(look):
            try:
                step()
                break
            except cg.MemoryLimitError:
                failed += 1
        assert [p.numpy().tobytes() for p in parameters.values()] == values
        limit += 16 * KIB
    twin_step()
    assert failed > 2 and limit > start and not over
    assert all((p.numpy() == t.numpy()).all() for p, t in zip(parameters.values(), twins.values(), strict=True))


def test_the_system_says_no_to_what_fits_without_the_cache():
    code = """
import resource, cygrad as cg
cg.zeros(1)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)
cg.empty(200 << 20, "uint8")
cg.empty(250 << 20, "uint8")                        # only when the 200 MiB have gone back
try:
    cg.empty(400 << 20, "uint8")
except MemoryError as e:
    print(type(e).__name__, e)
"""
    # A thread of NumPy's BLAS reserves address space when it first runs, which may be after `used` is read.
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    assert result.stderr == ""
    assert result.stdout.startswith("MemoryError the system cannot provide a block of 419430400 bytes; ")


# ---- sizes -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("size, nbytes", [
    (0, 0), (4096, 4096), (np.int64(5), 5), ("4096", 4096), ("256MiB", 256 << 20), ("1.5GB", 1_500_000_000),
    (" 2 kb ", 2000), ("2KiB", 2048), ("0.5 MIB", 524288), ("1TiB", 1 << 40), ("3TB", 3 * 10 ** 12), ("7 bytes", 7),
    ("1 byte", 1), ("9B", 9), ("1.0000001GiB", 1073741931), ("0.1KiB", 102),
])
def test_sizes(size, nbytes):
    assert read_size(size, "limit") == nbytes


def test_sizes_in_words():
    assert [words(n) for n in (0, 10239, 10240, 3 << 20, 1500 << 20, 1 << 60)] == [
        "0 bytes", "10,239 bytes", "10 KiB (10,240 bytes)", "3 MiB (3,145,728 bytes)",
        "1.465 GiB (1,572,864,000 bytes)",
        "1.049e+06 TiB (1,152,921,504,606,846,976 bytes)"]


def test_stats_profile_and_limit_agree():
    """They count the same bytes: a limit of the bytes held at the peak is enough, and both peaks are equal."""
    _, step = trainer()
    step()
    cg.memory.empty_cache()
    cg.memory.reset_peak()
    base = held()
    with cg.memory.profile() as p:
        step()
    needed = held()
    assert p.peak_bytes == cg.memory.stats()["peak_bytes"] <= needed
    cg.memory.empty_cache()
    assert held() <= needed and base <= needed
    with cg.memory.limit(needed):
        step()
    assert held() <= needed
    live = cg.memory.stats()["live_bytes"]
    assert sum(cg.memory.stats()["by_category"].values()) == live
    with cg.memory.profile() as p:
        pass
    assert p.peak_bytes == live == sum(r.bytes for r in p.at_peak())
