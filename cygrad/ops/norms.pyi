# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
def matrix_norm(x: _Data, ord: float | Literal['fro', 'nuc'] = 'fro', keepdims: bool = False) -> Tensor: ...
def matrix_power(x: _Data, n: int) -> Tensor: ...
def norm(x: _Data, ord: float | Literal['fro', 'nuc'] | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
