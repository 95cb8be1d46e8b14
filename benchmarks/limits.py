"""The limits of the machine, measured in the same run as the figures that they are compared with: the rates of copying
and reading memory, and of multiply-adds. The loops are in limits.h and are compiled here for this machine. Without a C
compiler there are no limits."""

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.compiler import compiler
from benchmarks.work import LIMITS, SCALES, Case

NBYTES = 64 << 20          # to copy or read: larger than any cache
ROUNDS = 1 << 20           # of multiply-adds: a few milliseconds
UNITS = {"copy": "GB/s", "read": "GB/s", "fma": "GFLOP/s"}
NAMES = {"copy": "the machine copies 64 MiB", "read": "the machine reads 64 MiB",
         "fma": "the machine multiplies and adds"}


@cache
def library():
    """The loops, compiled."""
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "limits.so")
        native = [] if os.uname().machine in ("arm64", "aarch64") else ["-march=native"]
        subprocess.run([*compiler(), "-O3", *native, "-fopenmp", "-shared", "-fPIC", "-x", "c",
                        str(Path(__file__).with_name("limits.h")), "-o", str(made)], check=True)
        loaded = ctypes.CDLL(str(made))
    loaded.operations.restype, loaded.read_all.restype = ctypes.c_long, ctypes.c_float
    return loaded


def cases(libraries, which):
    """A case for each of `which` ("copy", "read", "fma"), if LIMITS is among the libraries. The amount is the number of
    bytes read and written, or of operations."""
    if LIMITS not in libraries:
        return []
    made, threads = library(), int(os.environ.get("OMP_NUM_THREADS", 1))
    x = np.ones(NBYTES // 4, np.float32)
    y = np.zeros_like(x)
    size, source, into = ctypes.c_long(NBYTES), x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p)

    def copy(n):
        for _ in range(n):
            made.copy(into, source, size, threads)

    def read(n):
        for _ in range(n):
            made.read_all(source, ctypes.c_long(x.size), threads)

    def multiply_add(n):
        made.multiply_add(ctypes.c_long(n * ROUNDS), threads)

    runs = {"copy": (copy, 2 * NBYTES), "read": (read, NBYTES),
            "fma": (multiply_add, made.operations() * ROUNDS * threads)}
    return [Case(NAMES[name], "ms", {LIMITS: run}, {}, details=dict(rate=name, amount=amount, shown=UNITS[name]))
            for name in which for run, amount in [runs[name]]]


def mark(results):
    """Set the machine's time for each result that names a limit ({"limit": "copy", "amount": bytes}), by the rate
    measured in the same row with the same number of threads. {"limit": "own"}: it was a peer in the same rounds."""
    rates = {}
    for r in results:
        if "rate" in r["details"]:
            median = r["figures"][LIMITS]["median"] / SCALES[r["unit"]]
            rates[r["row"], r["threads"], r["details"]["rate"]] = r["details"]["amount"] / median, r["disturbed"]
    for r in results:
        rate = rates.get((r["row"], r["threads"], r["details"].get("limit")))
        if r["details"].get("limit") == "own" and LIMITS in r["figures"]:
            r["limit"] = {"figure": r["figures"][LIMITS]["median"], "disturbed": r["disturbed"]}
        elif rate:
            per_second, disturbed = rate
            r["limit"] = {"figure": r["details"]["amount"] / per_second * SCALES[r["unit"]], "disturbed": disturbed}
