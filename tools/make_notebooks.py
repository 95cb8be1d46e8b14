"""Write the programs of examples/ that draw a picture as notebooks: python tools/make_notebooks.py FOLDER [NAME ...]

The docstring is text, each class or function has a cell, and the cells at the end are the body of main(), so that its
variables can be looked at. Each notebook is run, and holds what it printed and its picture. `make notebooks` writes
them to out/notebooks; it takes about two minutes on two cores."""

import ast
import os
import re
import sys
from pathlib import Path

import nbformat
from make_gallery import OPTIONS, paragraphs, programs, title
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HEADING = re.compile(r"^# ---- (.+?) -+$")
BACKEND = re.compile(r'^matplotlib\.use\("Agg"\).*\n\n?', re.M)     # Jupyter has one of its own


def source(lines, node):
    """The lines of a statement, with its decorators."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1:node.end_lineno])


def body(lines, main):
    """The body of main() in cells, cut at empty lines. What it returns, the exit status, is a variable."""
    text = "\n".join(line[4:] for line in lines[main.body[0].lineno - 1:main.end_lineno])
    text = re.sub(r"^return ", "exit_status = ", text, flags=re.M)
    lines, cells, last = text.split("\n"), [[]], 0
    for node in ast.parse(text).body:
        if cells[-1] and not lines[last].strip(): cells.append([])
        cells[-1].append("\n".join(lines[last:node.end_lineno]).strip("\n"))
        last = node.end_lineno
    return ["\n".join(cell) for cell in cells]


def notebook(path, folder, *options):
    """The notebook of a program, for a folder, not run. `options` are those of its command line."""
    text = BACKEND.sub("", path.read_text())
    lines, tree = text.split("\n"), ast.parse(text)
    cells = [new_markdown_cell("\n\n".join([f"# {title(path)}", *paragraphs(path)]))]
    plain, last = [], tree.body[0].end_lineno
    setup = ["import sys", "", f"sys.path.insert(0, {os.path.relpath(path.parent, folder)!r})",
             f"sys.argv = {[path.name, '--output', 'out', *options]!r}"]

    def flush():
        if plain: cells.append(new_code_cell("\n".join(plain)))
        plain.clear()

    cells.append(new_code_cell("\n".join(setup)))
    for node in tree.body[1:]:
        for line in lines[last:node.lineno - 1]:
            if heading := HEADING.match(line):
                flush()
                cells.append(new_markdown_cell(f"## {heading[1].capitalize()}"))
        last = node.end_lineno
        if getattr(node, "name", "") == "main":
            flush()
            cells += [new_markdown_cell("## The program"), *map(new_code_cell, body(lines, node))]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            flush()
            cells.append(new_code_cell(source(lines, node)))
        elif not isinstance(node, ast.If): plain.append(source(lines, node))
    flush()
    cells.append(new_code_cell('from IPython.display import Image\n\nImage("out/picture.png")'))
    return new_notebook(cells=[c for c in cells if c.source], metadata={"kernelspec": {
        "name": "python3", "display_name": "Python 3", "language": "python"}})


def run(book, folder):
    """Run the notebook in a folder, which gets its files. Raises CellExecutionError for a cell that fails."""
    NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return book


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in programs():
        if sys.argv[2:] and path.stem not in sys.argv[2:]: continue
        print(path.name, flush=True)
        book = notebook(path, folder, *OPTIONS.get(path.stem, []))
        nbformat.write(run(book, folder), folder / f"{path.stem}.ipynb")


if __name__ == "__main__":
    main()
