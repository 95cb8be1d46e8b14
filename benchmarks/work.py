"""The parts of a row.

A timed row is a module with `cases(libraries, quick)`, a list of Case. A row that needs a process for each figure has
`parts(libraries, quick)`, a list of (peer, part), and `measure(peer, part, quick)`, a dict of workload names, each with
`unit`, `figure` and optionally `details`. A row that starts its own processes has `gather(libraries, quick, say)`,
which returns a list of Gathered.

`THREADS` is the number of threads for which a row makes sense (None: any), and `LIBRARIES` lists the participants. With
`SEPARATE`, each of them has processes of its own with one thread too. `QUICK` and `FULL` override the settings of
collect.py with these names."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.compiler import compiler

ROWS = {"A": "operations", "B": "small_mlp", "C": "digits", "D": "wide_mlp", "E": "convolutions",
        "F": "gpt", "G": "sequences", "H": "large", "I": "matrices", "J": "million", "L": "table",
        "solvers": "solvers", "peaks": "peaks", "import": "imports", "busy": "busy"}
NAMES = {"A": "one operation", "B": "small perceptron", "C": "handwritten digits", "D": "wide layers",
         "E": "convolutions", "F": "language model", "G": "sequences",
         "H": "16 million numbers", "I": "rows, sums and products", "J": "a million operations",
         "L": "rows of a table"}

# The possible participants, with the package that each needs. KEPT: PyTorch in processes whose allocator is configured
# to return nothing to the system. LIMITS: the machine itself (limits.py).
KEPT, LIMITS = "PyTorch keeping memory", "machine"
PACKAGES = {"cygrad": "cygrad", "PyTorch": "torch", KEPT: "torch", "NumPy": "numpy", "jax.jit": "jax",
            "HIPS": "autograd"}
EAGER = ("cygrad", "PyTorch", "NumPy")
TRAINERS = (*EAGER, "jax.jit")
DENSE = "cygrad dense"      # cygrad with a dense gradient, beside a sparse one
FRESH = "cygrad (.grad None)"   # with every .grad set to None before a step
LAYERS = "cygrad.nn"        # the same model in layers (layers.py), beside bare operators
LEFT_OUT_QUICKLY = ("jax.jit", "HIPS")  # in timed rows: start and compilation take longer than the measurement
EIGHT_GIB = str(8 << 30)
ENVIRONMENTS = {KEPT: {"MALLOC_MMAP_THRESHOLD_": EIGHT_GIB, "MALLOC_TRIM_THRESHOLD_": EIGHT_GIB}}
SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0}


@dataclass
class Case:
    """One piece of work that several peers do.

    runs    by peer: a function f(n) that does the work n times; empty if no requested library can do it. The name of
            a peer is that of its library, with a variant after it ("PyTorch fused"). "<peer> companion" is the other
            operation of an alternating chain, whose time is subtracted. "cygrad multiply" is for comparison.
    values  by peer: a function that returns a list of arrays, which must be equal for all peers
    per     operations in one piece of work: times are for one operation
    """

    name: str
    unit: str
    runs: dict[str, Callable]
    values: dict[str, Callable]
    per: int = 1
    tolerance: float = 1e-4
    details: dict = field(default_factory=dict)


@dataclass
class Gathered:
    """The figures of a row that starts its own processes: samples by peer, in `unit`. disturbed: by other programs."""

    name: str
    unit: str
    samples: dict[str, list[float]]
    details: dict = field(default_factory=dict)
    disturbed: bool = False


def module(row):
    """The module of a row."""
    return importlib.import_module("benchmarks." + ROWS[row])


def library(peer):
    """The library of a peer: "PyTorch fused" is PyTorch, "cygrad.nn" is cygrad."""
    return peer.split()[0].rstrip(",").removesuffix(".nn")


def installed(libraries):
    """The libraries that are installed here."""
    return [name for name in libraries
            if (compiler() if name == LIMITS else importlib.util.find_spec(PACKAGES[name]))]


def environment(threads):
    """Environment variables that set the number of threads of each library before its import. jax has two pools: XLA's,
    whose size is NPROC, and Eigen's for products."""
    count = str(threads)
    names = ("CYGRAD_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
    flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} if threads == 1 else {}
    return dict.fromkeys(names, count) | {"JAX_PLATFORMS": "cpu"} | flags


def set_threads(libraries, threads):
    """Let every library use `threads` threads. BLAS libraries and jax read the number from the environment, which the
    parent process has set."""
    import cygrad

    cygrad.set_num_threads(threads)
    if any(library(name) == "PyTorch" for name in libraries):
        import torch

        torch.set_num_threads(threads)


def agree(name, values, tolerance):
    """Raise ValueError unless all peers computed the same. `values` has a list of arrays for each peer, and may be
    empty."""
    if not values:
        return
    (first, wanted), *others = values.items()
    for peer, got in others:
        if len(got) != len(wanted):
            raise ValueError(f"{name}: {first} gives {len(wanted)} arrays, {peer} {len(got)}")
        for i, (a, b) in enumerate(zip(wanted, got, strict=True)):
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            if a.shape != b.shape:
                raise ValueError(f"{name}: array {i} has shape {a.shape} by {first}, {b.shape} by {peer}")
            if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
                worst = float(np.max(np.abs(a - b)))
                raise ValueError(f"{name}: {first} and {peer} differ in array {i} by up to {worst:.3g}; they do not do "
                                 f"the same work")
