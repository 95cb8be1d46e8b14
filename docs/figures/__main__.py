"""Draws the figures of the walkthrough: `python docs/figures` writes them to docs/_static, `python docs/figures FOLDER`
to a folder. The workspace of some operators depends on the CPU, so it is that of the baseline kernels, on one thread.
A module for some chapters has a dictionary FIGURES: file names, and functions that return the texts of the files.
"""

import os
import sys
from pathlib import Path

os.environ["CYGRAD_LEVEL"] = "baseline"     # before cygrad is imported

import backward
import basics
import budgets
import derivatives
import fusing
import kernels
import model
import nets
import ranks
import solvers
import speed
import start
import transformer

MODULES = (backward, basics, budgets, derivatives, fusing, kernels, model, nets, ranks, solvers, speed, start,
           transformer)
FIGURES = {name: draw for module in MODULES for name, draw in module.FIGURES.items()}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[1] / "_static"
    nets.cg.set_num_threads(1)
    for name, draw in FIGURES.items(): (folder / name).write_text(draw())
