# Written by tools/make_stubs.py; do not edit.
from typing import Any, NamedTuple, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.decompose import OfMatrices
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
@final
class Cofactor(OfMatrices):
    pass
class Determinant(OfMatrices):
    pass
@final
class Det(Determinant):
    pass
@final
class SLogDet(Determinant):
    pass
def cofactor(x: _Data) -> Tensor: ...
def det(x: _Data) -> Tensor: ...
def slogdet(x: _Data) -> SlogdetResult: ...
