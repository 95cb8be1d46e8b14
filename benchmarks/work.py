"""What a row is made of.

A timed row is a module with `cases(libraries, quick)`, a list of Case. A row that wants a process for each figure has
`parts(libraries, quick)`, a list of (peer, part), and `measure(peer, part, quick)`, a dict of workload names, each with
`unit`, `figure` and, if it likes, `details`. `THREADS` says for how many threads a row makes sense (None: any)."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

ROWS = {"A": "operations", "B": "small_mlp", "C": "digits", "J": "million", "peaks": "peaks"}
LIBRARIES = ("cygrad", "PyTorch", "NumPy")
SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0}


@dataclass
class Case:
    """One piece of work that several peers do.

    runs    by peer: a function f(n) that does the work n times. A peer is named after its library, with a variant
            behind it ("PyTorch fused"). "<peer> companion" is the other operation of a chain in which two alternate
            (its time is taken off), "cygrad multiply" what the operation is compared with.
    values  by peer: a function that gives a list of arrays which all peers must agree on
    per     operations in one piece of work: times are given for one
    """

    name: str
    unit: str
    runs: dict[str, Callable]
    values: dict[str, Callable]
    per: int = 1
    tolerance: float = 1e-4
    details: dict = field(default_factory=dict)


def module(row):
    """The module of a row."""
    return importlib.import_module("benchmarks." + ROWS[row])


def library(peer):
    """The library of a peer: "PyTorch fused" is PyTorch."""
    return peer.split()[0].rstrip(",")


def installed():
    """The libraries that can be compared here."""
    return [name for name in LIBRARIES if name != "PyTorch" or importlib.util.find_spec("torch")]


def set_threads(libraries, threads):
    """Let every library use `threads` threads. BLAS libraries read theirs from the environment, which the parent
    set."""
    import cygrad

    cygrad.set_num_threads(threads)
    if "PyTorch" in libraries:
        import torch

        torch.set_num_threads(threads)


def agree(name, values, tolerance):
    """Raise ValueError unless all peers computed the same: `values` has a list of arrays for each."""
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
