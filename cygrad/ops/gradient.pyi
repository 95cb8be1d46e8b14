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
class Factor(Attributes):
    def arguments(self) -> Any: ...
    @property
    def factor(self) -> Any: ...
@final
class LocallyConstant(Operator):
    pass
@final
class ScaleGradient(Operator):
    pass
def locally_constant(z: Any, xs: Any) -> Any: ...
def scale_gradient(x: _Data, s: float) -> Tensor: ...
