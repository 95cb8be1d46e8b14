"""What the processor can do: which of the kernels' builds to take."""

import os

cdef extern from "cygrad/platform.h":
    const char* cg_best_level()

LEVELS = ("baseline", "avx2", "avx512")                 # each has all instructions of those before it


def best_level():
    """The highest level that this machine has."""
    return (<bytes>cg_best_level()).decode()


def wanted_level():
    """The level to take: the best, or a lower one that CYGRAD_LEVEL asks for. Raises ValueError for another."""
    best = best_level()
    asked = os.environ.get("CYGRAD_LEVEL") or best
    possible = LEVELS[:LEVELS.index(best) + 1]
    if asked not in possible:
        raise ValueError(f"CYGRAD_LEVEL is {asked!r}; this machine has {', '.join(possible)}")
    return asked
