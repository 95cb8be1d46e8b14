# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.reduce import Reduction
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class Norm(Reduction):
    pass
class Spreading(Reduction):
    pass
@final
class Std(Spreading):
    pass
@final
class Var(Spreading):
    pass
def centred(c: Any) -> Any: ...
def divide(x: Any, y: Any, p: Any = 1) -> Any: ...
def norm(x: _Data, ord: float = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def std(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False, correction: float = 0) -> Tensor: ...
def var(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False, correction: float = 0) -> Tensor: ...
