# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class ArgSort(Operator):
    pass
@disjoint_base
class Best(Attributes):
    @property
    def axis(self) -> Any: ...
    @property
    def k(self) -> Any: ...
    @property
    def largest(self) -> Any: ...
@disjoint_base
class Order(Attributes):
    @property
    def axis(self) -> Any: ...
    @property
    def descending(self) -> Any: ...
@final
class SearchSorted(Operator):
    pass
@final
class Sort(Operator):
    pass
@final
class TopK(Operator):
    pass
def argsort(x: _Data, axis: int = -1, descending: bool = False) -> Tensor: ...
def searchsorted(x: _Data, v: _Data, side: Literal['left', 'right'] = 'left', sorter: _Data | None = None) -> Tensor: ...
def sort(x: _Data, axis: int = -1, descending: bool = False) -> Tensor: ...
def topk(x: _Data, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]: ...
def topk_places(x: _Data, k: int, axis: int = -1, largest: bool = True) -> Tensor: ...
