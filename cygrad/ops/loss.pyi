# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph import Operator
from cygrad.core.graph import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class CrossEntropy(Operator):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
@final
class LogSoftmax(Operator):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
def cross_entropy(x: _Data, labels: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def log_softmax(x: _Data, axis: int = -1) -> Tensor: ...
