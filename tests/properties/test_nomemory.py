"""Python's own allocations fail, one after the other (tests/support/nomemory.py). Each case has a process of its own,
except for scopes, which take less time than an import."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("_testcapi", reason="this Python cannot fail an allocation on request")
from nomemory import WORK

SCOPES = [name for name in WORK if name.startswith(("with ", "raising in "))]


@pytest.mark.parametrize("names", [SCOPES, *[[name] for name in WORK if name not in SCOPES]],
                         ids=lambda names: names[0] if len(names) == 1 else "scopes")
def test_every_allocation_of_python_can_fail(names):
    script = Path(__file__).parents[1] / "support" / "nomemory.py"
    result = subprocess.run([sys.executable, script, *names], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout[-100:] + result.stderr[-2000:]
    assert result.stdout.count("\n") == len(names)
