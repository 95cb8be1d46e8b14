"""Benchmarks of cygrad, PyTorch, NumPy, jax and HIPS autograd: the same work, interleaved in one run.

    python -m benchmarks --help

Each row of work is a module, whose docstring describes the work. `work.py` defines what a row consists of, `timing.py`
measures times, `collect.py` starts the processes, `limits.py` measures the limits of the machine, and `goals.py` has
the goals. `stored.py` writes the results, `report.py` and `pictures.py` present them, and `compare.py` lists the
changes between two runs.

    python -m benchmarks.sweep

compares every operator with PyTorch's at five sizes, and lists what is slower.

    python -m benchmarks.memory

compares bytes: peaks, bytes that operators save, page faults."""

import os

# OpenBLAS reads these when it is loaded, and would use kernels for another CPU.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"): os.environ.pop(_name, None)
