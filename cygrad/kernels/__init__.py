"""Kernels: loops over memory. Importing this package registers every strip kernel with the driver.

The build compiles the kernels once for each instruction level, each level into one shared object (bundles.py)."""

from cygrad import bundles
from cygrad.kernels import cpu

bundles.take_kernels(cpu)

import cygrad.kernels.elementwise.compare  # noqa: E402
import cygrad.kernels.elementwise.elementwise  # noqa: E402
import cygrad.kernels.elementwise.functions  # noqa: E402
import cygrad.kernels.reductions.reduce  # noqa: E402
import cygrad.kernels.losses.loss  # noqa: E402, F401
from cygrad.kernels import driver, threads  # noqa: E402

__all__ = ["cpu", "driver", "threads"]
