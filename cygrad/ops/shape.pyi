# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.base import View
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class Cast(Operator):
    pass
@final
class Copy(Operator):
    pass
@disjoint_base
class DType(Attributes):
    @property
    def dtype(self) -> Any: ...
@disjoint_base
class Dimensions(Attributes):
    def arguments(self) -> Any: ...
    @property
    def mask(self) -> Any: ...
@disjoint_base
class Permutation(Attributes):
    @property
    def axes(self) -> Any: ...
@final
class Reshape(Operator):
    pass
@disjoint_base
class Shape(Attributes):
    @property
    def shape(self) -> Any: ...
@final
class BroadcastTo(View):
    pass
@final
class ExpandDims(View):
    pass
@final
class Flip(View):
    pass
class Reorder(View):
    pass
@final
class Squeeze(View):
    pass
@final
class Permute(Reorder):
    pass
@final
class Transpose(Reorder):
    pass
def astype(x: _Data, dtype: npt.DTypeLike) -> Tensor: ...
def broadcast_to(x: _Data, shape: int | Sequence[int]) -> Tensor: ...
def copy(x: _Data) -> Tensor: ...
def cpu(x: _Data) -> Tensor: ...
def double(x: _Data) -> Tensor: ...
def expand_dims(x: _Data, axis: int | Sequence[int]) -> Tensor: ...
def flatten(x: _Data, start: int = 0, end: int = -1) -> Tensor: ...
def flip(x: _Data, axis: int | Sequence[int] | None = None) -> Tensor: ...
def matrix_transpose(x: _Data) -> Tensor: ...
def permute(x: _Data, *axes: int | Sequence[int] | None) -> Tensor: ...
def reshape(x: _Data, *shape: int | Sequence[int]) -> Tensor: ...
def single(x: _Data) -> Tensor: ...
def squeeze(x: _Data, axis: int | Sequence[int] | None = None) -> Tensor: ...
def swapaxes(x: _Data, axis1: int, axis2: int) -> Tensor: ...
def transpose(x: _Data, *axes: int | Sequence[int] | None) -> Tensor: ...
