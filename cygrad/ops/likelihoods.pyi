# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph.tensor import Tensor
from cygrad.ops.criteria import Criterion
_Data: TypeAlias = Tensor | npt.ArrayLike

OPERATORS: dict[Any, Any]
@final
class BinaryCrossEntropy(Criterion):
    variants: tuple[Any, ...]
@final
class BinaryCrossEntropyWithLogits(Criterion):
    variants: tuple[Any, ...]
@final
class GaussianNllLoss(Criterion):
    variants: tuple[Any, ...]
@final
class KlDiv(Criterion):
    variants: tuple[Any, ...]
    second: tuple[Any, ...]
@final
class PoissonNllLoss(Criterion):
    variants: tuple[Any, ...]
    second: tuple[Any, ...]
@final
class SoftMarginLoss(Criterion):
    variants: tuple[Any, ...]
def bce_with_pos_weight(x: _Data, target: _Data, pos_weight: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def binary_cross_entropy(x: _Data, target: _Data, weight: _Data | None = None, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def binary_cross_entropy_with_logits(x: _Data, target: _Data, weight: _Data | None = None, reduction: Literal['mean', 'sum', 'none'] = 'mean', pos_weight: _Data | None = None) -> Tensor: ...
def gaussian_nll_loss(x: _Data, target: _Data, var: _Data, full: bool = False, eps: float = 1e-06, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def kl_div(x: _Data, target: _Data, reduction: Literal['mean', 'sum', 'none', 'batchmean'] = 'mean', log_target: bool = False) -> Tensor: ...
def poisson_nll_loss(x: _Data, target: _Data, log_input: bool = True, full: bool = False, eps: float = 1e-08, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def soft_margin_loss(x: _Data, target: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
