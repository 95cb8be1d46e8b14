"""show_config: what cygrad was built with, and what it runs on."""

import os

import cygrad
from cygrad.core.config import built, processors
from cygrad.core.errors import described
from cygrad.kernels.cpu import best_level
from cygrad.kernels.driver import level

SWITCHES = {"CYGRAD_LEVEL": "take the kernels of a lower instruction level: baseline, avx2, avx512",
            "CYGRAD_NUM_THREADS": "threads that kernels may use",
            "CYGRAD_CHECK_SAVED": "1: what is kept for backward is compared by checksum"}


def blas():
    """The BLAS of SciPy, through which matrix products go: name and version, as SciPy's build says."""
    import scipy.__config__

    found = scipy.__config__.show("dicts")["Build Dependencies"]["blas"]
    return {"name": found["name"], "version": found["version"], "through": "scipy.linalg.cython_blas",
            "told to run as on": os.environ.get("OPENBLAS_CORETYPE")}


def show_config(mode="stdout"):
    """Print what cygrad was built with and what it runs on: versions, compiler, OpenMP and threads, BLAS, the
    instruction levels of the machine and of the kernels taken, the default dtype, the environment switches that cygrad
    reads. With mode="dicts" nothing is printed; the same comes back as dicts. Raises ValueError for other modes."""
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode is \"stdout\" or \"dicts\", got {described(mode)}")
    import platform
    from importlib.metadata import version

    found = {
        "Versions": {"cygrad": cygrad.__version__, "python": platform.python_version(), "numpy": version("numpy"),
                     "scipy": version("scipy")},
        "Build": built(),
        "BLAS": blas(),
        "Machine": {"system": f"{platform.system()} {platform.machine()}", "processors": processors(),
                    "instruction level": best_level()},
        "Settings": {"threads": cygrad.get_num_threads(), "kernels for": level(),
                     "default dtype": str(cygrad.get_default_dtype())},
        "Environment": {name: os.environ.get(name) for name in SWITCHES},
    }
    if mode == "dicts": return found
    for part, values in found.items():
        print(f"{part}:")
        for name, value in values.items():
            if value is None: value = "not set"
            if isinstance(value, bool): value = "yes" if value else "no"
            print(f"  {name + ':':<20} {value}" + (f"   ({SWITCHES[name]})" if name in SWITCHES else ""))
    return None
