"""Print the structure of the package, read from its sources: `python tools/structure.py [CHECKOUT] [--svg FILE]`.

The output is a Markdown table of the packages, the lowest layer first, with their modules, lines and imports. Imports
inside functions do not count. Import cycles are reported. With --svg the program draws the packages as boxes, whose
width is the number of lines, with an arrow for each import."""

import argparse
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

STATEMENT = re.compile(r"^from (cygrad[\w.]*) c?import (\([^)]*\)|[^\n#]*)|^c?import (cygrad[\w.]*)", re.M)
SUFFIXES = (".pyx", ".pxd", ".py")


def modules_of(root):
    """{module: (package, lines, text)} of a checkout. A .pxd counts with its .pyx."""
    found = {}
    for path in sorted((root / "cygrad").rglob("*")):
        if path.suffix not in SUFFIXES or path.stem == "__init__": continue
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        text = path.read_text()
        _, lines, before = found.get(name, (None, 0, ""))
        package = name.rpartition(".")[0]
        found[name] = name if package == "cygrad" else package, lines + text.count("\n"), before + text
    return found


def imports_of(text, modules):
    """The modules that a source imports by name."""
    for base, names, plain in STATEMENT.findall(text):
        if plain in modules: yield plain
        if base in modules: yield base
        for name in names.strip("()").replace("\n", " ").split(","):
            name = f"{base}.{name.strip().split(' as ')[0]}"
            if name in modules: yield name


def read(root):
    """(packages, imports): {package: [(module, lines)]} and {package: {package: number of imports}}, lowest first."""
    modules = modules_of(root)
    graph = {name: set(imports_of(text, modules)) - {name} for name, (_, _, text) in modules.items()}
    try: TopologicalSorter(graph).prepare()
    except CycleError as e: print("import cycle:", " -> ".join(e.args[1]), file=sys.stderr)
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
    names = list(packages)
    lines = {p: sum(n for _, n in packages[p]) for p in names}
    unit = 420 / max(lines.values())
    at = {p: (40, 30 + 44 * (len(names) - 1 - i)) for i, p in enumerate(names)}
    height = 44 * len(names) + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" font-family="sans-serif" '
           f'font-size="13">']
    for p in names:
        x, y = at[p]
        out.append(f'<rect x="{x}" y="{y}" width="{max(6, lines[p] * unit):.0f}" height="26" fill="#9ecae1"/>'
                   f'<text x="{x + 6}" y="{y + 18}">{p} ({lines[p]:,} lines, {len(packages[p])} modules)</text>')
    for p in names:
        for q, n in between[p].items():
            y, z = at[p][1] + 13, at[q][1] + 13
            bend = 560 + min(300, abs(z - y) * 0.7)
            colour = "#d62728" if z < y else "#636363"        # red: an import of a higher layer
            out.append(f'<path d="M520 {y} C{bend:.0f} {y} {bend:.0f} {z} 524 {z}" fill="none" stroke="{colour}" '
                       f'stroke-width="{min(4, 0.5 + n / 12):.1f}" opacity="0.6"/><circle cx="522" cy="{z}" r="3" '
                       f'fill="{colour}"/>')
    return "\n".join([*out, "</svg>"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--svg", type=Path, help="the file of the drawing")
    given = parser.parse_args()
    packages, between = read(given.checkout)
    print(table(packages, between))
    if given.svg: given.svg.write_text(svg(packages, between) + "\n")


if __name__ == "__main__": main()
