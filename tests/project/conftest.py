"""Before the tests are collected, what is generated and not in git is written again if a source is newer: the stubs of
modules that are not public, and the pages of docs/ that test_docs.py reads like any other."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAMP = ROOT / "build" / "generated"                # as in the Makefile


def stale():
    if not STAMP.exists(): return True
    sources = (path for folder in ("cygrad", "tools", "tests/samples") for path in (ROOT / folder).rglob("*"))
    return any(path.suffix in (".py", ".so") and path.stat().st_mtime > STAMP.stat().st_mtime for path in sources)


if stale():
    for command in (["make_stubs.py", "--build"], ["make_docs.py", "--build"]):
        subprocess.run([sys.executable, ROOT / "tools" / command[0], *command[1:]], check=True)
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.touch()
