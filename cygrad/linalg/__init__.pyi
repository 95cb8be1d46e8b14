# Written by tools/make_stubs.py; do not edit.

from cygrad.ops.linalg.spectra import EighResult as EighResult
from numpy.linalg import LinAlgError as LinAlgError
from cygrad.ops.linalg.solve import LstsqResult as LstsqResult
from cygrad.ops.linalg.decompose import QRResult as QRResult
from cygrad.ops.linalg.spectra import SVDResult as SVDResult
from cygrad.ops.linalg.determinant import SlogdetResult as SlogdetResult
from cygrad.ops.linalg.decompose import cholesky as cholesky
from cygrad.ops.linalg.products import cross as cross
from cygrad.ops.linalg.determinant import det as det
from cygrad.ops.linalg.norms import diagonal as diagonal
from cygrad.ops.linalg.spectra import eigh as eigh
from cygrad.ops.linalg.spectra import eigvalsh as eigvalsh
from cygrad.ops.linalg.solve import inv as inv
from cygrad.ops.linalg.solve import lstsq as lstsq
from cygrad.ops.linalg.linalg import matmul as matmul
from cygrad.ops.linalg.norms import matrix_norm as matrix_norm
from cygrad.ops.linalg.norms import matrix_power as matrix_power
from cygrad.ops.linalg.norms import matrix_rank as matrix_rank
from cygrad.ops.shapes.shape import matrix_transpose as matrix_transpose
from cygrad.ops.linalg.norms import norm as norm
from cygrad.ops.linalg.products import outer as outer
from cygrad.ops.linalg.solve import pinv as pinv
from cygrad.ops.linalg.decompose import qr as qr
from cygrad.ops.linalg.determinant import slogdet as slogdet
from cygrad.ops.linalg.solve import solve as solve
from cygrad.ops.linalg.solve import solve_triangular as solve_triangular
from cygrad.ops.linalg.spectra import svd as svd
from cygrad.ops.linalg.spectra import svdvals as svdvals
from cygrad.ops.linalg.products import tensordot as tensordot
from cygrad.ops.linalg.norms import trace as trace
from cygrad.ops.linalg.products import vecdot as vecdot
from cygrad.ops.reductions.statistics import norm as vector_norm
__all__ = ['EighResult', 'LinAlgError', 'LstsqResult', 'QRResult', 'SVDResult', 'SlogdetResult', 'cholesky', 'cross', 'det', 'diagonal', 'eigh', 'eigvalsh', 'inv', 'lstsq', 'matmul', 'matrix_norm', 'matrix_power', 'matrix_rank', 'matrix_transpose', 'norm', 'outer', 'pinv', 'qr', 'slogdet', 'solve', 'solve_triangular', 'svd', 'svdvals', 'tensordot', 'trace', 'vecdot', 'vector_norm']
