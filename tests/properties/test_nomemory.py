"""Python's own allocations fail, one after the other (tests/support/nomemory.py, each case in a process of its own)."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("_testcapi", reason="this Python cannot fail an allocation on request")
from nomemory import WORK


@pytest.mark.parametrize("name", WORK)
def test_every_allocation_of_python_can_fail(name):
    script = Path(__file__).parents[1] / "support" / "nomemory.py"
    result = subprocess.run([sys.executable, script, name], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-2000:]
