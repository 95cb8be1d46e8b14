# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Axes(Attributes):
    @property
    def mask(self) -> Any: ...
    @property
    def keepdims(self) -> Any: ...
class Reduction(Operator):
    pass
@final
class AnyAll(Reduction):
    pass
@final
class Mean(Reduction):
    pass
@final
class Prod(Reduction):
    pass
@final
class Sum(Reduction):
    pass
def all(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def any(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def extended(x: Any) -> Any: ...
def kept_axes(c: Any, t: Any) -> Any: ...
def mean(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def prod(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def reduced(c: Any) -> Any: ...
def spread(c: Any, g: Any) -> Any: ...
def sum(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def sum_to(x: Any, shape: Any) -> Any: ...
