"""The structure of the package: imports go to lower layers only, files are short, public names have docstrings, and
every operator has a row in the table."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import cygrad as cg

PACKAGE = Path(cg.__file__).parent
LAYERS = {
    "bundles": -1, "kernels": 0, "core": 1, "ops": 2, "drawing": 2, "autograd": 3, "memory": 3, "random": 3,
    "linalg": 3, "io": 3, "array_api": 4, "nn": 4, "optim": 4, "func": 4, "nets": 4, "graph": 5, "testing": 5,
    "trainers": 5, "comm": 5, "data": 5, "config": 6, "demo": 6, "learn": 6, "estimators": 6, "__main__": 6,
}
APPLICATIONS = 6                                    # programs, which import cygrad as users do
PUBLIC = 7                                          # cygrad/__init__.py, which exports the public names
CORE = ["", "store", "graph", "interop", "execute", "backward"]     # folders of the core, the lowest first
FOLDERS = ["elementwise", "shapes", "reductions", "linalg", "images", "layers", "losses"]   # of ops and kernels, too
LONGEST = 600                                       # lines of one file
LONGEST_TEST = 600

SOURCES = sorted(p for suffix in ("py", "pyx", "pxd") for p in PACKAGE.rglob(f"*.{suffix}"))
every_source = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))


def place(path):
    """(package, its layer) of a source file. cygrad/__init__.py belongs to no package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return (None, PUBLIC) if parts == ("__init__",) else (parts[0], LAYERS[parts[0]])


def imported(source):
    """(line, module) for each import and cimport of cygrad, in any form: cygrad, cygrad.core.graph.tensor, ..."""
    statement = re.compile(
        r"^[ \t]*(?:from[ \t]+(?P<from>[.\w]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
        r"|c?import[ \t]+(?P<plain>[^\n#]*))", re.MULTILINE)
    for found in statement.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        if found["plain"]:
            modules = [name.split(" as ")[0].strip() for name in found["plain"].split(",")]
        elif found["from"] == "cygrad":
            names = re.sub(r"#[^\n]*", "", found["names"].strip("()"))
            modules = ["cygrad." + name.split(" as ")[0].strip() for name in names.split(",") if name.strip()]
        else:
            modules = [found["from"]]
        for module in modules:
            if module.startswith(".") or module.split(".")[0] == "cygrad":
                yield line, module


def complaint(package, layer, module):
    """The reason why a file of this package must not import `module`, or None."""
    if module.startswith("."):
        return "a relative import: write the full name"
    parts = module.split(".")
    if len(parts) == 1:
        return None if layer >= APPLICATIONS else "the public package"
    if parts[1] not in LAYERS:                      # a public name, such as cygrad.tensor, or Cython's own module
        return None if parts[1].startswith("_cy") or layer >= APPLICATIONS else "the public package"
    if parts[1] == package or package == "__main__":    # (__main__ starts other applications)
        return None
    other = LAYERS[parts[1]]
    return "in a higher layer" if other > layer else "another package of the same layer" if other == layer else None


@every_source
def test_imports_go_to_lower_layers(path):
    package, layer = place(path)
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {module} is {what}"
        for line, module in imported(path.read_text())
        if (what := complaint(package, layer, module))
    ]
    assert not wrong, "\n".join(wrong)


def core_modules():
    """Module of the core ("store.layout", "errors") -> its sources: .py, .pyx and .pxd."""
    modules = {}
    for path in SOURCES:
        if path.is_relative_to(PACKAGE / "core") and path.stem != "__init__":
            modules.setdefault(".".join(path.relative_to(PACKAGE / "core").with_suffix("").parts), []).append(path)
    return modules


def core_imports(source, modules):
    """The modules of the core that a source imports or cimports."""
    statement = re.compile(r"^[ \t]*from cygrad\.core((?:\.\w+)*) c?import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
    for found in statement.finditer(source):
        folder = found[1].lstrip(".")
        if folder in modules:
            yield folder
        else:                                       # from cygrad.core.store cimport layout as lay
            for name in re.findall(r"(\w+)(?: as \w+)?", found[2]):
                yield f"{folder}.{name}".lstrip(".")


def map_of_the_core(page):
    """The modules that the tables of CONTRIBUTING list, in the order of the page."""
    listed = []
    for folder, rows in re.findall(r"^\| `core/?(\w*)`(?:, again)? \|.*\n\|-.*\n((?:\|.*\n)+)", page, re.MULTILINE):
        names = re.findall(r"^\| `(\w+)` \| \S", rows, re.MULTILINE)
        assert len(names) == rows.count("\n"), f"core/{folder}: each row has one module and what it contains"
        listed += [f"{folder}.{name}".lstrip(".") for name in names]
    return listed


def test_the_core_imports_from_lower_folders_and_without_cycles():
    """CONTRIBUTING lists every module of the core once, the folders in the order of CORE. Each module imports only
    modules that are listed before it."""
    modules = core_modules()
    listed = map_of_the_core(PACKAGE.parent.joinpath("CONTRIBUTING.md").read_text())
    assert sorted(listed) == sorted(modules)
    folders = [CORE.index(name.rpartition(".")[0]) for name in listed]
    assert folders == sorted(folders)
    wrong = [f"core.{name} imports core.{other}, which CONTRIBUTING lists later"
             for name, files in modules.items()
             for other in {o for file in files for o in core_imports(file.read_text(), modules)} - {name}
             if listed.index(other) > listed.index(name)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layer", ["kernels", "ops"])
def test_folders_of_operators_import_from_lower_folders(layer):
    """Operators and their kernels have folders of the same names. CONTRIBUTING lists them in the order of FOLDERS."""
    found = {}
    for path in SOURCES:
        if path.parent.parent == PACKAGE / layer: found.setdefault(path.parent.name, []).append(path)
    assert sorted(found) == sorted(FOLDERS)
    assert all(4 <= len({path.stem for path in paths} - {"__init__"}) <= 12 for paths in found.values())
    page = PACKAGE.parent.joinpath("CONTRIBUTING.md").read_text()
    rows = re.search(r"^\| `ops` and `kernels` \|.*\n\|-.*\n((?:\|.*\n)+)", page, re.M)[1]
    assert re.findall(r"^\| `(\w+)` \| \S", rows, re.M) == FOLDERS
    wrong = [f"{path.relative_to(PACKAGE)}:{line}: {module} is in a higher folder"
             for folder, paths in found.items() for path in paths for line, module in imported(path.read_text())
             if (other := re.match(rf"cygrad\.{layer}\.(\w+)", module)) and other[1] in FOLDERS
             and FOLDERS.index(other[1]) > FOLDERS.index(folder)]
    assert not wrong, "\n".join(wrong)


def test_the_readers_of_the_core_find_every_form():
    modules = {"errors", "store.layout", "graph.tensor"}
    source = ("from cygrad.core.errors import described\nfrom cygrad.core.store cimport layout as lay\n"
              "from cygrad.core import errors\n    from cygrad.core.graph.tensor cimport (\n    Node, Tensor,\n)\n")
    assert list(core_imports(source, modules)) == ["errors", "store.layout", "errors", "graph.tensor"]
    page = "| `core` | a |\n|---|---|\n| `errors` | b |\n\n| `core/store` | c |\n|---|---|\n| `layout` | d |\n"
    assert map_of_the_core(page) == ["errors", "store.layout"]


def test_modules_set_no_globals_of_others():
    """What calls a higher module is a field of LateBound. Exceptions are the observers that a memory profile sets while
    it is open, a flag, and names that pickles of version 0.1 have."""
    modules, found = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts) for p in SOURCES}, set()
    for path in SOURCES:
        source = path.read_text()
        imports = re.findall(r"^[ \t]*from (cygrad[\w.]*) c?import (\([^)]*\)|[^\n#]*)", source, re.MULTILINE)
        names = {alias or name for base, listed in imports for name, alias in re.findall(r"(\w+)(?: as (\w+))?", listed)
                 if f"{base}.{name}" in modules}
        for targets in re.findall(r"^[ \t]*((?:[\w.]+(?:, | = ))*[\w.]+) = ", source, re.MULTILINE):
            found |= {target for target in re.split(", | = ", targets) if target.partition(".")[0] in names}
    assert {name for name in found if "." in name} == {
        "slots.slot_saved", "slots.slot_emptied", "graph.collected", "_solver.Adam", "_solver.Sgd"}


def test_elements_of_svg_are_written_in_one_place():
    root, written = PACKAGE.parent, re.compile(r"<(?:svg|rect|text|path|line|circle|ellipse|polyline)[ >{]")
    folders = PACKAGE, root / "docs" / "figures", root / "tools", root / "benchmarks"
    sources = [path for folder in folders for path in folder.rglob("*.py")]
    assert len(sources) > 100 and [p.relative_to(root) for p in sources if written.search(p.read_text())] == []


def test_an_element_of_svg():
    from cygrad.drawing.svg import element, label, tooltip
    assert element("rect", class_="a", y=2.25, stroke_width=3) == '<rect class="a" y="2.2" stroke-width="3"/>'
    assert element("g", "x", "", "y", id="k") == '<g id="k">xy</g>'
    assert label(1, 2.0, "'a' < b") == """<text x="1" y="2.0">'a' &lt; b</text>"""
    assert tooltip("<") == "<title>&lt;</title>"


@pytest.fixture
def structure(monkeypatch):
    """tools/structure.py."""
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "tools"))
    return importlib.import_module("structure")


def test_no_module_imports_itself_through_others(structure, capsys):
    """In the package, the benchmarks, the tools and the tests, also by imports inside functions. Packages of cygrad do
    not import each other either, the folders of the core included."""
    assert structure.cycles(PACKAGE.parent) == []
    structure.read(PACKAGE.parent)
    assert "cycle of packages" not in capsys.readouterr().err


def test_a_cycle_is_found_in_every_folder_and_form(structure, tmp_path):
    sources = {
        "cygrad/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cygrad.c\n\nimport cygrad.b\n",
        "cygrad/b.pyx": "def f():\n    from cygrad import (\n        tensor,  # (no module)\n        c, a as d)\n",
        "cygrad/c.py": "from cygrad.d cimport x\n", "cygrad/d.pxd": "\n", "cygrad/d.pyx": "cimport cygrad.c\n",
        "cygrad/__init__.py": "from cygrad import a\n", "cygrad/e.py": "from cygrad import a, tensor\n",
        "tests/support/one.py": "from two import x\n", "tests/support/two.py": "import os, one\n",
        "tools/one.py": "import two\n"}
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert structure.cycles(tmp_path) == [
        ("cygrad", "cygrad.a", "cygrad.b"), ("cygrad.c", "cygrad.d"), ("tests.support.one", "tests.support.two")]


def test_only_kernels_by_dtype_asks_for_a_dtype():
    """The kernel for a dtype is found in one place. Elsewhere a dtype is compared only to describe it."""
    others = [p.name for p in SOURCES if p.stem != "by_dtype" and re.search(r"[=!]= FLOAT32\b", p.read_text())]
    assert not others


def test_only_core_slots_reads_the_content_of_a_slot():
    others = [p for p in SOURCES if p.stem != "slots" and re.search(r"\.content\b", p.read_text())]
    assert not others


def private_reads(source):
    """What a source reads of other objects than self, cls and super() by names that begin with one underscore, but for
    the public methods of a namedtuple. A name can be text, as in attrgetter("_state")."""
    private, public = re.compile("_[^_]"), {"_replace", "_asdict", "_make", "_fields", "_field_defaults"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and private.match(node.attr) and node.attr not in public:
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if not isinstance(owner, ast.Name) or owner.id not in ("self", "cls", "super"): yield ast.unparse(node)
        elif isinstance(node, ast.Call) and any(isinstance(a, ast.Constant) and isinstance(a.value, str)
                                                and private.match(a.value) for a in node.args):
            yield ast.unparse(node)


def test_modules_of_nets_read_no_private_attributes_of_other_objects():
    """NetState owns what a net consists of. Only state_of(), beside the class that has it, hands it out."""
    folders = [PACKAGE / name for name in ("nets", "trainers")]
    sources = [PACKAGE / "testing" / "nets.py", PACKAGE / "graph.py", *(p for f in folders for p in f.rglob("*.py"))]
    found = {path.name: reads for path in sources if (reads := [*private_reads(path.read_text())])}
    assert len(sources) > 30 and found == {"state.py": ["attrgetter('_state')"]}
    source = "self._a; cls._b; super()._c; x._replace; x.__len__; self.net._d; net._e = 1; f()._g; getattr(x, '_h')\n"
    assert sorted(private_reads(source)) == ["f()._g", "getattr(x, '_h')", "net._e", "self.net._d"]


def test_only_the_executor_knows_of_traces():
    """All else calls functions of core/graph/trace, steps and effects, which do the same with and without a trace."""
    pattern = re.compile(r"(?:\bf|flags\(\)|\.thread|\bself|\bp)\.trace\b")
    readers = {p.stem for p in SOURCES if p.suffix == ".pyx" and pattern.search(p.read_text())}
    assert readers <= {"trace", "buffer", "executor", "run", "inplace", "engine"}
    sources = "".join(p.read_text() for p in SOURCES if p.suffix == ".pyx")
    assert set(re.findall(r"^cdef class (\w+)\(Step\)", sources, re.MULTILINE)) == {
        "ForwardStep", "StageStep", "ControlStep"}


def test_the_reader_of_imports_finds_every_form():
    """`imported` against Python's own parser on the .py files; `complaint` on each form of import."""
    for path in SOURCES:
        if path.suffix != ".py":
            continue
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {a.name for a in node.names if a.name.split(".")[0] == "cygrad"}
            elif isinstance(node, ast.ImportFrom) and node.module == "cygrad":
                names |= {f"cygrad.{a.name}" for a in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.level or node.module.split(".")[0] == "cygrad"):
                names.add("." * node.level + (node.module or ""))
        assert {module for _, module in imported(path.read_text())} == names
    source = ("from cygrad.ops cimport base\n    import cygrad.optim as o, os\nfrom cygrad import (\n    nn, # why\n"
              "    core as c,\n)\nfrom .graph import x\ncimport cygrad.kernels.array\nimport numpy\n"
              "from cygrad import tensor\n")
    found = [(line, module, complaint("core", 1, module)) for line, module in imported(source)]
    assert found == [
        (1, "cygrad.ops", "in a higher layer"), (2, "cygrad.optim", "in a higher layer"),
        (3, "cygrad.nn", "in a higher layer"),
        (3, "cygrad.core", None), (7, ".graph", "a relative import: write the full name"),
        (8, "cygrad.kernels.array", None), (10, "cygrad.tensor", "the public package"),
    ]
    assert complaint("autograd", 3, "cygrad.memory") == "another package of the same layer"
    assert complaint(None, PUBLIC, "cygrad.testing") is None
    assert complaint("demo", 6, "cygrad") is complaint("__main__", 6, "cygrad.demo") is None
    assert complaint("demo", 6, "cygrad.estimators") == "another package of the same layer"
    assert complaint("trainers", 5, "cygrad") == "the public package"


@every_source
def test_files_are_short(path):
    lines = path.read_text().count("\n")
    assert lines <= LONGEST, f"{path.relative_to(PACKAGE)} has {lines} lines; a file has {LONGEST} at the most"


def test_tests_are_short():
    here = Path(__file__).parent
    long = [p.relative_to(here) for p in here.rglob("*.py") if p.read_text().count("\n") > LONGEST_TEST]
    assert not long, f"longer than {LONGEST_TEST} lines: {', '.join(map(str, long))}; split them by what they test"


def test_a_class_name_stands_for_one_class():
    """In the package, but for layers that are named as their operators, and for two public names of nets."""
    found = {}
    for path in SOURCES:
        for name in re.findall(r"^[ \t]*(?:cdef )?class (\w+)", path.read_text(), re.M):
            found.setdefault(name, set()).add(path.relative_to(PACKAGE).with_suffix(""))
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    layers = {name for name, paths in twice.items() if name in cg.nn.__all__ and len(paths) == 2
              and {path.parts[0] for path in paths} == {"nn", "ops"}}
    assert len(layers) > 20 and set(twice) - layers == {"Operator", "GradientSlice"}


def public_names():
    """(name, object) of the public API: cygrad, the __all__ of its packages, and the methods of public classes."""
    modules = [("cygrad", cg, [n for n in dir(cg) if not n.startswith("_")])]
    for path in sorted(PACKAGE.rglob("__init__.py")):
        name = ".".join(("cygrad", *path.relative_to(PACKAGE).parent.parts))
        module = importlib.import_module(name)
        if name != "cygrad" and hasattr(module, "__all__"):
            modules.append((name, module, module.__all__))
    for where, module, names in modules:
        for name in names:
            value = getattr(module, name)
            if inspect.ismodule(value) or callable(value):
                yield f"{where}.{name}", value
            if inspect.isclass(value) and value.__module__.startswith("cygrad"):
                for method, body in vars(value).items():
                    if not method.startswith("_") and (
                            callable(body) or isinstance(body, property) or inspect.isgetsetdescriptor(body)):
                        yield f"{where}.{name}.{method}", body


# Cython stores no docstring for `cdef readonly` attributes. The docstring of their class explains them.
def is_plain_attribute(value):
    return inspect.ismemberdescriptor(value) or (
        inspect.isgetsetdescriptor(value) and value.__objclass__ is not cg.Tensor)


def test_public_names_have_docstrings():
    names = dict(public_names())
    assert {"cygrad.Tensor.shape", "cygrad.tensor", "cygrad.memory.track", "cygrad.testing.gradcheck"} <= set(names)
    missing = [name for name, value in names.items() if not is_plain_attribute(value) and not value.__doc__]
    assert not missing, f"without a docstring: {', '.join(sorted(missing))}"


def operator_classes():
    """(file, class, whether it has no subclasses) of all operator classes in ops/."""
    classes, found = {"Operator"}, []
    for path in sorted(PACKAGE.glob("ops/**/*.pyx")):
        for name, base in re.findall(r"^cdef class (\w+)\((\w+)\):", path.read_text(), re.MULTILINE):
            found.append((path.stem, name, base))
    bases = {base for _, _, base in found}
    while True:                                     # subclasses of subclasses of Operator
        more = {name for _, name, base in found if base in classes} - classes
        if not more:
            return [(stem, name, name not in bases) for stem, name, base in found if base in classes]
        classes |= more


# Bound for Tensor's own syntax (x[index] = v, x += y), where the documentation of users is.
WITHOUT_ROW = {"Assign", "GatherRanked", "HasCode", "KeptMask", "LocallyConstant"}


def test_every_operator_class_has_a_row():
    rows = {type(row.operator).__name__ for row in cg.ops.TABLE}
    classes = operator_classes()
    assert len(classes) > 15
    missing = [f"{stem}.{name}" for stem, name, final in classes if final and name not in rows | WITHOUT_ROW]
    assert not missing, f"operators that no row of ops/table.py lists: {', '.join(missing)}"
    assert rows <= {name for _, name, _ in classes}
    bases = [name for _, name, final in classes if not final]
    assert not set(bases) & rows, "an operator of the table has no subclasses; the others are bases"


def test_every_module_has_a_docstring():
    for path in SOURCES:
        source = path.read_text()
        if path.suffix != ".pxd":
            assert source.startswith('"""'), f"{path.relative_to(PACKAGE)} begins without a docstring"
