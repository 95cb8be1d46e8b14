# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class AsView(Operator):
    pass
@final
class PutView(Operator):
    pass
def as_view(x: _Data, shape: int | Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor: ...
def put_view(x: _Data, v: _Data, strides: Sequence[int], offset: int = 0) -> Tensor: ...
