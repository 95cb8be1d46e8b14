# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class RowNorm(Operator):
    pass
@disjoint_base
class Rows(Attributes):
    def arguments(self) -> Any: ...
    @property
    def eps(self) -> Any: ...
    @property
    def ndim(self) -> Any: ...
@final
class LayerNorm(RowNorm):
    pass
@final
class RmsNorm(RowNorm):
    pass
def layer_norm(x: _Data, weight: _Data | None = None, bias: _Data | None = None, eps: float = 1e-05, axes: int | Sequence[int] | None = None) -> Tensor: ...
def rms_norm(x: _Data, weight: _Data | None = None, eps: float | None = None, axes: int | Sequence[int] | None = None) -> Tensor: ...
