"""The shared objects with the compiled modules: their contents, and which are opened."""

import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import cygrad as cg
from cygrad import _modules, bundles
from cygrad.kernels import cpu, driver

PACKAGE = Path(cg.__file__).parent
MODULES = sorted(".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts) for p in PACKAGE.rglob("*.pyx"))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_in_a_bundle(name):
    module = importlib.import_module(name)
    spec = module.__spec__
    assert module.__name__ == spec.name == name and isinstance(spec.loader, bundles.Bundle)
    assert module.__file__ == spec.origin and os.path.exists(module.__file__)
    kernel = name.startswith("cygrad.kernels.") and name != "cygrad.kernels.cpu"
    wanted = f"kernels/_{driver.level()}" if kernel else "_modules"
    assert module.__file__.removeprefix(f"{PACKAGE}{os.sep}").partition(".")[0] == wanted
    assert importlib.reload(module) is module


@pytest.mark.skipif(sys.platform != "linux", reason="what is mapped is read from /proc")
def test_two_shared_objects_are_opened():
    """The paths below the package count: an environment in the clone has NumPy's libraries, whatever the clone is
    called."""
    code = "import cygrad; print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    mapped = {Path(line.split(maxsplit=5)[5]) for line in maps.splitlines() if len(line.split(maxsplit=5)) == 6}
    found = [path for path in mapped if path.is_relative_to(PACKAGE.resolve())]
    assert sorted(path.name.partition(".")[0] for path in found) == [f"_{driver.level()}", "_modules"]


def test_packages_without_code_have_the_docstrings_of_their_files():
    """The import makes them without reading the files (bundles.Folder). A build reads them."""
    made = {name: doc for name, doc in zip(_modules.order(), _modules.docs(), strict=True) if doc}
    assert {"cygrad.core.graph", "cygrad.kernels.shapes", "cygrad.ops.linalg"} <= made.keys()
    for name in _modules.order():
        source = PACKAGE.parent.joinpath(*name.split("."), "__init__.py")
        body = ast.parse(source.read_text()).body if source.exists() else ()
        alone = len(body) == 1 and isinstance(body[0], ast.Expr)
        assert made.get(name) == (body[0].value.value if alone else None), f"{name}: build again"
        if not alone: continue
        module = sys.modules[name]
        assert (module.__doc__, module.__file__, module.__path__) == (made[name], str(source), [str(source.parent)])
        assert importlib.reload(module) is module


def test_modules_that_the_import_loads_stand_side_by_side():
    """Linux maps sixteen pages around each page that is used, so others between them would cost memory (setup.py)."""
    code = f"""
import sys
import cygrad
from cygrad import _modules
from cygrad.kernels import _{driver.level()} as kernels
for bundle, packages in (_modules, ("cygrad.ops.", "cygrad.nn.", "cygrad.optim.")), (kernels, "cygrad.kernels."):
    print(*(int(name in sys.modules) for name in bundle.names() if name.startswith(packages)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    for line in result.stdout.splitlines():
        loaded = line.split()
        assert loaded == sorted(loaded, reverse=True) and set(loaded) == {"0", "1"}, "see load_order() in tools"


def test_what_few_programs_need_is_loaded_at_its_first_use():
    code = """
import gc, sys
import numpy
before = {*sys.modules}
import cygrad
print(*sorted({*sys.modules} - before))
assert gc.isenabled() and cygrad.memory.profile and cygrad.testing.gradcheck
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    late = {"copy", "hashlib", "json", "numpy.random", "secrets", "threading",
            *(f"cygrad.{name}" for name in ("testing", "memory.budgets", "memory.log", "memory.rows", "nn", "optim"))}
    assert late.isdisjoint(result.stdout.split())


@pytest.mark.skipif(sys.platform != "linux" or "CYGRAD_SYMBOLS" in os.environ, reason="Linux maps pages as needed")
def test_the_import_forgets_the_code_that_it_has_run():
    """It is a third of all code, with what Linux maps around it."""
    code = "import cygrad; print(open('/proc/self/smaps').read(), end='')"
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    sizes = {"Size": 0, "Rss": 0}
    for line in maps.splitlines():
        field, *rest = line.split()
        if "-" in field: counts = rest[0] == "r-xp" and rest[-1].startswith(f"{PACKAGE.resolve()}{os.sep}")
        elif counts and field[:-1] in sizes: sizes[field[:-1]] += int(rest[0])
    assert 0 < sizes["Rss"] < sizes["Size"] / 5


def test_a_level_that_was_not_built_is_served_by_a_lower_one(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "cygrad", ignore=shutil.ignore_patterns("_avx*", "__pycache__"))
    code = "from cygrad.kernels import driver; print(driver.level())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path,
                            env=os.environ | {"PYTHONPATH": str(tmp_path), "CYGRAD_LEVEL": cpu.best_level()})
    assert result.stdout == "baseline\n", result.stderr


@pytest.mark.parametrize("name", ["core.graph", "ops", "autograd", "memory", "optim", "random", "testing"])
def test_a_part_that_comes_before_the_whole(name):
    """While one thread executes the first line of the package, another one imports a module of it and does not wait:
    Python finds the package in sys.modules, where it is from the start of its import."""
    code = f"""
import sys, types
whole = types.ModuleType("cygrad")
whole.__path__ = [{str(PACKAGE)!r}]
sys.modules["cygrad"] = whole
import cygrad.{name}
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("names", [
    "memory optim autograd random", "optim ", "core testing", "config memory.reports ops.table testing",
    "core.graph.tensor core.store.buffer"])
def test_threads_that_import_different_parts_first(names):
    """At the same time, as the first imports of the process. Python locks a module before it imports the package, so
    each of two threads once held the lock that the other one waited for, and one of them raised an error."""
    code = """
import importlib, sys, threading
sys.setswitchinterval(1e-6)
errors, ready = [], threading.Barrier(len(sys.argv) - 1)

def work(name):
    ready.wait()
    try: importlib.import_module(name)
    except BaseException as e: errors.append(f"{name}: {e!r}")

threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in sys.argv[1:]]
for t in threads: t.start()
for t in threads: t.join(40)
assert not any(t.is_alive() for t in threads), "they wait for each other"
assert not errors, errors
import cygrad as cg
assert (cg.ones(2) + 1).tolist() == [2, 2]
assert all(sys.modules[name] is importlib.import_module(name) for name in sys.argv[1:])
"""
    parts = [f"cygrad.{name}".rstrip(".") for name in names.split(" ")]
    for _ in range(4):
        result = subprocess.run([sys.executable, "-c", code, *parts], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stderr


def test_an_import_that_fails_leaves_pythons_own_as_it_was():
    """And what has not been executed is not in sys.modules: a second import fails too, or succeeds."""
    code = """
import os, sys
from importlib import _bootstrap
before = _bootstrap._find_and_load, _bootstrap._lock_unlock_module
for _ in range(2):
    try: import cygrad
    except ValueError as e: print(e)
    assert (_bootstrap._find_and_load, _bootstrap._lock_unlock_module) == before
    assert not [name for name, m in sys.modules.items() if type(vars(m).get("__getattr__")).__name__ == "Pending"]
    assert "cygrad.ops" not in sys.modules and "cygrad.kernels.threads" not in sys.modules
import json.tool
os.environ["CYGRAD_NUM_THREADS"] = "1"
import cygrad as cg
assert cg.ones(2).sum().item() == 2
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                            env=os.environ | {"CYGRAD_NUM_THREADS": "0"})
    assert result.returncode == 0 and result.stdout.count("CYGRAD_NUM_THREADS is '0'") == 2, result.stderr


def test_the_import_takes_no_lock_of_a_module():
    """No import statement in what `import cygrad` loads finds a module of the package that is not in sys.modules. What
    it loads are the modules of the order in the bundle, which setup.py has read from the sources."""
    code = """
import sys
from importlib import _bootstrap
import numpy
loaded, take = [], _bootstrap._find_and_load
def find_and_load(name, import_):
    if name.startswith("cygrad") and name not in sys.modules: loaded.append(name)
    return take(name, import_)
_bootstrap._find_and_load = find_and_load
import cygrad
from cygrad.bundles import library
print(*loaded)
print({name for name in sys.modules if name.startswith("cygrad.") and sys.modules[name].__spec__} - {*library.order()})
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    level = f"cygrad.kernels._{driver.level()}"
    assert result.stdout.splitlines()[0] == "cygrad cygrad.bundles", result
    assert eval(result.stdout.splitlines()[1]) == {"cygrad.bundles", "cygrad._modules", level}, result.stderr


def test_what_another_thread_finds_while_the_package_is_imported():
    """It waits: for a module that has not been executed, for one that the import does not load, and for a name that
    nothing has."""
    code = """
import sys, threading
import numpy
found, inside, done = {}, threading.Event(), threading.Event()

def work():
    inside.wait()
    from cygrad.ops.table import TABLE
    from cygrad.nn.linear import Linear
    found.update(TABLE=TABLE, Linear=Linear)
    try: from cygrad.core.errors import Sums
    except ImportError as e: found["Sums"] = str(e)
    done.set()

class Finder:                                       # it is asked for what the package imports: NumPy's are loaded
    def find_spec(self, name, path=None, target=None):
        if not inside.is_set() and "cygrad.core" in sys.modules:
            inside.set()
            assert not done.wait(0.2)
        return None

sys.meta_path.insert(0, Finder())
thread = threading.Thread(target=work, daemon=True)
thread.start()
import cygrad as cg
import json.tool
inside.set()
thread.join(30)
assert done.is_set() and found["TABLE"] is cg.ops.TABLE and found["Linear"] is cg.nn.Linear
assert "cannot import name 'Sums' from 'cygrad.core.errors'" in found["Sums"]
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("gone, missing", [("*.so", "cygrad._modules"), ("_[ab]*.so", "cygrad.kernels._baseline")])
def test_a_package_that_was_not_built_says_so(tmp_path, gone, missing):
    shutil.copytree(PACKAGE, tmp_path / "cygrad", ignore=shutil.ignore_patterns(gone, "*.pyd", "__pycache__"))
    result = subprocess.run([sys.executable, "-c", "import cygrad"], capture_output=True, text=True, timeout=60,
                            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    said = result.stderr.splitlines()[-1]
    assert said.startswith(f"ModuleNotFoundError: no {missing} for this Python ("), said
    assert "build cygrad there (make build)" in said


def test_python_without_the_gil_is_refused():
    """A Python that has switched the GIL off, and keeps it off, is told at the import."""
    script = "import sys; sys._is_gil_enabled = lambda: False; import cygrad"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                            cwd=PACKAGE.parent)
    assert result.stderr.splitlines()[-1].startswith("ImportError: cygrad needs the GIL"), result.stderr


def test_a_module_has_no_code_in_python():
    result = subprocess.run([sys.executable, "-m", "cygrad.core.graph.tensor"], capture_output=True, text=True,
                            timeout=60, cwd=PACKAGE.parent)
    assert result.returncode == 1 and result.stderr.endswith("No code object available for cygrad.core.graph.tensor\n")
    with pytest.raises(OSError, match="source code not available"):
        inspect.getsource(sys.modules["cygrad.core.graph.tensor"])


def test_wording_of_what_is_not_there():
    with pytest.raises(ImportError, match=r"this bundle has no module named 'cygrad\.sums'"):
        _modules.create_module(ModuleSpec("cygrad.sums", None))
    with pytest.raises(ImportError, match="<module 'os' .* is not a module of a bundle"):
        _modules.exec_module(os)
    with pytest.raises(AttributeError): _modules.create_module(None)
    with pytest.raises(TypeError): _modules.create_module(ModuleSpec(1, None))
    with pytest.raises(ModuleNotFoundError, match="named 'cygrad.sums'"): importlib.import_module("cygrad.sums")
