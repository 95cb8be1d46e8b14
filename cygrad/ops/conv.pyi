# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
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
class Bilinear(Operator):
    pass
@disjoint_base
class Sliding(Attributes):
    @property
    def stride(self) -> Any: ...
    @property
    def low(self) -> Any: ...
    @property
    def dilation(self) -> Any: ...
    @property
    def size(self) -> Any: ...
    @property
    def groups(self) -> Any: ...
    @property
    def activation(self) -> Any: ...
@final
class Convolution(Bilinear):
    pass
@final
class TransposedConvolution(Bilinear):
    pass
@final
class WeightGradient(Bilinear):
    pass
def conv1d(x: _Data, weight: _Data, bias: _Data | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | Literal['same', 'valid'] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def conv2d(x: _Data, weight: _Data, bias: _Data | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | Literal['same', 'valid'] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def conv3d(x: _Data, weight: _Data, bias: _Data | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] | Literal['same', 'valid'] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def conv_transpose1d(x: _Data, weight: _Data, bias: _Data | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def conv_transpose2d(x: _Data, weight: _Data, bias: _Data | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def conv_transpose3d(x: _Data, weight: _Data, bias: _Data | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1, *, activation: Literal['relu', 'tanh', 'sigmoid'] | None = None) -> Tensor: ...
def conv_weight(x: _Data, y: _Data, size: Sequence[int], stride: Sequence[int], low: Sequence[int], dilation: Sequence[int], groups: int = 1) -> Tensor: ...
