# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

ACTIVATIONS: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class Activation(Attributes):
    @property
    def activation(self) -> Any: ...
@final
class Linear(Operator):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@final
class MatMul(Operator):
    pass
def linear(x: _Data, w: _Data, b: _Data | None = None, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def matmul(x: _Data, y: _Data) -> Tensor: ...
