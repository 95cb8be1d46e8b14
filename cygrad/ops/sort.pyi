# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class ArgSort(Operator):
    pass
@final
class Sort(Operator):
    pass
@final
class TopK(Operator):
    pass
def argsort(x: _Data, axis: int = -1, descending: bool = False) -> Tensor: ...
def sort(x: _Data, axis: int = -1, descending: bool = False) -> Tensor: ...
def topk(x: _Data, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]: ...
