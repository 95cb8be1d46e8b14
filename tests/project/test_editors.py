"""What editors show of cygrad: completion and help()."""

import ast
import importlib
import pydoc
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import cygrad as cg

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted({m.__name__ for m in (getattr(cg, name) for name in dir(cg)) if hasattr(m, "__path__")})


@pytest.mark.parametrize("name", PACKAGES)
def test_completion_shows_public_names(name):
    """Those that the package declares, or of cygrad itself those in its stub."""
    module = sys.modules[name]
    shown = dir(module)
    if module is not cg:
        assert set(shown) - {"schedules"} == set(module.__all__)
        assert all(hasattr(module, n) for n in shown)
        return
    tree = ast.parse((ROOT / "cygrad" / "__init__.pyi").read_text())
    stub = {a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names if a.asname}
    stub |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    stub |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert set(shown) == stub


def test_completion_of_cygrad_itself():
    assert len(PACKAGES) > 14 and "cygrad.nn" in PACKAGES
    assert [n for n in dir(cg) if n.startswith("_")] == ["__version__"]
    assert not {"core", "kernels", "bundles", "Any", "np"} & {*dir(cg)} and {"exp", "nn", "show_config"} <= {*dir(cg)}
    for tensor_name in dir(cg.ones(1)):
        assert tensor_name.startswith("_") or hasattr(cg.Tensor, tensor_name)


def test_help_says_where_what_is():
    """The docstring fits on a screen. It names each public package and each command, and only what exists."""
    assert len(cg.__doc__.splitlines()) <= 40
    parser = importlib.import_module("cygrad.__main__").parser()
    (commands,) = (action.choices for action in parser._actions if action.dest == "command")
    assert re.findall(r"python -m cygrad (\w+)", cg.__doc__) == [*commands]
    names = re.findall(r"\bcg((?:\.\w+)+)", cg.__doc__)
    for name in names: assert pydoc.locate("cygrad" + name) is not None, name
    packages = {name.removeprefix("cygrad.") for name in PACKAGES} - {"cygrad", "nets"} | {"graph"}
    assert packages <= {name.split(".")[1] for name in names}
    example = textwrap.dedent(re.search(r"\n\n(    .*?)\n\n[A-Z]", cg.__doc__, re.S)[1])
    assert len(example.splitlines()) == 5
    exec(example, found := {"cg": cg})
    assert found["w"].grad.tolist() == [2.0, 4.0]
    found.clear()


@pytest.mark.parametrize("hidden", ["none", "sklearn"])
def test_help_works_without_optional_packages(hidden):
    """help() reads every name, also those that are loaded late."""
    code = (f"import sys; sys.modules[{hidden!r}] = None; import cygrad, pydoc; "
            f"text = pydoc.render_doc(cygrad, renderer=pydoc.plaintext); "
            f"assert 'Where to look' in text and 'get_include' in text; "
            f"assert ('estimators' in dir(cygrad)) == ({hidden!r} != 'sklearn')")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_import_loads_nothing_for_notebooks():
    code = ("import sys; before = {*sys.modules}; import cygrad; cygrad.ones(2); dir(cygrad); "
            "assert not {'html', 'json', 'threading', 'copy', 'cygrad.core.notebook'} & {*sys.modules} - before")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
