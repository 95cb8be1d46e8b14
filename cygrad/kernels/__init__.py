"""Floor 0: loops over memory. Importing this enters every strip kernel in the driver's table.

The build has the kernels once for each level of instructions, in directories named after them; the level's directory
comes first on this package's path. What it has not (a build without levels) is taken from here, for any processor."""

import os

from cygrad.kernels import cpu

__path__.insert(0, os.path.join(__path__[0], cpu.wanted_level()))

from cygrad.kernels import compare, driver, elementwise, functions, loss, reduce  # noqa: E402

__all__ = ["compare", "cpu", "driver", "elementwise", "functions", "loss", "reduce"]
