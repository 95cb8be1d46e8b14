# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, final
from typing_extensions import disjoint_base
import numpy.typing as npt
from cygrad.core.graph.attributes import Attributes
from cygrad.core.graph.operator import Operator
from cygrad.core.graph.tensor import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@disjoint_base
class Resampling(Operator):
    pass
@disjoint_base
class Resizing(Attributes):
    @property
    def mode(self) -> Any: ...
    @property
    def align_corners(self) -> Any: ...
    @property
    def size(self) -> Any: ...
    @property
    def out(self) -> Any: ...
    @property
    def scale(self) -> Any: ...
@final
class Interpolate(Resampling):
    pass
@final
class InterpolateBack(Resampling):
    pass
def interpolate(x: _Data, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None, mode: Literal['nearest', 'linear', 'bilinear', 'bicubic', 'trilinear'] = 'nearest', align_corners: bool | None = None) -> Tensor: ...
def interpolate_back(y: _Data, size: Sequence[int], mode: str = 'nearest', align_corners: bool = False, scale: Sequence[float] | None = None) -> Tensor: ...
def interpolate_scaled(x: _Data, size: Sequence[int], scale: Sequence[float], mode: str = 'nearest', align_corners: bool = False) -> Tensor: ...
def pixel_shuffle(x: _Data, upscale_factor: int) -> Tensor: ...
def pixel_unshuffle(x: _Data, downscale_factor: int) -> Tensor: ...
