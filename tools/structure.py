"""Print the structure of the package, read from its sources: `python tools/structure.py [CHECKOUT] [--svg FILE]`.

The output is a Markdown table of the packages, the lowest layer first, with their modules, lines and imports. In the
table, imports inside functions do not count. Import cycles are reported, of packages of cygrad and of single modules,
those of the benchmarks, tools and tests included; there, imports inside functions count, and those for type checkers do
not. With --svg the program draws the packages as boxes, whose width is the number of lines, with an arrow for each
import."""

import argparse
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOTS = "cygrad", "benchmarks", "tools", "tests"
ON_PATH = "tests/support", "tools"                  # folders whose modules are imported by their last names
STATEMENT = re.compile(
    r"^(?P<inner>[ \t]*)(?:from[ \t]+(?P<base>[\w.]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|c?import[ \t]+(?P<plain>[\w., \t]+))", re.M)
FOR_TYPES = re.compile(r"^if TYPE_CHECKING:.*\n(?:[ \t]+.*\n|\n)*", re.M)
SUFFIXES = (".pyx", ".pxd", ".py")


def modules_of(root):
    """{module: (package, lines, text)} of a checkout. A .pxd counts with its .pyx, and a package's own name stands for
    its __init__.py."""
    found = {}
    for path in sorted(p for folder in ROOTS for p in (root / folder).rglob("*") if p.suffix in SUFFIXES):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if path.stem == "__init__" else parts)
        text = path.read_text()
        _, lines, before = found.get(name, (None, 0, ""))
        package = ".".join(parts[:-1])
        found[name] = name if package == "cygrad" else package, lines + text.count("\n"), before + text
    return found


def imports_of(text, modules, inner=False, beside=None):
    """The modules that a source imports by name: those of `modules`, or of the package `beside`. With `inner` also
    inside functions."""
    for found in STATEMENT.finditer(FOR_TYPES.sub("", text)):
        if found["inner"] and not inner: continue
        base = found["base"]
        names = re.sub(r"#[^\n]*", "", (found["names"] or found["plain"]).strip("()")).split(",")
        for name in filter(None, (name.split(" as ")[0].strip() for name in names)):
            candidates = [f"{base}.{name}", base] if base else [name]
            candidates += [f"{beside}.{name}" for name in candidates]
            yield from [name for name in candidates if name in modules][:1]


def cycles(root):
    """The groups of modules that import each other, directly or through others."""
    modules, graph = modules_of(root), {}
    on_path = {folder.replace("/", ".") for folder in ON_PATH}
    for name, (package, _, text) in modules.items():
        graph[name] = {*imports_of(text, modules, True, package if package in on_path else None)} - {name}
    before = None
    while len(graph) != before:                     # leave out what imports nothing that is left, or is not imported
        before, used = len(graph), set().union(*graph.values())
        graph = {name: kept for name, others in graph.items() if name in used and (kept := others & graph.keys())}
    graph = {name: others & graph.keys() for name, others in graph.items()}
    below = {}
    for name in graph:
        below[name], waiting = set(), [name]
        while waiting:
            new = graph[waiting.pop()] - below[name]
            below[name] |= new
            waiting += new
    return sorted({tuple(sorted(other for other in below[name] if name in below[other])) for name in graph
                   if name in below[name]})


def ancestors(name):
    """The packages that a module is in: {"a", "a.b"} of a.b.c."""
    parts = name.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts))}


def load_order(root, package):
    """The modules with code that the import of a package loads. A module comes after the packages that it is in, and
    a module or package after all that it, or a module of it, imports from outside."""
    modules, needs, waiting = modules_of(root), {}, [package]
    while waiting:
        name = waiting.pop()
        if name in needs: continue
        imported = {*imports_of(modules[name][2], modules)}
        needs[name] = imported.union(ancestors(name), *map(ancestors, imported)) - {package}
        waiting += needs[name]
    del needs[package]
    graph = {name: {} for name in sorted(needs)}    # (dicts, because the order of a set changes from run to run)
    for name in graph:
        for part in ancestors(name) - {package} | {name}:
            outside = (other for other in needs[name] if not f"{other}.".startswith(f"{part}."))
            graph[part].update(dict.fromkeys(sorted(outside)))
    paths = ((name, root.joinpath(*name.split("."))) for name in TopologicalSorter(graph).static_order())
    return [name for name, path in paths if path.is_dir() or any(path.with_suffix(s).exists() for s in (".py", ".pyx"))]


def read(root):
    """(packages, imports): {package: [(module, lines)]} and {package: {package: number of imports}}, lowest first."""
    modules = {name: module for name, module in modules_of(root).items()
               if name.startswith("cygrad.") and not (root / name.replace(".", "/")).is_dir()}
    graph = {name: set(imports_of(text, modules)) - {name} for name, (_, _, text) in modules.items()}
    for group in cycles(root): print("import cycle:", ", ".join(group), file=sys.stderr)
    between = {}
    for name, others in graph.items():
        package = between.setdefault(modules[name][0], {})
        for other in others:
            if modules[other][0] != modules[name][0]:
                package[modules[other][0]] = package.get(modules[other][0], 0) + 1
    try: order = list(TopologicalSorter(between).static_order())
    except CycleError as e:
        print("import cycle of packages:", " -> ".join(e.args[1]), file=sys.stderr)
        order = sorted(between)
    packages = {p: [(name.rpartition(".")[2], lines) for name, (q, lines, _) in modules.items() if q == p]
                for p in order}
    return packages, between


def short(package):
    return package.removeprefix("cygrad.")


def table(packages, between):
    rows = ["| package | lines | modules (lines) | imports from |", "|---|---:|---|---|"]
    for package, modules in packages.items():
        uses = sorted(between[package].items(), key=lambda item: -item[1])
        rows.append(f"| `{package}` | {sum(lines for _, lines in modules):,} | "
                    f"{', '.join(f'{name} {lines}' for name, lines in modules)} | "
                    f"{', '.join(f'{short(name)} {n}' for name, n in uses) or '-'} |")
    return "\n".join(rows)


def svg(packages, between):
    """The packages as boxes, the lowest layer at the bottom, with an arrow for each import."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from cygrad.drawing.svg import element, label  # (the build runs this program before there is a cygrad)

    names = list(packages)
    lines = {p: sum(n for _, n in packages[p]) for p in names}
    unit = 420 / max(lines.values())
    at = {p: (40, 30 + 44 * (len(names) - 1 - i)) for i, p in enumerate(names)}
    height = 44 * len(names) + 40
    out = []
    for p in names:
        x, y = at[p]
        out += [element("rect", x=x, y=y, width=round(max(6, lines[p] * unit)), height=26, fill="#9ecae1"),
                label(x + 6, y + 18, f"{p} ({lines[p]:,} lines, {len(packages[p])} modules)")]
    for p in names:
        for q, n in between[p].items():
            y, z = at[p][1] + 13, at[q][1] + 13
            bend = round(560 + min(300, abs(z - y) * 0.7))
            colour = "#d62728" if z < y else "#636363"        # red: an import of a higher layer
            out += [element("path", d=f"M520 {y} C{bend} {y} {bend} {z} 524 {z}", fill="none", stroke=colour,
                            stroke_width=min(4, 0.5 + n / 12), opacity=0.6),
                    element("circle", cx=522, cy=z, r=3, fill=colour)]
    return element("svg", *out, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 900 {height}",
                   font_family="sans-serif", font_size=13)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--svg", type=Path, help="the file of the drawing")
    given = parser.parse_args()
    packages, between = read(given.checkout)
    print(table(packages, between))
    if given.svg: given.svg.write_text(svg(packages, between) + "\n")


if __name__ == "__main__": main()
