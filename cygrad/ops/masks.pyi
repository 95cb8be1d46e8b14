# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class KeptMask(Operator):
    pass
@disjoint_base
class MaskDimensions(Attributes):
    def arguments(self) -> Any: ...
    @property
    def ndim(self) -> Any: ...
@final
class MaskPut(Operator):
    pass
@final
class Select(Operator):
    pass
def kept_mask(x: _Data, shape: int | Sequence[int]) -> Tensor: ...
def mask_put(x: _Data, v: _Data, mask: _Data) -> Tensor: ...
def select(x: _Data, mask: _Data) -> Tensor: ...
