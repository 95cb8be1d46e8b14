# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class BceWithLogits(Operator):
    pass
@final
class Mse(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@disjoint_base
class Reduced(Attributes):
    @property
    def reduction(self) -> Any: ...
def bce_with_logits(x: _Data, targets: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def mean_square(difference: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def mse(x: _Data, y: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
