"""The house: imports go down, files stay short, public names are explained, every operator has its row."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import cygrad as cg

PACKAGE = Path(cg.__file__).parent
FLOORS = {
    "bundles": -1, "kernels": 0, "core": 1, "ops": 2, "autograd": 3, "memory": 3, "random": 3, "nn": 4, "optim": 4,
    "func": 4, "graph": 4, "testing": 4, "trainers": 5, "comm": 5, "data": 5, "io": 5, "config": 6,
    "demo": 6, "estimators": 6, "__main__": 6,
}
ROOF = 7
START = 6                                           # the floor of what people start: it uses cygrad as they do
LONGEST = 600                                       # lines of one file

SOURCES = sorted(p for suffix in ("py", "pyx", "pxd") for p in PACKAGE.rglob(f"*.{suffix}"))
every_source = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))


def place(path):
    """(package on its floor, floor) of a source file; the roof has no package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return (None, ROOF) if parts == ("__init__",) else (parts[0], FLOORS[parts[0]])


def imported(source):
    """(line, what) for each import and cimport of cygrad, of whatever form: cygrad, cygrad.core.graph.tensor, ..."""
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


def complaint(package, floor, module):
    """What is wrong with importing `module` on this floor, or None."""
    if module.startswith("."):
        return "a relative import: write the whole name"
    parts = module.split(".")
    if len(parts) == 1:
        return None if floor >= START else "the roof"
    if parts[1] not in FLOORS:                      # a name of the roof, such as cygrad.tensor, or Cython's own module
        return None if parts[1].startswith("_cy") or floor >= START else "the roof"
    if parts[1] == package or package == "__main__":    # (which starts its neighbours)
        return None
    above = FLOORS[parts[1]]
    return "a floor above" if above > floor else "a neighbour on the same floor" if above == floor else None


@every_source
def test_imports_go_down(path):
    package, floor = place(path)
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {module} is {what}"
        for line, module in imported(path.read_text())
        if (what := complaint(package, floor, module))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_map_of_the_core_is_true():
    """CONTRIBUTING's map has every file of the core, and each imports those of its own line and above alone."""
    page = PACKAGE.parent.joinpath("CONTRIBUTING.md").read_text()
    lines = re.search(r"^\| `cygrad/core/` .*\n\|-.*\n((?:\|.*\n)+)", page, re.M)[1].splitlines()
    height = {name: i for i, row in enumerate(lines) for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    files = [p for p in SOURCES if p.parent == PACKAGE / "core" and p.stem != "__init__"]
    assert height.keys() == {p.stem for p in files}
    for path in files:
        text = path.read_text()
        used = re.findall(r"^from cygrad\.core\.(\w+) c?import", text, re.M)
        used += re.findall(r"^from cygrad\.core c?import (\w+)", text, re.M)
        wrong = [name for name in used if height[name] > height[path.stem]]
        assert not wrong, f"core/{path.name} imports {', '.join(wrong)}: below it in CONTRIBUTING's map"


def test_only_core_slots_looks_into_a_slot():
    others = [p for p in SOURCES if p.stem != "slots" and re.search(r"\.content\b", p.read_text())]
    assert not others


def test_the_reader_of_imports_sees_them_all():
    """The reader above, against Python's own on the .py files; and it finds what is wrong in each form."""
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
        (1, "cygrad.ops", "a floor above"), (2, "cygrad.optim", "a floor above"), (3, "cygrad.nn", "a floor above"),
        (3, "cygrad.core", None), (7, ".graph", "a relative import: write the whole name"),
        (8, "cygrad.kernels.array", None), (10, "cygrad.tensor", "the roof"),
    ]
    assert complaint("autograd", 3, "cygrad.memory") == "a neighbour on the same floor"
    assert complaint(None, ROOF, "cygrad.testing") is None
    assert complaint("demo", 6, "cygrad") is complaint("__main__", 6, "cygrad.demo") is None
    assert complaint("demo", 6, "cygrad.estimators") == "a neighbour on the same floor"
    assert complaint("trainers", 5, "cygrad") == "the roof"


@every_source
def test_files_are_short(path):
    lines = path.read_text().count("\n")
    assert lines <= LONGEST, f"{path.relative_to(PACKAGE)} has {lines} lines; a file has {LONGEST} at the most"


def test_tests_are_short():
    here = Path(__file__).parent
    long = [p.relative_to(here) for p in here.rglob("*.py") if p.read_text().count("\n") > LONGEST]
    assert not long, f"longer than {LONGEST} lines: {', '.join(map(str, long))}; split them by what they test"


def public_names():
    """(name, object) of all that users reach: the roof, its packages' __all__, and methods of public classes."""
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


# Cython keeps no docstring for these: `cdef readonly` attributes, which the class's docstring explains.
def is_plain_attribute(value):
    return inspect.ismemberdescriptor(value) or (
        inspect.isgetsetdescriptor(value) and value.__objclass__ is not cg.Tensor)


def test_public_names_have_docstrings():
    names = dict(public_names())
    assert {"cygrad.Tensor.shape", "cygrad.tensor", "cygrad.memory.track", "cygrad.testing.gradcheck"} <= set(names)
    missing = [name for name, value in names.items() if not is_plain_attribute(value) and not value.__doc__]
    assert not missing, f"without a docstring: {', '.join(sorted(missing))}"


def operator_classes():
    """(file, class, its bases) of all operator classes in the sources of floor 2."""
    classes, found = {"Operator"}, []
    for path in sorted(PACKAGE.glob("ops/*.pyx")):
        for final, name, base in re.findall(r"^(@final\n)?cdef class (\w+)\((\w+)\):", path.read_text(), re.MULTILINE):
            found.append((path.stem, name, base, bool(final)))
    while True:                                     # classes of classes of Operator
        more = {name for _, name, base, _ in found if base in classes} - classes
        if not more:
            return [(stem, name, final) for stem, name, base, final in found if base in classes]
        classes |= more


# Plugged in for Tensor's own syntax (x[index] = v, x += y): what users call is written there.
WITHOUT_ROW = {"Assign", "GatherRanked", "HasCode", "LocallyConstant"}


def test_every_operator_class_has_a_row():
    rows = {type(row.operator).__name__ for row in cg.ops.TABLE}
    classes = operator_classes()
    assert len(classes) > 15
    missing = [f"{stem}.{name}" for stem, name, final in classes if final and name not in rows | WITHOUT_ROW]
    assert not missing, f"operators that no row of ops/table.py lists: {', '.join(missing)}"
    assert rows <= {name for _, name, _ in classes}
    bases = [name for _, name, final in classes if not final]
    assert not set(bases) & rows, "an operator of the table is marked @final; the others are bases"


def test_every_module_says_what_it_is():
    for path in SOURCES:
        source = path.read_text()
        if path.suffix != ".pxd":
            assert source.startswith('"""'), f"{path.relative_to(PACKAGE)} begins without a docstring"
