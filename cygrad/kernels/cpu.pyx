"""The instruction level of the CPU, which selects the build of the kernels."""

import os

cdef extern from "cygrad/platform.h":
    const char* cg_best_level()

LEVELS = ("baseline", "avx2", "avx512")                 # each level includes the ones before it


def best_level():
    """The highest level that this machine supports."""
    return (<bytes>cg_best_level()).decode()


def wanted_level():
    """The level to load: the highest, or the lower one that CYGRAD_LEVEL names. Raises ValueError for another name."""
    best = best_level()
    requested = os.environ.get("CYGRAD_LEVEL") or best
    possible = LEVELS[:LEVELS.index(best) + 1]
    if requested not in possible:
        raise ValueError(f"CYGRAD_LEVEL is {requested!r}; this machine supports {', '.join(possible)}")
    return requested
