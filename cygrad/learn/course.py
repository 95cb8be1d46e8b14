"""The exercises and their chapters, in order."""

import ast
import importlib
import re
from pathlib import Path
from typing import NamedTuple

FILES = Path(__file__).parent / "exercises"
TITLES = dict(enumerate((
    "A first gradient", "Learning digits", "Save, resume, deploy", "When something is wrong",
    "A scalar autograd in forty lines", "From numbers to arrays", "Layers from scratch", "What a solver does",
    "Derivatives as functions", "A transformer from nothing", "Numbers in memory",
    "The real graph, and what backward frees", "Modes and scopes", "Reading the memory report",
    "What an allocator does", "Where the bytes of a real model are", "Living under a budget", "Values on a disk",
    "Gradients that are never stored", "Adding an operator", "How a kernel becomes fast",
    "How a product becomes fast", "A convolution as a product", "Attention without its matrix", "From tape to net",
    "How a memory plan is made", "Replay", "Nets that decide", "Many processes"), 1))


class LearnError(Exception):
    """The reason why the command cannot work, in one line."""


class Exercise(NamedTuple):
    """An exercise: its name, such as ch05a_exponential, its chapter, and the file that readers get."""

    name: str
    chapter: int
    file: Path

    @property
    def task(self):
        """The docstring of the file."""
        return ast.get_docstring(ast.parse(self.file.read_text()))

    def check(self, reader):
        """Raise Wrong if what the reader has written is wrong."""
        module = importlib.import_module(f"cygrad.learn.checks.ch{self.chapter:02}")
        getattr(module, self.name.partition("_")[2])(reader)


def exercises(chapter=None):
    """All exercises, or those of a chapter."""
    if chapter is not None and chapter not in TITLES:
        raise LearnError(f"there is no chapter {chapter}; the chapters are 1 to {max(TITLES)}")
    found = [Exercise(path.stem, int(number[1]), path) for path in sorted(FILES.glob("*.py"))
             if (number := re.match(r"ch(\d\d)[a-z]_", path.name))]
    return [e for e in found if chapter in (None, e.chapter)]


def find(name):
    """The exercise of that name. `ch05a` and `ch05a_exponential.py` are names of ch05a_exponential, too."""
    stem = Path(name).name.removesuffix(".py")
    for exercise in exercises():
        if stem in (exercise.name, exercise.name.partition("_")[0]): return exercise
    raise LearnError(f"there is no exercise {name!r}; a name is that of a file, such as {exercises()[0].name}")
