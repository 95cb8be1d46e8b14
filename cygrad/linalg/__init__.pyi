# Written by tools/make_stubs.py; do not edit.

from cygrad.ops.spectra import EighResult as EighResult
from numpy.linalg import LinAlgError as LinAlgError
from cygrad.ops.solve import LstsqResult as LstsqResult
from cygrad.ops.decompose import QRResult as QRResult
from cygrad.ops.spectra import SVDResult as SVDResult
from cygrad.ops.determinant import SlogdetResult as SlogdetResult
from cygrad.ops.decompose import cholesky as cholesky
from cygrad.ops.products import cross as cross
from cygrad.ops.determinant import det as det
from cygrad.ops.norms import diagonal as diagonal
from cygrad.ops.spectra import eigh as eigh
from cygrad.ops.spectra import eigvalsh as eigvalsh
from cygrad.ops.solve import inv as inv
from cygrad.ops.solve import lstsq as lstsq
from cygrad.ops.linalg import matmul as matmul
from cygrad.ops.norms import matrix_norm as matrix_norm
from cygrad.ops.norms import matrix_power as matrix_power
from cygrad.ops.shape import matrix_transpose as matrix_transpose
from cygrad.ops.norms import norm as norm
from cygrad.ops.products import outer as outer
from cygrad.ops.solve import pinv as pinv
from cygrad.ops.decompose import qr as qr
from cygrad.ops.determinant import slogdet as slogdet
from cygrad.ops.solve import solve as solve
from cygrad.ops.solve import solve_triangular as solve_triangular
from cygrad.ops.spectra import svd as svd
from cygrad.ops.spectra import svdvals as svdvals
from cygrad.ops.products import tensordot as tensordot
from cygrad.ops.norms import trace as trace
from cygrad.ops.products import vecdot as vecdot
from cygrad.ops.statistics import norm as vector_norm
__all__ = ['EighResult', 'LinAlgError', 'LstsqResult', 'QRResult', 'SVDResult', 'SlogdetResult', 'cholesky', 'cross', 'det', 'diagonal', 'eigh', 'eigvalsh', 'inv', 'lstsq', 'matmul', 'matrix_norm', 'matrix_power', 'matrix_transpose', 'norm', 'outer', 'pinv', 'qr', 'slogdet', 'solve', 'solve_triangular', 'svd', 'svdvals', 'tensordot', 'trace', 'vecdot', 'vector_norm']
