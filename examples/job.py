"""What the small programs of this folder share: options, and the files at the end of a run."""

import argparse
import sys
from pathlib import Path


def options(description, folder, *flags, **counts):
    """The arguments of the command line: --output, `flags`, and a number with a default for each of `counts`."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path(folder), help="the folder (default: %(default)s)")
    for name, default in counts.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="how many (default: %(default)s)")
    for name in flags: parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    return given


def save_figure(figure, path):
    """Write a matplotlib figure without frames around its panels."""
    for axes in figure.axes: axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def finish(folder, lines, profile, memory, wrong):
    """Write memory.html and memory.txt, with the lines `memory` after the tables; print, and return the exit status:
    1 if anything is `wrong`."""
    report = [*profile.table(by="category").splitlines(), "", *profile.table(by="operation").splitlines(), "", *memory]
    (folder / "memory.txt").write_text("\n".join(report) + "\n")
    profile.save(folder / "memory.html")
    print(*lines, "", *report[:report.index("")], *memory, "", sep="\n")
    print(f"written to {folder}: picture.png, memory.txt, memory.html")
    for line in wrong: print(f"not learned: {line}", file=sys.stderr)
    return 1 if wrong else 0
