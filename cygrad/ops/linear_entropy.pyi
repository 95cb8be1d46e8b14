# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class LinearCrossEntropy(Operator):
    pass
def linear_cross_entropy(x: _Data, weight: _Data, target: _Data, bias: _Data | None = None, *, ignore_index: int = -100, reduction: Literal['mean', 'sum', 'none'] = 'mean', label_smoothing: float = 0.0, chunk: int = 256) -> Tensor: ...
