# Written by tools/make_stubs.py; do not edit.
from typing import Any, Literal, TypeAlias, final
import numpy.typing as npt
from cygrad.core.graph import Operator
from cygrad.core.graph import Tensor
_Data: TypeAlias = Tensor | npt.ArrayLike

DTYPES: tuple[Any, ...]
OPERATORS: dict[Any, Any]
@final
class BceWithLogits(Operator):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
class LabelLoss(Operator):
    pass
@final
class Mse(Operator):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
@final
class CrossEntropy(LabelLoss):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
@final
class Nll(LabelLoss):
    def formula(self, c: Any, i: Any, g: Any) -> Any: ...
def bce_with_logits(x: _Data, targets: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def cross_entropy(x: _Data, labels: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def mse(x: _Data, y: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
def nll(log_probabilities: _Data, labels: _Data, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Tensor: ...
