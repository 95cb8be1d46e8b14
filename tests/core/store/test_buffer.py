"""The pool: sizes, reuse, release, tracemalloc, the counters, a steady state, and failing allocations."""

import tracemalloc

import numpy as np
import pytest
from tests.properties.test_shadow import loss_of, mlp

import cygrad as cg
from cygrad.core.store import buffer as core

SIZES = [0, 1, 63, 64, 65, 4095, 4096, 4097, 4608, 4609, 5000, 8192, 8193, 65536, 65537, 1_000_000, 1 << 20,
         (1 << 20) + 1, (1 << 20) + 4097, 5 << 20, (16 << 20) + 1]


@pytest.fixture(autouse=True)
def empty_pool():
    cg.memory.empty_cache()
    yield
    core.set_failure(0, False)


def stats(*names):
    s = cg.memory.stats()
    return [s[n] for n in names] if len(names) > 1 else s[names[0]]


@pytest.mark.parametrize("nbytes", SIZES)
def test_capacity_is_enough_and_not_too_much(nbytes):
    x = cg.empty(nbytes, "uint8")
    live, cached = stats("live_bytes", "cached_bytes")
    assert live == x.nbytes == nbytes
    x.numpy()[...] = 255                            # all of it can be written (AddressSanitizer checks)
    if nbytes > 4096:
        assert cached <= max(nbytes // 8, 4096), cached
    assert x.numpy().ctypes.data % 64 == 0


@pytest.mark.parametrize("nbytes", [n for n in SIZES if n > 4096])
def test_large_blocks_are_kept_and_reused(nbytes):
    before = stats("system_allocations")
    x = cg.empty(nbytes, "uint8")
    at = x.numpy().ctypes.data
    del x
    assert stats("cached_bytes") >= nbytes
    for _ in range(3):
        x = cg.empty(nbytes, "uint8")
        assert x.numpy().ctypes.data == at
        del x
    assert stats("system_allocations") == before + 1


def test_the_best_fit_is_taken_among_large_blocks():
    blocks, between = [], []
    for n in ((1 << 20) + 28 * 4096, (1 << 20) + 4 * 4096, (1 << 20) + 12 * 4096):
        blocks.append(cg.empty(n, "uint8"))
        between.append(cg.empty(2 << 20, "uint8"))  # so that free ones are not joined
    places = [b.numpy().ctypes.data for b in blocks]
    del blocks
    x = cg.empty((1 << 20) + 8 * 4096, "uint8")
    assert x.numpy().ctypes.data == places[2]
    y = cg.empty((1 << 20) + 13 * 4096, "uint8")
    assert y.numpy().ctypes.data == places[0]


def test_random_allocations_never_overlap():
    rng = np.random.default_rng(0)
    held = {}
    for step in range(3000):
        n = int(rng.integers(0, rng.choice([200, 9000, 3 << 20], p=[0.7, 0.27, 0.03])))
        x = cg.empty(n, "uint8")
        mark = step % 251
        x.numpy()[...] = mark
        held[step] = x, mark
        while len(held) > 40:
            t, mark = held.pop(list(held)[rng.integers(len(held))])
            assert (t.numpy() == mark).all()
    for t, mark in held.values():
        assert (t.numpy() == mark).all()
    assert stats("live_bytes") == sum(t.nbytes for t, _ in held.values()) and stats("live_buffers") == len(held)


def test_empty_cache_gives_back_all_that_is_free():
    held = [cg.zeros(10), cg.zeros(5000), cg.zeros(1 << 20)]
    for n in (3, 100, 5000, 1 << 20):
        cg.zeros(n)
    live, cached = stats("live_bytes", "cached_bytes")
    cg.memory.empty_cache()
    assert stats("live_bytes") == live and stats("cached_bytes") < cached
    assert [t.tolist()[0] for t in held] == [0, 0, 0]
    slabs = stats("cached_bytes")
    assert slabs < 4096 * 6                         # of each of the three at most two shared pages
    del held
    cg.memory.empty_cache()
    assert stats("cached_bytes") == stats("live_bytes") == 0
    x = cg.ones(10)                                 # allocation still works
    assert x.tolist() == [1] * 10


def test_a_slab_with_one_live_buffer_stays_and_works():
    many = [cg.full(4, float(k)) for k in range(1000)]
    kept = many[137]
    del many
    cg.memory.empty_cache()
    again = [cg.full(4, -1.0) for _ in range(1000)]
    assert kept.tolist() == [137.0] * 4 and all(t.tolist() == [-1.0] * 4 for t in again)


def test_no_bytes_at_all():
    x = cg.zeros((0, 5)).attach_grad()
    with cg.record():
        y = cg.exp(x * 2.0).sum()
    y.backward()
    assert x.grad.shape == (0, 5) and y.item() == 0
    assert stats("live_bytes") == y.nbytes
    assert stats("live_buffers") >= 3


@pytest.mark.parametrize("shape", [(1 << 46,), (1 << 48,), (1 << 24, 1 << 22), (1 << 44, 2)])
def test_more_than_the_machine_has(shape):
    before = cg.memory.stats()
    with pytest.raises(MemoryError, match="bytes"):
        cg.empty(shape)
    assert cg.memory.stats() == before
    for s in ((1 << 40, 1 << 40), (1 << 49,), (1 << 33, 0, 1 << 33), (5, (1 << 48) - 1), (274177, 67280421310721 * 2)):
        with pytest.raises(ValueError, match="too many elements"):
            cg.empty(s)                             # (274177 * 67280421310721 is 2^64 + 1)
    small = cg.ones(1).broadcast_to(shape) if len(shape) == 1 else None
    if small is not None:
        with pytest.raises(MemoryError):
            small + 1.0
        del small


def test_tracemalloc_sees_tensors_in_a_domain_of_ours():
    tracemalloc.start()
    try:
        def ours():
            snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, 0xC96AD)])
            return sum(t.size for t in snapshot.traces)

        assert ours() == 0
        x = cg.zeros(1000)                          # a line of this file
        y = cg.zeros((100, 100), "float64")
        assert ours() == 4000 + 80000
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, 0xC96AD)])
        assert [s.traceback[0].filename for s in traces.statistics("filename")] == [__file__]
        del y
        assert ours() == 4000
        x = x * 2.0
        assert ours() == 4000
        del x
        assert ours() == 0
    finally:
        tracemalloc.stop()


def test_categories_follow_the_roles():
    def nonzero():
        return {k: v for k, v in stats("by_category").items() if v}

    x = cg.zeros(100)
    assert nonzero() == {"other": 400}
    x.attach_grad()
    assert nonzero() == {"parameters": 400}         # (zeros have no memory until they are read)
    with cg.record():
        y = cg.exp(x)
    assert nonzero() == {"parameters": 400, "saved": 400}
    assert x.grad.tolist() == [0] * 100
    assert nonzero() == {"parameters": 400, "gradients": 400, "saved": 400}
    y.backward()
    assert nonzero() == {"parameters": 400, "gradients": 400, "other": 400}
    solver = cg.optim.Adam()
    solver.set_parameters([x])
    assert nonzero() == {"parameters": 400, "gradients": 400, "other": 400, "optimizer": 800}
    g = x.grad
    x.grad = None
    assert nonzero() == {"parameters": 400, "other": 800, "optimizer": 800}
    del solver, y, g
    x.drop_grad()
    assert nonzero() == {"other": 400}


def test_reset_peak_leaves_open_tracks_alone():
    with cg.memory.track() as outer:
        cg.zeros(5000)
        with cg.memory.track() as inner:
            cg.zeros(2000)
            assert cg.memory.reset_peak() >= 20000 and stats("peak_bytes") == 0
            assert (outer.peak_bytes, inner.peak_bytes) == (20000, 8000)
            cg.zeros(100)
            cg.memory.reset_peak()
            cg.zeros(10)
            assert stats("peak_bytes") == 40
        assert inner.peak_bytes == 8000 and outer.peak_bytes == 20000 and stats("peak_bytes") == 40
        with cg.memory.track() as last:
            cg.zeros(20)
        assert last.peak_bytes == 80 == stats("peak_bytes")
    assert outer.peak_bytes == 20000 and inner.peak_bytes == 8000 and stats("peak_bytes") == 80
    cg.zeros(10000)
    assert (outer.peak_bytes, inner.peak_bytes, last.peak_bytes) == (20000, 8000, 80)
    assert cg.memory.reset_peak() == 40000


def test_tracks_leave_the_peak_alone():
    """The peak of memory.stats() is the one since the start or reset_peak(), also in a track."""
    cg.memory.reset_peak()
    cg.zeros(1000)
    with cg.memory.track() as t:
        assert stats("peak_bytes") == 4000
        cg.zeros(10)
        assert (t.peak_bytes, stats("peak_bytes")) == (40, 4000)
    assert (t.peak_bytes, stats("peak_bytes")) == (40, 4000)


def test_tracks_that_are_not_left_in_order():
    first, second = cg.memory.track(), cg.memory.track()
    first.__enter__(), second.__enter__()
    cg.zeros(100)
    first.__exit__()
    cg.zeros(200)
    assert (first.peak_bytes, second.peak_bytes) == (400, 800)
    third = cg.memory.track().__enter__()
    second.__exit__()
    cg.zeros(300)
    assert (first.peak_bytes, second.peak_bytes, third.peak_bytes) == (400, 800, 1200)
    third.__exit__()


def test_track_nests():
    with cg.memory.track() as outer:
        a = cg.zeros(1000)
        with cg.memory.track() as inner:
            cg.zeros(2000)
            b = cg.zeros(10)
        assert inner.peak_bytes == 12000 and inner.leaked_bytes == 40
        del a
    assert outer.peak_bytes == 12000 and outer.leaked_bytes == 40
    cg.memory.reset_peak()
    assert stats("peak_bytes") == 40
    del b


# ---- listeners -------------------------------------------------------------------------------------------------------

def test_a_listener_is_not_told_of_what_it_does_itself():
    """Otherwise it would be called for its own events, without end."""
    seen = []

    def listener(event):
        seen.append(event[0])
        cg.ones(3) + 1.0

    with cg.memory.events(listener):
        x = cg.zeros(4)
        del x
    assert seen == ["allocate", "free"]


def test_what_a_listener_raises_goes_no_further(monkeypatch):
    printed = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: printed.append(str(u.exc_value)))

    def listener(event):
        raise ValueError(event[0])

    with cg.memory.events(listener):
        x = cg.zeros(4)
        del x
    assert printed == ["allocate", "free"]


# ---- the steady state (M7) -------------------------------------------------------------------------------------------

def trainer(seed=0):
    parameters, x, labels = mlp(seed, sizes=(64, 128, 64, 10), n=64)
    solver = cg.optim.Adam(1e-2)
    solver.set_parameters(parameters)

    def step():
        solver.zero_grad()
        with cg.record():
            loss = loss_of(parameters, x, labels)
        loss.backward()
        solver.update()

    return parameters, step


def test_from_step_three_on_nothing_is_taken_from_the_system():
    parameters, step = trainer()
    step(), step()
    before = cg.memory.stats()
    peaks = set()
    for _ in range(50):
        with cg.memory.track() as t:
            step()
        peaks.add(t.peak_bytes)
        after = cg.memory.stats()
        assert after["system_allocations"] == before["system_allocations"]
        assert after["live_buffers"] == before["live_buffers"] and after["cached_bytes"] == before["cached_bytes"]
        assert after["by_category"] == before["by_category"]
    assert len(peaks) == 1


# ---- memory runs out (M8) --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("persistent", [False, True])
def test_every_allocation_of_a_step_can_fail(persistent):
    """It raises MemoryError, live bytes are as before, and parameters keep their bits. The next step equals that of a
    model that never failed, so the states of the solver are unchanged too."""
    parameters, step = trainer()
    twins, twin_step = trainer()
    for _ in range(2):
        step(), twin_step()
    core.set_failure(1 << 60, False)
    step()
    count = core.set_failure(0, False)
    twin_step()
    assert count > 8
    for n in range(1, count + 1):
        for p in parameters.values(): p.zero_grad()         # (gradients that are zero have no memory)
        before = cg.memory.stats()
        values = [p.numpy().tobytes() for p in parameters.values()]
        core.set_failure(n, persistent)
        try:
            with pytest.raises(MemoryError, match=f"allocation {n} of"):
                step()
        finally:
            core.set_failure(0, False)
        for p in parameters.values(): p.zero_grad()
        after = cg.memory.stats()
        for key in ("live_bytes", "live_buffers", "by_category"):
            assert after[key] == before[key], (n, key)
        assert [p.numpy().tobytes() for p in parameters.values()] == values, n
        assert not cg.is_recording() and not cg.is_training()
        step(), twin_step()
        for name, p in parameters.items():
            assert p.numpy().tobytes() == twins[name].numpy().tobytes(), (n, name)


def test_a_retained_graph_survives_a_failed_pass():
    parameters, x, labels = mlp()
    with cg.record() as tape:
        loss = loss_of(parameters, x, labels)
    loss.backward(retain_graph=True)
    expected = [p.grad.numpy().tobytes() for p in parameters.values()]
    core.set_failure(1 << 60, False)
    loss.backward(retain_graph=True)
    count = core.set_failure(0, False)
    saved = tape.saved_bytes
    for n in range(1, count + 1):
        core.set_failure(n, True)
        with pytest.raises(MemoryError):
            loss.backward(retain_graph=True)
        core.set_failure(0, False)
        assert tape.saved_bytes == saved
        loss.backward(retain_graph=True)
        assert [p.grad.numpy().tobytes() for p in parameters.values()] == expected, n


def test_a_pass_that_fails_without_retain_graph_says_so_later():
    x = cg.ones(100).attach_grad()
    with cg.record():
        y = (cg.exp(x) * cg.tanh(x)).sum()
    core.set_failure(2, False)
    with pytest.raises(MemoryError):
        y.backward()
    core.set_failure(0, False)
    with pytest.raises(cg.GraphFreedError):
        y.backward()


def test_inplace_writes_that_fail_change_nothing():
    x = cg.ones(100).attach_grad()
    with cg.record():
        h = x * 3.0
        for write in (lambda: h.__imul__(h), lambda: h.__iadd__(np.ones(100, "f8")),
                      lambda: h.__setitem__(0, np.ones(1))):
            core.set_failure(1, True)
            with pytest.raises(MemoryError):
                write()
            core.set_failure(0, False)
            assert h.version == 0 and h.tolist() == [3.0] * 100
        y = (h * h).sum()
    y.backward()
    assert x.grad.tolist() == [18.0] * 100


# ---- external memory -------------------------------------------------------------------------------------------------

def test_external_memory_counts_apart():
    a = np.ones(1000)
    x = cg.asarray(a)
    y = cg.asarray(a[::2])
    assert stats("external_bytes") == 8000 and stats("live_bytes") == stats("live_buffers") == 0
    x.attach_grad().grad.fill_(1)
    assert stats("by_category")["parameters"] == 0 and stats("live_bytes") == 8000       # its gradient
    del x, y
    assert stats("external_bytes") == 0


def test_our_own_memory_is_no_memory_of_others():
    for n in (1, 1000, 1 << 20):                    # in a slab, a size class, a span
        x = cg.ones(n)
        borrowed = [cg.asarray(x.numpy()), cg.from_dlpack(x), cg.asarray(x.numpy()[::-1])]
        assert stats("external_bytes") == 0 and stats("live_bytes") == 4 * n
        borrowed[0][...] = 2
        del x
        assert stats("live_bytes") == 4 * n and [b.tolist()[0] for b in borrowed] == [2] * 3
        theirs = cg.asarray(np.ones(10))
        assert stats("external_bytes") == 80
        del borrowed, theirs
    assert stats("external_bytes") == stats("live_bytes") == 0


@pytest.mark.parametrize("indices, together, first, second", [
    ((slice(None), slice(None)), 8000, 8000, 8000),                     # the same array
    ((slice(600), slice(400, None)), 8000, 4800, 4800),                 # ranges that overlap
    ((slice(500), slice(500, None)), 8000, 4000, 4000),                 # that are adjacent
    ((slice(100), slice(900, None)), 1600, 800, 800),
    ((slice(None), slice(100, 200)), 8000, 8000, 800),                  # one inside the other
    ((slice(None), slice(None, None, -1)), 8000, 8000, 8000),
    ((slice(None, None, 2), slice(1, None, 2)), 8000, 4000, 4000),      # gaps of one filled by the other
    ((slice(None, None, 2), slice(None, None, 2)), 4000, 4000, 4000),
    ((slice(None, 500, 2), slice(500, None)), 6000, 2000, 4000),
    ((slice(0), slice(3)), 24, 0, 24),
])
def test_external_memory_counts_once(indices, together, first, second):
    a = np.ones(1000)
    for how in (cg.asarray, cg.from_dlpack):
        for dies in (0, 1):
            pair = [how(a[i]) for i in indices]
            assert stats("external_bytes") == together
            pair[dies] = None
            assert stats("external_bytes") == (second, first)[dies]
            more = [how(a[indices[1 - dies]]) for _ in range(3)]
            assert stats("external_bytes") == (second, first)[dies]
            pair[1 - dies] = None
            del more[1]
            assert stats("external_bytes") == (second, first)[dies]
            more.clear()
            assert stats("external_bytes") == 0


def test_external_memory_of_many_arrays():
    """Compared with a set of addresses, for arrays without gaps."""
    rng = np.random.default_rng(0)
    memories, held = [np.ones(200) for _ in range(4)], []
    for _ in range(300):
        if held and rng.random() < 0.45:
            held.pop(rng.integers(len(held)))
        else:
            begin, end = sorted(rng.integers(0, 201, 2))
            a = memories[rng.integers(4)][begin:end]
            a = a[::-1] if rng.random() < 0.5 else a.reshape(-1, 1)
            held.append((a, cg.asarray(a)))
        addresses = set()
        for a in [a for a, _ in held]:
            if a.size: addresses.update(range(*np.lib.array_utils.byte_bounds(a)))
        assert stats("external_bytes") == len(addresses)
    held.clear()
    assert stats("external_bytes") == 0


def test_external_memory_that_repeats_its_elements():
    x = cg.asarray(np.broadcast_to(np.ones(5), (100, 5)))
    assert stats("external_bytes") == 40 and x.nbytes == 4000
    y = cg.asarray(np.ones((40, 50))[:, 7].T)
    assert stats("external_bytes") == 40 + 40 * 8 and y.shape == (40,)
    del x, y


def test_nothing_is_lost_when_python_has_no_memory():
    """Each allocation that an operation makes with Python's allocator fails once: tensors, nodes, lists, numbers."""
    python = pytest.importorskip("_testcapi", reason="this Python cannot fail an allocation on request")
    x, labels = cg.ones((3, 4)).attach_grad(), cg.tensor([0, 1, 2])
    with cg.record():                               # use up the free lists of tensors and nodes
        held = [x * 1.0 for _ in range(1100)]
    for f in (lambda: x * x, lambda: cg.exp(x), lambda: x[1:], lambda: x.T.reshape(12), lambda: x @ x.T,
              lambda: cg.cross_entropy(x, labels)):
        failures = 0
        for n in range(30):                         # more than any of these needs
            before, y = cg.memory.stats()["live_bytes"], None
            with cg.record():
                python.set_nomemory(n, n + 1)
                try:
                    y = f()
                except MemoryError:
                    failures += 1
                finally:
                    python.remove_mem_hooks()
            if y is None:
                assert cg.memory.stats()["live_bytes"] == before
            else:
                held.append(y)
        assert failures > 1


def test_an_array_over_a_tensor_keeps_its_memory():
    x = cg.full(2000, 7.0)
    a = x.numpy()[::2]
    del x
    assert stats("live_bytes") == 8000
    cg.memory.empty_cache()
    y = cg.asarray(a)                               # and the other way around
    z = y * 1.0
    del a, y
    assert stats("live_bytes") == 4000 and z.tolist() == [7.0] * 1000
