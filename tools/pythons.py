"""Build and test cygrad with the other versions of Python in pyproject.toml: python tools/pythons.py [TESTS ...]

Each version has a copy of the tree, out/python3.N/cygrad, with an environment and compiled files of its own. The C
files are those of this tree's build, because Cython writes the same for all versions; so build this tree first. TESTS
are arguments of pytest; without them all tests run, as `make test` does. Tests that need PyTorch skip: its packages for
some versions have several gigabytes. With CYGRAD_QUICK=1 the last version that is found has the checks of
CYGRAD_DEBUG=1 too, so that they see the tests.

An interpreter is python3.N on the PATH, or one of pyenv's. A version without one is named at the end. The status is 1
if a build or a test has failed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WITHOUT = "torch expecttest"
BUILT = ("*.so", "__pycache__", ".git", ".venv", "build", "out", "dist", "*.egg-info")


def claimed():
    """The versions of the classifiers, such as "3.12"."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return [version for line in lines for version in re.findall(r"^Programming Language :: Python :: (3\.\d+)$", line)]


def interpreter(version):
    """The path of a Python of this version that can make an environment, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    found = sorted(pyenv.glob(f"{version}.*/bin/python{version}"), key=lambda path: (len(str(path)), path))
    for python in filter(None, [shutil.which(f"python{version}"), *reversed(found)]):       # (3.12.10 before 3.12.9)
        ready = subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True)   # (a shim may only fail)
        if ready.returncode == 0: return python
    return None


def copy(target):
    """Copy the sources of this tree. A file that has not changed keeps its time, so it is not compiled again."""
    if (target / "cygrad").exists():                # what has been deleted here must not stay there
        for path in (target / "cygrad").rglob("*.p*"):
            if path.is_file() and not (ROOT / path.relative_to(target)).exists(): path.unlink()
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*BUILT), dirs_exist_ok=True)


def share(target, debug):
    """Copy the C files that are newer here than there; with `debug` none of kernels, which check bounds then. Their
    times are now: Cython writes a file again if it is older than the .pxd files of the environment's Cython."""
    ours = ROOT / "build" / "cython"
    theirs = target / "build" / ("cython-debug" if debug else "cython")
    for path in ours.rglob("*"):
        there = theirs / path.relative_to(ours)
        if path.is_dir() or there.exists() and there.stat().st_mtime >= path.stat().st_mtime: continue
        if debug and "kernels" in path.parts: continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)


def build_and_test(version, python, tests, debug):
    """Returns whether all commands succeeded."""
    target = ROOT / "out" / f"python{version}" / "cygrad"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    environment.pop("PYTHONPATH", None)
    environment["CYGRAD_LEVELS"] = "baseline native"        # some tests select the baseline
    if debug: environment["CYGRAD_DEBUG"] = "1"

    def make(*arguments):
        command = ["make", *arguments, f"PYTHON={python}", "VENV=.venv", f"WITHOUT={WITHOUT}"]
        return subprocess.run(command, cwd=target, env=environment).returncode == 0

    copy(target)
    if not make(".venv/has-build"): return False
    share(target, debug)
    return make("--jobs=2", ".venv/has-test", ".venv/built") and make("test", f"TESTS={shlex.join(tests)}")


def main():
    wanted = [version for version in claimed() if version != f"{sys.version_info[0]}.{sys.version_info[1]}"]
    found = {version: interpreter(version) for version in wanted}
    failed, tried = [], [version for version, python in found.items() if python is not None]
    for version in tried:
        python, start = found[version], time.monotonic()
        debug = bool(os.environ.get("CYGRAD_QUICK")) and version == tried[-1]
        print(f"== Python {version}{', debug build' if debug else ''}: {python}", flush=True)
        if not build_and_test(version, python, sys.argv[1:], debug): failed.append(version)
        print(f"== Python {version}: {'failed' if version in failed else 'passed'}, {time.monotonic() - start:.0f} s",
              flush=True)
    for version, python in found.items():
        if python is None: print(f"== NO Python {version} was found: nothing was tried with it")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
