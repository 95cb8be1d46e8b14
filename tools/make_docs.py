"""Write docs/operators.md and docs/api.md: python tools/make_docs.py [--check]

The operator page has a row for each row of THE TABLE; the reference has every public name with its signature and its
docstring."""

import ast
import inspect
import sys

import surface
from surface import cygrad

WRITTEN = "<!-- Written by tools/make_docs.py; do not edit. -->"
ABOUT = """\
Every operator of cygrad, as it stands in THE TABLE (`cygrad/ops/table.py`). A formula gives the value first and then
the gradient of each input, `g` being the gradient of the result. What is kept is what backward needs of a recorded
operation, for each input whose gradient is wanted: `out` is the result itself. NumPy's column is what a test compares
the value with; a name that ends in `_like` is a short function of `cygrad/ops/samples.py`."""


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def lambdas():
    """The expressions of the lambdas in the table's source, by the line they stand on and their arguments."""
    source = inspect.getsource(sys.modules["cygrad.ops.table"])
    return {(n.lineno, *(a.arg for a in n.args.args)): ast.unparse(n.body)
            for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Lambda)}


def in_numpy(row, expressions):
    """What the row's value is tested against."""
    f = row.like
    if f.__name__ == "<lambda>":
        code = f.__code__
        return f"`{expressions[code.co_firstlineno, *code.co_varnames[:code.co_argcount]]}`"
    if f.__module__ == "cygrad.ops.samples": return f"in a few lines: `{f.__name__}` in `ops/samples.py`"
    return f"`numpy.{f.__name__}`"


def formula(row):
    """The first line of the operator's docstring: value, and the gradient of each input."""
    value, *gradients = surface.first_line(type(row.operator)).split("        ")
    return "<br>".join(f"`{' '.join(part.split())}`" for part in [value, *gradients] if part.strip())


def keeps(row):
    """What stays in memory for which gradient; over all sample calls, where it depends on the call."""
    calls = [row.kept(*args, **kwargs) for args, kwargs in row.tries]
    found = {x: dict.fromkeys(call.get(x, "nothing") for call in calls) for call in calls for x in call}
    return "<br>".join(f"`{x}`: {' or '.join(whats)}" for x, whats in found.items()) or "nothing"


def operators():
    expressions = lambdas()
    text = ["# Operators", WRITTEN, "", ABOUT, ""]
    rows = {}
    for row in cygrad.ops.TABLE: rows.setdefault(row.family, []).append(row)
    for family, members in rows.items():
        text += [f"## {family}", ""]
        text += [table(["operator", "formula", "keeps for the gradient of", "in words", "NumPy"],
                       [[f"`{row.name}{surface.signature(row.function)}`" + ("" if row.public else " (inner)"),
                         formula(row), keeps(row), surface.first_line(row.function), in_numpy(row, expressions)]
                        for row in members]), ""]
    text += ["An inner operator is reached through syntax (`x[1:3]`) or by another's gradient; it has no public name."]
    return "\n".join(text) + "\n"


def entry(name, value, level, method=False):
    """One name of the reference."""
    lines = [f"{'#' * level} `{name}{surface.signature(value, method)}`", ""]
    words = surface.text(value)
    if words: lines += [words, ""]
    return lines


def member(name, value):
    return not name.startswith("_") and (surface.is_function(value) or surface.is_attribute(value)
                                         or isinstance(value, (staticmethod, classmethod)))


def klass(name, cls, level):
    lines = entry(name, cls, level)
    for inner, value in sorted(vars(cls).items()):
        if member(inner, value): lines += entry(f"{cls.__name__}.{inner}", value, level + 1, True)
    return lines


def reference():
    text = ["# Reference", WRITTEN, ""]
    seen = set()
    for module in surface.public_packages():
        text += [f"## {module.__name__}", "", surface.text(module), ""]
        for name, value in surface.public(module).items():
            full = f"{module.__name__}.{name}"
            if inspect.ismodule(value): continue
            if id(value) in seen and (inspect.isclass(value) or surface.is_function(value)):
                text += [f"### `{full}`", "", f"The same as `cygrad.{value.__name__}`.", ""]
            elif inspect.isclass(value):
                text += klass(full, value, 3)
            elif surface.is_function(value):
                text += entry(full, value, 3)
            elif type(value).__module__.startswith("numpy"):
                text += [f"### `{full}`", "", f"NumPy's dtype `{value}`.", ""]
            else:
                size = f" of {len(value)}" if hasattr(value, "__len__") else ""
                text += [f"### `{full}`", "", f"A {type(value).__name__}{size}.", ""]
            seen.add(id(value))
    while not text[-1]: text.pop()
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    docs = surface.ROOT / "docs"
    docs.mkdir(exist_ok=True)
    surface.write({docs / "operators.md": operators(), docs / "api.md": reference()}, "--check" in sys.argv[1:])
