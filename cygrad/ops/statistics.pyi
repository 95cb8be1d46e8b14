# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.reduce import Axes
from cygrad.ops.reduce import Reduction
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class Corrected(Axes):
    @property
    def correction(self) -> Any: ...
@final
class Norm(Reduction):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@disjoint_base
class Ordered(Axes):
    @property
    def ord(self) -> Any: ...
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
