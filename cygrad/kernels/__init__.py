"""Kernels: loops over memory. Importing this package registers every strip kernel with the driver.

The build compiles the kernels once for each instruction level, each level into one shared object. Where a level was not
built (CYGRAD_LEVELS, setup.py), the next lower one that was built is loaded."""

from cygrad import bundles
from cygrad.kernels import cpu

bundles.take(*(f"cygrad.kernels._{level}" for level in reversed(cpu.LEVELS[:cpu.LEVELS.index(cpu.wanted_level()) + 1])))

from cygrad.kernels import compare, driver, elementwise, functions, loss, reduce, threads  # noqa: E402

__all__ = ["compare", "cpu", "driver", "elementwise", "functions", "loss", "reduce", "threads"]
