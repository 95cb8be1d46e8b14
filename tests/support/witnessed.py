"""The scenes that test_arena.py runs under the witness (tests/support/witness.c): python witnessed.py SCENE"""

import ctypes
import sys

import numpy as np
import programs
from tests.core.store.test_buffer import trainer

import cygrad as cg

witness = ctypes.CDLL(None)
witness.witness_committed.restype = witness.witness_failed.restype = ctypes.c_long


def held():
    s = cg.memory.stats()
    return s["live_bytes"] + s["cached_bytes"]


def agree():
    """After each event of random programs, the committed pages are those that cygrad counts."""
    wrong, events = [], 0

    def look(event):
        nonlocal events
        events += 1
        if held() != witness.witness_committed(): wrong.append((event, held(), witness.witness_committed()))

    with cg.memory.events(look):
        for seed in range(int(sys.argv[2])):
            try: programs.run_kind(programs.Program(seed))
            except (programs.Boom, programs.Refused, cg.InplaceError, ValueError, MemoryError): pass
            if seed % 7 == 0: cg.memory.empty_cache()
            if seed % 5 == 0: cg.zeros(int(np.random.default_rng(seed).integers(1, 3_000_000)))
    assert not wrong, wrong[0]
    cg.memory.empty_cache()
    print(events, held(), witness.witness_committed())


def fail():
    """Each call that reserves, commits or decommits fails in a training step, alone or with all later ones. The next
    step equals that of a model that never failed."""
    persistent = int(sys.argv[2])
    parameters, step = trainer()
    twins, twin_step = trainer()
    step(), twin_step()
    failed = n = 0
    while True:
        n += 1
        values = [p.numpy().tobytes() for p in parameters.values()]
        cg.memory.empty_cache()
        before = cg.memory.stats()
        witness.witness_fail(n, persistent)
        done = False
        try:
            x = cg.empty(80 << 20, "uint8")         # too large for any segment
            del x
            cg.memory.empty_cache()                 # memory that it cannot give back is still counted
            with cg.memory.limit(held() + (1 << 20)):
                x, between = cg.zeros(100_000), cg.zeros(2000)
                del x
                x = cg.zeros(200_000)               # these need the pages of the first
                del x, between
                step()
            done = True
        except MemoryError as e:
            failed += 1
            assert "the system cannot provide a block" in str(e) or isinstance(e, cg.MemoryLimitError), e
            del e
            x = between = None
            assert [p.numpy().tobytes() for p in parameters.values()] == values
            after = cg.memory.stats()
            assert after["live_bytes"] == before["live_bytes"] and after["by_category"] == before["by_category"]
        calls = witness.witness_calls()
        witness.witness_fail(0, 0)
        assert held() == witness.witness_committed(), (held(), witness.witness_committed())
        if done:
            twin_step()
            for p, t in zip(parameters.values(), twins.values(), strict=True): assert (p.numpy() == t.numpy()).all()
            if calls < n: break
    print(n, failed, *map(witness.witness_failed, range(3)))


{"agree": agree, "fail": fail}[sys.argv[1]]()
