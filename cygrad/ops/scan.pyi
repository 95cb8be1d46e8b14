# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class Cumsum(Operator):
    pass
def cumsum(x: _Data, axis: int | None = None) -> Tensor: ...
