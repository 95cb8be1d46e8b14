# Written by tools/make_stubs.py; do not edit.
from typing import Any, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@disjoint_base
class ChannelNorm(Operator):
    pass
@disjoint_base
class Epsilon(Attributes):
    @property
    def eps(self) -> Any: ...
@disjoint_base
class Groups(Attributes):
    def arguments(self) -> Any: ...
    @property
    def eps(self) -> Any: ...
    @property
    def groups(self) -> Any: ...
@final
class BatchNorm(ChannelNorm):
    def as_call(self, operands: Any, arguments: Any) -> Any: ...
@final
class BatchNormPredict(ChannelNorm):
    pass
class GroupNorms(ChannelNorm):
    pass
@final
class GroupNorm(GroupNorms):
    pass
@final
class InstanceNorm(GroupNorms):
    pass
def batch_norm(x: _Data, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: _Data | None = None, bias: _Data | None = None, training: bool | None = None, momentum: float = 0.1, eps: float = 1e-05) -> Tensor: ...
def batch_norm_predict(x: _Data, running_mean: Tensor, running_var: Tensor, weight: _Data | None = None, bias: _Data | None = None, eps: float = 1e-05) -> Tensor: ...
def batch_norm_with_statistics(x: _Data, weight: _Data | None = None, bias: _Data | None = None, eps: float = 1e-05) -> tuple[Tensor, Tensor]: ...
def group_norm(x: _Data, num_groups: int, weight: _Data | None = None, bias: _Data | None = None, eps: float = 1e-05) -> Tensor: ...
def instance_norm(x: _Data, weight: _Data | None = None, bias: _Data | None = None, eps: float = 1e-05) -> Tensor: ...
