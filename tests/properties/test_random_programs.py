"""Random programs: with the garbage collector off, each ends without a live byte or buffer (M12). Each computes the
same as PyTorch or is refused.

CYGRAD_PROGRAMS is the number of programs (1000). The full run is
`CYGRAD_PROGRAMS=10000 python -m pytest tests/properties/test_random_programs.py`."""

import gc
import os

import numpy as np
import pytest
from programs import KINDS, MAKERS, WRITES, Boom, Program, Refused, reference, run

import cygrad as cg

COUNT = int(os.environ.get("CYGRAD_PROGRAMS", "1000"))
COMPARED = 6                                        # one in six is compared with PyTorch


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("kind", KINDS)
def test_every_program_ends_at_zero(kind, no_collector):
    rows, outcomes = set(), dict.fromkeys(("done", "boom", "memory", "refused"), 0)
    seeds = range(KINDS.index(kind), COUNT, len(KINDS))
    for seed in seeds:
        program = Program(seed)
        assert program.kind == kind and len(program.rows) >= 5
        rows |= program.rows
        try:
            run(program)
            outcome = "done"
        except Boom:
            outcome = "boom"
        except MemoryError as e:
            assert "fails on request" in str(e)
            outcome = "memory"
        except Refused:
            assert kind == "inplace", program
            outcome = "refused"
        outcomes[outcome] += 1
        stats = cg.memory.stats()
        assert stats["live_bytes"] == stats["live_buffers"] == stats["external_bytes"] == 0, (program, outcome, stats)
        assert not any(stats["by_category"].values()), (program, stats)
        assert not cg.is_recording() and not cg.is_training(), program
    if COUNT >= 300:
        assert rows >= set(MAKERS) and (kind != "inplace" or rows >= set(WRITES))
        least = len(seeds) // 10
        assert outcomes["done"] >= least or kind == "exception"
        assert kind != "inplace" or outcomes["refused"] >= least / 3, outcomes
        assert kind != "exception" or outcomes["boom"] >= least and outcomes["memory"] >= least, outcomes


@pytest.mark.parametrize("kind", ["create_graph", "inplace"])
def test_they_compute_what_pytorch_computes(kind):
    pytest.importorskip("torch")
    compared = refused = beyond = 0
    for seed in range(KINDS.index(kind), COUNT, len(KINDS)):
        if kind == "create_graph" and seed // 3 % (COMPARED // 2): continue
        program = Program(seed)
        try:
            loss, gradients = run(program)
        except Refused:
            refused += 1
            continue
        with np.errstate(all="ignore"):
            try:
                wanted, expected = reference(program)
            except RuntimeError:                    # overlapping writes, and PyTorch's own problems with size 0
                beyond += 1
                continue
        rtol, atol = (1e-5, 1e-5) if program.single else (1e-8, 1e-9)
        np.testing.assert_allclose(loss, wanted, rtol, atol, err_msg=repr(program))
        for i, (g, e) in enumerate(zip(gradients, expected, strict=True)):
            if g is None or e is None:              # None and a gradient of zeros are equivalent
                zero = g if g is not None else e
                assert zero is None or not zero.any(), (i, program)
                continue
            scale = max(1.0, np.abs(e).max(initial=0))
            np.testing.assert_allclose(g, e, rtol, atol * scale, err_msg=f"variable {i} of {program!r}")
        compared += 1
    assert compared >= refused / 4 and compared > 0 and beyond <= compared / 20, (compared, refused, beyond)
