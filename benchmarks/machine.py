"""The machine and the versions that the figures were measured with."""

import datetime
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path


def cpu_name():
    """The CPU's name, from the system."""
    for line in read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def vector_level():
    """The widest vector instructions of the CPU."""
    flags = set(read("/proc/cpuinfo").split())
    levels = {"avx512f": "AVX-512", "avx2": "AVX2"}
    return next((name for flag, name in levels.items() if flag in flags), platform.machine())


def read(path):
    return Path(path).read_text() if Path(path).exists() else ""


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def blas():
    """The BLAS of each library with its version, from the library's build information. cygrad uses SciPy's for singular
    values and eigenvalues, and for products with CYGRAD_BLAS=scipy."""
    import numpy
    import scipy

    found = {}
    for name, module in (("NumPy", numpy), ("SciPy", scipy)):
        used = module.show_config(mode="dicts")["Build Dependencies"]["blas"]
        found[name] = f"{used['name']} {used['version']}"
    if version("torch"):
        import torch

        mkl = re.search(r"Math Kernel Library Version (\S+?)(-|\s)", torch.__config__.show())
        other = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
        found["PyTorch"] = f"MKL {mkl[1]}" if mkl else other[1] if other else "unknown"
    return found


def commit():
    """The commit of this tree, with a + if files differ from it. None outside of git."""
    try:
        changed = git("status", "--short", "--untracked-files=no", "--", "../cygrad", "../include")
        return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def load():
    """The average number of running processes over the last minute."""
    return round(os.getloadavg()[0], 2)


def describe():
    """The machine and the versions, as a dict."""
    import cygrad

    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "vectors": vector_level(),
        "core_type": os.environ.get("OPENBLAS_CORETYPE"),      # the kernels of NumPy's and SciPy's BLAS, if set
        "blas": blas(),
        "memory_gib": round(pages * size / 2**30, 1),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}, {' '.join(platform.libc_ver())}",
        "python": platform.python_version(),
        "cygrad": cygrad.__version__,
        "commit": commit(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "torch": version("torch"),
        "jax": version("jax"),
        "autograd": version("autograd"),
    }
