# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, NamedTuple, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class Half(Attributes):
    @property
    def upper(self) -> Any: ...
class OfMatrices(Operator):
    pass
class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor
@disjoint_base
class Whole(Attributes):
    @property
    def full(self) -> Any: ...
@final
class Cholesky(OfMatrices):
    pass
@final
class QR(OfMatrices):
    pass
def cholesky(x: _Data, upper: bool = False) -> Tensor: ...
def qr(x: _Data, mode: Literal['reduced', 'complete'] = 'reduced') -> QRResult: ...
