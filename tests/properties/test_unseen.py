"""No byte of tensor data is outside the counters: tests/support/unseen.py counts malloc's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from unseen import CASES, N, build

from cygrad.ops import TABLE

LITTLE = 16 << 10               # Python's objects, NumPy's iterators
BLOCKS = 136 << 10              # two of NumPy's buffers of 8192 elements, whatever the size of a tensor
IN_BLOCKS = {
    "add of transposed": "NumPy walks integers that lie in another order than the result block by block",
    "neg of transposed": "the same",
    "maximum of transposed": "the same",
    "pow": "NumPy casts bools to integers block by block",
    "power": "the same",
    "square": "the same",
    "floor_divide": "the same",
    "remainder": "the same",
    "arange": "arange computes a block at a time",
    "linspace": "so does linspace",
}
# What NumPy and SciPy compute, in workspace of their own.
OUTSIDE = {"eig", "eigvals", "expm", "logm", "sqrtm"}
BY_OTHERS = {"dropout_with", "dropout_identity"}       # rows that another row's function calls


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("another library is preloaded")
    path = str(tmp_path_factory.mktemp("unseen") / "unseen.so")
    reason = build(path)
    if reason:
        pytest.skip(f"the counter of malloc cannot be built: {reason}")
    script = Path(__file__).parents[1] / "support" / "unseen.py"
    # With the BLAS kernels of this CPU: those of another one might take no memory.
    # One thread of it: two that wait for each other, on CPUs that run other tests, take minutes for an eig().
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    result = subprocess.run([sys.executable, "-W", "ignore", script], env=environment | {"LD_PRELOAD": path},
                            capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-2000:]
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_no_operation_takes_memory_past_the_pool(counts):
    assert BLOCKS < N                               # one byte per element would be detected
    too_much = []
    for name, dtype, found in counts:
        for when, nbytes in found.items():
            if nbytes > (BLOCKS if name in IN_BLOCKS else LITTLE) and name.split()[0] not in OUTSIDE:
                too_much.append(f"{name} of {dtype}, {when}: {nbytes:,} bytes")
    assert not too_much, "\n".join(too_much)


def test_the_counter_counts(counts):
    """The allowances are needed. A larger one would hide an allocation."""
    most = {}
    for name, _, found in counts:
        most[name] = max(most.get(name, 0), *found.values(), 0)
    allowed = [name for name in most if name in IN_BLOCKS or name.split()[0] in OUTSIDE]
    assert [name for name in allowed if most[name] <= LITTLE] == []


def test_every_operator_is_measured(counts):
    names = {case.name.split()[0] for case in CASES}
    assert {row.name for row in TABLE} - names == BY_OTHERS
    measured = {name for name, _, found in counts if found}
    assert {case.name for case in CASES} - measured == set()
