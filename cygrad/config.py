"""show_config: prints how cygrad was built and what it runs on."""

import os

import cygrad
from cygrad.core.config import built, processors
from cygrad.core.errors import described
from cygrad.kernels.cpu import best_level
from cygrad.kernels.driver import level
from cygrad.kernels.linalg.blas import are_own

SWITCHES = {"CYGRAD_LEVEL": "use the kernels of a lower instruction level: baseline, avx2, avx512",
            "CYGRAD_BLAS": "scipy: matrix products by SciPy's BLAS, not by cygrad's kernels",
            "CYGRAD_NUM_THREADS": "the maximum number of threads for kernels",
            "CYGRAD_CHECK_SAVED": "1: backward compares saved tensors by checksum"}


def blas():
    """The BLAS under svd, eigh and what is made of them, and under matrix products with CYGRAD_BLAS=scipy: that of
    SciPy, or without SciPy that of NumPy. Name and version, as their build reports them."""
    try:
        from scipy.__config__ import show
        through = "scipy.linalg"
    except ImportError:
        from numpy.__config__ import show
        through = "numpy.linalg"
    found = show("dicts")["Build Dependencies"]["blas"]
    return {"name": found["name"], "version": found["version"], "through": through,
            "core type": os.environ.get("OPENBLAS_CORETYPE")}


def version_of(package):
    """The version of an installed package, or None."""
    from importlib.metadata import PackageNotFoundError, version

    try: return version(package)
    except PackageNotFoundError: return None


def show_config(mode="stdout"):
    """Print how cygrad was built and what it runs on: versions, compiler, OpenMP and threads, BLAS, the instruction
    levels of the machine and of the selected kernels, the default dtype, and the environment variables that cygrad
    reads. With mode="dicts" it prints nothing and returns the same as a dict of dicts. Raises ValueError for another
    mode."""
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode must be \"stdout\" or \"dicts\", got {described(mode)}")
    import platform

    found = {
        "Versions": {"cygrad": cygrad.__version__, "python": platform.python_version(), "numpy": version_of("numpy"),
                     "scipy": version_of("scipy")},
        "Build": built(),
        "BLAS": blas(),
        "Machine": {"system": f"{platform.system()} {platform.machine()}", "CPUs": processors(),
                    "instruction level": best_level()},
        "Settings": {"threads": cygrad.get_num_threads(), "kernels for": level(),
                     "products by": "cygrad" if are_own(os.environ.get("CYGRAD_BLAS")) else "BLAS",
                     "default dtype": str(cygrad.get_default_dtype())},
        "Environment": {name: os.environ.get(name) for name in SWITCHES},
    }
    if mode == "dicts": return found
    for part, values in found.items():
        print(f"{part}:")
        for name, value in values.items():
            if value is None: value = "not installed" if part == "Versions" else "not set"
            if isinstance(value, bool): value = "yes" if value else "no"
            print(f"  {name + ':':<20} {value}" + (f"   ({SWITCHES[name]})" if name in SWITCHES else ""))
    return None
