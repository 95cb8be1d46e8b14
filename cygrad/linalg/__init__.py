"""Linear algebra under the names of numpy.linalg and of the Array API standard. Most are functions of cygrad itself:
cygrad.linalg.solve is cygrad.solve. `norm`, `diagonal` and `trace` differ from those of cygrad as NumPy's do: these two
take the last two axes. `vector_norm` is cygrad.norm. Singular values and eigenvalues are LAPACK's: SciPy's if it is
installed (the extra cygrad[linalg]), else those of numpy.linalg, which computes in float64."""

from numpy.linalg import LinAlgError

from cygrad.ops.linalg.decompose import QRResult, cholesky, qr
from cygrad.ops.linalg.determinant import SlogdetResult, det, slogdet
from cygrad.ops.linalg.general import EigResult, eig, eigvals, expm, logm, sqrtm
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.linalg.norms import (
    diagonal, matrix_norm, matrix_power, matrix_rank, norm, normalize, trace,
)
from cygrad.ops.linalg.products import cross, outer, tensordot, vecdot
from cygrad.ops.shapes.shape import matrix_transpose
from cygrad.ops.linalg.solve import LstsqResult, inv, lstsq, pinv, solve, solve_triangular
from cygrad.ops.linalg.spectra import EighResult, SVDResult, eigh, eigvalsh, svd, svdvals
from cygrad.ops.reductions.statistics import norm as vector_norm

__all__ = [
    "EigResult", "EighResult", "LinAlgError", "LstsqResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky",
    "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv", "logm", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "norm", "normalize", "outer", "pinv", "qr",
    "slogdet", "solve", "solve_triangular", "sqrtm", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]


def __dir__(): return __all__
