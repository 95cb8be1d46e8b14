# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class Cumprod(Operator):
    pass
@final
class Cumsum(Operator):
    pass
@final
class ExtremePlaces(Operator):
    pass
@final
class Recurrence(Operator):
    pass
@disjoint_base
class Scan(Attributes):
    @property
    def axis(self) -> Any: ...
    @property
    def reverse(self) -> Any: ...
def cummax(x: _Data, axis: int | None = None) -> tuple[Tensor, Tensor]: ...
def cummax_places(x: _Data, axis: int) -> Tensor: ...
def cummin(x: _Data, axis: int | None = None) -> tuple[Tensor, Tensor]: ...
def cummin_places(x: _Data, axis: int) -> Tensor: ...
def cumprod(x: _Data, axis: int | None = None) -> Tensor: ...
def cumsum(x: _Data, axis: int | None = None) -> Tensor: ...
def cumsum_reversed(x: _Data, axis: int) -> Tensor: ...
def recurrence(x: _Data, a: _Data, axis: int, reverse: bool = False) -> Tensor: ...
