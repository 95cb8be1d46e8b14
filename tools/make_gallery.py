"""Write docs/gallery.md and docs/_static/gallery/: python tools/make_gallery.py [NAME ...]

Runs each program of examples/ that draws a picture, or those named, and shows its picture, what it printed, and what
its docstring says. `make gallery` takes about two minutes on two cores. The pictures are in git."""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "_static" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
OPTIONS = {"character_lstm": ["--quick"], "character_transformer": ["--quick"]}         # (minutes without it)
HEAD = """\
<!-- Written by tools/make_gallery.py; do not edit. -->
# Gallery

Each program trains something, checks what it has learned, and writes a picture and a memory report. What is shown here
was drawn and printed by running them.
"""


def programs():
    """The programs of examples/ that draw a picture."""
    texts = {path: path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))}
    return [path for path, text in texts.items()
            if re.search(r'options\(__doc__|"picture\.png"', text) and '__name__ == "__main__"' in text]


def paragraphs(path):
    """Those of the docstring, in lines of at most 120 letters. What is indented, commands and samples, is left out."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    return [textwrap.fill(re.sub(r":$", ".", " ".join(part.split())), 120, break_on_hyphens=False)
            for part in text.split("\n\n") if not part.startswith("    ")]


def title(path): return re.split(r"[:,.](?: |$)", paragraphs(path)[0].replace("\n", " "))[0]


def entry(path, printed):
    said = "\n".join(line for line in printed.splitlines() if not line.startswith("written to ")).strip()
    command = " ".join(["python", f"examples/{path.name}", *OPTIONS.get(path.stem, [])])
    return "\n\n".join([f"## {title(path)}", *paragraphs(path),
                        f"![The picture that {path.name} draws](_static/gallery/{path.stem}.png)",
                        f"`{command}` printed:", f"```text\n{said}\n```",
                        f"The program: [{path.name}](../examples/{path.name})"]) + "\n"


def run(path):
    """What a program prints. Its picture is copied."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, path, "--output", folder, *OPTIONS.get(path.stem, [])],
                              stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        shutil.copy(Path(folder, "picture.png"), PICTURES / f"{path.stem}.png")
    return done.stdout


def main():
    """Run the programs, and write the page. The entries of programs that are not named stay as they are."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    before = re.split(r"^(?=## )", PAGE.read_text(), flags=re.M)[1:] if PAGE.exists() else []
    entries = {title(path): old for path in programs() for old in before if old.startswith(f"## {title(path)}\n")}
    for path in programs():
        if sys.argv[1:] and path.stem not in sys.argv[1:]: continue
        print(path.name, flush=True)
        entries[title(path)] = entry(path, run(path))
    PAGE.write_text("\n".join([HEAD, *[entries[title(path)].strip() + "\n" for path in programs()]]))


if __name__ == "__main__":
    main()
