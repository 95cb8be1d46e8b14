"""What kernels call of other libraries: SciPy's BLAS and LAPACK, the functions that set the threads of an OpenBLAS, and
numpy.linalg. In Python, because kernels are compiled for each instruction level. Loaded at first use."""

import ctypes
import importlib
import sys
from pathlib import Path

import numpy as np


def scipy_functions(module):
    """The function pointers of a module of scipy.linalg: capsules by name. Raises ImportError without SciPy."""
    return importlib.import_module("scipy.linalg." + module).__pyx_capi__


def thread_functions(package):
    """The addresses of the functions that set and get the number of threads of the OpenBLAS in the wheel of SciPy or
    NumPy, whose names end in 64_. Zeros for another BLAS."""
    folder = Path(sys.modules[package].__file__).parent.parent
    for library in sorted(folder.glob(f"{package}.libs/*openblas*")):
        handle = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads"):
            for end in ("", "64_"):
                if not hasattr(handle, name.format("set") + end): continue
                return [ctypes.cast(handle[name.format(what) + end], ctypes.c_void_p).value for what in ("set", "get")]
    return 0, 0


def array(dtype, memory, *shape):
    return np.frombuffer(memory, dtype).reshape(shape)


def write(function, x, results, **options):
    """Write what a function of numpy.linalg returns for x into the arrays `results`. Like LAPACK it does not warn of an
    overflow of float32."""
    with np.errstate(all="ignore"):
        found = function(x, **options)
        for i, y in enumerate(results): y[...] = found[i] if isinstance(found, tuple) else found


def svd(dtype, count, m, n, full, a, u, s, vh):
    """Write the singular values of a (count, m, n) to s, and its vectors to u and vh if they are given. All are
    memory."""
    k = min(m, n)
    results = [array(dtype, s, count, k)]
    if u is not None:
        results = [array(dtype, u, count, m, m if full else k), *results, array(dtype, vh, count, n if full else k, n)]
    write(np.linalg.svd, array(dtype, a, count, m, n), results, full_matrices=full, compute_uv=u is not None)


def eigh(dtype, count, n, uplo, vectors, a, w):
    """Write the eigenvalues of a (count, n, n) to w and, with `vectors`, its eigenvectors to a."""
    x, w = array(dtype, a, count, n, n), array(dtype, w, count, n)
    write(np.linalg.eigh if vectors else np.linalg.eigvalsh, x, [w, x] if vectors else [w], UPLO=uplo)
