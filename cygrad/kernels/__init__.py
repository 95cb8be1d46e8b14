"""Floor 0: loops over memory. Importing this enters every strip kernel in the driver's table.

The build has the kernels once for each level of instructions, each level in a bundle. A level that was not built
(CYGRAD_LEVELS, setup.py) is served by the next lower one that was."""

from cygrad import bundles
from cygrad.kernels import cpu

bundles.take(*(f"cygrad.kernels._{level}" for level in reversed(cpu.LEVELS[:cpu.LEVELS.index(cpu.wanted_level()) + 1])))

from cygrad.kernels import compare, driver, elementwise, functions, loss, reduce  # noqa: E402

__all__ = ["compare", "cpu", "driver", "elementwise", "functions", "loss", "reduce"]
