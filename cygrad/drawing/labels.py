"""Texts in the rows of memory reports, which pictures and tables know."""

import os

BEFORE = "before"           # the operation of buffers that were live when the scope was entered
OUTSIDE = "(no layer)"      # the layer of everything else
ONE_SHAPE = r"(\d+ x )?\([^)]*\) \w+"            # matches one shape in PeakRow.shape


def shown_line(line):
    """"file:line" with the file relative to the working directory, if it is below it."""
    below = os.path.join(os.getcwd(), "")
    return line[len(below):] if line.startswith(below) else line
