# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.classes import ClassLoss
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class CrossEntropy(ClassLoss):
    pass
@final
class NllLoss(ClassLoss):
    pass
@final
class SoftCrossEntropy(ClassLoss):
    pass
def cross_entropy(x: _Data, target: _Data, weight: _Data | None = None, ignore_index: int = -100, reduction: Literal['mean', 'sum', 'none'] = 'mean', label_smoothing: float = 0.0) -> Tensor: ...
def cross_entropy_along(x: _Data, target: _Data, weight: _Data | None = None, axis: int = -1, ignore_index: int = -100, reduction: Literal['mean', 'sum', 'none'] = 'mean', label_smoothing: float = 0.0) -> Tensor: ...
def nll_loss(x: _Data, target: _Data, weight: _Data | None = None, ignore_index: int = -100, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def soft_cross_entropy(x: _Data, probabilities: _Data, weight: _Data | None = None, reduction: Literal['mean', 'sum', 'none'] = 'mean', label_smoothing: float = 0.0) -> Tensor: ...
def soft_cross_entropy_along(x: _Data, probabilities: _Data, weight: _Data | None = None, axis: int = -1, reduction: Literal['mean', 'sum', 'none'] = 'mean', label_smoothing: float = 0.0) -> Tensor: ...
