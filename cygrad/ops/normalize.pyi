# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class Epsilon(Attributes):
    @property
    def eps(self) -> Any: ...
@final
class LayerNorm(Operator):
    pass
def layer_norm(x: _Data, weight: _Data, bias: _Data, eps: float = 1e-05) -> Tensor: ...
