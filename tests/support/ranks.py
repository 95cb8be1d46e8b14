"""Programs on several ranks, started by mpiexec."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent.parent / "comm" / "programs"
needs_mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")


def start(n, *program, timeout=60, **environment):
    """Run `python program` on n ranks, each with one thread. A job that does not end is an error."""
    mpiexec = Path(sys.executable).with_name("mpiexec")     # not the resolved path: that of the virtual environment
    return subprocess.run(
        [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(n), sys.executable, *map(str, program)],
        capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
        env=os.environ | {"CYGRAD_NUM_THREADS": "1", "PYTHONWARNINGS": "error"} | environment)


def checks(name, n, **environment):
    """Run all checks of a program on n ranks. Each must print its name once."""
    done = start(n, PROGRAMS / f"{name}.py", **environment)
    assert done.returncode == 0, f"{name} on {n} ranks:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    assert not done.stderr, done.stderr
    wanted = [line[4:].partition("(")[0] for line in (PROGRAMS / f"{name}.py").read_text().splitlines()
              if line.startswith("def check_")]
    assert done.stdout.split() == wanted
