"""The package as users install it: sdist, wheel, editable install, extensions that cimport cygrad, builds with
switches.

Tests that build all of cygrad are slow. One builds the sdist from nothing, without optimization (two minutes on two
cores). The wheel and the other builds start from the files of this tree's build (share), which has the flags of
CYGRAD_WERROR, and report which files they compile."""

import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import cygrad as cg

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1_000_000
SOURCES = ["setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md", "cygrad", "include", "tools"]
SWITCHES = ("CYGRAD_DEBUG", "CYGRAD_NO_OPENMP", "CYGRAD_ASAN", "CYGRAD_WERROR", "CYGRAD_SYMBOLS", "CYGRAD_QUICK",
            "CYGRAD_LEVELS")
WARNINGS = {"CYGRAD_WERROR": os.environ.get("CYGRAD_WERROR", "")}         # as this tree was built
ONE_LEVEL = {"CYGRAD_LEVELS": "", **WARNINGS}       # for builds in which kernels of other levels would only take time

TRAIN = """\
import sys, warnings
warnings.simplefilter("error")
import numpy as np
import cygrad as cg
x = cg.tensor(np.random.default_rng(0).normal(size=(32, 3)), dtype=cg.float32)
y = x @ cg.tensor([[1.0], [-2.0], [0.5]])
w = cg.zeros((1, 3)).attach_grad()
solver = cg.optim.Adam(alpha=0.1)
solver.set_parameters({"w": w})
for _ in range(200):
    with cg.record():
        loss = ((cg.linear(x, w) - y) ** 2).mean()
    loss.backward()
    solver.update()
assert float(loss) < 1e-4, float(loss)
foreign = {m.partition(".")[0] for m in sys.modules} & {"torch", "sklearn", "matplotlib", "tqdm", "pytest"}
assert not foreign, foreign
print(cg.__file__)
"""

# An operator in a package of its own, with attributes.
CUBE = """\
# cython: language_level=3, cdivision=True
from libc.stdint cimport uint64_t

from cygrad.core.execute.run cimport apply1
from cygrad.core.graph.attributes cimport Attributes
from cygrad.core.graph.operator cimport Call, Operator
from cygrad.core.store cimport layout as lay
from cygrad.kernels.array cimport FLOAT32
from cygrad.kernels.driver cimport gather


cdef class Factor(Attributes):
    cdef readonly double factor

    def __cinit__(self, double factor):
        self.factor = factor


cdef class Cube(Operator):
    '''y = a x^3, a a number        dx = 3 a g x^2'''

    def __cinit__(self):
        self.name = "cube"
        self.promotes = self.promotes_to_float = self.differentiable = True

    cdef int infer(self, Call* c) except -1 nogil:
        c.y[0].dtype = c.x[0].dtype
        c.y[0].layout = lay.dense_like(c.x[0].layout)
        return 0

    cdef int forward(self, Call* c) except -1 nogil:
        cdef Py_ssize_t i, n = c.y[0].layout.size
        cdef float* f = <float*>c.y[0].data
        cdef double* d = <double*>c.y[0].data
        cdef double a = (<Factor>c.attributes).factor
        gather(c.y[0].data, &c.x[0], 0, n)
        if c.y[0].dtype == FLOAT32:
            for i in range(n): f[i] = <float>a * f[i] * f[i] * f[i]
        else:
            for i in range(n): d[i] = a * d[i] * d[i] * d[i]
        return 0

    cdef uint64_t keeps(self, const Call* c, uint64_t wanted) noexcept nogil:
        return 1

    cdef object formula(self, c, int i, g):
        return 3 * c.attributes.factor * g * c.input(0) * c.input(0)


cdef Operator CUBE = Cube()

def cube(x, a):
    return apply1(CUBE, x, Factor(a))
"""

CUBE_SETUP = """\
import cygrad
from Cython.Build import cythonize
from setuptools import Extension, setup
setup(ext_modules=cythonize([Extension("cube", ["cube.pyx"], include_dirs=[cygrad.get_include()])]))
"""

CUBE_RUN = """\
import cube, cygrad as cg
x = cg.tensor([[1.0, 2.0], [3.0, -1.0]]).attach_grad()
with cg.record():
    y = cube.cube(x.T, 2)
assert y.tolist() == [[2.0, 54.0], [16.0, -2.0]], y
y.backward()
assert x.grad.tolist() == [[6.0, 24.0], [54.0, 6.0]], x.grad
with cg.record():
    (g,) = cg.autograd.grad([cube.cube(x, 1)], [x], create_graph=True)
assert cg.autograd.grad(g, x).tolist() == [[6.0, 12.0], [18.0, -6.0]]
"""


def run(*command, cwd, **environment):
    """Run a command without our switches and PYTHONPATH. Returns the output; if it fails, the test fails with it."""
    inherited = {k: v for k, v in os.environ.items() if k not in (*SWITCHES, "PYTHONPATH")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=inherited | environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def copy_sources(target):
    """The files that a build reads, without built or generated ones."""
    target.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy(ROOT / name, target / name)
    for stub in (target / "cygrad").glob("*/**/*.pyi"):
        if stub.stem != "__init__": stub.unlink()
    return target


def share(built, target):
    """Copy the files of a build of the same sources: C files, then object files, but no bundles. Their times are now,
    so they are newer than the .pxd files of a Cython that was installed in between."""
    for pattern in ("cython", "temp.*"):
        for found in built.joinpath("build").glob(pattern):
            shutil.copytree(found, target / "build" / found.name, copy_function=shutil.copyfile)
    return target


def compiled(output):
    """The modules, by the last part of their names, whose C files were compiled according to the output of a build."""
    return sorted(re.findall(r"^.* -c build/cython\S*/(\w+)\.c .*$", output, re.M))


def environment(path):
    """A fresh virtual environment; its Python."""
    run(sys.executable, "-m", "venv", path, cwd=path.parent)
    return path / "bin" / "python"


def pip(python, *arguments, cwd, **environment):
    return run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments, cwd=cwd,
               **environment)


def build_cube(python, where):
    """Build and run an extension that cimports cygrad, using only the environment of `python`."""
    where.mkdir()
    for name, text in {"cube.pyx": CUBE, "setup.py": CUBE_SETUP, "run.py": CUBE_RUN}.items():
        (where / name).write_text(text)
    run(python, "setup.py", "--quiet", "build_ext", "--inplace", cwd=where)
    run(python, "-W", "error", "run.py", cwd=where)


# ---- the files of the tree -------------------------------------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_run_time_needs_numpy_only():
    names = {re.match(r"[\w-]+", need)[0] for need in PROJECT["project"]["dependencies"]}
    assert names == {"numpy"}
    assert PROJECT["project"]["optional-dependencies"]["linalg"] == ["scipy>=1.13"]


def test_the_version_is_said_once():
    """pyproject.toml and the site read it. What has to name it too agrees: the citation, the newest release of the
    change log, with the same date, and the example that is built against this minor release."""
    assert "version" in PROJECT["project"]["dynamic"] and re.fullmatch(r"\d+\.\d+\.\d+", cg.__version__)
    cited = dict(re.findall(r"^([\w-]+): (.+)$", (ROOT / "CITATION.cff").read_text(), re.M))
    releases = re.findall(r"^## (\d\S+)(?: \((\S+)\))?$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert releases[0] == (cg.__version__, cited["date-released"]) and cited["version"] == cg.__version__
    assert cited["license"] == PROJECT["project"]["license"]
    minor = int(cg.__version__.split(".")[1])
    example = tomllib.loads((ROOT / "examples" / "cython_operator" / "pyproject.toml").read_text())
    assert [f"cygrad>=0.{minor},<0.{minor + 1}"] == example["project"]["dependencies"]
    assert example["project"]["dependencies"][0] in example["build-system"]["requires"]
    policy = (ROOT / "docs" / "versions.md").read_text()
    assert policy.count(f'"cygrad>=0.{minor},<0.{minor + 1}"') == 2 and f"for {cg.__version__} this was" in policy


def test_the_page_of_versions_says_what_is_needed_and_what_may_be_cimported():
    """The modules that its table lists are those that the example cimports."""
    policy = (ROOT / "docs" / "versions.md").read_text()
    assert f"`{PROJECT['project']['dependencies'][0]}`" in policy
    example = "".join(path.read_text() for path in (ROOT / "examples" / "cython_operator").glob("*.pyx"))
    listed = re.findall(r"^\| `(cygrad\S+)` \|", policy, re.M)
    assert set(re.findall(r"^from (cygrad\S+) cimport", example, re.M)) == set(listed) and len(listed) > 5


@pytest.fixture
def pythons(monkeypatch):
    """tools/pythons.py."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("pythons")


def test_the_versions_of_python_that_are_claimed_are_tried(pythons):
    """pyproject.toml names them, README and the page of versions say them, and .ci/run tests the first with `make test`
    and the others with `make pythons`."""
    first, *others = pythons.claimed()
    assert PROJECT["project"]["requires-python"] == f">={first}" and len(others) == 2
    script = ROOT / ".ci" / "run"
    for page, after in (("README.md", " and needs "), ("docs/versions.md", ": ")):
        text = " ".join((ROOT / page).read_text().split())
        assert f" with Python {', '.join([first, *others[:-1]])} and {others[-1]}{after}" in text
        assert not re.findall(r"Python 3\.\d+ (?:to|-) 3", text)
    steps = r"^step test .* make test$.*^step pythons .* make pythons "
    assert not script.exists() or re.search(steps, script.read_text(), re.M | re.S)     # (the sdist has none)


def test_the_workflow_builds_the_versions_that_are_claimed(pythons):
    workflow = ROOT / ".github" / "workflows" / "wheels.yml"
    if not workflow.exists(): pytest.skip("the sdist has no workflow")
    wanted = " ".join(f"cp{version.replace('.', '')}-*" for version in pythons.claimed())
    assert re.findall(r"CIBW_BUILD: (.*)", workflow.read_text()) == [wanted]


def test_an_interpreter_that_cannot_make_an_environment_is_passed_over(pythons, tmp_path, monkeypatch):
    """pyenv has a python3.N on the PATH that only prints which versions it could start."""
    shim = tmp_path / "python3.98"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert pythons.interpreter("3.98") is None
    for patch in ("3.98.2", "3.98.10"):
        there = tmp_path / "pyenv" / "versions" / patch / "bin" / "python3.98"
        there.parent.mkdir(parents=True)
        there.symlink_to(sys.executable)
    assert pythons.interpreter("3.98") == there


def test_requirements_without_some_packages():
    def listed(*arguments):
        return subprocess.run([sys.executable, ROOT / "tools" / "requirements.py", *arguments], text=True, check=True,
                              capture_output=True).stdout.split("\n")

    needs = PROJECT["project"]["optional-dependencies"]["test"]
    left_out = {*listed("test")} - {*listed("test", "torch", "expecttest")}
    assert left_out == {need for need in needs if need.startswith(("torch", "expecttest"))} and len(left_out) == 2
    assert {need.partition(">")[0] for need in listed("build") if need} == {"setuptools", "cython"}


def test_get_include_has_the_headers():
    assert Path(cg.get_include(), "cygrad", "platform.h").is_file()


def test_an_extension_builds_against_this_tree(tmp_path):
    (tmp_path / "path").mkdir()
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    build_cube(wrapper, tmp_path / "cube")


# ---- missing prerequisites -------------------------------------------------------------------------------------------

def machine(tmp_path, python=sys.executable, **environment):
    return subprocess.run(["/bin/sh", ROOT / "tools" / "machine.sh", python], capture_output=True, text=True,
                          cwd=tmp_path, env={"PATH": os.environ["PATH"]} | environment)


def fake_python(tmp_path, change):
    """A modified Python: `change` runs before the given code."""
    path = tmp_path / "python-fake"
    path.write_text(f"""#!/bin/sh
[ "$1" = -c ] || exec "{sys.executable}" "$@"
exec "{sys.executable}" -c '{change}
exec(__import__("sys").argv.pop(1))' "$2"
""")
    path.chmod(0o755)
    return path


def test_a_machine_that_has_all_is_told_nothing(tmp_path):
    done = machine(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("change, says", [
    ("import sys; sys.version_info = (3, 10)", r"cygrad needs Python 3.11 or newer: make PYTHON="),
    ("import sys; sys.modules[\"venv\"] = None", r"has no venv module; .* apt install python3-venv"),
    ("import sysconfig; sysconfig.get_path = lambda _: \"/nowhere\"", r"there is no /nowhere/Python.h; .* python3-dev"),
])
def test_what_python_lacks_is_said_in_one_line(change, says, tmp_path):
    done = machine(tmp_path, fake_python(tmp_path, change))
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert re.search(rf"^cygrad: .*{says}", done.stderr), done.stderr


@pytest.mark.parametrize("environment, says", [
    (dict(CC="no-such-compiler"), "there is no C compiler no-such-compiler; install one"),
    (dict(CC="false"), "false cannot compile a file that includes Python.h"),
])
def test_a_compiler_that_lacks_is_said_in_one_line(environment, says, tmp_path):
    done = machine(tmp_path, **environment)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr


def test_no_python_is_said_in_one_line(tmp_path):
    done = machine(tmp_path, "no-such-python")
    assert done.returncode == 1 and done.stderr.startswith("cygrad: there is no no-such-python; install Python 3.11")


LEVELS = ("baseline", "avx2", "avx512") if platform.machine() == "x86_64" else ("baseline",)


# ---- switches, on a package of one module ----------------------------------------------------------------------------

GOOD = "def f(int x): return x + 1\n"
POINTER = "def f(int x):\n    cdef int *p, q = 1\n    return q\n"
VERBATIM = """\
cdef extern from *:
    '''
    static int g(int n, unsigned m) { %s; }
    '''
    int g(int n, unsigned m)
def f(int x): return g(x, 1)
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Our setup.py with a package that builds in seconds: a function that builds `source` with switches and returns the
    exit status, the output and the built bytes."""
    return tiny_package(tmp_path_factory.mktemp("tiny"))


def tiny_package(where):
    shutil.copy(ROOT / "setup.py", where / "setup.py")
    shutil.copytree(ROOT / "include", where / "include")
    (where / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "structure.py", where / "tools")
    (where / "cygrad" / "kernels").mkdir(parents=True)
    (where / "cygrad" / "__init__.py").touch()
    shutil.copy(ROOT / "cygrad" / "bundle.c", where / "cygrad" / "bundle.c")
    module = where / "cygrad" / "tiny.pyx"

    def build(source, **switches):
        if not module.exists() or module.read_text() != source: module.write_text(source)
        inherited = {k: v for k, v in os.environ.items() if k not in (*SWITCHES, "PYTHONPATH")}
        done = subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=where, text=True,
                              env=inherited | switches, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        built = next((where / "cygrad").glob("_modules.*.so"), None)
        return done.returncode, done.stdout, built and built.read_bytes()

    return build


@pytest.mark.slow
def test_other_switches_compile_again_and_the_same_do_not(tiny):
    status, output, release = tiny(GOOD)
    assert status == 0 and " -c " in output, output
    status, output, again = tiny(GOOD)
    assert status == 0 and " -c " not in output and again == release, output
    status, output, debug = tiny(GOOD, CYGRAD_DEBUG="1")
    assert status == 0 and " -DCYGRAD_DEBUG=1" in output and debug != release, output
    status, output, quick = tiny(GOOD, CYGRAD_QUICK="1")
    assert status == 0 and " -O0" in output and quick != release, output
    status, output, back = tiny(GOOD)
    assert status == 0 and " -c " in output and back == release, output


@pytest.mark.slow
def test_warnings_as_errors_translate_again_once(tiny):
    """Cython repeats its warnings only when it translates. `make demo && make build` must not do all the work twice."""
    assert tiny(POINTER)[0] == 0
    status, output, _ = tiny(POINTER, CYGRAD_WERROR="1")
    assert status != 0 and "Non-trivial type declarators" in output, output
    assert tiny(GOOD, CYGRAD_WERROR="1")[0] == 0
    status, output, _ = tiny(GOOD, CYGRAD_WERROR="1")
    assert status == 0 and " -c " not in output, output


@pytest.mark.slow
@pytest.mark.parametrize("source, says", [
    (POINTER, "Non-trivial type declarators"),                                                  # Cython
    (VERBATIM % "int k; return n + m", "-Werror=unused-variable"),                              # C, -Wall
    (VERBATIM % "return n < m", "-Werror=sign-compare"),                                        # C, -Wextra
])
def test_warnings_end_the_build_where_they_are_errors(source, says, tiny):
    status, output, _ = tiny(source, CYGRAD_WERROR="1")
    assert status != 0 and says in output, output


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are for x86-64")
def test_a_level_that_there_is_not_ends_the_build(tiny):
    status, output, _ = tiny(GOOD, CYGRAD_LEVELS="avx2,avx3")
    assert status == 1
    assert output == ("CYGRAD_LEVELS is 'avx2,avx3'; the levels that can be built are baseline, avx2, avx512, and "
                      "native\n")


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are for x86-64")
def test_levels_are_built_one_beside_the_other(tmp_path):
    """`make demo` builds only the level of this machine, `make test` adds the others, and no level stays whose kernels
    come from another build."""
    build = tiny_package(tmp_path)
    kernels = tmp_path / "cygrad" / "kernels"
    (kernels / "__init__.py").touch()
    (kernels / "loop.pyx").write_text("def g(int x): return x + 1\n")

    def levels(source=GOOD, **switches):
        status, output, _ = build(source, **switches)
        assert status == 0, output
        return {file.name.partition(".")[0][1:] for file in kernels.glob("_*.so")}, compiled(output)

    best = cg.show_config(mode="dicts")["Machine"]["instruction level"]
    assert levels(CYGRAD_LEVELS="native") == ({best}, ["_cyutility", "loop", "tiny"])
    assert levels(CYGRAD_LEVELS="native") == ({best}, [])
    assert levels() == (set(LEVELS), ["loop"] * 2)
    assert levels(CYGRAD_LEVELS="native") == (set(LEVELS), [])
    assert levels(CYGRAD_LEVELS="avx2") == ({"baseline", "avx2"}, [])
    (kernels / "loop.pyx").write_text("def g(int x): return x + 2\n")
    assert levels(CYGRAD_LEVELS="native")[1] == ["loop"] * len({"baseline", "avx2", best})
    assert levels(CYGRAD_DEBUG="1") == ({"baseline"}, ["_cyutility", "loop", "tiny"])


# ---- the whole package -----------------------------------------------------------------------------------------------

def unpacked(sdist, where):
    """The directory of the files of an sdist."""
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}             # Python 3.11.4
    with tarfile.open(sdist) as archive: archive.extractall(where, **safely)
    directory, = where.iterdir()
    return directory


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist of this tree, the wheel built from that sdist, and the directory of the build."""
    where = tmp_path_factory.mktemp("distributions")
    source = copy_sources(where / "source")
    hook = "import setuptools.build_meta as b, sys; print(getattr(b, sys.argv[1])(sys.argv[2]))"
    run(sys.executable, "-c", hook, "build_sdist", where, cwd=source)
    sdist = next(where.glob("*.tar.gz"))
    directory = share(ROOT, unpacked(sdist, where / "unpacked"))
    run(sys.executable, "-c", hook, "build_wheel", where, cwd=directory, **WARNINGS)
    return sdist, next(where.glob("*.whl")), directory


@pytest.mark.slow
def test_the_sdist_has_the_sources_and_nothing_generated(distributions):
    sdist, _, _ = distributions
    assert sdist.stat().st_size < 3 * MEGABYTE
    with tarfile.open(sdist) as archive: names = {name.partition("/")[2] for name in archive.getnames()}
    kinds = (".py", ".pyx", ".pxd")
    wanted = {str(p.relative_to(ROOT)) for p in (ROOT / "cygrad").rglob("*.p*") if p.suffix in kinds}
    wanted |= {str(p.relative_to(ROOT)) for p in (ROOT / "include").rglob("*.h")}
    wanted |= {str(p.relative_to(ROOT)) for p in (ROOT / "cygrad").rglob("__init__.pyi")}
    assert wanted | {"setup.py", "pyproject.toml", "LICENSE", "README.md", "cygrad/py.typed"} <= names
    assert [name for name in names if name.endswith(".c")] == ["cygrad/bundle.c"]
    assert not [name for name in names if name.endswith((".so", ".o")) or name.startswith("build")]


@pytest.mark.slow
def test_the_sdist_builds_from_nothing_and_trains(distributions, tmp_path):
    source = unpacked(distributions[0], tmp_path / "unpacked")
    output = run(sys.executable, "setup.py", "build_ext", "--inplace", cwd=source, CYGRAD_LEVELS="", CYGRAD_QUICK="1")
    assert set(compiled(output)) == {path.stem for path in source.joinpath("cygrad").rglob("*.pyx")} | {"_cyutility"}
    assert ("-fopenmp" in output) is (sys.platform == "linux")
    (tmp_path / "train.py").write_text(TRAIN)
    assert run(sys.executable, tmp_path / "train.py", cwd=source, PYTHONPATH=str(source)).startswith(str(source))


@pytest.mark.slow
def test_the_wheel_is_small_and_whole(distributions):
    _, wheel, _ = distributions
    assert wheel.stat().st_size < 9 * MEGABYTE
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modules = {name: archive.read(name) for name in names if name.endswith(".so")}
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    bundles = {"cygrad/_modules", *(f"cygrad/kernels/_{level}" for level in LEVELS)}
    assert {name.partition(".")[0] for name in modules} == bundles
    for name, content in modules.items(): assert b".debug_info" not in content, f"{name} has debug info"
    for kind in ("*.pxd", "*.pyi", "*.py"):
        assert {str(p.relative_to(ROOT)) for p in (ROOT / "cygrad").rglob(kind)} <= names
    headers = {f"cygrad/include/{p.relative_to(ROOT / 'include')}" for p in (ROOT / "include").rglob("*.h")}
    assert headers | {"cygrad/py.typed"} <= names
    assert not [name for name in names if name.endswith((".c", ".pyx", ".o"))]
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"cygrad"}
    assert re.findall(r"^Requires-Dist: ((?!.*extra).*)$", metadata, re.M) == ["numpy>=2.0"]
    assert 'Requires-Dist: scipy>=1.13; extra == "linalg"' in metadata
    assert "License-Expression: Apache-2.0" in metadata and f"Version: {cg.__version__}" in metadata


@pytest.mark.slow
def test_an_installed_wheel_trains_and_can_be_cimported(distributions, tmp_path):
    _, wheel, _ = distributions
    python = environment(tmp_path / "venv")
    pip(python, wheel, cwd=tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    assert run(python, "train.py", cwd=tmp_path).startswith(str(tmp_path / "venv"))
    found = run(python, "-c", "import cygrad; print(cygrad.get_include())", cwd=tmp_path)
    assert found.strip().endswith("site-packages/cygrad/include")
    listed = run(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check", cwd=tmp_path)
    names = {line.partition("==")[0] for line in listed.split()}
    assert names - {"pip", "setuptools"} == {"cygrad", "numpy"}
    run(python, "-c", "import cygrad as cg; x = cg.eye(3) * 2; assert cg.svdvals(cg.inv(x)).tolist() == [0.5] * 3",
        cwd=tmp_path)
    pip(python, *PROJECT["build-system"]["requires"], cwd=tmp_path)
    build_cube(python, tmp_path / "cube")


@pytest.mark.slow
def test_the_example_of_an_operator_builds_against_the_installed_wheel(distributions, tmp_path):
    """examples/cython_operator is built by pip without a warning and passes its tests. A kernel name that is in use and
    memoryviews of another size raise errors."""
    _, wheel, _ = distributions
    python = environment(tmp_path / "venv")
    pip(python, wheel, *PROJECT["build-system"]["requires"], "pytest", cwd=tmp_path)
    example = tmp_path / "example"
    shutil.copytree(ROOT / "examples" / "cython_operator", example,
                    ignore=shutil.ignore_patterns("*.so", "*.c", "build", "*.egg-info", "__pycache__"))
    output = run(python, "-m", "pip", "install", "-v", "--disable-pip-version-check", "--no-build-isolation", ".",
                 cwd=example, CFLAGS="-Wall -Wextra -Werror -Wno-unused-function")
    assert "-Werror" in output and not re.search(r"warning: \S+\.p(yx|xd)", output), output
    found = run(python, "-c", "import cygrad_log_cosh as m, cygrad; print(m.__file__, cygrad.__file__)", cwd=tmp_path)
    assert found.count(str(tmp_path / "venv")) == 2
    tested = run(python, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=example)
    assert re.search(r"^\d+ passed", tested, re.M), tested
    source, setup = example / "cygrad_log_cosh.pyx", example / "setup.py"
    source.write_text(source.read_text().replace('register("log_cosh"', 'register("exp"'))
    run(python, "setup.py", "--quiet", "build_ext", "--inplace", cwd=example)
    with pytest.raises(AssertionError, match="ValueError: there is already a kernel named 'exp'; give yours"):
        run(python, "-c", "import cygrad_log_cosh", cwd=example)
    (example / "cygrad_log_cosh.c").unlink()
    setup.write_text(re.sub(r"^Options\..*\n", "", setup.read_text(), flags=re.M))
    with pytest.raises(AssertionError, match="set Cython.Compiler.Options.buffer_max_dims = 3 in setup.py"):
        run(python, "setup.py", "build_ext", "--inplace", "--force", cwd=example)


@pytest.mark.slow
def test_an_editable_install_follows_the_tree_and_can_be_cimported(distributions, tmp_path):
    python = environment(tmp_path / "venv")
    pip(python, *PROJECT["build-system"]["requires"], cwd=tmp_path)
    source = share(distributions[2], copy_sources(tmp_path / "source"))
    output = run(python, "-m", "pip", "install", "-v", "--disable-pip-version-check", "--no-build-isolation",
                 "--editable", source, cwd=tmp_path, **ONE_LEVEL)
    assert "bundle.c" in output and compiled(output) == [], output
    (tmp_path / "train.py").write_text(TRAIN)
    assert run(python, "train.py", cwd=tmp_path).startswith(str(source))
    with open(source / "cygrad" / "__init__.py", "a") as file: file.write('\nadded = "since the install"\n')
    assert "since the install" in run(python, "-c", "import cygrad; print(cygrad.added)", cwd=tmp_path)
    build_cube(python, tmp_path / "cube")


@pytest.mark.slow
def test_a_build_without_openmp_trains(distributions, tmp_path):
    """(tools/pythons.py tries the debug build.)"""
    source = share(distributions[2], copy_sources(tmp_path / "source"))
    output = run(sys.executable, "setup.py", "build_ext", "--inplace", cwd=source, **ONE_LEVEL, CYGRAD_NO_OPENMP="1")
    assert set(compiled(output)) == {"config", "threads"} and "-fopenmp" not in output, output
    (tmp_path / "train.py").write_text(TRAIN)
    assert run(sys.executable, tmp_path / "train.py", cwd=source, PYTHONPATH=str(source)).startswith(str(source))


def test_compiled_modules_are_named_for_this_python():
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert (ROOT / "cygrad" / f"_modules{suffix}").exists()
