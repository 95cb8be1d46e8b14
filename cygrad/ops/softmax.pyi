# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.reduce import Reduction
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class ByRows(Operator):
    pass
@final
class LogSoftmax(ByRows):
    pass
@final
class LogSumExp(Reduction):
    pass
@final
class Softmax(ByRows):
    pass
def log_softmax(x: _Data, axis: int = -1) -> Tensor: ...
def logsumexp(x: _Data, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor: ...
def softmax(x: _Data, axis: int = -1) -> Tensor: ...
