# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph import Operator
from cygrad.core.graph import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class LocallyConstant(Operator):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
@final
class ScaleGradient(Operator):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
def locally_constant(z: Any, xs: Any) -> Any: ...
def scale_gradient(x: _Data, s: float) -> Tensor: ...
