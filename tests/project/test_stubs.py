"""The stubs and the generated pages are up to date, match the compiled modules, and work with a type checker."""

import ast
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cygrad as cg

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """\
import numpy as np

import cygrad as cg
from cygrad.optim import Adam

w = cg.tensor(np.ones((3, 4)), dtype=cg.float32).attach_grad()
solver = Adam(alpha=1e-2)
solver.set_parameters({"w": w})


def step(x: cg.Tensor, labels: cg.Tensor) -> float:
    with cg.record() as tape:
        loss = cg.cross_entropy(cg.relu(2 * x @ w.T + 1.0), labels)
        nodes: int = tape.nodes
    loss.backward()
    solver.update()
    return float(loss) / nodes


@cg.no_grad
def shape(x: cg.Tensor) -> tuple[int, ...]:
    return x.sum(axis=0, keepdims=True).shape


step(cg.ones((2, 4)), cg.tensor([0, 1]))
rank: int = len(shape(w))
with cg.pause(), cg.memory.track() as watched:
    peak: int = watched.peak_bytes
a, b = cg.autograd.grad([w], [w, w], create_graph=True)
bytes_of_a: int = a.nbytes + b.astype("float64").nbytes
one: cg.Tensor = cg.autograd.grad(w, w)
rows: cg.Tensor = cg.GradientSlice([0, 2], np.ones((2, 4)), shape=(3, 4)).values
picture = np.asarray(w.detach())
if w.grad is not None: w.grad = w.grad * 0.5
"""

WRONG = {                   # lines that a type checker refuses, with mypy's error code
    "w.grad.shape": "union-attr",
    "cg.tensor([1.0]).backwards()": "attr-defined",
    "w.attach_grad('overwrite')": "arg-type",
    "w.backward(None, True, False)": "arg-type",
    "cg.record(3)": "call-overload",
    "cg.add(w)": "call-arg",
    "w.shape = (3,)": "misc",
    "one: int = cg.exp(w)": "assignment",
    "never: cg.Tensor = cg.autograd.grad(w, w, allow_unused=True)": "assignment",
    "cg.Tensor(3)": "arg-type",
    "cg.GradientSlice([0])": "call-arg",
    "cg.optim.Sgd(rate=0.1)": "call-arg",
}


SCOPES = {                  # scopes, with the type of x in `with SCOPE as x`, as mypy prints it
    "cg.record()": "cygrad.core.graph.tape.Tape",
    "cg.no_grad()": "cygrad.core.graph.tape.Tape | None",
    "cg.pause()": "cygrad.core.graph.tape.Tape | None",
    "cg.train_mode()": "cygrad.core.graph.tape.Tape | None",
    "cg.GradientCollector()": "cygrad.autograd.scopes.GradientCollector",
    "cg.autograd.detect_anomaly()": "cygrad.autograd.scopes.detect_anomaly",
    "cg.autograd.saved_tensors_hooks(lambda t: t, lambda t: t)": "cygrad.autograd.scopes.saved_tensors_hooks",
    "w.register_hook(lambda g: g)": "cygrad.core.backward.hooks.Handle",
    "cg.set_grad_enabled(True)": "cygrad.core.graph.tape.Tape | None",
    "cg.inference_mode()": "cygrad.core.graph.tape.Tape | None",
    "cg.autograd.register_multi_grad_hook([w], print)": "cygrad.core.backward.hooks.Handle",
    "cg.autograd.disable_saved_tensors_hooks('no')": "cygrad.autograd.scopes.disable_saved_tensors_hooks",
    "cg.memory.profile()": "cygrad.memory.profiling.profile",
    "cg.memory.track()": "cygrad.memory.scopes.track",
    "cg.memory.limit(1)": "cygrad.memory.scopes.limit",
    "cg.memory.scope()": "cygrad.core.graph.scopes.scope",
    "cg.memory.events()": "list[tuple[str, int, int, str]]",
    "cg.testing.fail_allocation(1)": "cygrad.testing.scopes.Failure",
    "cg.testing.assert_no_leak()": "None",
    "cg.nn.ReLU().register_forward_hook(print)": "cygrad.nn.module.HookHandle",
    "cg.nn.ReLU().register_full_backward_hook(print)": "cygrad.nn.module.HookHandle",
    "cg.graph.Workspace().immediate()": "cygrad.nets.immediate.Immediate",
    "cg.comm.Communicator().all_reduce_callback([w], 1024)": "cygrad.comm.overlap.AllReduceScope",
}


INSIDE = {"cygrad/comm/communicator.py: Begun"}


def mypy(path, tmp_path):
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "--show-error-codes",
         f"--cache-dir={tmp_path}/cache", path],
        capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT)}, cwd=tmp_path,
    )


def test_a_user_program_passes_strict_and_wrong_ones_do_not(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(PROGRAM)
    run = [sys.executable, "-W", "error", good]                 # it also runs
    subprocess.run(run, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    done = mypy(good, tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    bad.write_text("import cygrad as cg\nw = cg.tensor([1.0])\n" + "\n".join(WRONG) + "\n")
    found = re.findall(r"bad\.py:(\d+): error: .*\[([\w-]+)\]", mypy(bad, tmp_path).stdout)
    assert [(int(line), code) for line, code in found] == [(i, code) for i, code in enumerate(WRONG.values(), 3)]


def test_what_a_scope_gives_has_a_type(tmp_path):
    """Also in a class that has no public name, because scopes inherit from it."""
    program = tmp_path / "scopes.py"
    lines = [f"with {scope} as x{i}: reveal_type(x{i})" for i, scope in enumerate(SCOPES)]
    lines += ["@cg.no_grad()", "def f(x: int) -> str: return str(x)", "reveal_type(f)"]     # a scope as a decorator
    program.write_text("\n".join(["import cygrad as cg", 'w = cg.tensor([1.0])', *lines, ""]))
    done = mypy(program, tmp_path)
    assert re.findall(r'Revealed type is "(.*)"', done.stdout) == [*SCOPES.values(), "def (x: int) -> str"], done.stdout
    untyped = {f"{path.relative_to(ROOT)}: {node.name}"
               for path in [*(ROOT / "cygrad").rglob("*.pyi"), *(ROOT / "cygrad").rglob("*.py")]
               if path.suffix == ".pyi" or not path.with_suffix(".pyi").exists()
               for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
               for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__enter__"
               if f.returns is None or ast.unparse(f.returns) == "Any"}
    assert untyped == INSIDE                                    # which only cygrad opens


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "typing").glob("*.py")), ids=lambda path: path.name)
def test_the_programs_whose_types_are_checked_run(path):
    """`make check` checks their types."""
    assert path.read_text().count("assert_type(") > 10
    subprocess.run([sys.executable, "-W", "error", path], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("tool", ["make_stubs.py", "make_docs.py"])
def test_what_is_generated_is_up_to_date(tool):
    done = subprocess.run([sys.executable, ROOT / "tools" / tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", ["cygrad/__init__.pyi", "docs/operators.md"])
def test_what_is_out_of_date_is_noticed(path, tmp_path):
    for name in ("cygrad", "docs", "tools", "tests/samples"): shutil.copytree(ROOT / name, tmp_path / name)
    text = (tmp_path / path).read_text()
    (tmp_path / path).write_text(text.replace("cross_entropy", "crossed_entropy"))
    tool = tmp_path / "tools" / ("make_stubs.py" if path.endswith(".pyi") else "make_docs.py")
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 1 and f"{path} is out of date" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_git_has_the_stubs_of_public_modules_and_no_generated_page():
    listed = subprocess.run(["git", "ls-files", "*.pyi", "docs/*.md"], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    files = {Path(name) for name in listed.stdout.split()}
    stubs = {path for path in files if path.suffix == ".pyi"}
    modules = [value for value in (getattr(cg, name) for name in dir(cg)) if inspect.ismodule(value)]
    public = {Path(*module.__name__.split("."), "__init__.pyi") for module in modules}
    assert stubs - {Path("cygrad/__init__.pyi"), Path("cygrad/graph.pyi")} <= public and 12 < len(stubs) <= 60
    assert not [path for path in files if "make_docs.py; do not edit" in (ROOT / path).read_text()]


def names(path):
    """The names that a stub defines at top level."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom): found |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.AnnAssign): found.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)): found.add(node.name)
    return found


def test_exports_methods_and_stubs_are_those_of_the_table():
    public = {row.name for row in cg.ops.TABLE if row.public}
    hidden = {row.name for row in cg.ops.TABLE if not row.public}
    stub = names(ROOT / "cygrad" / "__init__.pyi")
    assert public <= stub and not hidden & stub
    assert public <= set(dir(cg)) and not hidden & set(dir(cg))
    tensor = next(n for n in ast.parse((ROOT / "cygrad/core/graph/tensor.pyi").read_text()).body
                  if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    methods = {n.name for n in tensor.body if isinstance(n, ast.FunctionDef)}
    for row in cg.ops.TABLE:
        for name in row.methods: assert name in methods and callable(getattr(cg.Tensor, name))
    page = (ROOT / "docs" / "operators.md").read_text()
    assert all(f"`{row.name}(" in page and f'"op-{row.name.replace("_", "-")}"' in page for row in cg.ops.TABLE)


def test_every_public_name_is_in_the_stub():
    importlib.import_module("cygrad.drawing")       # and others that are imported, but not public
    shown = {name for name in dir(cg) if not name.startswith("_")}
    assert shown == names(ROOT / "cygrad" / "__init__.pyi") - {"__version__"}


@pytest.fixture
def surface(monkeypatch):
    """tools/surface.py."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("surface")


def test_every_public_function_and_class_has_a_docstring(surface):
    bare = [f"{module.__name__}.{name}" for module in surface.public_packages()
            for name, value in surface.public(module).items()
            if callable(value) and not surface.text(value)]
    assert not bare


@pytest.mark.slow
def test_the_stubs_are_true_of_the_compiled_modules():
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "cygrad", "--concise", "--mypy-config-file", "tools/stubtest.ini",
         "--allowlist", "tools/stubtest_allow.txt", "--ignore-unused-allowlist"],
        capture_output=True, text=True, cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
