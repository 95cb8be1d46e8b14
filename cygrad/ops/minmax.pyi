# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.reduce import Reduction
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class Extreme(Reduction):
    pass
@final
class Place(Reduction):
    pass
@final
class Max(Extreme):
    pass
@final
class Min(Extreme):
    pass
def argmax(x: _Data, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
def argmin(x: _Data, axis: int | None = None, keepdims: bool = False) -> Tensor: ...
def max(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def min(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
