"""Steps of random shapes leave no bytes behind: live, cached or resident (tests/support/steady.py).

CYGRAD_STEPS is the number of steps (10,000). `make test-all` takes 100,000, in six seconds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = int(os.environ.get("CYGRAD_STEPS", 10_000))


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_steps_of_random_shapes_hold_no_more_as_they_go_on():
    program = Path(__file__).parents[1] / "support" / "steady.py"
    environment = dict(os.environ)
    if "ASAN_OPTIONS" in environment: environment["ASAN_OPTIONS"] += ":quarantine_size_mb=1"   # it keeps freed blocks
    result = subprocess.run([sys.executable, program, str(STEPS)], text=True, capture_output=True, timeout=500,
                            env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    marks = [[int(n) for n in line.split()] for line in result.stdout.splitlines()]
    assert [m[0] for m in marks] == [STEPS * k // 100 for k in (1, 10, 25, 50, 75, 100)]
    settled, end = marks[1], marks[-1]
    parameters = 4 * (16 * 16 + 4 * 16 + 48 * 16 + 8 * 9)
    for _, resident, live, held, peak in marks[1:]:
        assert live == parameters
        assert held <= 1.35 * peak + (8 << 20) and held - settled[3] <= 1 << 20
        assert resident - settled[1] <= 512 << 10, marks    # 6 bytes per step for 100,000 steps
    assert end[4] > parameters


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_a_trainer_holds_no_more_as_it_goes_on():
    program = Path(__file__).parents[1] / "support" / "steady_trainer.py"
    result = subprocess.run([sys.executable, program, str(STEPS)], text=True, capture_output=True, timeout=500)
    assert result.returncode == 0, result.stderr[-3000:]
    marks = [[int(n) for n in line.split()] for line in result.stdout.splitlines()]
    assert [m[0] for m in marks] == [STEPS * k // 20 for k in range(1, 21)]
    settled, order = marks[1], 8 * 8 * STEPS // 20          # the order of the next epoch may have been drawn already
    batch = 8 * (4 + 1) * 4                                 # of one more slot, if the thread was ahead some time
    least = min(live for _, _, live in marks)
    assert {live - least for _, _, live in marks} <= {0, order, batch, order + batch}, marks
    if "ASAN_OPTIONS" not in os.environ: assert marks[-1][1] - settled[1] <= 512 << 10, marks
