"""Read docs/examples/*.txt, the examples of the reference, and run them: python tools/doc_examples.py [FILE ...]

A file has the examples of the page of docs/api with its name. An entry is one or more full public names, each on a line
of its own, and below them, indented by four spaces, a doctest that uses each of them. It finds cygrad as cg, NumPy as
np, and math; other imports stand in the example. When its names are gone, no tensor may be left."""

import builtins
import doctest
import math
import re
import sys
import textwrap
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "examples"
ENTRY = re.compile(r"((?:\w+(?:\.\w+)+\n)+)((?: {4}.*\n|\n)+)")


def read(path):
    """The entries of a file: (names, text) of each."""
    text = path.read_text()
    found = [(names.split(), textwrap.dedent(body).strip() + "\n") for names, body in ENTRY.findall(text)]
    if "".join(map("".join, ENTRY.findall(text))) != text:
        raise ValueError(f"{path.name}: a line is neither a public name nor indented by four spaces")
    return found


def entries():
    """The entries of all files."""
    return [entry for path in sorted(FOLDER.glob("*.txt")) for entry in read(path)]


def run(names, text):
    """What doctest says of an example, or "" if its output is right."""
    import cygrad as cg

    test = doctest.DocTestParser().get_doctest(text, {"cg": cg, "np": np, "math": math}, names[0], None, 0)
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    vars(builtins).pop("_", None)                   # the last value that was shown
    return "".join(said) if test.examples else f"{names[0]} has no example"


if __name__ == "__main__":
    wrong = [said for path in [*map(Path, sys.argv[1:])] or sorted(FOLDER.glob("*.txt"))
             for entry in read(path) if (said := run(*entry))]
    sys.exit("\n".join(wrong) or None)
