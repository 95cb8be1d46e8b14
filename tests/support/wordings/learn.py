"""Errors of `python -m cygrad learn`, and what checks say."""

import tempfile
from pathlib import Path

from cygrad.learn import checking, command, course, folder


def with_progress(text):
    with tempfile.TemporaryDirectory() as name:
        Path(name, "progress.json").write_text(text)
        folder.ReaderFolder(name)


CASES = [
    (lambda: course.exercises(30), course.LearnError, "there is no chapter 30; the chapters are 1 to 29"),
    (lambda: course.find("ch99"), course.LearnError,
     "there is no exercise 'ch99'; a name is that of a file, such as ch01a_slope"),
    (lambda: command.run(["a", "b"]), course.LearnError, "give one folder, or --summary for several"),
    (lambda: command.run(["a", "b"], reset="ch01a"), course.LearnError, "give one folder for --reset"),
    (lambda: folder.ReaderFolder(__file__), course.LearnError, f"{__file__} is a file; give a folder"),
    (lambda: with_progress("{}"), course.LearnError,
     "<*>progress.json is not what this command has written; rename it, and the progress begins anew"),
    (lambda: checking.equal("x", 1.5, 2.0, "Look there."), checking.Wrong, "x is 1.5, but 2 is right. Look there."),
    (lambda: checking.equal("x", [1, 2], 3, "Look there."), checking.Wrong, "x has shape (2,), but () is right. Look "
                                                                            "there."),
]
