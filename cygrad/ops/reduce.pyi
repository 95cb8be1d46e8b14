# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph import Operator
from cygrad.core.graph import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
class Reduction(Operator):
    pass
@final
class Mean(Reduction):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
@final
class Sum(Reduction):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
def mean(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def spread(c: Any, g: Any) -> Any: ...
def sum(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def sum_to(x: Any, shape: Any) -> Any: ...
