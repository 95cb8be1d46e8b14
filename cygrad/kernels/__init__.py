"""Kernels: loops over memory. Importing this package registers every strip kernel with the driver.

The build compiles the kernels once for each instruction level, each level into one shared object (bundles.py)."""

from cygrad import bundles
from cygrad.kernels import cpu

bundles.take_kernels(cpu)

from cygrad.kernels import compare, driver, elementwise, functions, loss, reduce, threads  # noqa: E402

__all__ = ["compare", "cpu", "driver", "elementwise", "functions", "loss", "reduce", "threads"]
