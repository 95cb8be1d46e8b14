# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.criteria import Criterion
from cygrad.ops.criteria import Signed
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class HuberLoss(Criterion):
    variants: tuple[Any, ...]
@final
class SmoothL1Loss(Criterion):
    variants: tuple[Any, ...]
@final
class L1Loss(Signed):
    variants: tuple[Any, ...]
    sign: str
def cosine_similarity(x1: _Data, x2: _Data, axis: int = 1, eps: float = 1e-08) -> Tensor: ...
def huber_loss(x: _Data, target: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean', delta: float = 1.0) -> Tensor: ...
def l1_loss(x: _Data, target: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def pairwise_distance(x1: _Data, x2: _Data, p: float = 2.0, eps: float = 1e-06, keepdims: bool = False) -> Tensor: ...
def smooth_l1_loss(x: _Data, target: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean', beta: float = 1.0) -> Tensor: ...
