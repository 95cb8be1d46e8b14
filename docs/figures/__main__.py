"""Draws the figures of the walkthrough: `python docs/figures` writes them to docs/_static. A module for some chapters
has a dictionary FIGURES: file names, and functions that return the texts of the files.
"""

from pathlib import Path

import nets
import solvers
import transformer

FOLDER = Path(__file__).parents[1] / "_static"
FIGURES = {name: draw for module in (solvers, nets, transformer) for name, draw in module.FIGURES.items()}

if __name__ == "__main__":
    for name, draw in FIGURES.items(): (FOLDER / name).write_text(draw())
