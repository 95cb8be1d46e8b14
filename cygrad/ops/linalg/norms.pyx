"""Functions of matrices that are made of operators: norm, matrix_norm, matrix_power, and diagonal and trace of
cygrad.linalg, which are those of the last two dimensions."""

import math

import numpy as np

from cygrad.core.store cimport layout as lay
from cygrad.core.graph.tensor cimport Tensor, ensure_tensor
from cygrad.kernels.array cimport INT64

from cygrad.core.dtypes import DTYPES
from cygrad.core.errors import described
from cygrad.core.execute.composed import composed
from cygrad.core.interop.creation import eye, zeros
from cygrad.ops.elementwise.compare import greater, maximum
from cygrad.ops.linalg.diagonal import diagonal as diagonal_over
from cygrad.ops.linalg.linalg import matmul
from cygrad.ops.reductions.minmax import max as max_over
from cygrad.ops.reductions.minmax import min as min_over
from cygrad.ops.reductions.reduce import sum
from cygrad.ops.shapes.shape import astype, broadcast_to, copy, expand_dims, permute
from cygrad.ops.linalg.solve import inv
from cygrad.ops.linalg.spectra import svdvals
from cygrad.ops.reductions.statistics import norm as vector_norm


@composed
def matrix_norm(x: Data, ord: float | Literal["fro", "nuc"] = "fro", keepdims: bool = False) -> Tensor:
    """The norm of each matrix of `x` (..., m, n): "fro" is the root of the sum of squares, "nuc" the sum of the
    singular values, 2 (-2) the largest (smallest) of them, 1 (-1) the largest (smallest) sum of |x| of a column, inf
    (-inf) of a row. Raises ValueError for another ord, or for fewer than two dimensions."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 2: raise ValueError(f"matrix_norm: x is {t.shape}; wanted matrices (..., m, n)")
    if ord == "fro": return vector_norm(t, 2, (-2, -1), keepdims)
    if isinstance(ord, str) and ord == "nuc": y = sum(svdvals(t), -1)
    elif ord not in (1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {described(ord)}")
    else:
        over = max_over if ord > 0 else min_over
        y = svdvals(t) if ord in (2, -2) else sum(abs(t), -2 if ord in (1, -1) else -1)
        if y.shape[-1] == 0:
            raise ValueError(f"matrix_norm: x is {t.shape}; its empty matrices have no norm with ord {ord}")
        y = over(y, -1)
    return expand_dims(y, (-2, -1)) if keepdims else y


def norm(x: Data, ord: float | Literal["fro", "nuc"] | None = None, axis: int | Sequence[int] | None = None,
         keepdims: bool = False) -> Tensor:
    """numpy.linalg.norm: a vector norm over one axis, a matrix norm over two. Without `axis`, x is a vector or a
    matrix; without `ord` too, the root of the sum of squares of all elements. See cygrad.norm and matrix_norm."""
    cdef Tensor t = ensure_tensor(x)
    cdef int a, b
    if axis is None:
        if ord is None: return vector_norm(t, 2, None, keepdims)
        if t.layout.ndim not in (1, 2):
            raise ValueError(f"linalg.norm: x is {t.shape}; with ord and without axis, wanted a vector or a matrix")
        axis = tuple(range(t.layout.ndim))
    axes = tuple(axis) if hasattr(axis, "__iter__") else (axis,)
    if len(axes) == 1: return vector_norm(t, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2: raise ValueError(f"linalg.norm: axis must be one or two axes, got {described(axis)}")
    if ord is None or ord == "fro": return vector_norm(t, 2, axes, keepdims)
    a, b = [lay.read_axis(d, t.layout.ndim) for d in axes]
    if a == b: raise ValueError(f"linalg.norm: the axes are both {a}; wanted two different ones")
    y = matrix_norm(permute(t, [d for d in range(t.layout.ndim) if d not in (a, b)] + [a, b]), ord)
    return expand_dims(y, (a, b)) if keepdims else y


norm = composed(norm, "linalg.norm")


@composed
def normalize(x: Data, ord: float = 2, axis: int | Sequence[int] | None = 1, eps: float = 1e-12) -> Tensor:
    """`x` divided by its `ord`-norm over `axis` (an int, several, or None for all), or by `eps` if that is larger, as
    in torch.nn.functional.normalize. See cygrad.norm."""
    cdef Tensor t = ensure_tensor(x)
    return t / maximum(vector_norm(t, ord, axis, True), eps)


@composed
def matrix_power(x: Data, n: int) -> Tensor:
    """Each matrix of `x` (..., m, m) to the power of the integer `n`, by squaring; negative powers are those of the
    inverse, and power 0 is the identity. Raises ValueError unless the matrices are square."""
    cdef Tensor t = ensure_tensor(x)
    n = lay.read_integer("matrix_power", "n", n, None, None, False)
    if t.layout.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ValueError(f"matrix_power: x is {t.shape}; wanted square matrices (..., m, m)")
    if n == 0: return copy(broadcast_to(eye(t.shape[-1], dtype=DTYPES[t.dtype]), t.shape))
    if n < 0: t, n = inv(t), -n
    if n == 1: return copy(t)
    square, y = t, None
    while True:
        if n & 1: y = square if y is None else matmul(y, square)
        n >>= 1
        if not n: return y
        square = matmul(square, square)


@composed
def matrix_rank(x: Data, rtol: Data | None = None) -> Tensor:
    """The rank of each matrix of `x` (..., m, n), an int64 tensor (...): how many singular values exceed `rtol` (max(m,
    n) times the machine epsilon if it is None) times the largest. Raises ValueError for fewer than two dimensions."""
    cdef Tensor t = ensure_tensor(x)
    if t.layout.ndim < 2: raise ValueError(f"matrix_rank: x is {t.shape}; wanted matrices (..., m, n)")
    s = svdvals(t.detach())
    if s.shape[-1] == 0: return zeros(s.shape[:-1], DTYPES[INT64])
    if rtol is None: rtol = max(t.shape[-2:]) * float(np.finfo(s.dtype).eps)
    else: rtol = expand_dims(rtol, -1) if isinstance(rtol, Tensor) and rtol.ndim else rtol
    return sum(greater(s, rtol * max_over(s, -1, True)), -1)


def diagonal(x: Data, offset: int = 0) -> Tensor:
    """numpy.linalg.diagonal: the diagonal of each matrix of `x` (..., m, n), a view. It starts `offset` columns to the
    right of the main one. cygrad.diagonal takes two axes, by default the first ones. Raises ValueError for fewer than
    two dimensions."""
    return diagonal_over(x, offset, -2, -1)


@composed
def trace(x: Data, offset: int = 0, dtype: npt.DTypeLike | None = None) -> Tensor:
    """numpy.linalg.trace: the sum of the diagonal of each matrix of `x` (..., m, n); see diagonal(). With `dtype`, x is
    converted first, and the result has it. cygrad.trace takes two axes, by default the first ones."""
    y = diagonal(x, offset)
    if dtype is None: return sum(y, -1)
    return astype(sum(astype(y, dtype), -1), dtype)         # (a sum of int32 is int64)
